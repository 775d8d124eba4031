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
            guard key.machine.sides != nil else { return }
            // Taken first: the assignment would read the key while it changes it.
            let index = state.restingIndexes.take(key.param, record.details, &effects.leftovers)
            key.machine.sides?.mergeIndex = index
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
        // The cacher does not know of the jitter.
        let isOver = remaining <= .zero && (needsRefresh == nil || rules.policy.expiryJitter > 0)
        return HeldRecord(record, remaining: remaining, needsRefresh: needsRefresh == true || isOver, now: now)
    }

    /// The reason for which a list in memory has no next page; `nil` if its fetcher did not guess.
    func guessedEnd(of param: BoxedKey) -> GuessedEnd? { details(of: param)?.fields.guessedEnd }

    /// Whether the last page at one side of a list in memory has added no element.
    func hasEmptyPage(_ direction: PageDirection, of param: BoxedKey) -> Bool {
        guard let pages = details(of: param)?.fields.pages?.all else { return false }
        let page = direction == .next ? pages.last : pages.first
        return page?.direction == direction && page?.count == 0
    }

    /// The details of a record in memory; `nil` if all of them have their defaults.
    private func details(of param: BoxedKey) -> RecordDetails? {
        state.withLock { state in
            let param = state.resolve(param)
            guard let key = state.live[param] else { return front?.entry(param)?.record.details }
            return key.value.machine.book.held?.record.details
        }
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
