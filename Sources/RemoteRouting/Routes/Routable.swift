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
///         case .refresh(let token): .json(fields: ["type": "REFRESH", "credential": token])
///         }
///     }
///     var options: RouteOptions { RouteOptions(requiresAuth: false) }
/// }
/// ```
///
/// The requirements are few on purpose: everything rare is in ``options-swift.property``. Likely mistakes do not compile:
///
/// - a property of the wrong type (`method: String`), or whose getter throws,
/// - a function or a static property in place of a property (`func body()`),
/// - the names `parameters`, `queryItems`, `queryParameters`, `header`, `httpMethod`, `httpBody`, `url` and `baseURL` of other libraries,
/// - `requiresAuth`, `timeouts`, `cachePolicy`, `responseLimit` and `parameterStyle` beside the options; `tags`, `accept` and
///   `idempotencyKey` only with the types of the options.
///
/// The error names a protocol that says what to do, such as `_MethodMustBeHTTPMethod`, or has a message. A value for the body that would have such a name needs
/// another name in the route.
public protocol Routable: Sendable, _RouteProperties, _RouteFunctions, _RoutePropertyMustNotBeStatic
where
    _Method: _MethodMustBeHTTPMethod, _Query: _QueryMustBeParameters, _Headers: _HeadersMustBeHeaders, _Body: _BodyMustBeRouteBody,
    _BodyFailure: _BodyMustNotThrow, _Options: _OptionsMustBeRouteOptions,
    _MethodFailure: _RoutePropertyMustNotThrow, _QueryFailure: _RoutePropertyMustNotThrow, _HeadersFailure: _RoutePropertyMustNotThrow,
    _OptionsFailure: _RoutePropertyMustNotThrow,
    _Parameters: _ParametersMustBeQueryOrBody, _QueryItems: _QueryItemsMustBeQuery, _QueryParameters: _QueryParametersMustBeQuery,
    _Header: _HeaderMustBeHeaders, _HTTPMethodProperty: _HTTPMethodMustBeMethod, _HTTPBodyProperty: _HTTPBodyMustBeBody,
    _RequiresAuth: _RequiresAuthMustBeInOptions, _Timeouts: _TimeoutsMustBeInOptions, _CachePolicy: _CachePolicyMustBeInOptions,
    _ResponseLimit: _ResponseLimitMustBeInOptions, _ParameterStyle: _ParameterStyleMustBeInOptions, _URL: _URLMustBePathAndHost,
    _BaseURL: _BaseURLMustBeOfTheHost,
    _MethodFunction: _MethodMustBeProperty, _QueryFunction: _QueryMustBeProperty, _HeadersFunction: _HeadersMustBeProperty,
    _BodyFunction: _BodyMustBeProperty, _OptionsFunction: _OptionsMustBeProperty,
    _StaticMethod: _RoutePropertyMustNotBeStatic, _StaticQuery: _RoutePropertyMustNotBeStatic,
    _StaticHeaders: _RoutePropertyMustNotBeStatic,
    _StaticBody: _RoutePropertyMustNotBeStatic, _StaticOptions: _RoutePropertyMustNotBeStatic
{
    /// The path below the host's base path.
    var path: RoutePath { get }
    /// The method; GET by default, unless there is a body.
    var method: HTTPMethod { get }
    /// The query; empty by default.
    var query: Parameters { get }
    /// The header fields beside the host's defaults; none by default.
    var headers: Headers { get }
    /// What is sent; nothing by default.
    var body: RouteBody { get }
    /// Everything rare; all defaults by default.
    var options: RouteOptions { get }
}

extension Routable {
    /// GET. A route with a body names its method; otherwise nothing is sent.
    public var method: HTTPMethod { .assumed }
    /// No query.
    public var query: Parameters { [:] }
    /// No fields of its own.
    public var headers: Headers { [:] }
    /// No body.
    public var body: RouteBody { .none }
    /// All defaults.
    public var options: RouteOptions { RouteOptions() }
}

/// The ready-made route, for those that need no type of their own.
///
/// ```swift
/// extension Route {
///     static func login(name: String, password: String) -> Route {
///         Route(path: "/user/login", method: .post, parameters: ["username": name, "password": password])
///     }
/// }
/// ```
///
/// Functions in an `extension Routable where Self == Route` need no name of a type: `api.send(.login(…))`.
public struct Route: Routable {
    /// The path below the host's base path.
    public var path: RoutePath
    /// The method.
    public var method: HTTPMethod
    /// The query.
    public var query: Parameters
    /// The header fields beside the host's defaults.
    public var headers: Headers
    /// What is sent.
    public var body: RouteBody
    /// Everything rare.
    public var options: RouteOptions

    /// Makes a route without a body.
    ///
    /// - Parameters:
    ///   - path: The path below the host's base path.
    ///   - method: The method.
    ///   - query: The query.
    ///   - headers: The header fields beside the host's defaults.
    ///   - options: Everything rare.
    public init(
        path: RoutePath, method: HTTPMethod = .get, query: Parameters = [:], headers: Headers = [:], options: RouteOptions = RouteOptions()
    ) {
        self.init(path: path, method: method, query: query, headers: headers, body: .none, options: options)
    }

    /// Makes a route with a body, which must name its method.
    ///
    /// - Parameters:
    ///   - path: The path below the host's base path.
    ///   - method: The method.
    ///   - query: The query.
    ///   - headers: The header fields beside the host's defaults.
    ///   - body: What is sent.
    ///   - options: Everything rare.
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

    /// Makes a route of all that another one says.
    ///
    /// - Parameter route: A route of any type.
    public init(_ route: some Routable) {
        self.init(
            path: route.path, method: route.method, query: route.query, headers: route.headers, body: route.body, options: route.options)
    }

    /// Makes a route whose parameters go where the method has them: into the query for GET, HEAD and DELETE, else into the body.
    ///
    /// - Parameters:
    ///   - path: The path below the host's base path.
    ///   - method: The method.
    ///   - parameters: The parameters.
    ///   - type: How a body has them: JSON, a form, or a form of several parts.
    ///   - headers: The header fields beside the host's defaults.
    ///   - options: Everything rare.
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
