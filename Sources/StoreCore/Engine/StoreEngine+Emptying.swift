#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// Emptying the whole cacher, and what has to keep out of its way (C6).

/// Counts the cacher calls under way, so that emptying the whole cacher can wait for them and hold others back.
struct CacherLane {
    typealias ClearReply = Reply<Result<Void, any Error>>
    typealias KeysReply = Reply<Result<[BoxedKey]?, any Error>>

    var running = 0
    /// Those who wait for the whole cacher to be emptied (again).
    var clearers: [CallerID: ClearReply] = [:]
    /// Whether the whole cacher is to be emptied (again); meanwhile new calls wait too.
    var clearWanted = false
    /// Those who wait for the emptying under way; `nil` where there is none.
    var clearersServed: [CallerID: ClearReply]?
    var deferred: [DeferredCall] = []
    /// Those who wait to have the keys listed.
    var deferredListings: [KeysReply] = []
    /// When the last emptying began, if it failed: what is older has been forgotten, though the cacher may still have it.
    var forgotten: Date?

    var isClearing: Bool { clearersServed != nil }
    var isBarred: Bool { clearWanted || isClearing }

    /// Lets somebody wait until no emptying is wanted any longer that is wanted now.
    mutating func awaitClearing(_ id: CallerID, _ reply: ClearReply) {
        if clearWanted { clearers[id] = reply } else { clearersServed?[id] = reply }
    }

    mutating func removeClearer(_ id: CallerID) {
        if clearers.removeValue(forKey: id) == nil { clearersServed?[id] = nil }
    }

    /// What was to be saved after an earlier emptying must not be there after this one; its key still waits to hear that a call ended.
    ///
    /// - Returns: What will not be saved.
    mutating func forgetDeferredRecords() -> [BoxedContent] {
        var forgotten: [BoxedContent] = []
        for position in deferred.indices {
            guard case .save(let record) = deferred[position].call else { continue }
            deferred[position].call = .remove
            forgotten.append(record.content)
        }
        return forgotten
    }

    /// Whether a record is one that the cacher failed to remove. In doubt it is: a record too few costs a fetch, one too many is a leak.
    func isForgotten(_ record: CacheRecord<BoxedContent>) -> Bool {
        forgotten.map { !(record.fetchedAt > $0) } ?? false
    }
}

/// A call that waits for the cacher to be emptied.
struct DeferredCall {
    var call: CacherCall
    var ticket: Ticket
    var param: BoxedKey
}

extension StoreEngine {
    /// Forgets everything, in memory and in the cacher.
    ///
    /// - Throws: The cacher's failure; `CancellationError` if the task is canceled, which stops nothing.
    func clearAll() async throws {
        let (id, reply) = (nextID(), CacherLane.ClearReply())
        beginClearing(id, reply)
        let result = await cleared(id, reply)
        // Also where no cacher had to be waited for, so that a canceled caller sees one outcome.
        try Task.checkCancellation()
        try result.get()
    }

    /// Waits until the cacher has been emptied; cancellation ends the wait and not the clearing.
    func cleared(
        _ id: CallerID, _ reply: CacherLane.ClearReply, isolation: isolated (any Actor)? = #isolation
    ) async -> Result<Void, any Error> {
        await reply.value {
            state.withLock { $0.lane.removeClearer(id) }
            reply.put(.failure(CancellationError()))
        }
    }

    private func beginClearing(_ id: CallerID, _ reply: CacherLane.ClearReply) {
        var effects = Effects()
        state.withLock { state in
            // Barred first: what the cleared keys want saved from here on comes after the emptying.
            if backing != nil { state.lane.clearWanted = true }
            for content in state.lane.forgetDeferredRecords() { effects.discarded.append(content) }
            if let front { effects.leftovers.append(front.removeAll()) }
            for batch in state.prefetching.removeAll() {
                if let keys = batch.cancel() { effects.leftovers.append(keys) }
                effects.leftovers.append(batch)
            }
            // They name the elements of lists that are forgotten.
            state.restingIndexes.removeAll(&effects.leftovers)
            for key in state.live.all {
                take(key, &state, &effects) { key, turn in key.machine.cleared(cacherIsCleared: true, &turn) }
            }
            guard backing != nil else { return reply.put(.success(())) }
            state.lane.clearers[id] = reply
            clearIfWanted(&state)
        }
        effects.deliver(onEvent)
    }

    /// Begins to empty the cacher as soon as the last call has ended.
    func clearIfWanted(_ state: inout EngineState) {
        guard let backing, state.lane.clearWanted, !state.lane.isClearing, state.lane.running == 0 else { return }
        state.lane.clearWanted = false
        // Those who want it emptied while it is being emptied wait for it to be emptied once more.
        (state.lane.clearersServed, state.lane.clearers) = (state.lane.clearers, [:])
        let began = time.date
        Task.detached(priority: Task.currentPriority) { [self] in
            let error = await failure { try await backing.removeAll() }
            clearingEnded(began, error)
        }
    }

    private func clearingEnded(_ began: Date, _ error: (any Error)?) {
        var effects = Effects()
        let waiting = state.withLock { state in
            if let error, onEvent != nil { state.report(.cacherFault(.removeAll, error), nil, &effects) }
            state.lane.forgotten = error == nil ? nil : began
            let served = state.lane.clearersServed ?? [:]
            state.lane.clearersServed = nil
            clearIfWanted(&state)
            if !state.lane.isBarred { startDeferred(&state) }
            return served
        }
        effects.deliver(onEvent)
        let result = Result<Void, any Error> {
            guard let error else { return }
            throw StoreError(.cacherFailed, "clearing the store: the cacher could not remove its records", underlyingError: error)
        }
        for reply in waiting.values { reply.put(result) }
    }

    private func startDeferred(_ state: inout EngineState) {
        let (calls, listings) = (state.lane.deferred, state.lane.deferredListings)
        (state.lane.deferred, state.lane.deferredListings) = ([], [])
        for one in calls { start(one.call, one.ticket, one.param, &state) }
        for reply in listings { startListing(reply, &state) }
    }

    /// Whether a record was to be removed by an emptying that failed, and so must not be seen again.
    func isLeftBehind(_ record: CacheRecord<BoxedContent>) -> Bool {
        state.withLock { $0.lane.isForgotten(record) }
    }

    // MARK: Listing

    /// The keys of all records; `nil` where the cacher cannot list them. Never listed while the cacher is being emptied.
    func knownKeys() async throws -> [BoxedKey]? {
        guard backing != nil else { return front?.keys() }
        let reply = CacherLane.KeysReply()
        state.withLock { state in
            if state.lane.isBarred { state.lane.deferredListings.append(reply) } else { startListing(reply, &state) }
        }
        return try await reply.value { reply.put(.failure(CancellationError())) }.get()
    }

    private func startListing(_ reply: CacherLane.KeysReply, _ state: inout EngineState) {
        guard let backing else { return }
        state.lane.running += 1
        Task.detached(priority: Task.currentPriority) { [self] in
            do { reply.put(.success(try await backing.keys())) } catch { reply.put(.failure(error)) }
            self.state.withLock { state in
                state.lane.running -= 1
                clearIfWanted(&state)
            }
        }
    }
}
