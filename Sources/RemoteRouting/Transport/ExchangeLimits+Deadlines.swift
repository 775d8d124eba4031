internal import StoreCore
internal import Wire

extension ExchangeLimits {
    /// The deadlines among the limits.
    var deadlines: Deadlines.Limits { Deadlines.Limits(head: head, idle: idle, attempt: attempt, overall: deadline) }
}

extension Deadlines {
    init(_ limits: ExchangeLimits, started: MonotonicInstant) { self.init(limits.deadlines, started: started) }
}
