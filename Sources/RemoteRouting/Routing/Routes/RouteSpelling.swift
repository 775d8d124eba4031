// All requirements of `Routable` except `path` have defaults. A conforming type that declares `var method: String` or `func body()` would
// therefore compile and send the default. The protocols of this file turn such a declaration into a compile-time error.
//
// A member with the name of a requirement below is its witness, and may have any type, because the compiler prefers a member of the type to
// a default. The type of the witness becomes an associated type. `Routable` requires each associated type to conform to a protocol that only
// the right type conforms to. The compiler names that protocol in its message, so the protocol's name states the remedy.
//
// The constraints are on `Routable`, not on the associated types: otherwise the compiler would skip a wrong witness in favor of the
// default. For the same reason they are protocols, not the types themselves (`_Method == HTTPMethod`).

internal import RemoteHTTP

/// The property requirements of a route, and names that a route must not use.
public protocol _RouteProperties {
    associatedtype _Method
    associatedtype _MethodFailure: Error = Never
    var method: _Method { get throws(_MethodFailure) }
    associatedtype _Query
    associatedtype _QueryFailure: Error = Never
    var query: _Query { get throws(_QueryFailure) }
    associatedtype _Headers
    associatedtype _HeadersFailure: Error = Never
    var headers: _Headers { get throws(_HeadersFailure) }
    associatedtype _Body
    associatedtype _BodyFailure: Error = Never
    var body: _Body { get throws(_BodyFailure) }
    associatedtype _Options
    associatedtype _OptionsFailure: Error = Never
    var options: _Options { get throws(_OptionsFailure) }

    associatedtype _Parameters
    var parameters: _Parameters { get }
    associatedtype _QueryItems
    var queryItems: _QueryItems { get }
    associatedtype _QueryParameters
    var queryParameters: _QueryParameters { get }
    associatedtype _Header
    var header: _Header { get }
    associatedtype _HTTPMethodProperty
    var httpMethod: _HTTPMethodProperty { get }
    associatedtype _HTTPBodyProperty
    var httpBody: _HTTPBodyProperty { get }
    associatedtype _RequiresAuth
    var requiresAuth: _RequiresAuth { get }
    associatedtype _Timeouts
    var timeouts: _Timeouts { get }
    associatedtype _CachePolicy
    var cachePolicy: _CachePolicy { get }
    associatedtype _ResponseLimit
    var responseLimit: _ResponseLimit { get }
    associatedtype _ParameterStyle
    var parameterStyle: _ParameterStyle { get }
    associatedtype _URL
    var url: _URL { get }
    associatedtype _BaseURL
    var baseURL: _BaseURL { get }

    // A body value may well have one of these names, so only the types of `RouteOptions` are refused.
    associatedtype _Tags
    var tags: _Tags { get }
    associatedtype _Accept
    var accept: _Accept { get }
    associatedtype _IdempotencyKey
    var idempotencyKey: _IdempotencyKey { get }
    static var _options: _NoMember { get }
}

/// The members of a route as functions and static properties, which a route must not declare.
///
/// A separate protocol, because one declaration context cannot contain a property and a function of the same name.
public protocol _RouteFunctions {
    associatedtype _MethodFunction
    func method() async throws -> _MethodFunction
    associatedtype _QueryFunction
    func query() async throws -> _QueryFunction
    associatedtype _HeadersFunction
    func headers() async throws -> _HeadersFunction
    associatedtype _BodyFunction
    func body() async throws -> _BodyFunction
    associatedtype _OptionsFunction
    func options() async throws -> _OptionsFunction

    associatedtype _StaticMethod
    static var method: _StaticMethod { get }
    associatedtype _StaticQuery
    static var query: _StaticQuery { get }
    associatedtype _StaticHeaders
    static var headers: _StaticHeaders { get }
    associatedtype _StaticBody
    static var body: _StaticBody { get }
    associatedtype _StaticOptions
    static var options: _StaticOptions { get }
}

/// The constraint on the type of `method`.
public protocol _MethodMustBeHTTPMethod {}
extension HTTPMethod: _MethodMustBeHTTPMethod {}
/// The constraint on the type of `query`.
public protocol _QueryMustBeParameters {}
extension Parameters: _QueryMustBeParameters {}
/// The constraint on the type of `headers`.
public protocol _HeadersMustBeHeaders {}
extension Headers: _HeadersMustBeHeaders {}
/// The constraint on the type of `body`.
public protocol _BodyMustBeRouteBody {}
extension RouteBody: _BodyMustBeRouteBody {}
/// The constraint on the errors of the getters.
public protocol _RoutePropertyMustNotThrow {}
extension Never: _RoutePropertyMustNotThrow {}
/// The constraint on the type of `options`.
public protocol _OptionsMustBeRouteOptions {}
extension RouteOptions: _OptionsMustBeRouteOptions {}

/// The constraint on `parameters`, which a route must not declare.
public protocol _MustBeQueryOrBody {}
/// The constraint on `queryItems` and `queryParameters`, which a route must not declare.
public protocol _MustBeNamedQuery {}
/// The constraint on `header`, which a route must not declare.
public protocol _MustBeNamedHeaders {}
/// The constraint on `httpMethod`, which a route must not declare.
public protocol _MustBeNamedMethod {}
/// The constraint on `httpBody`, which a route must not declare.
public protocol _MustBeNamedBody {}
/// The constraint on the names of options, which a route must not declare.
public protocol _MustBeInOptions {}
/// The constraint on `url` and `baseURL`, which a route must not declare: the path is the route's, and the rest the host's.
public protocol _MustBePathAndHost {}
/// The constraint on functions with the name of a property of a route.
public protocol _RoutePropertyMustNotBeFunction {}
/// The constraint on static properties with the name of a property of a route.
///
/// Routes conform to it, because a case of an enum is a static member too, and may have any name.
public protocol _RoutePropertyMustNotBeStatic {}

/// The type of a member that a route does not have.
public struct _NoMember: Sendable, _MustBeQueryOrBody, _MustBeNamedQuery, _MustBeNamedHeaders, _MustBeNamedMethod, _MustBeNamedBody,
    _MustBeInOptions, _MustBePathAndHost, _RoutePropertyMustNotBeFunction, _RoutePropertyMustNotBeStatic
{}

// Hidden, because the documentation of each route type would list these members.
extension _RouteProperties {
    /// Not a member of a route: they are the `query` or the `body`.
    @_documentation(visibility: internal) public var parameters: _NoMember { _NoMember() }
    /// Not a member of a route: they are the `query`.
    @_documentation(visibility: internal) public var queryItems: _NoMember { _NoMember() }
    /// Not a member of a route: they are the `query`.
    @_documentation(visibility: internal) public var queryParameters: _NoMember { _NoMember() }
    /// Not a member of a route: the fields are `headers`.
    @_documentation(visibility: internal) public var header: _NoMember { _NoMember() }
    /// Not a member of a route: it is the `method`.
    @_documentation(visibility: internal) public var httpMethod: _NoMember { _NoMember() }
    /// Not a member of a route: it is the `body`.
    @_documentation(visibility: internal) public var httpBody: _NoMember { _NoMember() }
    /// Not a member of a route: it is a part of `options`.
    @_documentation(visibility: internal) public var requiresAuth: _NoMember { _NoMember() }
    /// Not a member of a route: they are a part of `options`.
    @_documentation(visibility: internal) public var timeouts: _NoMember { _NoMember() }
    /// Not a member of a route: it is a part of `options`.
    @_documentation(visibility: internal) public var cachePolicy: _NoMember { _NoMember() }
    /// Not a member of a route: it is a part of `options`.
    @_documentation(visibility: internal) public var responseLimit: _NoMember { _NoMember() }
    /// Not a member of a route: it is a part of `options`.
    @_documentation(visibility: internal) public var parameterStyle: _NoMember { _NoMember() }
    /// Not a member of a route: it is made of the path and the host.
    @_documentation(visibility: internal) public var url: _NoMember { _NoMember() }
    /// Not a member of a route: it is the host's.
    @_documentation(visibility: internal) public var baseURL: _NoMember { _NoMember() }
    /// Not a member of a route: they are a part of `options`.
    @_documentation(visibility: internal) public var tags: _NoMember { _NoMember() }
    /// Not a member of a route: it is a part of `options`.
    @_documentation(visibility: internal) public var accept: _NoMember { _NoMember() }
    /// Not a member of a route: it is a part of `options`.
    @_documentation(visibility: internal) public var idempotencyKey: _NoMember { _NoMember() }

    /// The default for `tags`, `accept` and `idempotencyKey` of all other types.
    public static var _options: _NoMember { _NoMember() }
}

// The compiler chooses the most specific default and shows its message.

extension _RouteProperties where _Tags == RouteTags {
    /// The default for `tags` with the type of the option.
    @available(*, unavailable, message: "tags are set in the options of a route: options.tags[…] = …")
    public static var _options: _NoMember { _NoMember() }
}

extension _RouteProperties where _Accept == MimeType {
    /// The default for `accept` with the type of the option.
    @available(*, unavailable, message: "accept is set in the options of a route: RouteOptions(accept: …)")
    public static var _options: _NoMember { _NoMember() }
}

extension _RouteProperties where _Accept == MimeType? {
    /// The default for `accept` with the optional type of the option.
    @available(*, unavailable, message: "accept is set in the options of a route: RouteOptions(accept: …)")
    public static var _options: _NoMember { _NoMember() }
}

extension _RouteProperties where _IdempotencyKey == RouteOptions.IdempotencyKey {
    /// The default for `idempotencyKey` with the type of the option.
    @available(*, unavailable, message: "an idempotency key is set in the options of a route: RouteOptions(idempotencyKey: …)")
    public static var _options: _NoMember { _NoMember() }
}

extension _RouteProperties where _IdempotencyKey == RouteOptions.IdempotencyKey? {
    /// The default for `idempotencyKey` with the optional type of the option.
    @available(*, unavailable, message: "an idempotency key is set in the options of a route: RouteOptions(idempotencyKey: …)")
    public static var _options: _NoMember { _NoMember() }
}

// Disfavored, so that `SomeRoute.body` means an enum case of that name.
extension _RouteFunctions {
    /// Not a function of a route: `method` is a property.
    @_documentation(visibility: internal) @_disfavoredOverload public func method() -> _NoMember { _NoMember() }
    /// Not a function of a route: `query` is a property.
    @_documentation(visibility: internal) @_disfavoredOverload public func query() -> _NoMember { _NoMember() }
    /// Not a function of a route: `headers` is a property.
    @_documentation(visibility: internal) @_disfavoredOverload public func headers() -> _NoMember { _NoMember() }
    /// Not a function of a route: `body` is a property.
    @_documentation(visibility: internal) @_disfavoredOverload public func body() -> _NoMember { _NoMember() }
    /// Not a function of a route: `options` is a property.
    @_documentation(visibility: internal) @_disfavoredOverload public func options() -> _NoMember { _NoMember() }

    /// Not a property of a route's type: `method` belongs to each value.
    @_documentation(visibility: internal) @_disfavoredOverload public static var method: _NoMember { _NoMember() }
    /// Not a property of a route's type: `query` belongs to each value.
    @_documentation(visibility: internal) @_disfavoredOverload public static var query: _NoMember { _NoMember() }
    /// Not a property of a route's type: `headers` belongs to each value.
    @_documentation(visibility: internal) @_disfavoredOverload public static var headers: _NoMember { _NoMember() }
    /// Not a property of a route's type: `body` belongs to each value.
    @_documentation(visibility: internal) @_disfavoredOverload public static var body: _NoMember { _NoMember() }
    /// Not a property of a route's type: `options` belongs to each value.
    @_documentation(visibility: internal) @_disfavoredOverload public static var options: _NoMember { _NoMember() }
}
