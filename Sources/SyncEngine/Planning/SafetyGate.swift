/// Looks at a plan before anything is done, and stops what is more likely a fault of the list than the will of its owner.
enum SafetyGate {
    /// From so many local items on, shares mean something.
    static let floor = 20

    /// Why a plan must not be carried out.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - limit: How much may be removed.
    ///   - overrides: What was allowed by name for this run.
    /// - Returns: `nil` where it may be carried out.
    static func refusal(of plan: SyncPlan<some SyncItem>, limit: RemovalLimit, overrides: SyncOverrides) -> SyncError? {
        refusal(
            source: plan.sourceCount, local: plan.localCount, removals: plan.removals.count,
            updates: plan.updates.count + plan.refusedUpdateCount, limit: limit, overrides: overrides)
    }

    static func refusal(
        source: Int, local: Int, removals: Int, updates: Int, limit: RemovalLimit, overrides: SyncOverrides
    ) -> SyncError? {
        if source == 0, local > 0, !overrides.contains(.emptySource) {
            return SyncError(
                .emptySource,
                "checking the plan: the remote list is empty and the local one has \(counted(local, "item")); nothing was removed. "
                    + "If the list really is empty, call sync(overriding: .emptySource)",
                stage: .safetyGate)
        }
        // Whoever has said that the list really is empty has said that everything goes.
        let isMeantEmpty = source == 0 && overrides.contains(.emptySource)
        if !isMeantEmpty, !overrides.contains(.removalLimit), limit.isExceeded(removals: removals, local: local) {
            return SyncError(
                .removalLimit,
                "checking the plan: \(removals) of \(counted(local, "local item")) would be removed, more than \(limit); "
                    + "nothing was replaced or removed. If that is right, call sync(overriding: .removalLimit)",
                stage: .safetyGate)
        }
        if !isMeantEmpty, local >= floor, removals + updates == local, !overrides.contains(.everythingChanged) {
            return SyncError(
                .everythingChanged,
                "checking the plan: of \(counted(local, "local item")) not one is as the source has it (\(updates) changed, \(removals) gone); "
                    + "nothing was replaced or removed. If that is right, call sync(overriding: .everythingChanged)",
                stage: .safetyGate)
        }
        return nil
    }
}

/// A number of things, in words.
func counted(_ count: Int, _ thing: String) -> String { count == 1 ? "1 \(thing)" : "\(count) \(thing)s" }

/// What the safety gate lets pass in one run.
public struct SyncOverrides: OptionSet, Hashable, Sendable {
    /// The overrides as bits.
    public let rawValue: Int

    /// Makes a set of overrides from bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// An empty remote list empties the local side.
    public static let emptySource = SyncOverrides(rawValue: 1 << 0)
    /// More is removed than `removalLimit` allows.
    public static let removalLimit = SyncOverrides(rawValue: 1 << 1)
    /// Every local item is replaced or removed.
    public static let everythingChanged = SyncOverrides(rawValue: 1 << 2)
}

/// How much one pass may remove.
public enum RemovalLimit: Hashable, Sendable, CustomStringConvertible {
    /// A share of the local items, from 0 to 1; it counts from 20 local items on.
    case share(Double)
    /// So many items, however many there are.
    case count(Int)
    /// As much as the list says; an empty list is refused all the same.
    case unlimited

    func isExceeded(removals: Int, local: Int) -> Bool {
        switch self {
        // So written that a share that is no number allows nothing.
        case .share(let share): local >= SafetyGate.floor && removals > 0 && !(Double(removals) <= share * Double(local))
        case .count(let count): removals > max(0, count)
        case .unlimited: false
        }
    }

    /// The limit in words.
    public var description: String {
        switch self {
        case .share(let share) where (0...1).contains(share): "\(Int((share * 100).rounded())) %"
        case .share(let share): "a share of \(share)"
        case .count(let count): "\(count)"
        case .unlimited: "everything"
        }
    }
}
