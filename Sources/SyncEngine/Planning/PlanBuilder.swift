/// A plan under construction, built from pairs of items and from items without a counterpart.
struct PlanBuilder<Item: SyncItem>: Sendable {
    private(set) var plan = SyncPlan<Item>()
    let localEdits: LocalEdits
    let duplicates: DuplicateKeys

    mutating func added(_ item: Item) {
        plan.sourceCount += 1
        plan.additions.append(SyncPlan.Download(item: item, local: nil, reason: .missing))
    }

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

    @inline(__always)
    mutating func same() {
        plan.sourceCount += 1
        plan.localCount += 1
        plan.unchangedCount += 1
    }

    private mutating func differing(_ item: Item, _ entry: LocalEntry<Item>) {
        // Adds even an edit that may be kept, because the processor first decides whether its content differs.
        let reason: SyncPlan<Item>.DownloadReason =
            entry.isEdited ? .editedLocally : entry.version == nil ? .unknownVersion : .changed
        plan.updates.append(SyncPlan.Download(item: item, local: entry, reason: reason))
    }

    mutating func gone(_ entry: LocalEntry<Item>) {
        // A foreign entry does not belong to the local side.
        if entry.isForeign, !entry.isRemovable {
            plan.foreignCount += 1
            return
        }
        plan.localCount += 1
        guard entry.isEdited, !entry.isRemovable else {
            plan.removals.append(SyncPlan.Removal(local: entry, reason: .notInSource))
            return
        }
        switch localEdits {
        case .overwrite: plan.removals.append(SyncPlan.Removal(local: entry, reason: .editedLocally))
        case .keepLocal: plan.keptEdits.append(entry.key)
        }
    }

    mutating func duplicated(_ key: Item.Key) { plan.duplicates.append(key) }
}

extension LocalEntry {
    @inline(__always)
    func isSame(as item: Item) -> Bool { !isEdited && version == item.version }
}

extension SyncPlan {
    /// Removes updates that turn out to be unnecessary; the closure is not called for edits that are overwritten.
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
