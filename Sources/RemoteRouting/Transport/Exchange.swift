public import Foundation
internal import StoreCore
internal import Wire

/// One exchange under way, between the transport that feeds it and the caller who reads: keeps deadlines and limits, and ends it once.
///
/// A transport makes one for each request, feeds it from any thread, and returns ``response()``. What it was told to do by ``onStop(_:)``
/// happens at most once: when the caller leaves, when a deadline passes or when more comes than may.
public final class Exchange: Sendable {
    private enum Phase {
        case waitingForHead
        case receiving
        case finished
        case failed(TransportFailure)
    }

    private struct State {
        var phase = Phase.waitingForHead
        var head: HTTPResponse?
        var buffer: BodyBuffer
        var received = 0
        /// How the exchange went, where the source tells it.
        var metrics: WireMetrics?
        var systemMetrics: ExchangeMetrics.Box?
        /// When the head and the end arrived, where the source keeps no time.
        var headTime: MonotonicInstant?
        var endTime: MonotonicInstant?
        var deadlines: Deadlines
        /// Decodes the body where the source does not.
        var decoder: BodyDecoder?
        /// Why no byte of the body can be used; status and fields count all the same.
        var refusal: TransportFailure?
        /// Whether the source waits for the reader, and what makes it go on.
        var isPaused = false
        var resume: (@Sendable () -> Void)?
        /// Whether the reader wants the body as a whole, so that it need not be woken for pieces.
        var wantsWhole = false
        /// Who waits for the head, or for more of the body: seldom more than one, and the place for one costs nothing.
        var waiter: CheckedContinuation<Void, Never>?
        /// The others, where several tasks read one body.
        var otherWaiters: [CheckedContinuation<Void, Never>] = []
        var stop: (@Sendable () -> Void)?
        var end: (@Sendable () -> Void)?
        var watcher: Task<Void, Never>?
        /// The deadline that the watcher sleeps for.
        var watched = MonotonicInstant.distantFuture

        var isOver: Bool {
            switch phase {
            case .finished, .failed: true
            case .waitingForHead, .receiving: false
            }
        }
    }

    /// What is to be done outside the lock.
    private struct Aftermath {
        var waiter: CheckedContinuation<Void, Never>?
        var otherWaiters: [CheckedContinuation<Void, Never>] = []
        var stop: (@Sendable () -> Void)?
        var end: (@Sendable () -> Void)?
        var watcher: Task<Void, Never>?

        mutating func wake(_ state: inout State) {
            waiter = state.waiter.take()
            swap(&otherWaiters, &state.otherWaiters)
        }

        func run() {
            watcher?.cancel()
            stop?()
            end?()
            waiter?.resume()
            for waiter in otherWaiters { waiter.resume() }
        }
    }

    /// The limits it keeps.
    package let limits: ExchangeLimits
    private let source: Source
    /// The beginning, where the source keeps no time.
    private let started: MonotonicInstant
    /// Guards everything that both sides see. Spilled bytes are written under it: their order is what it guards.
    private let state: Lock<State>

    /// What feeds an exchange, and what it does by itself.
    struct Source: Hashable {
        /// Whether it keeps the deadlines, so that no task has to.
        var keepsDeadlines = false
        /// Whether it waits while the reader is behind, so that nothing goes to disk.
        var waitsForReader = false
        /// Whether bodies arrive as they are on the wire, so that the reader decodes them.
        var leavesCoding = false
    }

    /// Begins an exchange; its time runs from now.
    public convenience init(limits: ExchangeLimits) { self.init(limits: limits, source: Source()) }

    init(limits: ExchangeLimits, source: Source) {
        self.limits = limits
        self.source = source
        // A source that keeps the deadlines reads the clock itself.
        started = source.keepsDeadlines ? MonotonicInstant.distantPast : limits.time.now
        state = Lock(
            State(
                buffer: BodyBuffer(memoryLimit: limits.memoryBytes, spillLimit: limits.spillBytes),
                deadlines: Deadlines(limits, started: started)))
    }

    // MARK: The transport's side

    /// Whether it has ended, well or not.
    package var isOver: Bool { state.withLock(\.isOver) }

    /// Whether the request may go out; where the caller has left or a deadline has passed it may not, and the exchange ends here.
    ///
    /// To be asked right before anything is sent.
    ///
    /// - Returns: Whether the exchange is to go on.
    public func mayBegin() -> Bool {
        if Task.isCancelled { stop(.cancelled.beforeSending) }
        if source.keepsDeadlines {
            if let deadline = limits.deadline, deadline <= limits.time.now {
                stop(TransportFailure(Deadlines.Part.overall, limits).beforeSending)
            }
        } else {
            let next = state.withLock(\.deadlines.next)
            if let next, next.instant <= limits.time.now { stop(TransportFailure(next.part, limits).beforeSending) }
        }
        return !isOver
    }

    /// What ends the exchange on the wire; called at once where it has been stopped already.
    public func onStop(_ action: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if case .failed = state.phase { return true }
            if !state.isOver { state.stop = action }
            return false
        }
        if isTooLate { action() }
    }

    /// A part of the request's body has been sent.
    ///
    /// - Parameters:
    ///   - total: How many bytes in all so far.
    ///   - expected: How many there are to send; `nil` where nobody knows.
    public func sent(_ total: Int64, of expected: Int64?) {
        if !source.keepsDeadlines {
            let now = limits.time.now
            state.withLock { $0.deadlines.moved(at: now) }
        }
        limits.onSent?(total, expected)
    }

    /// Receives the head of the response, with the first bytes of its body where it has any; ignores a second head.
    public func receive(_ response: HTTPResponse) {
        _ = receive(response, response.body.data, isComplete: false)
    }

    /// A piece of the body has come; ignored once the exchange is over, as happens where the reader has just left.
    public func receive(_ data: Data) {
        _ = receive(nil, data, isComplete: false)
    }

    /// The answer is complete.
    public func finish() {
        _ = receive(nil, nil, isComplete: true)
    }

    /// A head, a piece of the body, the end, or several of them in this order; they wake the caller once.
    ///
    /// - Returns: Whether the source goes on, or waits until ``onResume(_:)``'s action is called.
    func receive(_ head: HTTPResponse?, _ data: Data?, isComplete: Bool, _ metrics: WireMetrics? = nil) -> WireFlow {
        let now = source.keepsDeadlines ? MonotonicInstant.distantPast : limits.time.now
        let failure = head.flatMap { Exchange.fault(of: $0) }
        var flow = WireFlow.goesOn
        apply { state in
            if let head { receive(head, failure, at: now, &state) }
            if let data, !data.isEmpty { receive(data, at: now, &state) }
            if isComplete {
                state.metrics = metrics
                finish(at: now, &state)
            }
            guard case .receiving = state.phase, source.waitsForReader, !state.wantsWhole,
                state.buffer.memoryBytes > limits.memoryBytes / 2
            else { return }
            state.isPaused = true
            state.deadlines.paused()
            flow = .pauses
        }
        if head != nil { watch() }
        return flow
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
        state.deadlines.headCame(at: now)
        if !source.keepsDeadlines { state.headTime = now }
    }

    private func receive(_ data: Data, at now: MonotonicInstant, _ state: inout State) {
        guard case .receiving = state.phase else { return }
        if let refusal = state.refusal { return fail(&state, refusal, stops: true) }
        state.deadlines.moved(at: now)
        state.received += data.count
        guard state.received <= limits.bodyBytes else {
            fail(&state, .tooLarge(limits), stops: true)
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
            fail(&state, TransportFailure(.protocolViolation, "the connection ended without an answer; look at the server"), stops: false)
        case .finished, .failed: break
        }
    }

    /// The system's own account of the exchange, which comes before the end.
    func note(_ metrics: ExchangeMetrics) { state.withLock { $0.systemMetrics = ExchangeMetrics.Box(metrics) } }

    /// How the exchange went; `nil` until it has ended well.
    var metrics: ExchangeMetrics? {
        let (metrics, decoder) = state.withLock { state -> (ExchangeMetrics?, BodyDecoder?) in
            guard case .finished = state.phase else { return (nil, nil) }
            var metrics = state.systemMetrics?.metrics ?? state.metrics.map { ExchangeMetrics($0) } ?? ExchangeMetrics()
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

    /// What makes a source go on that waits for the reader.
    func onResume(_ action: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if !state.isOver { state.resume = action }
            // The reader may have caught up before the action was there.
            return !state.isOver && !state.isPaused && state.received > 0
        }
        if isTooLate { action() }
    }

    /// The exchange failed below; ignored where it is over already, as happens after it was stopped.
    public func fail(_ failure: TransportFailure) {
        apply { state in
            guard !state.isOver else { return }
            fail(&state, failure, stops: false)
        }
    }

    // MARK: The caller's side

    /// Waits for the head.
    ///
    /// - Returns: The response, whose body still arrives.
    /// - Throws: ``TransportFailure``. Canceling the task ends the exchange on the wire.
    public func response() async throws -> HTTPResponse {
        watch()
        while true {
            let head: Result<HTTPResponse, TransportFailure>? = state.withLock { state in
                if let head = state.head { return .success(head) }
                if case .failed(let failure) = state.phase { return .failure(failure) }
                return nil
            }
            if let head {
                var response = try head.get()
                response.body = HTTPResponse.Body(self)
                return response
            }
            await wait { $0.head != nil || $0.isOver }
        }
    }

    /// The next piece of the body; `nil` at its end. A failure comes behind the bytes that came before it.
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

    private func nextPiece() async throws(TransportFailure) -> Data? {
        while true {
            var resume: (@Sendable () -> Void)?
            let now = source.keepsDeadlines ? MonotonicInstant.distantPast : limits.time.now
            let step: Result<Data?, TransportFailure>? = state.withLock { state in
                do throws(TransportFailure) {
                    if let data = try state.buffer.take() {
                        if state.buffer.memoryBytes <= limits.memoryBytes / 4 { resume = unpause(&state, at: now) }
                        return .success(data)
                    }
                } catch {
                    return .failure(error)
                }
                switch state.phase {
                case .finished: return .success(nil)
                case .failed(let failure): return .failure(failure)
                case .waitingForHead, .receiving: return nil
                }
            }
            if let resume {
                resume()
                watch()
            }
            if let step { return try step.get() }
            await wait { !$0.buffer.isEmpty || $0.isOver }
        }
    }

    /// What is left of the body, once all of it is there.
    func collect() async throws(TransportFailure) -> Data {
        let now = source.keepsDeadlines ? MonotonicInstant.distantPast : limits.time.now
        let resume = state.withLock { state in
            state.wantsWhole = true
            return unpause(&state, at: now)
        }
        if let resume {
            resume()
            watch()
        }
        while true {
            let whole: Result<(Data, BodyDecoder?), TransportFailure>? = state.withLock { state in
                switch state.phase {
                case .finished:
                    do throws(TransportFailure) {
                        return .success((try state.buffer.takeAll(), state.decoder))
                    } catch {
                        return .failure(error)
                    }
                case .failed(let failure):
                    state.buffer.discard()
                    return .failure(failure)
                case .waitingForHead, .receiving: return nil
                }
            }
            if let whole {
                let (data, decoder) = try whole.get()
                return try decoder?.decodeAll(data) ?? data
            }
            await wait(until: \.isOver)
        }
    }

    /// Takes out what makes a paused source go on.
    private func unpause(_ state: inout State, at now: MonotonicInstant) -> (@Sendable () -> Void)? {
        guard state.isPaused else { return nil }
        state.isPaused = false
        state.deadlines.resumed(at: now)
        return state.resume
    }

    /// The caller has no more use for it.
    func stop(_ failure: TransportFailure) {
        apply { state in
            guard !state.isOver else { return }
            fail(&state, failure, stops: true)
        }
    }

    /// How many bytes have arrived and were not read, for tests.
    var unreadBytes: Int { state.withLock { $0.buffer.memoryBytes + $0.buffer.spilledBytes } }

    /// What happens once it is over, however it ends; at once where it is.
    func onEnd(_ action: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.end = action }
            return state.isOver
        }
        if isOver { action() }
    }

    // MARK: Inside

    private func fail(_ state: inout State, _ failure: TransportFailure, stops: Bool) {
        state.phase = .failed(failure)
        if !stops { state.stop = nil }
    }

    /// Changes the state, and then does what follows from it, outside the lock.
    private func apply(_ change: (inout State) -> Void) {
        let aftermath = state.withLock { state in
            let hadHead = state.head != nil
            change(&state)
            var aftermath = Aftermath()
            if state.isOver {
                aftermath.end = state.end.take()
                aftermath.watcher = state.watcher.take()
                if case .failed = state.phase { aftermath.stop = state.stop }
                state.stop = nil
                state.resume = nil
                aftermath.wake(&state)
            } else if !hadHead || !state.wantsWhole {
                aftermath.wake(&state)
            }
            return aftermath
        }
        aftermath.run()
    }

    private func wait(until isReady: @Sendable (borrowing State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isNeeded = state.withLock { state in
                    guard !isReady(state) else { return false }
                    if state.waiter == nil { state.waiter = continuation } else { state.otherWaiters.append(continuation) }
                    return true
                }
                if !isNeeded { continuation.resume() }
            }
        } onCancel: {
            stop(.cancelled)
        }
    }

    /// Sees to it that a task sleeps no longer than until the next deadline; it ends with the exchange.
    private func watch() {
        guard !source.keepsDeadlines else { return }
        let late: Task<Void, Never>? = state.withLock { state in
            guard !state.isOver, let next = state.deadlines.next else { return nil }
            // Deadlines move away while bytes come; only with the head a nearer one may begin.
            guard state.watcher == nil || next.instant < state.watched else { return nil }
            let late = state.watcher
            state.watched = next.instant
            state.watcher = Task { await self.keepDeadlines() }
            return late
        }
        late?.cancel()
    }

    private func keepDeadlines() async {
        while let next = nextDeadline() {
            do {
                try await limits.time.sleep(until: next)
            } catch {
                // Cancelled: the exchange is over.
                return
            }
        }
    }

    /// The next deadline to sleep for; `nil` where the exchange is over, as it is once one has passed.
    ///
    /// Not inlined: what it works with would lie in the frame of every watcher.
    @inline(never)
    private func nextDeadline() -> MonotonicInstant? {
        let next = state.withLock { state in
            let next = state.isOver || Task.isCancelled ? nil : state.deadlines.next
            state.watched = next?.instant ?? state.watched
            return next
        }
        guard let next else { return nil }
        if next.instant > limits.time.now { return next.instant }
        stop(TransportFailure(next.part, limits))
        return nil
    }

    /// A head that contradicts itself about where the body ends (RFC 9112 §6.3).
    private static func fault(of head: HTTPResponse) -> TransportFailure? {
        guard let lengths = head.fields["Content-Length"]?.split(separator: ","), lengths.count > 1 else { return nil }
        guard Set(lengths.map(\.withoutBlanksAtEnds)).count > 1 else { return nil }
        return TransportFailure(.protocolViolation, "the answer has several lengths that differ, so nobody can know where it ends")
    }
}
