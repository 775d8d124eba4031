internal import StoreCore

/// The deadlines of one exchange: a pure machine that receives events and their times.
package struct Deadlines: Sendable {
    package enum Part: Hashable, Sendable {
        case head, idle, attempt, overall
    }

    private enum Phase {
        case waiting, head, body, paused
    }

    private let timeouts: ExchangeLimits.Timeouts
    private let overall: MonotonicInstant?
    private let started: MonotonicInstant
    private var lastActivity: MonotonicInstant
    private var phase: Phase

    /// Creates the deadlines of an exchange when it is submitted.
    ///
    /// An exchange may wait before it begins. The time to the head counts from then, the other times from now.
    init(_ timeouts: ExchangeLimits.Timeouts, until overall: MonotonicInstant?, started: MonotonicInstant, isWaiting: Bool = false) {
        self.timeouts = timeouts
        self.overall = overall
        self.started = started
        phase = isWaiting ? .waiting : .head
        lastActivity = started
    }

    /// Records the beginning of the exchange, or of its repetition.
    mutating func began(at now: MonotonicInstant) { (phase, lastActivity) = (.head, now) }

    /// Records that a part of the request was sent or a part of the body arrived.
    mutating func moved(at now: MonotonicInstant) { lastActivity = now }

    /// Starts the idle deadline, because the head has arrived or the reader wants more.
    mutating func expectsBody(at now: MonotonicInstant) { (phase, lastActivity) = (.body, now) }

    /// Suspends the idle deadline, because the server waits for a slow reader.
    mutating func paused() { phase = .paused }

    /// The nearest deadline and its part; `nil` if nothing limits the exchange.
    var next: (instant: MonotonicInstant, part: Part)? {
        var first: (instant: MonotonicInstant, part: Part)?
        func consider(_ instant: MonotonicInstant?, _ part: Part) {
            guard let instant else { return }
            if let known = first, known.instant <= instant { return }
            first = (instant, part)
        }
        consider(overall, .overall)
        consider(timeouts.attempt.map { started.advanced(by: $0) }, .attempt)
        switch phase {
        case .head: consider(timeouts.head.map { lastActivity.advanced(by: $0) }, .head)
        case .body: consider(timeouts.idle.map { lastActivity.advanced(by: $0) }, .idle)
        case .waiting, .paused: break
        }
        return first
    }
}

extension Exchange {
    /// Ensures that a task wakes no later than the next deadline; the task ends with the exchange.
    func watch() {
        guard !source.keepsDeadlines else { return }
        let late: Task<Void, Never>? = state.withLock { state in
            guard !state.isOver, let next = state.deadlines.next else { return nil }
            // Arriving bytes postpone deadlines. Only the head and the end of a pause can introduce a nearer deadline.
            guard next.instant < state.watched else { return nil }
            let late = state.watcher
            state.watched = next.instant
            state.watcher = Task { await self.keepDeadlines() }
            return late
        }
        late?.cancel()
    }

    private func keepDeadlines() async {
        // Only the cancellation at the end of the exchange ends a sleep with an error.
        while let next = nextDeadline(), (try? await limits.time.sleep(until: next)) != nil {}
    }

    /// Returns the next deadline to wait for; `nil` after the end, and without one. Stops the exchange if that deadline has passed.
    ///
    /// Not inlined: its temporaries would otherwise enlarge the frame of every watcher.
    @inline(never)
    private func nextDeadline() -> MonotonicInstant? {
        let next = state.withLock { state -> (instant: MonotonicInstant, part: Deadlines.Part)? in
            // A canceled watcher has a successor, or the exchange is over.
            if state.isOver || Task.isCancelled { return nil }
            let next = state.deadlines.next
            // Without a deadline, as in a pause, the watcher ends. The next deadline needs another one.
            state.watched = next?.instant ?? .distantFuture
            return next
        }
        guard let next else { return nil }
        if next.instant > limits.time.now { return next.instant }
        stop(TransportFailure(next.part, limits))
        return nil
    }
}
