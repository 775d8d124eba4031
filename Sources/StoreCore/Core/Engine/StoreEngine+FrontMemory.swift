#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The memory in front of the cacher, which mirrors the records of the engine so that a hit needs no transition.

extension StoreEngine {
    /// Gives a new key the record that memory holds, before any other fact.
    func readMemory(_ key: inout Key, _ state: inout EngineState, _ effects: inout Effects) {
        guard let entry = front?.entry(key.param) else { return key.machine.memoryRead(nil, now: time.now) }
        let (record, isDated) = (entry.record, entry.deadline != .min)
        let found =
            isDated ? HeldRecord(record, deadline: MonotonicInstant(nanoseconds: entry.deadline)) : date(record, time.date, time.now)
        key.machine.memoryRead(found, now: time.now)
        if isDated {
            guard rules.isList else { return }
            // Taken first: the assignment would read the key while it changes it.
            let index = state.idleIndexes.take(key.param, record.details, &effects.leftovers)
            key.machine.sides.mergeIndex = index
        } else {
            // A record that was saved directly through the cacher has no deadline, and its details may be those of the record before it.
            mirror(&key, &state, &effects)
        }
    }

    /// Converts a record's wall-clock age to a monotonic deadline.
    ///
    /// - Parameter needsRefresh: The cacher's decision; `nil` for a record in memory, which only the clock expires.
    func date(
        _ record: CacheRecord<BoxedContent>, _ date: Date, _ now: MonotonicInstant, needsRefresh: Bool? = nil
    ) -> HeldRecord<BoxedContent> {
        let remaining = record.remainingLifetime(expiry: rules.expiry, jitter: rules.policy.expiryJitter, now: date)
        // The cacher does not know of the jitter, which only shortens a lifetime that has not ended.
        let isOver = remaining <= .zero && (needsRefresh == nil || record.remainingLifetime(expiry: rules.expiry, now: date) > .zero)
        return HeldRecord(record, remaining: remaining, needsRefresh: needsRefresh == true || isOver, now: now)
    }

    /// Puts the record that readers may get into memory, or removes it.
    func mirror(_ key: inout Key, _ state: inout EngineState, _ effects: inout Effects) {
        guard let front else { return }
        guard let held = key.machine.mirrored else {
            if let removed = front.remove(key.param) { effects.leftovers.append(removed) }
            return
        }
        guard let drop = front.put(key.param, held.record, held.deadline.nanoseconds, effects.discarded) else { return }
        if drop.evicted > 0, onEvent != nil { state.report(.evicted(count: drop.evicted), nil, &effects) }
        if let refusal = drop.refusal, onEvent != nil {
            state.report(.aboveCostLimit(cost: refusal.cost, limit: refusal.limit), key.param, &effects)
        }
        effects.leftovers.append(drop.records)
    }

    /// Removes content that is about to change in place from memory, which mirrors it again in the same transition.
    ///
    /// With a second reference, each page would copy the whole list, and each token the whole text. Readers in between wait for the lock.
    func lendContent(of key: inout Key, _ transition: inout Transition) {
        guard let front, let details = key.machine.book.held.map(\.record.details) else { return }
        if let drop = front.lend(key.param, details) { transition.leftovers.append(drop) }
    }
}
