public import RemoteHTTP

/// The rare settings of a route; each has a default.
///
/// ```swift
/// var options: RouteOptions {
///     RouteOptions(requiresAuth: false, timeouts: Timeouts(overall: .seconds(5)))
/// }
/// ```
///
/// `nil` uses the host's setting.
///
/// <doc:DescribingRoutes> shows the parts of a route.
public struct RouteOptions: Sendable {
    /// The port of this route, if it differs from the host's; it receives the host's credentials and its client certificate, too.
    public var port: Int?

    /// The requested media type of the response, sent as `Accept`; may be a range, such as `image/*`.
    ///
    /// A response of this type is accepted besides the types of the route's parser. For `Data`, ``RemoteHost/fetcher(parsing:_:)`` and
    /// ``RemoteHost/pages(parsing:_:)``, it is the only accepted type; without it, every type is accepted.
    public var accept: MimeType?

    /// Whether credentials are sent; `nil` sends them if the host has any.
    public var requiresAuth: Bool?

    /// The deadlines of an exchange and its parts.
    public var timeouts: Timeouts

    /// The treatment of the origin's cache lifetimes.
    public var cachePolicy: CachePolicy

    /// The maximum size of the response, in bytes after decompression.
    public var responseLimit: Int?

    /// The key that makes an unsafe request repeatable, if the server supports the `Idempotency-Key` field.
    public var idempotencyKey: IdempotencyKey?

    /// The style of lists and dates among parameters.
    public var parameterStyle: ParameterStyle?

    /// The parser of this route's responses; `nil` for the host's.
    public var parser: (any ResponseParser)?

    /// The values that travel with the route to interceptors, transports and logs.
    public var tags = RouteTags()

    package var target: RouteTarget?

    /// Whether the request is conditional, so that 304 is a success.
    package var isConditional = false

    /// Creates options.
    ///
    /// - Parameters:
    ///   - port: The port of this route, if it differs from the host's.
    ///   - accept: The requested media type of the response.
    ///   - requiresAuth: Whether credentials are sent; `nil` sends them if the host has any.
    ///   - timeouts: The deadlines of an exchange and its parts.
    ///   - cachePolicy: The treatment of the origin's cache lifetimes.
    ///   - responseLimit: The maximum size of the response, in bytes after decompression.
    ///   - idempotencyKey: The key that makes an unsafe request repeatable.
    ///   - parameterStyle: The style of lists and dates among parameters.
    ///   - parser: The parser of this route's responses; `nil` for the host's.
    public init(
        port: Int? = nil, accept: MimeType? = nil, requiresAuth: Bool? = nil, timeouts: Timeouts = Timeouts(),
        cachePolicy: CachePolicy = .followOrigin, responseLimit: Int? = nil, idempotencyKey: IdempotencyKey? = nil,
        parameterStyle: ParameterStyle? = nil, parser: (any ResponseParser)? = nil
    ) {
        self.port = port
        self.accept = accept
        self.requiresAuth = requiresAuth
        self.timeouts = timeouts
        self.cachePolicy = cachePolicy
        self.responseLimit = responseLimit
        self.idempotencyKey = idempotencyKey
        self.parameterStyle = parameterStyle
        self.parser = parser
    }

    /// The deadlines of an exchange and its parts; `nil` uses the host's.
    public typealias Timeouts = ExchangeLimits.Timeouts

    /// The treatment of the origin's cache lifetimes by a store.
    public enum CachePolicy: Hashable, Sendable {
        /// The store follows the rules for a private cache (RFC 9111).
        case followOrigin
        /// The cacher and the store's policies decide lifetimes; validators and `no-store` still apply.
        case ignoreLifetimes
        /// The response is never saved, and the request states this (`Cache-Control: no-store`).
        case neverStore
    }

    /// The key that makes an unsafe request repeatable.
    ///
    /// It is sent as a string of a structured field, which has quotes (draft-ietf-httpapi-idempotency-key-header §2.1). For a server that
    /// wants the key without quotes, set the field `Idempotency-Key` in the route's headers instead.
    public enum IdempotencyKey: Hashable, Sendable {
        /// A new UUID per request, the same for all its attempts, and for all connections of a stream of events.
        case unique
        /// A custom key, of printable ASCII characters.
        case key(String)
    }
}
