internal import Foundation

// The memory in front of the cacher, which mirrors the records of the engine so that a hit needs no transition.

extension StoreEngine {
    /// Reads a key's record: from memory at once, otherwise from the cacher.
    func read(_ ticket: Ticket, _ key: inout Key, _ turn: inout Turn, _ state: inout EngineState) {
        // A record that another user has changed is read from the cacher: the memory may hold the old one.
        if key.machine.sharing.reading == nil, let entry = front?.entry(key.param) {
            let held =
                entry.deadline == .min
                ? date(entry.record, turn.date, turn.now)
                : HeldRecord(entry.record, deadline: MonotonicInstant(nanoseconds: entry.deadline))
            key.machine.cacheReadFinished(ticket, .success(held), &turn)
            // The user may have removed the record from the memory meanwhile, and the machine may not keep it.
            turn.discarded.append(entry.record.content)
            // A record put there by the user has no deadline, and may have the details of the record that it replaced.
            guard entry.deadline != .min, key.machine.held?.record.details === entry.record.details else { return }
            key.machine.mergeIndex = state.restingIndexes.take(key.param, entry.record.details, &turn.leftovers)
        } else if backing != nil {
            state.queue.load(key.param, ticket)
        } else {
            key.machine.cacheReadFinished(ticket, .success(nil), &turn)
        }
    }

    /// Converts a record's wall-clock age to a monotonic deadline.
    ///
    /// - Parameter needsRefresh: The cacher's decision; `nil` for a record in memory, which only the clock expires.
    func date(
        _ record: CacheRecord<BoxedContent>, _ date: Date, _ now: MonotonicInstant, needsRefresh: Bool? = nil
    ) -> HeldRecord<BoxedContent> {
        let remaining = record.remainingLifetime(expiry: rules.expiry, now: date)
        return HeldRecord(record, remaining: remaining, needsRefresh: needsRefresh ?? (remaining <= .zero), now: now)
    }

    /// Puts the record that readers may get into memory, or removes it.
    func mirror(_ key: inout Key, _ state: inout EngineState, _ effects: inout Effects) {
        guard let front else { return }
        let drop: FrontMemoryDrop?
        if let held = key.machine.mirrored {
            drop = front.put(key.param, held.record, held.deadline.nanoseconds, effects.discarded)
        } else {
            drop = front.remove(key.param)
        }
        guard let drop else { return }
        if drop.evicted > 0, onEvent != nil { state.report(.evicted(count: drop.evicted), nil, &effects) }
        if let refusal = drop.refusal, onEvent != nil {
            state.report(.aboveCostLimit(cost: refusal.cost, limit: refusal.limit), key.param, &effects)
        }
        effects.leftovers.append(drop)
    }
}
