import StoreCore

/// Keeps the record and notifies its waiters of changes.
final class Journal: Sendable {
    typealias RecordedRequest = LoopbackOrigin.RecordedRequest

    private struct State {
        var record = LoopbackOrigin.Record()
        var lastNumber = 0
        /// Increases with every change, so that a waiter with an older version misses none.
        var version = 0
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        var lastTicket = 0
        var isClosed = false
    }

    /// The number of requests that are kept.
    private let limit: Int
    /// Guards the record and the waiters together, so that no change occurs between reading the record and waiting.
    private let state = Lock(State())

    init(limit: Int = .max) { self.limit = limit }

    var snapshot: (record: LoopbackOrigin.Record, version: Int) { state.withLock { ($0.record, $0.version) } }

    /// Counts a new connection, and returns its number.
    func connectionOpened() -> Int {
        change { state in
            state.record.openConnections += 1
            state.record.acceptedConnections += 1
            return state.record.acceptedConnections
        }
    }

    func connectionClosed() { change { $0.record.openConnections -= 1 } }

    /// Records a complete request, and returns it with its number.
    func requestArrived(_ parsed: ParsedRequest, on connection: Int) -> LoopbackOrigin.Request {
        let arrived = LoopbackOrigin.Request(parsed, number: 0, connection: connection)
        return change { state in
            var request = arrived
            state.lastNumber += 1
            request.number = state.lastNumber
            state.record.requests.append(RecordedRequest(request: request))
            if state.record.requests.count > limit { state.record.requests.removeFirst() }
            return request
        }
    }

    /// Records the status or the end of an exchange, unless its request has been forgotten.
    func exchangeChanged(_ exchange: RecordedRequest) {
        change { state in
            guard let first = state.record.requests.first?.number else { return }
            let index = exchange.number - first
            guard state.record.requests.indices.contains(index) else { return }
            state.record.requests[index] = exchange
        }
    }

    func requestRefused(_ rejection: LoopbackOrigin.Rejection) {
        change { state in
            state.record.rejections.append(rejection)
            if state.record.rejections.count > limit { state.record.rejections.removeFirst() }
        }
    }

    /// Forgets requests and rejections; the connection counters and the request numbers continue.
    func forget() {
        change { state in
            state.record.requests = []
            state.record.rejections = []
        }
    }

    /// Wakes every waiter without a change, because a deadline may have passed.
    func nudge() { change { _ in } }

    /// Ends all current and future waits.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(throwing: LoopbackOrigin.Failure.stopped) }
    }

    /// Waits until the record is newer than `version`.
    ///
    /// - Throws: `CancellationError`, or `Failure.stopped` if the origin is stopped.
    func change(since version: Int) async throws {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    // A cancellation before this moment is noticed here; a later one finds the continuation.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.version != version { return .success(()) }
                    if state.isClosed { return .failure(LoopbackOrigin.Failure.stopped) }
                    state.waiters[ticket] = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: ticket) }
            waiter?.resume(throwing: CancellationError())
        }
    }

    /// Changes the record, and then resumes the waiters outside the lock.
    @discardableResult
    private func change<Outcome: Sendable>(_ body: (inout State) -> Outcome) -> Outcome {
        let (outcome, waiters) = state.withLock { state in
            let outcome = body(&state)
            state.version += 1
            defer { state.waiters = [:] }
            return (outcome, state.waiters)
        }
        for waiter in waiters.values { waiter.resume() }
        return outcome
    }
}
