/// Puts a plan together from pairs of items that belong to each other, or have no partner.
struct PlanBuilder<Item: SyncItem>: Sendable {
    private(set) var plan = SyncPlan<Item>()
    private let localEdits: LocalEdits
    private let duplicates: DuplicateKeys

    init(localEdits: LocalEdits, duplicates: DuplicateKeys) {
        self.localEdits = localEdits
        self.duplicates = duplicates
    }

    /// An item that is not here.
    mutating func added(_ item: Item) {
        plan.sourceCount += 1
        plan.additions.append(SyncPlan.Download(item: item, local: nil, reason: .missing))
    }

    /// An item that both sides have.
    @inline(__always)
    mutating func paired(_ item: Item, _ entry: LocalEntry<Item>) {
        if entry.isSame(as: item) {
            same()
        } else {
            plan.sourceCount += 1
            plan.localCount += 1
            differing(item, entry)
        }
    }

    /// An item that is here as the source has it.
    @inline(__always)
    mutating func same() {
        plan.sourceCount += 1
        plan.localCount += 1
        plan.unchangedCount += 1
    }

    private mutating func differing(_ item: Item, _ entry: LocalEntry<Item>) {
        // It may be what the source has all the same, whoever has put it here: that is asked before it is kept as an edit.
        let reason: SyncPlan<Item>.DownloadReason =
            entry.isEdited ? .editedLocally : entry.version == nil ? .unknownVersion : .changed
        plan.updates.append(SyncPlan.Download(item: item, local: entry, reason: reason))
    }

    /// An item that only the local side has.
    mutating func gone(_ entry: LocalEntry<Item>) {
        // What no sync has put here is no part of the local side.
        if entry.isForeign { return }
        plan.localCount += 1
        guard entry.isEdited else {
            plan.removals.append(SyncPlan.Removal(local: entry, reason: .notInSource))
            return
        }
        switch localEdits {
        case .overwrite: plan.removals.append(SyncPlan.Removal(local: entry, reason: .editedLocally))
        case .keepLocal: plan.keptEdits.append(entry.key)
        }
    }

    /// A key that the source has once more.
    mutating func duplicated(_ key: Item.Key) { plan.duplicates.append(key) }

    /// The plan, or what is wrong with the source's keys.
    consuming func finish() throws(SyncError) -> SyncPlan<Item> {
        if duplicates == .refuse, let first = plan.duplicates.first {
            throw SyncError(
                .duplicateKeys,
                "reading the remote list: it has \(counted(plan.duplicates.count, "key")) more than once, first “\(first)”; "
                    + "mend the list, or choose by SyncOptions.duplicates which item counts",
                stage: .sourceList)
        }
        return plan
    }
}

extension LocalEntry {
    /// Whether it is what the source has, and nobody has changed it since.
    @inline(__always)
    func isSame(as item: Item) -> Bool { !isEdited && version == item.version }
}

extension SyncPlan {
    /// Takes back updates that turn out to be none.
    ///
    /// - Parameters:
    ///   - localEdits: What becomes of what was edited here.
    ///   - isNeeded: Whether another version must really be downloaded; edits that are overwritten are not asked about.
    mutating func settleUpdates(localEdits: LocalEdits, isNeeded: (Item, LocalEntry<Item>) async throws -> Bool) async throws {
        var kept: [Download] = []
        for update in updates {
            guard let local = update.local else { continue }
            let isKept = localEdits == .keepLocal && (local.isEdited || local.isForeign)
            if isKept || !local.isEdited || local.isForeign, try await !isNeeded(update.item, local) {
                unchangedCount += 1
            } else if isKept {
                keptEdits.append(local.key)
            } else {
                kept.append(update)
            }
        }
        updates = kept
    }

    /// Takes out what is refused.
    mutating func refuse(_ refused: [SyncRefusal<Item.Key>]) {
        guard !refused.isEmpty else { return }
        refusals += refused
        let keys = Set(refused.lazy.map(\.key))
        additions.removeAll { keys.contains($0.item.key) }
        let count = updates.count
        updates.removeAll { keys.contains($0.item.key) }
        refusedUpdateCount = count - updates.count
    }
}
