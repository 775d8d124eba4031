import StoreCore

/// The handlers by method and pattern; may change while requests are in progress.
final class RouteTable: Sendable {
    private struct Route {
        let method: LoopbackOrigin.Method
        let pattern: RoutePattern
        let handler: LoopbackOrigin.Handler
    }

    /// Guards the list of routes; handlers are called outside the lock.
    private let routes = Lock<[Route]>([])
    private let fallback: LoopbackOrigin.Handler

    init(fallback: @escaping LoopbackOrigin.Handler) { self.fallback = fallback }

    /// Sets the handler of a method and a pattern.
    func set(_ method: LoopbackOrigin.Method, _ pattern: RoutePattern, _ handler: @escaping LoopbackOrigin.Handler) {
        routes.withLock { routes in
            routes.removeAll { $0.method == method && $0.pattern == pattern }
            let route = Route(method: method, pattern: pattern, handler: handler)
            let position = routes.firstIndex { pattern.isMoreSpecific(than: $0.pattern) } ?? routes.endIndex
            routes.insert(route, at: position)
        }
    }

    /// Responds with the most specific route; `HEAD` falls back to `GET`, and a path without a route for the method leads to 405.
    func respond(to request: LoopbackOrigin.Request) async -> LoopbackOrigin.Response {
        let fitting = routes.withLock { routes in
            routes.compactMap { route in route.pattern.match(request.path).map { (route: route, parameters: $0) } }
        }
        let methods = request.method == .head ? [.head, .get] : [request.method]
        for method in methods {
            guard let (route, parameters) = fitting.first(where: { $0.route.method == method }) else { continue }
            var request = request
            request.parameters = parameters
            return await route.handler(request)
        }
        guard !fitting.isEmpty else { return await fallback(request) }
        let allowed = Set(fitting.map(\.route.method.rawValue)).sorted().joined(separator: ", ")
        return .problem(405, "Method Not Allowed").setting("Allow", to: allowed)
    }
}
