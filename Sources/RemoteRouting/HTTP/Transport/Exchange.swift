public import Foundation
internal import StoreCore

/// One exchange between the transport that feeds it and the caller that reads it.
///
/// An exchange enforces the deadlines and limits, and ends once. A transport creates one per request, feeds it from any thread and returns
/// ``response()``. The action of ``onStop(_:)`` runs at most once. It runs if the caller is canceled or releases the response, if a
/// deadline passes, or if a limit is exceeded.
public final class Exchange: Sendable {
    enum Phase {
        case waitingForHead
        case receiving
        case finished
        case failed(TransportFailure)
    }

    struct State {
        var phase = Phase.waitingForHead
        var head: HTTPResponse?
        var buffer: BodyBuffer
        var received = 0
        var hasSentBody = false
        var metrics: Box<ExchangeMetrics>?
        /// The times of the head and of the end, if the source does not measure time.
        var headTime: MonotonicInstant?
        var endTime: MonotonicInstant?
        var deadlines: Deadlines
        /// Decodes the body, if the source does not.
        var decoder: BodyDecoder?
        /// The reason why the body is unusable; the status and the fields are valid regardless.
        var refusal: TransportFailure?
        /// Whether the source waits for the reader, and the action that resumes it.
        var isPaused = false
        var resume: (@Sendable () -> Void)?
        /// Whether the reader wants the whole body, so that chunks need not wake it.
        var wantsWhole = false
        var waiters: [Suspension] = []
        var stop: (@Sendable () -> Void)?
        var end: (@Sendable () -> Void)?
        var watcher: Task<Void, Never>?
        var watched = MonotonicInstant.distantFuture

        var isOver: Bool {
            switch phase {
            case .finished, .failed: true
            case .waitingForHead, .receiving: false
            }
        }
    }

    private struct Aftermath {
        var waiters: [Suspension] = []
        var stop: (@Sendable () -> Void)?
        var end: (@Sendable () -> Void)?
        var watcher: Task<Void, Never>?
    }

    package let limits: ExchangeLimits
    let source: Source
    /// The time of the start, if the source does not measure time.
    private let started: MonotonicInstant
    /// Guards all state that both sides share. The spill file is written under the lock to keep its bytes in order.
    let state: Lock<State>

    /// The capabilities of the source that feeds an exchange.
    struct Source: Hashable {
        /// Whether the source enforces the deadlines, so that no task needs to.
        var keepsDeadlines = false
        /// Whether the source waits for a slow reader, so that nothing is spilled.
        var waitsForReader = false
        /// Whether bodies arrive with their content coding, so that the reader decodes them.
        var leavesCoding = false
    }

    /// Creates an exchange and starts its deadlines.
    public convenience init(limits: ExchangeLimits) { self.init(limits: limits, source: Source()) }

    init(limits: ExchangeLimits, source: Source) {
        self.limits = limits
        self.source = source
        // A source that enforces the deadlines reads the clock itself.
        started = source.keepsDeadlines ? MonotonicInstant.distantPast : limits.time.now
        state = Lock(
            State(
                buffer: BodyBuffer(memoryLimit: limits.memoryBytes, spillLimit: limits.spillBytes),
                deadlines: Deadlines(limits.timeouts, until: limits.deadline, started: started)))
    }

    // MARK: The transport's side

    package var isOver: Bool { state.withLock(\.isOver) }

    /// The time for the deadlines; a source that enforces them needs none.
    var now: MonotonicInstant { source.keepsDeadlines ? .distantPast : limits.time.now }

    /// Checks whether the request may be sent; ends the exchange if the task was canceled or a deadline has passed.
    ///
    /// Call this right before sending.
    ///
    /// - Returns: Whether to send the request.
    public func mayBegin() -> Bool {
        if Task.isCancelled { stop(.cancelled.beforeSending) }
        // Before a source that enforces the deadlines begins, only the overall one can have passed.
        let next: (instant: MonotonicInstant, part: Deadlines.Part)? =
            source.keepsDeadlines ? limits.deadline.map { ($0, .overall) } : state.withLock(\.deadlines.next)
        if let next, next.instant <= limits.time.now { stop(TransportFailure(next.part, limits).beforeSending) }
        return !isOver
    }

    /// Sets the action that ends the exchange on the wire; runs it at once if the exchange has already been stopped.
    public func onStop(_ action: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if case .failed = state.phase { return true }
            if !state.isOver { state.stop = action }
            return false
        }
        if isTooLate { action() }
    }

    /// Reports that a part of the request body was sent.
    ///
    /// - Parameters:
    ///   - total: The number of bytes sent so far.
    ///   - expected: The length of the body; `nil` if it is unknown.
    public func sent(_ total: Int64, of expected: Int64?) {
        if !source.keepsDeadlines {
            let now = limits.time.now
            state.withLock { state in
                state.deadlines.moved(at: now)
                if total > 0 { state.hasSentBody = true }
            }
        }
        limits.onSent?(total, expected)
    }

    /// Receives the head of the response, with the first bytes of its body if there are any; ignores a second head.
    public func receive(_ response: HTTPResponse) {
        _ = receive(response, response.body.data, isComplete: false)
    }

    /// Receives a chunk of the body; ignores it if the exchange has ended in the meantime.
    public func receive(_ data: Data) {
        _ = receive(nil, data, isComplete: false)
    }

    /// Completes the response after its last chunk; ignored if the exchange has ended.
    public func finish() {
        _ = receive(nil, nil, isComplete: true)
    }

    /// Receives any of a head, a chunk of the body and the end; wakes the caller once.
    ///
    /// - Returns: Whether the reader is behind, so that the source pauses until the action of ``onResume(_:)`` runs.
    func receive(_ head: HTTPResponse?, _ data: Data?, isComplete: Bool, _ metrics: ExchangeMetrics? = nil) -> Bool {
        let now = now
        let failure = head.flatMap { Exchange.fault(of: $0) }
        var isBehind = false
        apply { state in
            if let head { receive(head, failure, at: now, &state) }
            if let data, !data.isEmpty { receive(data, at: now, &state) }
            if isComplete {
                if let metrics { state.metrics = Box(metrics) }
                finish(at: now, &state)
            }
            guard case .receiving = state.phase, source.waitsForReader, !state.wantsWhole,
                state.buffer.memoryBytes > limits.memoryBytes / 2
            else { return }
            state.isPaused = true
            state.deadlines.paused()
            isBehind = true
        }
        if head != nil { watch() }
        return isBehind
    }

    private func receive(_ head: HTTPResponse, _ failure: TransportFailure?, at now: MonotonicInstant, _ state: inout State) {
        guard case .waitingForHead = state.phase else { return }
        if let failure { return fail(&state, failure, stops: true) }
        if source.leavesCoding {
            do throws(TransportFailure) {
                state.decoder = try BodyDecoder.decoder(for: head, limit: limits.bodyBytes)
            } catch {
                state.refusal = error
            }
        }
        state.head = head
        state.phase = .receiving
        state.deadlines.expectsBody(at: now)
        if !source.keepsDeadlines { state.headTime = now }
    }

    private func receive(_ data: Data, at now: MonotonicInstant, _ state: inout State) {
        guard case .receiving = state.phase else { return }
        if let refusal = state.refusal { return fail(&state, refusal, stops: true) }
        state.deadlines.moved(at: now)
        state.received += data.count
        // A content coding enlarges short bodies by some bytes; the decoder counts the decoded ones.
        let most = state.decoder == nil ? limits.bodyBytes : max(limits.bodyBytes, limits.bodyBytes &+ 65_536)
        guard state.received <= most else {
            fail(&state, .tooLarge(limits.bodyBytes), stops: true)
            state.buffer.discard()
            return
        }
        do throws(TransportFailure) {
            try state.buffer.push(data, staysInMemory: state.wantsWhole || source.waitsForReader)
        } catch {
            fail(&state, error, stops: true)
            state.buffer.discard()
        }
    }

    private func finish(at now: MonotonicInstant, _ state: inout State) {
        switch state.phase {
        case .receiving:
            state.phase = .finished
            if !source.keepsDeadlines { state.endTime = now }
        case .waitingForHead:
            fail(&state, TransportFailure(.protocolViolation, "the connection ended without a response; check the server"), stops: false)
        case .finished, .failed: break
        }
    }

    /// Receives the system's metrics, which arrive before the end.
    func note(_ metrics: ExchangeMetrics) { state.withLock { $0.metrics = Box(metrics) } }

    /// The metrics; `nil` until the exchange has succeeded.
    var metrics: ExchangeMetrics? {
        let (metrics, decoder) = state.withLock { state -> (ExchangeMetrics?, BodyDecoder?) in
            guard case .finished = state.phase else { return (nil, nil) }
            var metrics = state.metrics?.value ?? ExchangeMetrics()
            metrics.decodedBodyBytes = Int64(state.received)
            if let end = state.endTime, metrics.total == nil {
                metrics.firstByte = state.headTime.map { started.duration(to: $0) }
                metrics.total = started.duration(to: end)
            }
            return (metrics, state.decoder)
        }
        guard var metrics, let decoder else { return metrics }
        metrics.decodedBodyBytes = decoder.decodedBytes
        return metrics
    }

    func onResume(_ action: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if !state.isOver { state.resume = action }
            // The reader may have caught up before the action was set.
            return !state.isOver && !state.isPaused && state.received > 0
        }
        if isTooLate { action() }
    }

    /// Fails the exchange; ignored after its end, for example after a stop.
    public func fail(_ failure: TransportFailure) { apply { fail(&$0, failure, stops: false) } }

    // MARK: State changes

    func fail(_ state: inout State, _ failure: TransportFailure, stops: Bool) {
        guard !state.isOver else { return }
        var failure = failure
        // The request has arrived, at least in part, even if the code of the failure means that it was never sent.
        let hasSentHead = state.metrics?.value.sentHeadBytes ?? 0 > 0
        if state.head != nil || state.hasSentBody || hasSentHead { failure.mayHaveArrived = true }
        state.phase = .failed(failure)
        if !stops { state.stop = nil }
    }

    /// Changes the state and then performs the resulting actions outside the lock.
    func apply(_ change: (inout State) -> Void) {
        let aftermath = state.withLock { state in
            let hadHead = state.head != nil
            change(&state)
            var aftermath = Aftermath()
            if state.isOver || !hadHead || !state.wantsWhole { swap(&aftermath.waiters, &state.waiters) }
            if state.isOver {
                aftermath.end = state.end.take()
                aftermath.watcher = state.watcher.take()
                if case .failed = state.phase { aftermath.stop = state.stop }
                state.stop = nil
                state.resume = nil
            }
            return aftermath
        }
        aftermath.watcher?.cancel()
        aftermath.stop?()
        aftermath.end?()
        for waiter in aftermath.waiters { waiter.resume() }
    }

    /// Returns the failure of a head with contradictory body lengths (RFC 9112 §6.3); `nil` for a valid head.
    private static func fault(of head: HTTPResponse) -> TransportFailure? {
        guard let lengths = head.fields["Content-Length"]?.split(separator: ","), lengths.count > 1 else { return nil }
        guard Set(lengths.map(\.withoutBlanksAtEnds)).count > 1 else { return nil }
        return TransportFailure(.protocolViolation, "the response has contradictory lengths, so its end is ambiguous; check the server")
    }
}
