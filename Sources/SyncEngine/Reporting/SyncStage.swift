/// The stages of a pass, in their order.
///
/// With ``RemovalTiming/beforeDownloads`` the removals come right after the preparation.
public enum SyncStage: Int, Hashable, Sendable, CaseIterable, Comparable, CustomStringConvertible {
    /// The processor is told that a pass begins.
    case begin
    /// The remote list is read to its end.
    case sourceList
    /// The local side is listed.
    case localInventory
    /// Both are compared.
    case plan
    /// The plan is looked at before anything is done.
    case safetyGate
    /// The processor is told what is about to be done.
    case prepare
    /// Previews are downloaded.
    case previews
    /// Contents are downloaded.
    case contents
    /// What the source no longer has is removed.
    case removals
    /// The processor is told that the pass has ended.
    case end

    /// Whether `lhs` comes before `rhs`.
    public static func < (lhs: SyncStage, rhs: SyncStage) -> Bool { lhs.rawValue < rhs.rawValue }

    /// The stage in words.
    public var description: String {
        switch self {
        case .begin: "begin"
        case .sourceList: "source list"
        case .localInventory: "local inventory"
        case .plan: "plan"
        case .safetyGate: "safety gate"
        case .prepare: "prepare"
        case .previews: "previews"
        case .contents: "contents"
        case .removals: "removals"
        case .end: "end"
        }
    }
}
