internal import Foundation
internal import StoreCore

// The caller's side of an exchange.

extension Exchange {
    /// Waits for the head.
    ///
    /// - Returns: The response; its body may still be arriving.
    /// - Throws: ``TransportFailure``. Canceling the task ends the exchange on the wire.
    public func response() async throws -> HTTPResponse {
        watch()
        while true {
            if let response = try arrivedResponse() { return response }
            await wait { $0.head != nil || $0.isOver }
        }
    }

    @inline(never)
    private func arrivedResponse() throws(TransportFailure) -> HTTPResponse? {
        let head = try state.withLock { state throws(TransportFailure) -> HTTPResponse? in
            if state.head == nil, case .failed(let failure) = state.phase { throw failure }
            return state.head
        }
        guard var response = head else { return nil }
        response.body = HTTPResponse.Body(self)
        return response
    }

    /// Returns the next chunk of the body; `nil` at its end. Throws a failure only after all earlier bytes.
    func next() async throws(TransportFailure) -> Data? {
        guard let decoder = state.withLock(\.decoder) else { return try await nextPiece() }
        do throws(TransportFailure) {
            while true {
                if let data = try decoder.next() { return data }
                guard let piece = try await nextPiece() else {
                    try decoder.finish()
                    return nil
                }
                decoder.push(piece)
            }
        } catch {
            stop(error)
            throw error
        }
    }

    /// Returns the next chunk of the body as the source has passed it on; `nil` at its end.
    func nextPiece() async throws(TransportFailure) -> Data? {
        while true {
            var resume: (@Sendable () -> Void)?
            let now = now
            let step = try state.withLock { state throws(TransportFailure) -> Data?? in
                if let data = try state.buffer.take() {
                    if state.buffer.memoryBytes <= limits.memoryBytes / 4 { resume = unpause(&state, at: now) }
                    return data
                }
                switch state.phase {
                case .finished: return .some(nil)
                case .failed(let failure): throw failure
                case .waitingForHead, .receiving: return nil
                }
            }
            if let resume {
                resume()
                watch()
            }
            if let step { return step }
            await wait { !$0.buffer.isEmpty || $0.isOver }
        }
    }

    /// Waits for the end and returns the unread rest of the body.
    func collect() async throws(TransportFailure) -> Data {
        let now = now
        let resume = state.withLock { state in
            state.wantsWhole = true
            return unpause(&state, at: now)
        }
        if let resume {
            resume()
            watch()
        }
        while true {
            let whole = try state.withLock { state throws(TransportFailure) -> (Data, BodyDecoder?)? in
                switch state.phase {
                case .finished: return (try state.buffer.takeAll(), state.decoder)
                case .failed(let failure):
                    state.buffer.discard()
                    throw failure
                case .waitingForHead, .receiving: return nil
                }
            }
            if let (data, decoder) = whole { return try decoder?.decodeAll(data) ?? data }
            await wait(until: \.isOver)
        }
    }

    /// Ends the pause of the source; returns the action that resumes it, or `nil` if it is not paused.
    private func unpause(_ state: inout State, at now: MonotonicInstant) -> (@Sendable () -> Void)? {
        guard state.isPaused else { return nil }
        state.isPaused = false
        state.deadlines.expectsBody(at: now)
        return state.resume
    }

    /// Fails the exchange and ends it on the wire; ignored after its end.
    func stop(_ failure: TransportFailure) { apply { fail(&$0, failure, stops: true) } }

    /// The number of received unread bytes, for tests.
    var unreadBytes: Int { state.withLock { $0.buffer.memoryBytes + $0.buffer.spilledBytes } }

    /// Adds an action that runs when the exchange succeeds or fails; runs it at once if the exchange has already ended.
    package func onEnd(_ action: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            guard !state.isOver else { return true }
            let earlier = state.end
            state.end = {
                earlier?()
                action()
            }
            return false
        }
        if isOver { action() }
    }

    private func wait(until isReady: @Sendable (borrowing State) -> Bool) async {
        await suspend { suspension in
            let isNeeded = state.withLock { state in
                if !isReady(state) { state.waiters.append(suspension) }
                return !isReady(state)
            }
            if !isNeeded { suspension.resume() }
        } onCancel: {
            stop(.cancelled)
        }
    }
}
