public import Foundation
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
///
/// A failure lets a store serve expired content within its stale-if-error window only as ``RemoteError/allowsStale`` says.
public struct RouteFetcher<Param: Hashable & Sendable, Content: Sendable>: RevalidatingFetcher {
    private let exchange: ConditionalExchange<Content>
    private let route: @Sendable (Param) -> any Routable

    init(_ exchange: ConditionalExchange<Content>, _ route: @escaping @Sendable (Param) -> any Routable) {
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
        switch try await exchange.send(route(param), revalidating: validator) {
        case .modified(let response): .modified(response.value, Freshness(of: response), Validator(of: response))
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
    /// `Data` is the body as it came; another type is decoded by the route's or the host's parser.
    ///
    /// - Parameters:
    ///   - type: What to decode.
    ///   - route: Makes the route of a key; whatever the answer depends on must be part of the key.
    public func fetcher<Param: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>(
        of type: Content.Type = Content.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RouteFetcher<Param, Content> {
        RouteFetcher(ConditionalExchange(decodingAt: self)) { route($0) }
    }

    /// A fetcher that makes each key's content of a response with a function of yours.
    ///
    /// ```swift
    /// let pictures = Store(
    ///     cacher: MemoryCacher<String, Picture>(),
    ///     fetcher: api.fetcher(parsing: { try Picture(png: $0.value) }) { name in
    ///         Route(path: "/pictures/\(name)", options: RouteOptions(accept: .png))
    ///     })
    /// ```
    ///
    /// The function sees the fields of the response too, such as a rate limit, and takes the place of every ``ResponseParser``. Validators,
    /// lifetimes and 304 work as with JSON. A 304 calls no function: the store keeps its content.
    ///
    /// - Parameters:
    ///   - parse: Makes the content of a successful response, off the caller's actor. Its error reaches callers as
    ///     ``RemoteError/underlyingError`` of a ``RemoteError`` with the code ``RemoteError/Code/undecodable``. The media type is checked
    ///     before if the route has an ``RouteOptions/accept``.
    ///   - route: Makes the route of a key; whatever the answer depends on must be part of the key.
    public func fetcher<Param: Hashable & Sendable, Content: Sendable>(
        parsing parse: @escaping @Sendable (_ response: RemoteResponse<Data>) throws -> Content,
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RouteFetcher<Param, Content> {
        RouteFetcher(ConditionalExchange(host: self) { try await AnswerDecoding($0, of: $1, at: self).parse(by: parse) }) { route($0) }
    }
}
