public import StoreCore

/// Protects a failing origin: opens after consecutive failures, and later lets one fetch test whether the origin has recovered.
///
/// Share one breaker among all fetchers of the same origin.
///
/// ```swift
/// let breaker = CircuitBreaker(
///     opensAfter: 5, within: .seconds(10), holdsFor: .seconds(30))
/// let users = Store(
///     cacher: MemoryCacher(), fetcher: UserFetcher(api: api).guarded(by: breaker))
/// let prices = Store(
///     cacher: MemoryCacher(), fetcher: PriceFetcher().guarded(by: breaker))
/// ```
///
/// - **Closed**: every fetch reaches the origin. After the given number of consecutive failures within the given time, the breaker opens.
/// - **Open**: fetches throw a ``FetchError`` of code ``FetchError/Code/circuitOpen`` at once, with the remaining time as its `retryAfter`.
/// - **Half-open**: after the hold time, the next fetch is the trial, and all others are refused. A response to the trial closes the
///   breaker. A failure opens it for the hold time again. If the trial does not end, another trial may begin after the hold time; the
///   first response to either closes the breaker. If a trial waits for a fetch that the breaker refuses, a later trial has that fetch
///   beside it, and at most three.
///
/// A permanent failure (``FailureAdvising``), such as a missing key, concerns only its key, so it counts as a response of the origin. A
/// permanent failure that allows stale content, such as status 500, counts as a failure. Fetches of closed stores and canceled ones do not.
///
/// <doc:OnAServer> puts a breaker in front of an upstream.
public final class CircuitBreaker: Sendable {
    /// The machine, and the observers of its state by number.
    private struct Guarded: Sendable {
        var machine: CircuitMachine
        var observers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastObserver = 0
        /// The end of a hold time that observers are waiting for.
        var announced: MonotonicInstant?
    }

    private let guarded: VisibleMutex<Guarded>
    private let time: any TimeSource

    /// Creates a closed breaker.
    ///
    /// - Parameters:
    ///   - failures: The number of consecutive failures that opens the breaker; at least one.
    ///   - window: The time within which these failures end; older failures do not count.
    ///   - hold: The time for which the breaker stays open before a trial.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    public init(
        opensAfter failures: Int = 5, within window: Duration = .seconds(10), holdsFor hold: Duration = .seconds(30),
        time: some TimeSource = .system
    ) {
        guarded = VisibleMutex(Guarded(machine: CircuitMachine(limit: max(1, failures), window: window, hold: max(.zero, hold))))
        self.time = time
    }

    /// The state of a circuit breaker.
    public enum State: Hashable, Sendable {
        /// Every fetch reaches the origin: the initial state, and the state after a successful trial.
        case closed
        /// No fetch reaches the origin, until the hold time is over.
        case open
        /// The next fetch tests whether the origin has recovered, or is running.
        case halfOpen
    }

    /// The state now.
    public var state: State {
        let now = time.now
        return guarded.withLock { $0.machine.state(at: now) }
    }

    /// The time until a fetch may reach the origin again; `nil` unless the breaker is open.
    public var retryAfter: Duration? {
        let now = time.now
        guard let opening = guarded.withLock({ $0.machine.opening }), opening > now else { return nil }
        return now.duration(to: opening)
    }

    /// The current state and its changes, for example to show a banner.
    ///
    /// ```swift
    /// for await state in breaker.states { banner.isHidden = state == .closed }
    /// ```
    public var states: States { States(breaker: self) }

    /// The states of a circuit breaker over time; the sequence ends only when the task is canceled.
    ///
    /// The first element is the current state. A slow observer misses intermediate states, never the newest.
    public struct States: AsyncSequence, Sendable {
        /// A state of the breaker, as its property `state` returns it.
        public typealias Element = State
        /// An open breaker is a state, so the sequence never throws.
        public typealias Failure = Never

        fileprivate let breaker: CircuitBreaker

        /// Creates an iterator, which begins with the current state.
        public func makeAsyncIterator() -> Iterator { Iterator(breaker: breaker) }

        /// An observer of the breaker, with its own last seen state.
        public struct Iterator: AsyncIteratorProtocol {
            private let breaker: CircuitBreaker
            private var seen: State?
            private var changes: AsyncStream<Void>.Iterator?

            fileprivate init(breaker: CircuitBreaker) { self.breaker = breaker }

            /// Waits for a state that this observer has not seen yet.
            ///
            /// - Returns: The newest state; `nil` once the task is canceled.
            public mutating func next() async -> State? { await next(isolation: #isolation) }

            /// Waits for a state that this observer has not seen yet, without leaving the caller's actor.
            ///
            /// - Parameter actor: The caller's actor.
            /// - Returns: The newest state; `nil` once the task is canceled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> State? {
                // Observes the changes before it reads the state, so that it misses none.
                if changes == nil { changes = breaker.changes().makeAsyncIterator() }
                while !Task.isCancelled {
                    let state = breaker.state
                    guard state == seen else {
                        seen = state
                        return state
                    }
                    // Only the cancellation of the task ends the changes.
                    if await changes?.next(isolation: actor) == nil { break }
                }
                changes = nil
                return nil
            }
        }
    }

    /// The changes of the state from now on; several may be one element.
    private func changes() -> AsyncStream<Void> {
        let (changes, observer) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = guarded.withLock { guarded in
            guarded.lastObserver += 1
            guarded.observers[guarded.lastObserver] = observer
            return guarded.lastObserver
        }
        announceEndOfHold()
        observer.onTermination = { [weak self] _ in
            // Released outside the lock.
            _ = self?.guarded.withLock { $0.observers.removeValue(forKey: number) }
        }
        return changes
    }

    /// Changes the machine, and resumes the observers if its state has changed.
    fileprivate func update<Result: Sendable>(_ body: (inout CircuitMachine, _ now: MonotonicInstant) -> Result) -> Result {
        let now = time.now
        let (result, observers, _) = guarded.withLock { guarded in
            // The older machine leaves the lock with its failure, because the errors are the user's.
            let before = guarded.machine
            let result = body(&guarded.machine, now)
            return (result, guarded.machine.epoch == before.epoch ? [] : Array(guarded.observers.values), before)
        }
        for observer in observers { observer.yield() }
        if !observers.isEmpty { announceEndOfHold() }
        return result
    }

    /// Resumes the observers when the hold time is over, which no fetch would report.
    private func announceEndOfHold() {
        let now = time.now
        let end = guarded.withLock { guarded -> MonotonicInstant? in
            guard let end = guarded.machine.opening, end > now, end != guarded.announced else { return nil }
            guarded.announced = end
            return end
        }
        guard let end else { return }
        Task { [weak self, time] in
            guard (try? await time.sleep(until: end)) != nil, let self else { return }
            for observer in guarded.withLock({ Array($0.observers.values) }) { observer.yield() }
        }
    }
}

@available(*, unavailable)
extension CircuitBreaker.States.Iterator: Sendable {}

extension Origin {
    /// Returns a fetcher that fetches only if a circuit breaker allows it.
    ///
    /// - Parameter breaker: The breaker of the origin, which other fetchers may share.
    /// - Returns: The guarded fetcher, which throws a ``FetchError`` of code ``FetchError/Code/circuitOpen`` for each refused fetch.
    public func guarded(by breaker: CircuitBreaker) -> DecoratedOrigin<Self> {
        DecoratedOrigin(self) { _ in
            let epoch = try breaker.update { $0.fetchRequested(at: $1) }.get()
            return { outcome in breaker.update { $0.fetchEnded(epoch, outcome, at: $1) } }
        }
    }
}

/// The state machine of a circuit breaker (C20). Each change of the state and each trial begins an epoch. The end of a fetch of an older
/// epoch is ignored, except the response to an earlier trial.
struct CircuitMachine: Sendable {
    typealias Epoch = UInt64

    enum Phase {
        /// The times of the latest consecutive failures, oldest first.
        case closed([MonotonicInstant])
        case open(until: MonotonicInstant)
        /// A trial runs until this time at the latest; `nil` after a trial without a result, such as a canceled one.
        case halfOpen(trialUntil: MonotonicInstant?)
    }

    let limit: Int
    let window: Duration
    let hold: Duration
    private(set) var epoch: Epoch = 0
    /// The epoch of the first trial since the last opening.
    private(set) var firstTrial: Epoch = 0
    private(set) var phase = Phase.closed([])
    /// The failure that opened the breaker.
    private(set) var failure: (any Error)?
    /// The fetches that may run beside the trial, because earlier trials have waited for fetches that the breaker refused.
    private(set) var extraFetches = 0
    /// The fetches of this epoch that run, while it is half-open.
    private(set) var running = 0

    /// The end of the hold time; `nil` unless the breaker is open.
    var opening: MonotonicInstant? {
        if case .open(let end) = phase { end } else { nil }
    }

    func state(at now: MonotonicInstant) -> CircuitBreaker.State {
        switch phase {
        case .closed: .closed
        case .open(let end): now < end ? .open : .halfOpen
        case .halfOpen: .halfOpen
        }
    }

    mutating func fetchRequested(at now: MonotonicInstant) -> Result<Epoch, FetchError> {
        switch phase {
        case .closed: return .success(epoch)
        case .open(let end) where now < end: return .failure(refusal(now.duration(to: end)))
        case .halfOpen(let end?) where now < end:
            guard extraFetches > 0 else { return .failure(refusal(nil)) }
            (extraFetches, running) = (extraFetches - 1, running + 1)
            return .success(epoch)
        case .open, .halfOpen:
            if opening != nil { firstTrial = epoch + 1 }
            move(to: .halfOpen(trialUntil: now.advanced(by: hold)))
            running = 1
            return .success(epoch)
        }
    }

    private func refusal(_ remaining: Duration?) -> FetchError {
        let advice = remaining.map { "retry in \($0.inWords)" } ?? "a trial is running; retry later"
        return FetchError(
            .circuitOpen, "cannot fetch: the origin has failed repeatedly; \(advice)", underlyingError: failure, retryAfter: remaining)
    }

    mutating func fetchEnded(_ fetchEpoch: Epoch, _ outcome: FetchOutcome, at now: MonotonicInstant) {
        var outcome = outcome
        if case .failed(let error) = outcome, !error.isAboutTheOrigin { outcome = .responded }
        switch (phase, outcome) {
        // Even the response to an earlier trial. Otherwise an origin that is slower than the hold time would not close the breaker.
        case (.halfOpen, .responded) where fetchEpoch >= firstTrial: move(to: .closed([]))
        case _ where fetchEpoch != epoch: break
        case (.closed(let failures), .failed(let error)):
            let failures = (failures + [now]).suffix(limit).filter { $0.duration(to: now) <= window }
            failure = error
            if failures.count < limit { phase = .closed(failures) } else { move(to: .open(until: now.advanced(by: hold))) }
        case (.halfOpen, .failed(let error)):
            failure = error
            move(to: .open(until: now.advanced(by: hold)))
        case (.closed, .responded): phase = .closed([])
        case (.halfOpen, .unknown(let isOpen)):
            if isOpen { extraFetches = min(extraFetches + 1, 3) }
            running -= 1
            if running == 0 { phase = .halfOpen(trialUntil: nil) }
        case (.closed, .unknown), (.open, _), (.halfOpen, .responded): break
        }
    }

    private mutating func move(to phase: Phase) {
        if case .halfOpen = phase {} else { extraFetches = 0 }
        self.phase = phase
        epoch += 1
    }
}

extension Error {
    /// Whether the failure concerns the origin as a whole, and not only the key. Only an outage allows stale content.
    fileprivate var isAboutTheOrigin: Bool {
        guard let advice = self as? any FailureAdvising else { return true }
        return advice.failureKind != .permanent || advice.allowsStale
    }
}
