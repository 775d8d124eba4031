public import Foundation
internal import RemoteHTTP
public import StoreCore

/// A store's fetcher that sends conditional requests for routes, and uses the lifetimes of the origin.
///
/// ```swift
/// let users = Store(
///     // The expiry counts if the origin gives no lifetime.
///     cacher: MemoryCacher(expiry: .after(.seconds(60))),
///     fetcher: api.fetcher(of: User.self) { (id: Int) in
///         Route(path: "/users/\(id)")
///     })
/// let user = try await users[7].requireData()
/// ```
///
/// The fetcher revalidates the store's content with its `ETag` and `Last-Modified` (RFC 9110 §13). A 304 renews the content without a
/// transfer. Lifetimes follow RFC 9111 for a private cache, unless the route's ``RouteOptions/cachePolicy`` overrides them. Content with
/// `no-store` is never saved. A response that varies by a field of credentials or interceptors has a lifetime of zero, because the store's
/// key does not cover that field. A saved response is a miss if the request now has another value of a field that `Vary` names.
///
/// After a failure, a store serves expired content within its stale-if-error window only if ``RemoteError/allowsStale`` permits it.
///
/// <doc:CachingAndPages> explains lifetimes, validators and stale content.
public struct RouteFetcher<Param: Hashable & Sendable, Content: Sendable>: RevalidatingFetcher {
    let exchange: ConditionalExchange<Content>
    let route: @Sendable (Param) -> any Routable

    /// Sends the route of a key.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - validator: The validator of the store's version.
    /// - Returns: New content, or the confirmation of the store's version.
    /// - Throws: ``RemoteError``, which advises the store whether to retry.
    public func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content> {
        try await respond(to: .content(param, revalidating: validator)).result
    }

    /// Responds to a request with a conditional fetch; throws the same errors as `fetch(param:revalidating:)`.
    ///
    /// A response that links to a next page, or has the status 206 with a unit other than bytes, is a part of its list. The end of the part
    /// is a guess (`GuessedEnd`).
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content> {
        guard case .content(let param, let validator) = request else {
            throw StoreError(.noSuchPage, "fetching a page: this fetcher has no pages; use RemoteHost.pages")
        }
        switch try await exchange.send(route(param), revalidating: validator) {
        case .modified(let response):
            // A 206 with a range of bytes has the whole content, because any other was refused.
            let isPart = response.status == 206 && ContentRange(response.fields["Content-Range"]) == nil
            return OriginResponse(
                .modified(response.value, Freshness(of: response), Validator(of: response)),
                guessedEnd: isPart || response.fields.link("next") != nil ? .partOfList : nil, age: response.exchange.announcedAge)
        case .notModified(let freshness, let validator, _): return OriginResponse(.notModified(freshness, validator))
        }
    }

    /// Returns whether the request of a key has the values of all fields that selected a saved version (RFC 9111 §4.1).
    ///
    /// - Parameters:
    ///   - validator: The validator of the saved version.
    ///   - param: The key.
    public func accepts(_ validator: Validator, param: Param) async -> Bool { await exchange.host.accepts(validator, for: route(param)) }
}

extension RemoteHost {
    /// Returns whether the request of a route has the values of all fields that selected a saved version (RFC 9111 §4.1).
    ///
    /// Fetchers of your own call it in `accepts(_:param:)`, with a validator from a response of this host. Request interceptors run,
    /// because they may write such a field; nothing is sent.
    public func accepts(_ validator: Validator, for route: some Routable) async -> Bool {
        await validator.fits { try RouteCall(route, at: self, .whole) }
    }

    /// Creates a fetcher that requests each key's content with a route of this host.
    ///
    /// ```swift
    /// let fetcher = api.fetcher(of: User.self) { (id: Int) in
    ///     Route(path: "/users/\(id)")
    /// }
    /// ```
    ///
    /// `Data` is the response body itself. The parser of the route or the host decodes any other type.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - route: Returns the route of a key. The key must contain everything that the response depends on.
    public func fetcher<Param: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>(
        of type: Content.Type = Content.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RouteFetcher<Param, Content> {
        RouteFetcher(
            exchange: ConditionalExchange(host: self) { try await ResponseDecoding($0, $1.method, $1.options, at: self).decode(as: type) },
            route: { route($0) })
    }

    /// Creates a fetcher that parses each key's content with a custom function.
    ///
    /// ```swift
    /// let pictures = Store(
    ///     cacher: MemoryCacher<String, Picture>(),
    ///     fetcher: api.fetcher(parsing: { try Picture(png: $0.value) }) { name in
    ///         Route(
    ///             path: "/pictures/\(name)",
    ///             options: RouteOptions(accept: "image/png"))
    ///     })
    /// ```
    ///
    /// The function can also read the fields of the response, such as a rate limit, and replaces every ``ResponseParser``. Validators,
    /// lifetimes and 304 work as with JSON. After a 304 the function is not called, because the store keeps its content.
    ///
    /// - Parameters:
    ///   - parse: Parses a successful response, off the caller's actor. If `parse` throws, callers receive a ``RemoteError`` with the code
    ///     ``RemoteError/Code/undecodable`` and the error as ``RemoteError/underlyingError``. If the route has an ``RouteOptions/accept``,
    ///     the media type is checked first.
    ///   - route: Returns the route of a key. The key must contain everything that the response depends on.
    public func fetcher<Param: Hashable & Sendable, Content: Sendable>(
        parsing parse: @escaping @Sendable (_ response: RemoteResponse<Data>) throws -> Content,
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RouteFetcher<Param, Content> {
        RouteFetcher(
            exchange: ConditionalExchange(host: self) { try await ResponseDecoding($0, $1.method, $1.options, at: self).parse(by: parse) },
            route: { route($0) })
    }
}
