/// What a route may say beyond method, path and content; everything has a default.
///
/// ```swift
/// var options: RouteOptions { RouteOptions(requiresAuth: false, timeouts: Timeouts(overall: .seconds(5))) }
/// ```
///
/// `nil` leaves a matter to the host.
public struct RouteOptions: Sendable {
    /// The port of this route, where it is not the host's.
    public var port: Int?

    /// The media type that the answer shall have, sent as `Accept`; may be a range, such as `image/*`.
    ///
    /// An answer of this type is taken beside those of the route's parser. `Data`, and the functions of ``RemoteHost/fetcher(parsing:_:)``
    /// and ``RemoteHost/pages(parsing:_:)``, take this type only if it is given, and otherwise any.
    public var accept: MimeType?

    /// Whether credentials are sent; `nil` means yes on a host that has any.
    public var requiresAuth: Bool?

    /// How long the exchange and its parts may take.
    public var timeouts: Timeouts

    /// How what the origin says of lifetimes is taken.
    public var cachePolicy: CachePolicy

    /// How many bytes the decoded answer may have.
    public var responseLimit: Int?

    /// What makes an unsafe request safe to repeat, where the server knows the `Idempotency-Key` field.
    public var idempotencyKey: IdempotencyKey?

    /// How lists and dates are written among parameters.
    public var parameterStyle: ParameterStyle?

    /// The parser of this route's responses; `nil` for the host's.
    public var parser: (any ResponseParser)?

    /// The values that travel with the route to interceptors, transports and logs.
    public var tags = RouteTags()

    /// A next or prev link of the server, which takes the place of path and query.
    package var reference: OriginReference?

    /// Whether the request is conditional, so that 304 is an answer and not a failure.
    package var isConditional = false

    /// Makes options.
    ///
    /// - Parameters:
    ///   - port: The port of this route, where it is not the host's.
    ///   - accept: The media type that the answer shall have.
    ///   - requiresAuth: Whether credentials are sent; `nil` means yes on a host that has any.
    ///   - timeouts: How long the exchange and its parts may take.
    ///   - cachePolicy: How what the origin says of lifetimes is taken.
    ///   - responseLimit: How many bytes the decoded answer may have.
    ///   - idempotencyKey: What makes an unsafe request safe to repeat.
    ///   - parameterStyle: How lists and dates are written among parameters.
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

    /// How long an exchange and its parts may take; `nil` leaves a part to the host.
    public struct Timeouts: Hashable, Sendable {
        /// From the start of an attempt to the head of its answer.
        public var head: Duration?
        /// Between two pieces of an answer.
        public var idle: Duration?
        /// For one attempt, from its start to the last byte.
        public var attempt: Duration?
        /// For everything: all attempts, the waits between them, and the refresh of credentials.
        public var overall: Duration?

        /// Makes timeouts.
        ///
        /// - Parameters:
        ///   - head: From the start of an attempt to the head of its answer.
        ///   - idle: Between two pieces of an answer.
        ///   - attempt: For one attempt, from its start to the last byte.
        ///   - overall: For everything.
        public init(head: Duration? = nil, idle: Duration? = nil, attempt: Duration? = nil, overall: Duration? = nil) {
            self.head = head
            self.idle = idle
            self.attempt = attempt
            self.overall = overall
        }
    }

    /// How what the origin says of lifetimes is taken by a store.
    public enum CachePolicy: Hashable, Sendable {
        /// As RFC 9111 has it for a private cache.
        case followOrigin
        /// Lifetimes are left to the cacher and the store's policies; validators and `no-store` still count.
        case ignoreLifetimes
        /// The answer is never saved, and the request says so (`Cache-Control: no-store`).
        case neverStore
    }

    /// What makes an unsafe request safe to repeat.
    public enum IdempotencyKey: Hashable, Sendable {
        /// A new UUID for each request, the same in all its attempts.
        case unique
        /// A key of your own.
        case key(String)
    }
}
