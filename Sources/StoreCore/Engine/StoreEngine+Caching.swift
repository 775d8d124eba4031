#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The cacher: one call for one key at a time, none cancelled, none reordered, and `removeAll` alone (C6).

/// A call of the cacher for one key.
enum CacherCall: Sendable {
    case load
    case save(CacheRecord<BoxedContent>)
    case remove
}

extension StoreEngine {
    /// Reads a key's record: from the memory in front on the spot, otherwise from the cacher behind it.
    func read(_ ticket: Ticket, _ key: inout Key, _ turn: inout Turn, _ state: inout EngineState) {
        if let entry = front?.entry(key.param) {
            let held =
                entry.deadline == .min
                ? date(entry.record, turn.date, turn.now)
                : HeldRecord(entry.record, deadline: MonotonicInstant(nanoseconds: entry.deadline))
            key.machine.cacheReadFinished(ticket, .success(held), &turn)
            // Somebody behind the store's back may have taken it out of the memory meanwhile, and the machine may have no use for it.
            turn.discarded.append(entry.record.content)
            // A record that somebody else has put there has no deadline, and may have the details of the one that he changed.
            guard entry.deadline != .min, key.machine.held?.record.details === entry.record.details else { return }
            key.machine.mergeIndex = state.restingIndexes.take(key.param, entry.record.details, &turn.leftovers)
        } else if backing != nil {
            call(.load, ticket, key.param, &state)
        } else {
            key.machine.cacheReadFinished(ticket, .success(nil), &turn)
        }
    }

    /// Turns a record's wall-clock age into a monotonic deadline.
    ///
    /// - Parameter needsRefresh: What its cacher says; `nil` for a record in memory, of which nobody but the clock is asked.
    private func date(
        _ record: CacheRecord<BoxedContent>, _ date: Date, _ now: MonotonicInstant, needsRefresh: Bool? = nil
    ) -> HeldRecord<BoxedContent> {
        let remaining = record.remainingLifetime(expiry: rules.expiry, now: date)
        return HeldRecord(record, remaining: remaining, needsRefresh: needsRefresh ?? (remaining <= .zero), now: now)
    }

    /// Lets the memory in front hold what readers may get of a key.
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

    // MARK: Calls

    /// Calls the cacher in a task of the store's own, which no caller's cancellation reaches.
    func call(_ call: CacherCall, _ ticket: Ticket, _ param: BoxedKey, _ state: inout EngineState) {
        if state.lane.isBarred {
            state.lane.deferred.append(DeferredCall(call: call, ticket: ticket, param: param))
        } else {
            start(call, ticket, param, &state)
        }
    }

    func start(_ call: CacherCall, _ ticket: Ticket, _ param: BoxedKey, _ state: inout EngineState) {
        guard let backing else { return }
        state.lane.running += 1
        Task.detached(priority: Task.currentPriority) { [self] in
            switch call {
            case .load:
                let result = await self.load(param, from: backing)
                finish(param, hasWritten: false) { key, turn in key.machine.cacheReadFinished(ticket, result, &turn) }
            case .save(let record):
                let error = await failure { try await backing.save(record, param: param) }
                finish(param, hasWritten: error == nil) { key, turn in
                    key.machine.saveFinished(ticket, error, removing: false, &turn)
                }
            case .remove:
                let error = await failure { try await backing.remove(param: param) }
                finish(param, hasWritten: error == nil) { key, turn in
                    key.machine.saveFinished(ticket, error, removing: true, &turn)
                }
            }
        }
    }

    private func load(_ param: BoxedKey, from backing: any Cacher<BoxedKey, BoxedContent>) async -> Result<
        HeldRecord<BoxedContent>?, any Error
    > {
        do {
            let record = try await backing.load(param: param)
            guard let record, !isLeftBehind(record) else { return .success(nil) }
            let now = time.date
            return .success(date(record, now, time.now, needsRefresh: backing.needsRefresh(record, param: param, now: now)))
        } catch {
            return .failure(error)
        }
    }

    func failure(of body: () async throws -> Void) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    /// A call has ended: the key is told, and whoever waits for the last call to end goes on.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - hasWritten: Whether the cacher has just shown that it can be written to.
    ///   - tell: Tells the key's machine.
    private func finish(_ param: BoxedKey, hasWritten: Bool, _ tell: @Sendable (inout Key, inout Turn) -> Void) {
        var effects = Effects()
        state.withLock { state in
            state.lane.running -= 1
            if let key = state.live[param] { take(key, &state, &effects, tell) }
            // One for each call that succeeds: so they all get their turn, and a disk that is full again is not stormed.
            if hasWritten, let unsaved = state.longestUnsaved {
                take(unsaved, &state, &effects) { key, turn in key.machine.cacherRecovered(&turn) }
            }
            clearIfWanted(&state)
        }
        effects.deliver(onEvent)
    }
}
