/// Looks at a plan before anything is done, and stops what is more likely a fault of the list than the will of its owner.
enum SafetyGate {
    /// From so many local items on, shares mean something.
    static let floor = 20

    /// The counts of a plan that the gate judges by.
    struct Counts: Hashable, Sendable {
        var source: Int
        var local: Int
        var removals: Int
        var updates: Int
    }

    /// The reason why a plan must not be carried out.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - options: The limits for removals and updates.
    ///   - overrides: The refusals that are overridden for this run.
    /// - Returns: `nil` where it may be carried out.
    static func refusal(of plan: SyncPlan<some SyncItem>, options: SyncOptions, overrides: SyncOverrides) -> SyncError? {
        refusal(of: plan.gateCounts, removalLimit: options.removalLimit, updateLimit: options.updateLimit, overrides: overrides)
    }

    static func refusal(
        of counts: Counts, removalLimit: ChangeLimit, updateLimit: ChangeLimit, overrides: SyncOverrides
    ) -> SyncError? {
        let (source, local, removals, updates) = (counts.source, counts.local, counts.removals, counts.updates)
        if source == 0, local > 0, !overrides.contains(.emptySource) {
            return SyncError(
                .emptySource,
                "checking the plan: the remote list is empty and the local one has \(counted(local, "item")); nothing was removed. "
                    + "If the list really is empty, call sync(overriding: .emptySource)",
                stage: .safetyGate)
        }
        // A caller that expects an empty list expects that everything is removed.
        if source == 0 { return nil }
        if !overrides.contains(.removalLimit), removalLimit.isExceeded(by: removals, local: local) {
            return SyncError(
                .removalLimit,
                "checking the plan: \(removals) of \(counted(local, "local item")) would be removed, more than \(removalLimit); "
                    + "nothing was replaced or removed. If that is right, call sync(overriding: .removalLimit)",
                stage: .safetyGate)
        }
        if local >= floor, removals + updates == local {
            // A caller that expects everything to change expects more updates than any limit.
            if overrides.contains(.everythingChanged) { return nil }
            return SyncError(
                .everythingChanged,
                "checking the plan: of \(counted(local, "local item")) not one is as the source has it (\(updates) changed, \(removals) gone); "
                    + "nothing was replaced or removed. If that is right, call sync(overriding: .everythingChanged)",
                stage: .safetyGate)
        }
        if !overrides.contains(.updateLimit), updateLimit.isExceeded(by: updates, local: local) {
            return SyncError(
                .updateLimit,
                "checking the plan: \(updates) of \(counted(local, "local item")) would be replaced, more than \(updateLimit); "
                    + "nothing was replaced or removed. If the source has changed that much, call sync(overriding: .updateLimit)",
                stage: .safetyGate)
        }
        return nil
    }
}

extension SyncPlan {
    /// The counts of this plan that the gate judges by.
    ///
    /// An item that no sync has put here, and that is not an edit, counts neither as local nor as an update: nothing of it is known that the
    /// source could have changed.
    fileprivate var gateCounts: SafetyGate.Counts {
        let unknown = updates.count { $0.local.map { $0.isForeign && !$0.isEdited } ?? false }
        return SafetyGate.Counts(
            source: sourceCount, local: localCount - unknown, removals: removals.count,
            updates: updates.count - unknown + refusedUpdateCount)
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
    /// More is replaced than `updateLimit` allows.
    public static let updateLimit = SyncOverrides(rawValue: 1 << 3)
    /// Most of the replaced items get the same content.
    public static let sharedContent = SyncOverrides(rawValue: 1 << 4)
}

/// The number of local items that one pass may remove, or replace.
public enum ChangeLimit: Hashable, Sendable, CustomStringConvertible {
    /// A share of the local items, from 0 to 1; it applies from 20 local items on.
    case share(Double)
    /// A number of items, however many there are.
    case count(Int)
    /// Any number. An empty list, and one that changes every item, are refused all the same.
    case unlimited

    func isExceeded(by changes: Int, local: Int) -> Bool {
        switch self {
        // So written that a share that is no number allows nothing.
        case .share(let share): local >= SafetyGate.floor && changes > 0 && !(Double(changes) <= share * Double(local))
        case .count(let count): changes > max(0, count)
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
