internal import StoreCore

/// Which of an exchange's deadlines comes next: a pure machine, fed with what happened and when.
struct ExchangeDeadlines {
    /// Which part of an exchange took too long.
    enum Part: Hashable {
        case head, idle, attempt, overall
    }

    private let limits: ExchangeLimits
    private let started: MonotonicInstant
    private var lastActivity: MonotonicInstant
    private var hasHead = false

    init(_ limits: ExchangeLimits, started: MonotonicInstant) {
        self.limits = limits
        self.started = started
        lastActivity = started
    }

    /// A part of the request has been sent, or a part of the body has come.
    mutating func moved(at now: MonotonicInstant) {
        lastActivity = now
    }

    /// The head has come.
    mutating func headCame(at now: MonotonicInstant) {
        hasHead = true
        lastActivity = now
    }

    /// The deadline that comes first, and what it is for; `nil` where nothing limits the exchange.
    var next: (instant: MonotonicInstant, part: Part)? {
        var first: (instant: MonotonicInstant, part: Part)?
        func consider(_ instant: MonotonicInstant?, _ part: Part) {
            guard let instant else { return }
            if let known = first, known.instant <= instant { return }
            first = (instant, part)
        }
        consider(limits.deadline, .overall)
        consider(limits.attempt.map { started.advanced(by: $0) }, .attempt)
        if hasHead {
            consider(limits.idle.map { lastActivity.advanced(by: $0) }, .idle)
        } else {
            consider(limits.head.map { lastActivity.advanced(by: $0) }, .head)
        }
        return first
    }
}
