internal import Foundation

// The cacher: one call for one key at a time, none cancelled, none reordered, and `removeAll` alone (C6).

/// Counts the cacher calls under way, so that emptying the whole cacher can wait for them and hold others back.
struct CacherLane<Param: Hashable & Sendable, Content: Sendable> {
    var running = 0
    /// Those who wait for the whole cacher to be emptied; while there are any, new calls wait too.
    var clearers: [CallerID: UnsafeContinuation<Result<Void, any Error>?, Never>] = [:]
    /// Whether the whole cacher is to be emptied (again).
    var clearWanted = false
    var isClearing = false
    var deferred: [DeferredCall<Param, Content>] = []

    var isBarred: Bool { clearWanted || isClearing }

    /// What was to be saved after an earlier emptying must not be there after this one; its key still waits to hear that a call ended.
    mutating func forgetDeferredRecords() {
        for position in deferred.indices {
            if case .save = deferred[position].call { deferred[position].call = .remove }
        }
    }
}

/// A call of the cacher for one key.
enum CacherCall<Content: Sendable>: Sendable {
    case load
    case save(CacheRecord<Content>)
    case remove
}

/// A call that waits for the cacher to be emptied.
struct DeferredCall<Param: Hashable & Sendable, Content: Sendable> {
    var call: CacherCall<Content>
    var ticket: Ticket
    var param: Param
}

extension StoreEngine {
    /// Reads a key's record: from the memory in front on the spot, otherwise from the cacher behind it.
    func read(_ ticket: Ticket, _ key: Key, _ turn: inout Turn, _ state: inout EngineState<Param, Content>) {
        if let entry = front?.entry(of: key.param) {
            let held =
                entry.deadline == .min
                ? date(entry.record, turn.date, turn.now)
                : HeldRecord(entry.record, deadline: MonotonicInstant(nanoseconds: entry.deadline))
            key.machine.cacheReadFinished(ticket, .success(held), &turn)
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
        _ record: CacheRecord<Content>, _ date: Date, _ now: MonotonicInstant, needsRefresh: Bool? = nil
    ) -> HeldRecord<Content> {
        let remaining = record.remainingLifetime(expiry: rules.expiry, now: date)
        return HeldRecord(record, remaining: remaining, needsRefresh: needsRefresh ?? (remaining <= .zero), now: now)
    }

    func mirror(
        _ record: CacheRecord<Content>?, _ deadline: MonotonicInstant, _ param: Param, _ state: inout EngineState<Param, Content>,
        _ outbox: inout Outbox<Param, Content>
    ) {
        guard let front else { return }
        let drop = record.map { front.put(param, $0, deadline: deadline.nanoseconds) } ?? front.remove(param)
        guard let drop else { return }
        if drop.evicted > 0, onEvent != nil { state.report(.evicted(count: drop.evicted), nil, &outbox) }
        outbox.dropped.append(drop)
    }

    // MARK: Calls

    /// Calls the cacher in a task of the store's own, which no caller's cancellation reaches.
    func call(_ call: CacherCall<Content>, _ ticket: Ticket, _ param: Param, _ state: inout EngineState<Param, Content>) {
        if state.lane.isBarred {
            state.lane.deferred.append(DeferredCall(call: call, ticket: ticket, param: param))
        } else {
            start(call, ticket, param, &state)
        }
    }

    private func start(_ call: CacherCall<Content>, _ ticket: Ticket, _ param: Param, _ state: inout EngineState<Param, Content>) {
        guard let backing else { return }
        state.lane.running += 1
        Task.detached(priority: Task.currentPriority) { [self] in
            switch call {
            case .load:
                let result = await self.load(param, from: backing)
                finish(param) { key, turn in key.machine.cacheReadFinished(ticket, result, &turn) }
            case .save(let record):
                let error = await failure { try await backing.save(record, param: param) }
                finish(param) { key, turn in key.machine.saveFinished(ticket, error, removing: false, &turn) }
            case .remove:
                let error = await failure { try await backing.remove(param: param) }
                finish(param) { key, turn in key.machine.saveFinished(ticket, error, removing: true, &turn) }
            }
        }
    }

    private func load(_ param: Param, from backing: any Cacher<Param, Content>) async -> Result<HeldRecord<Content>?, any Error> {
        do {
            let record = try await backing.load(param: param)
            guard let record else { return .success(nil) }
            let now = time.date
            return .success(date(record, now, time.now, needsRefresh: backing.needsRefresh(record, param: param, now: now)))
        } catch {
            return .failure(error)
        }
    }

    private func failure(of body: () async throws -> Void) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    /// A call has ended: the key is told, and whoever waits for the last call to end goes on.
    private func finish(_ param: Param, _ tell: @Sendable (Key, inout Turn) -> Void) {
        var outbox = Outbox<Param, Content>()
        state.withLock { state in
            state.lane.running -= 1
            if let key = state.live[param] { take(key, &state, &outbox, tell) }
            clearIfWanted(&state)
        }
        outbox.deliver(onEvent)
    }

    // MARK: Emptying

    /// Forgets everything, in memory and in the cacher.
    ///
    /// - Throws: What the cacher failed with.
    func clearAll() async throws {
        let id = nextID()
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in beginClearing(id, continuation) }
        } onCancel: {
            state.withLock { $0.lane.clearers.removeValue(forKey: id) }?.resume(returning: nil)
        }
        switch result {
        case .success: return
        case .failure(let error):
            throw StoreError(.cacherFailed, "clearing the store: the cacher could not remove its records", underlyingError: error)
        case nil: throw CancellationError()
        }
    }

    private func beginClearing(_ id: CallerID, _ continuation: UnsafeContinuation<Result<Void, any Error>?, Never>) {
        var outbox = Outbox<Param, Content>()
        let waits = state.withLock { state in
            // Barred first: what the cleared keys want saved from here on comes after the emptying.
            if backing != nil { state.lane.clearWanted = true }
            state.lane.forgetDeferredRecords()
            front?.removeAll()
            for key in Array(state.live.values) {
                take(key, &state, &outbox) { key, turn in key.machine.cleared(cacherIsCleared: true, &turn) }
            }
            guard backing != nil else { return false }
            state.lane.clearers[id] = continuation
            clearIfWanted(&state)
            return true
        }
        outbox.deliver(onEvent)
        if !waits {
            continuation.resume(returning: .success(()))
        } else if Task.isCancelled {
            state.withLock { $0.lane.clearers.removeValue(forKey: id) }?.resume(returning: nil)
        }
    }

    private func clearIfWanted(_ state: inout EngineState<Param, Content>) {
        guard let backing, state.lane.clearWanted, !state.lane.isClearing, state.lane.running == 0 else { return }
        state.lane.clearWanted = false
        state.lane.isClearing = true
        // Those who come while it is being emptied wait for it to be emptied once more.
        let clearers = Array(state.lane.clearers.keys)
        Task.detached(priority: Task.currentPriority) { [self] in
            let error = await failure { try await backing.removeAll() }
            clearingEnded(clearers, error)
        }
    }

    private func clearingEnded(_ clearers: [CallerID], _ error: (any Error)?) {
        var outbox = Outbox<Param, Content>()
        let waiting = state.withLock { state in
            if let error, onEvent != nil { state.report(.cacherFault(.removeAll, error), nil, &outbox) }
            state.lane.isClearing = false
            clearIfWanted(&state)
            if !state.lane.isBarred {
                let deferred = state.lane.deferred
                state.lane.deferred = []
                for one in deferred { start(one.call, one.ticket, one.param, &state) }
            }
            return clearers.compactMap { state.lane.clearers.removeValue(forKey: $0) }
        }
        outbox.deliver(onEvent)
        for continuation in waiting { continuation.resume(returning: error.map { .failure($0) } ?? .success(())) }
    }
}
