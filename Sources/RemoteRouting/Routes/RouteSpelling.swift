// All requirements of `Routable` but `path` have defaults. A conforming type that declares `var method: String` or `func body()` would
// compile, and the default would be used in its place. The protocols of this file turn such a declaration into an error at compile time.
//
// A member with the name of a requirement below is its witness, whatever the member's type is, because the compiler prefers a member of
// the type to a default. The type of the witness becomes an associated type. `Routable` demands of each associated type a protocol to
// which only the right type conforms. The compiler names that protocol in its message, so the protocol's name says what to do.
//
// The demands belong to `Routable` and not to the associated types: the compiler would otherwise skip a wrong witness for the default.

/// The members of a route that are properties, and names that belong to none of them.
public protocol _RouteProperties {
    associatedtype _Method
    var method: _Method { get }
    associatedtype _Query
    var query: _Query { get }
    associatedtype _Headers
    var headers: _Headers { get }
    associatedtype _Body
    associatedtype _BodyFailure: Error = Never
    var body: _Body { get throws(_BodyFailure) }
    associatedtype _Options
    var options: _Options { get }

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
    associatedtype _URL
    var url: _URL { get }
    associatedtype _BaseURL
    var baseURL: _BaseURL { get }
}

/// The members of a route in the form of functions and static properties, which they do not have.
///
/// A protocol of its own, because a property and a function of one name cannot be declared in one place.
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

public protocol _MethodMustBeHTTPMethod {}
extension HTTPMethod: _MethodMustBeHTTPMethod {}
public protocol _QueryMustBeParameters {}
extension Parameters: _QueryMustBeParameters {}
public protocol _HeadersMustBeHeaders {}
extension Headers: _HeadersMustBeHeaders {}
public protocol _BodyMustBeRouteBody {}
extension RouteBody: _BodyMustBeRouteBody {}
public protocol _BodyMustNotThrow {}
extension Never: _BodyMustNotThrow {}
public protocol _OptionsMustBeRouteOptions {}
extension RouteOptions: _OptionsMustBeRouteOptions {}

public protocol _ParametersMustBeQueryOrBody {}
public protocol _QueryItemsMustBeQuery {}
public protocol _QueryParametersMustBeQuery {}
public protocol _HeaderMustBeHeaders {}
public protocol _HTTPMethodMustBeMethod {}
public protocol _HTTPBodyMustBeBody {}
public protocol _RequiresAuthMustBeInOptions {}
public protocol _URLMustBePathAndHost {}
public protocol _BaseURLMustBeOfTheHost {}

public protocol _MethodMustBeProperty {}
public protocol _QueryMustBeProperty {}
public protocol _HeadersMustBeProperty {}
public protocol _BodyMustBeProperty {}
public protocol _OptionsMustBeProperty {}
/// Routes conform to it, because a case of an enum is a static member too, and may have any name.
public protocol _RoutePropertyMustNotBeStatic {}

/// The type of a member that a route does not have.
public struct _NoMember: Sendable, _ParametersMustBeQueryOrBody, _QueryItemsMustBeQuery, _QueryParametersMustBeQuery, _HeaderMustBeHeaders,
    _HTTPMethodMustBeMethod, _HTTPBodyMustBeBody, _RequiresAuthMustBeInOptions, _URLMustBePathAndHost, _BaseURLMustBeOfTheHost,
    _MethodMustBeProperty, _QueryMustBeProperty, _HeadersMustBeProperty, _BodyMustBeProperty, _OptionsMustBeProperty,
    _RoutePropertyMustNotBeStatic
{}

extension _RouteProperties {
    public var parameters: _NoMember { _NoMember() }
    public var queryItems: _NoMember { _NoMember() }
    public var queryParameters: _NoMember { _NoMember() }
    public var header: _NoMember { _NoMember() }
    public var httpMethod: _NoMember { _NoMember() }
    public var httpBody: _NoMember { _NoMember() }
    public var requiresAuth: _NoMember { _NoMember() }
    public var url: _NoMember { _NoMember() }
    public var baseURL: _NoMember { _NoMember() }
}

// Disfavored, so that `SomeRoute.body` is the case of that enum.
extension _RouteFunctions {
    @_disfavoredOverload public func method() -> _NoMember { _NoMember() }
    @_disfavoredOverload public func query() -> _NoMember { _NoMember() }
    @_disfavoredOverload public func headers() -> _NoMember { _NoMember() }
    @_disfavoredOverload public func body() -> _NoMember { _NoMember() }
    @_disfavoredOverload public func options() -> _NoMember { _NoMember() }

    @_disfavoredOverload public static var method: _NoMember { _NoMember() }
    @_disfavoredOverload public static var query: _NoMember { _NoMember() }
    @_disfavoredOverload public static var headers: _NoMember { _NoMember() }
    @_disfavoredOverload public static var body: _NoMember { _NoMember() }
    @_disfavoredOverload public static var options: _NoMember { _NoMember() }
}
