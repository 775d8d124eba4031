import StoreCore

/// Keeps the record and notifies its waiters of changes.
final class Journal: Sendable {
    typealias RecordedRequest = LoopbackOrigin.RecordedRequest

    private struct State {
        var record = LoopbackOrigin.Record()
        var lastNumber = 0
        /// Increases with every change, so that a waiter with an older version misses none.
        var version = 0
        var isClosed = false
    }

    /// The number of requests that are kept.
    private let limit: Int
    private let state = WatchedState(State())

    init(limit: Int = .max) { self.limit = limit }

    var snapshot: (record: LoopbackOrigin.Record, version: Int) { state.read { ($0.record, $0.version) } }

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

    /// Ends all current and future waits.
    func close() { state.update { $0.isClosed = true } }

    /// Waits until the record is newer than `version`, at most for a duration.
    ///
    /// - Throws: `CancellationError`, or `Failure.stopped` if the origin is stopped.
    func change(since version: Int, within allowance: Duration) async throws {
        do {
            let isNewer = try await state.wait(timeout: allowance) { state -> Bool? in
                state.version != version ? true : state.isClosed ? false : nil
            }
            if !isNewer { throw LoopbackOrigin.Failure.stopped }
        } catch is WaitTimedOut {}
    }

    /// Changes the record.
    @discardableResult
    private func change<Outcome: Sendable>(_ body: (inout State) -> Outcome) -> Outcome {
        state.update { state in
            state.version += 1
            return body(&state)
        }
    }
}
