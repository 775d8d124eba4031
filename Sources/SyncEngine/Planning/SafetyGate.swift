/// The check of a plan before anything is changed; it stops plans that suggest a faulty list.
enum SafetyGate {
    /// The smallest number of local items for which shares are meaningful.
    static let floor = 20

    struct Counts: Hashable, Sendable {
        var source: Int
        var local: Int
        var removals: Int
        var updates: Int
    }

    /// Returns the reason why a plan must not be carried out; `nil` if it may be carried out.
    static func refusal(of plan: SyncPlan<some SyncItem>, options: SyncOptions, overrides: SyncOverrides) -> SyncError? {
        if plan.sourceCount == 0, plan.excludedCount > 0, !overrides.contains(.emptySource) {
            return .ofPlan(
                .everythingExcluded,
                "the filter excludes all of \(counted(plan.excludedCount, "item")) in the remote list; nothing was changed; "
                    + "correct the patterns, or call sync(overriding: .emptySource)")
        }
        return refusal(of: plan.gateCounts, removalLimit: options.removalLimit, updateLimit: options.updateLimit, overrides: overrides)
    }

    static func refusal(
        of counts: Counts, removalLimit: ChangeLimit, updateLimit: ChangeLimit, overrides: SyncOverrides
    ) -> SyncError? {
        let (source, local, removals, updates) = (counts.source, counts.local, counts.removals, counts.updates)
        if source == 0, local > 0, !overrides.contains(.emptySource) {
            return .ofPlan(
                .emptySource,
                "the remote list is empty, but the local side has \(counted(local, "item")); nothing was removed; "
                    + "if the list really is empty, call sync(overriding: .emptySource)")
        }
        // A caller that expects an empty list expects every removal.
        if source == 0 { return nil }
        if !overrides.contains(.removalLimit), removalLimit.isExceeded(by: removals, local: local) {
            return .ofPlan(
                .removalLimit,
                "it would remove \(removals) of \(counted(local, "local item")), more than \(removalLimit); "
                    + "nothing was replaced or removed; if this is intended, call sync(overriding: .removalLimit)")
        }
        if local >= floor, removals + updates == local {
            // A caller that expects everything to change expects more updates than any limit.
            if overrides.contains(.everythingChanged) { return nil }
            return .ofPlan(
                .everythingChanged,
                "none of \(counted(local, "local item")) equals the source (\(updates) changed, \(removals) removed); "
                    + "nothing was replaced or removed; if this is intended, call sync(overriding: .everythingChanged)")
        }
        if !overrides.contains(.updateLimit), updateLimit.isExceeded(by: updates, local: local) {
            return .ofPlan(
                .updateLimit,
                "it would replace \(updates) of \(counted(local, "local item")), more than \(updateLimit); "
                    + "nothing was replaced or removed; if the source has changed that much, call sync(overriding: .updateLimit)")
        }
        return nil
    }
}

extension SyncPlan {
    /// The counts of this plan that the gate examines.
    ///
    /// A move counts as no removal, and as an update only if it replaces content that is then nowhere.
    ///
    /// A foreign item that is not an edit counts neither as a local item nor as an update. No version of it is known, so the source cannot
    /// have changed it.
    fileprivate var gateCounts: SafetyGate.Counts {
        let replacing = replacingMoves
        let unknown = [updates, replacing].joined().count { $0.local.map { $0.isForeign && !$0.isEdited } ?? false }
        return SafetyGate.Counts(
            source: sourceCount, local: localCount - unknown, removals: removals.count,
            updates: updates.count + replacing.count - unknown + refusedUpdateCount)
    }
}

extension SyncError {
    /// Refuses a plan before anything is changed.
    static func ofPlan(_ code: Code, _ reason: String) -> SyncError {
        SyncError(code, "cannot carry out the plan: \(reason)", stage: .safetyGate)
    }
}

/// Returns a count with its noun in the singular or plural.
func counted(_ count: Int, _ thing: String) -> String { count == 1 ? "1 \(thing)" : "\(count) \(thing)s" }

/// The refusals of the safety gate that a run overrides.
///
/// <doc:WhatIsRemoved> explains the safety gate.
public struct SyncOverrides: OptionSet, Hashable, Sendable {
    /// One bit for each refusal that is overridden.
    public let rawValue: Int

    /// Creates a set of overrides from bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Lets an empty remote list remove every local item, and a filter exclude every item of the list.
    public static let emptySource = SyncOverrides(rawValue: 1 << 0)
    /// Lets a run remove more than `removalLimit` allows.
    public static let removalLimit = SyncOverrides(rawValue: 1 << 1)
    /// Lets a run replace or remove every local item.
    public static let everythingChanged = SyncOverrides(rawValue: 1 << 2)
    /// Lets a run replace more than `updateLimit` allows.
    public static let updateLimit = SyncOverrides(rawValue: 1 << 3)
    /// Lets most of the replaced items receive the same content.
    public static let sharedContent = SyncOverrides(rawValue: 1 << 4)
}

/// The largest number of local items that one pass may remove or replace.
public enum ChangeLimit: Hashable, Sendable, CustomStringConvertible {
    /// A share of the local items, from 0 to 1; applies to 20 or more local items.
    case share(Double)
    /// A number of items, independent of the number of local items.
    case count(Int)
    /// No limit. An empty list is still refused, and so is a plan that changes every one of at least 20 items.
    case unlimited

    func isExceeded(by changes: Int, local: Int) -> Bool {
        switch self {
        // Negates the comparison, so that a share that is NaN allows nothing.
        case .share(let share): local >= SafetyGate.floor && changes > 0 && !(Double(changes) <= share * Double(local))
        case .count(let count): changes > max(0, count)
        case .unlimited: false
        }
    }

    /// A textual description of the limit.
    public var description: String {
        switch self {
        case .share(let share) where (0...1).contains(share): "\(Int((share * 100).rounded())) %"
        case .share(let share): "a share of \(share)"
        case .count(let count): "\(count)"
        case .unlimited: "everything"
        }
    }
}
