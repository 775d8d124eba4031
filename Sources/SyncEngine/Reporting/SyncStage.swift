/// The stages of a pass in their order.
///
/// With ``RemovalTiming/beforeDownloads``, the removals come right after the preparation.
public enum SyncStage: Int, Hashable, Sendable, CaseIterable, Comparable, CustomStringConvertible {
    /// The processor prepares for a pass.
    case begin
    /// The remote list is read to its end.
    case sourceList
    /// The local side is listed, with the versions of its items.
    case localInventory
    /// The two sides are compared, and the processor is asked about differences.
    case plan
    /// The plan is checked before anything is changed.
    case safetyGate
    /// The processor chooses the downloads and their order.
    case prepare
    /// Items are moved if their content exists locally under another key.
    case moves
    /// Previews are downloaded, all of them before the first content.
    case previews
    /// Contents are downloaded and installed, except items left out.
    case contents
    /// Items that the source no longer has are removed.
    case removals
    /// Times, permissions and other metadata are changed.
    case metadata
    /// The processor ends the pass, with or without failures.
    case end

    /// Returns whether `lhs` comes before `rhs`.
    public static func < (lhs: SyncStage, rhs: SyncStage) -> Bool { lhs.rawValue < rhs.rawValue }

    /// The name of the stage in words, such as `source list`.
    public var description: String {
        switch self {
        case .begin: "begin"
        case .sourceList: "source list"
        case .localInventory: "local inventory"
        case .plan: "plan"
        case .safetyGate: "safety gate"
        case .prepare: "prepare"
        case .moves: "moves"
        case .previews: "previews"
        case .contents: "contents"
        case .removals: "removals"
        case .metadata: "metadata"
        case .end: "end"
        }
    }
}
