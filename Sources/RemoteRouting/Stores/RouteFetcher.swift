public import StoreCore

/// A route as the fetcher of a store: with conditional requests, and lifetimes as the origin gives them.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher(expiry: .after(.seconds(60))),                       // where the origin says nothing
///     fetcher: api.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)") })
/// let user = try await users[7].requireData()
/// ```
///
/// What the store has is revalidated with its `ETag` and `Last-Modified` (RFC 9110 §13); a 304 renews it without a transfer. Lifetimes
/// follow RFC 9111 for a private cache unless the route's ``RouteOptions/cachePolicy`` says otherwise: `no-store` is never saved, and an
/// answer that varies by a field which credentials or interceptors write has no lifetime, because the store's key does not tell it apart.
public struct RouteFetcher<Param: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>: RevalidatingFetcher {
    private let exchange: ConditionalExchange
    private let route: @Sendable (Param) -> any Routable

    init(_ exchange: ConditionalExchange, _ route: @escaping @Sendable (Param) -> any Routable) {
        self.exchange = exchange
        self.route = route
    }

    /// Sends the route of a key.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - validator: What names the store's version.
    /// - Throws: ``RemoteError``, which tells a store whether to try again.
    public func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content> {
        switch try await exchange.send(route(param), revalidating: validator, as: Content.self) {
        case .modified(let content, let freshness, let validator, _): .modified(content, freshness, validator)
        case .notModified(let freshness): .notModified(freshness)
        }
    }
}

extension RemoteHost {
    /// A fetcher that gets each key's content with a route of this host.
    ///
    /// ```swift
    /// let fetcher = api.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)") }
    /// ```
    ///
    /// - Parameters:
    ///   - type: What to decode.
    ///   - route: Makes the route of a key; whatever the answer depends on must be part of the key.
    public func fetcher<Param: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>(
        of type: Content.Type = Content.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RouteFetcher<Param, Content> {
        RouteFetcher(ConditionalExchange(host: self)) { route($0) }
    }
}
