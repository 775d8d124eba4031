public import RemoteHTTP

/// A resource of a remote API, described as a value.
///
/// ```swift
/// enum TokenRoute: Routable {
///     case anonymous, refresh(token: String)
///
///     var method: HTTPMethod { .post }
///     var path: RoutePath { "/v1/tokens" }
///     var body: RouteBody {
///         switch self {
///         case .anonymous: .json(fields: ["type": "ANONYMOUS"])
///         case .refresh(let token):
///             .json(fields: ["type": "REFRESH", "credential": token])
///         }
///     }
///     var options: RouteOptions { RouteOptions(requiresAuth: false) }
/// }
/// ```
///
/// The protocol has few requirements; rare settings are in ``options-swift.property``. Likely mistakes do not compile:
///
/// - a property of the wrong type (`method: String`), or with a throwing getter,
/// - a function or a static property instead of a property (`func body()`),
/// - the names `parameters`, `queryItems`, `queryParameters`, `header`, `httpMethod`, `httpBody`, `url` and `baseURL` of other libraries,
/// - `requiresAuth`, `timeouts`, `cachePolicy`, `responseLimit` and `parameterStyle` beside the options; `tags`, `accept` and
///   `idempotencyKey` only with the types of the options.
///
/// The error message names a protocol that states the remedy, such as `_MethodMustBeHTTPMethod`, or states it itself. A stored property for
/// the value of the body needs another name.
///
/// <doc:DescribingRoutes> describes an API, and lists the mistakes that do not compile.
public protocol Routable: Sendable, _RouteProperties, _RouteFunctions, _RoutePropertyMustNotBeStatic
where
    _Method: _MethodMustBeHTTPMethod, _Query: _QueryMustBeParameters, _Headers: _HeadersMustBeHeaders, _Body: _BodyMustBeRouteBody,
    _Options: _OptionsMustBeRouteOptions,
    _MethodFailure: _RoutePropertyMustNotThrow, _QueryFailure: _RoutePropertyMustNotThrow, _HeadersFailure: _RoutePropertyMustNotThrow,
    _BodyFailure: _RoutePropertyMustNotThrow, _OptionsFailure: _RoutePropertyMustNotThrow,
    _MethodFunction: _RoutePropertyMustNotBeFunction, _QueryFunction: _RoutePropertyMustNotBeFunction,
    _HeadersFunction: _RoutePropertyMustNotBeFunction, _BodyFunction: _RoutePropertyMustNotBeFunction,
    _OptionsFunction: _RoutePropertyMustNotBeFunction,
    _StaticMethod: _RoutePropertyMustNotBeStatic, _StaticQuery: _RoutePropertyMustNotBeStatic,
    _StaticHeaders: _RoutePropertyMustNotBeStatic, _StaticBody: _RoutePropertyMustNotBeStatic,
    _StaticOptions: _RoutePropertyMustNotBeStatic,
    _Parameters: _MustBeQueryOrBody, _QueryItems: _MustBeNamedQuery, _QueryParameters: _MustBeNamedQuery, _Header: _MustBeNamedHeaders,
    _HTTPMethodProperty: _MustBeNamedMethod, _HTTPBodyProperty: _MustBeNamedBody, _URL: _MustBePathAndHost, _BaseURL: _MustBePathAndHost,
    _RequiresAuth: _MustBeInOptions, _Timeouts: _MustBeInOptions, _CachePolicy: _MustBeInOptions, _ResponseLimit: _MustBeInOptions,
    _ParameterStyle: _MustBeInOptions
{
    /// The path below the host's base path.
    var path: RoutePath { get }
    /// The method; GET by default. A route with a body must declare its method.
    var method: HTTPMethod { get }
    /// The query, in its order; empty by default.
    var query: Parameters { get }
    /// The header fields besides the host's defaults; none by default.
    var headers: Headers { get }
    /// The body to send; none by default.
    var body: RouteBody { get }
    /// The rare settings, each with a default.
    var options: RouteOptions { get }
}

extension Routable {
    /// GET, unless the route has a body: then sending fails until the route declares its method.
    public var method: HTTPMethod { .assumed }
    /// The default: no query, so the address ends with the path.
    public var query: Parameters { [:] }
    /// The default: no fields besides those of the host.
    public var headers: Headers { [:] }
    /// The default: no body and no `Content-Type`.
    public var body: RouteBody { .none }
    /// The default: the host's settings, and the cache lifetimes of the origin.
    public var options: RouteOptions { RouteOptions() }
}

/// A ready-made route that needs no type of its own.
///
/// ```swift
/// extension Route {
///     static func login(name: String, password: String) -> Route {
///         Route(
///             path: "/user/login", method: .post,
///             parameters: ["username": name, "password": password])
///     }
/// }
/// ```
///
/// In an `extension Routable where Self == Route`, such functions can be called by leading-dot syntax: `api.send(.login(…))`.
///
/// <doc:DescribingRoutes> explains parameters, bodies and links.
public struct Route: Routable {
    /// The path below the host's base path.
    public var path: RoutePath
    /// The method; GET unless the initializer states another.
    public var method: HTTPMethod
    /// The query, in its order; empty if the address ends with the path.
    public var query: Parameters
    /// The header fields besides the host's defaults.
    public var headers: Headers
    /// The body to send; `.none` sends none.
    public var body: RouteBody
    /// The rare settings; `nil` among them stands for the host's.
    public var options: RouteOptions

    /// Creates a route without a body.
    ///
    /// - Parameters:
    ///   - path: The path below the host's base path.
    ///   - method: The method.
    ///   - query: The query.
    ///   - headers: The header fields besides the host's defaults.
    ///   - options: The rare settings.
    public init(
        path: RoutePath, method: HTTPMethod = .get, query: Parameters = [:], headers: Headers = [:], options: RouteOptions = RouteOptions()
    ) {
        self.init(path: path, method: method, query: query, headers: headers, body: .none, options: options)
    }

    /// Creates a route with a body, which requires an explicit method.
    ///
    /// - Parameters:
    ///   - path: The path below the host's base path.
    ///   - method: The method.
    ///   - query: The query.
    ///   - headers: The header fields besides the host's defaults.
    ///   - body: The body to send.
    ///   - options: The rare settings.
    public init(
        path: RoutePath, method: HTTPMethod, query: Parameters = [:], headers: Headers = [:], body: RouteBody,
        options: RouteOptions = RouteOptions()
    ) {
        self.path = path
        self.method = method
        self.query = query
        self.headers = headers
        self.body = body
        self.options = options
    }

    /// Creates a route with the properties of another route.
    ///
    /// - Parameter route: A route of any type.
    public init(_ route: some Routable) {
        self.init(
            path: route.path, method: route.method, query: route.query, headers: route.headers, body: route.body, options: route.options)
    }

    /// Creates a route whose parameters are sent in the query for GET, HEAD and DELETE, otherwise in the body.
    ///
    /// - Parameters:
    ///   - path: The path below the host's base path.
    ///   - method: The method.
    ///   - parameters: The parameters.
    ///   - type: The media type of the body: JSON, a URL-encoded form or a multipart form.
    ///   - headers: The header fields besides the host's defaults.
    ///   - options: The rare settings.
    public init(
        path: RoutePath, method: HTTPMethod = .get, parameters: Parameters, as type: MimeType = .json, headers: Headers = [:],
        options: RouteOptions = RouteOptions()
    ) {
        let isQuery = method == .get || method == .head || method == .delete
        self.init(
            path: path, method: method, query: isQuery ? parameters : [:], headers: headers,
            body: isQuery ? .none : .parameters(parameters, as: type), options: options)
    }
}
