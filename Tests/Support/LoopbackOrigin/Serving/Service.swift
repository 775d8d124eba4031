import StoreCore

/// The state that the origin's thread shares with its owner: routes, journal, limits, and hook.
final class Service: Sendable {
    let routes: RouteTable
    let journal: Journal
    let limits: LoopbackOrigin.Limits
    /// Guards the hook, which is called outside the lock.
    private let hook = Lock<(@Sendable (LoopbackOrigin.RecordedRequest) -> Void)?>(nil)

    init(fallback: @escaping LoopbackOrigin.Handler, limits: LoopbackOrigin.Limits) {
        routes = RouteTable(fallback: fallback)
        self.limits = limits
        journal = Journal(limit: limits.records)
    }

    func setHook(_ hook: @escaping @Sendable (LoopbackOrigin.RecordedRequest) -> Void) { self.hook.withLock { $0 = hook } }

    func exchangeEnded(_ exchange: LoopbackOrigin.RecordedRequest) {
        journal.exchangeEnded(exchange)
        hook.withLock(\.self)?(exchange)
    }
}
