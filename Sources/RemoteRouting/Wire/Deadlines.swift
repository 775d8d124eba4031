package import StoreCore

/// The deadlines of one exchange: a pure machine that learns what happened and when.
package struct Deadlines: Sendable {
    /// The part of an exchange that a deadline limits.
    package enum Part: Hashable, Sendable {
        case head, idle, attempt, overall
    }

    /// How long an exchange and its parts may take; `nil` parts wait without limit.
    package struct Limits: Sendable {
        /// From the last byte sent, or from the beginning of the exchange, to the head.
        package var head: Duration?
        /// Between two pieces of the body.
        package var idle: Duration?
        /// From the start to the last byte.
        package var attempt: Duration?
        /// The moment at which the exchange must be over.
        package var overall: MonotonicInstant?

        package init(head: Duration? = nil, idle: Duration? = nil, attempt: Duration? = nil, overall: MonotonicInstant? = nil) {
            self.head = head
            self.idle = idle
            self.attempt = attempt
            self.overall = overall
        }
    }

    private let limits: Limits
    private let started: MonotonicInstant
    private var lastActivity: MonotonicInstant
    private var isWaiting: Bool
    private var hasHead = false
    private var isPaused = false

    /// Makes the deadlines of an exchange that was submitted at a moment.
    ///
    /// - Parameter isWaiting: Whether the exchange begins later. The time for the head runs from there, the others run from now.
    package init(_ limits: Limits, started: MonotonicInstant, isWaiting: Bool = false) {
        self.limits = limits
        self.started = started
        self.isWaiting = isWaiting
        lastActivity = started
    }

    /// The exchange begins.
    package mutating func began(at now: MonotonicInstant) {
        isWaiting = false
        lastActivity = now
    }

    /// A part of the request was sent, or a part of the body arrived.
    package mutating func moved(at now: MonotonicInstant) { lastActivity = now }

    /// The head arrived.
    package mutating func headCame(at now: MonotonicInstant) {
        hasHead = true
        lastActivity = now
    }

    /// The reader is behind, so the next piece does not arrive because of the reader, not of the server.
    package mutating func paused() { isPaused = true }

    /// The reader wants more.
    package mutating func resumed(at now: MonotonicInstant) {
        isPaused = false
        lastActivity = now
    }

    /// The nearest deadline and what it limits; `nil` where nothing limits the exchange.
    package var next: (instant: MonotonicInstant, part: Part)? {
        var first: (instant: MonotonicInstant, part: Part)?
        func consider(_ instant: MonotonicInstant?, _ part: Part) {
            guard let instant else { return }
            if let known = first, known.instant <= instant { return }
            first = (instant, part)
        }
        consider(limits.overall, .overall)
        consider(limits.attempt.map { started.advanced(by: $0) }, .attempt)
        if isWaiting { return first }
        if !hasHead {
            consider(limits.head.map { lastActivity.advanced(by: $0) }, .head)
        } else if !isPaused {
            consider(limits.idle.map { lastActivity.advanced(by: $0) }, .idle)
        }
        return first
    }
}
