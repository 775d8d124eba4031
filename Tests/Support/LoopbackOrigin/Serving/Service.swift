/// The state that the origin's thread shares with its owner: routes, journal, and limits.
final class Service: Sendable {
    let routes: RouteTable
    let journal: Journal
    let limits: LoopbackOrigin.Limits

    init(fallback: @escaping LoopbackOrigin.Handler, limits: LoopbackOrigin.Limits) {
        routes = RouteTable(fallback: fallback)
        self.limits = limits
        journal = Journal(limit: limits.records)
    }
}
