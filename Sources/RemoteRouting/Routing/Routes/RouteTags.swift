public import RemoteHTTP
internal import StoreCore

/// The key of a value that travels with a route, such as the name of a screen.
///
/// ```swift
/// enum Experiment: RouteTagKey { typealias Value = Int }
/// ```
/// ```swift
/// let orders: [Order] = try await api.send(
///     Route(path: "/orders").tagged(Experiment.self, 2))
/// ```
///
/// A key is a type without instances. It fixes the type of its values, so a value of another type does not compile. Logs show only the
/// values of a ``LoggedRouteTagKey``.
///
/// <doc:Intercepting> explains tags, and which of them reach logs.
public protocol RouteTagKey: SendableMetatype {
    /// The type of the values that requests carry under the key.
    associatedtype Value: Sendable
}

/// The key of a value that logs show with the request.
///
/// ```swift
/// enum ScreenName: LoggedRouteTagKey { typealias Value = String }
/// ```
///
/// An ``ExchangeLog`` receives no other tags, because their values may be private.
public protocol LoggedRouteTagKey: RouteTagKey {}

/// The values that travel with a route to interceptors, transports and logs; none is sent.
///
/// ```swift
/// var options = RouteOptions()
/// options.tags[ScreenName.self] = "list"
/// ```
///
/// Interceptors and transports read them from `HTTPRequest.tags`. An ``ExchangeLog`` receives only those of a ``LoggedRouteTagKey``.
///
/// <doc:Intercepting> shows how to tag routes.
public struct RouteTags: Sendable {
    /// In the order in which they were set. An array, because a linear search is cheaper for few tags.
    private var tags: [any Tag] = []

    /// The value of a key; `nil` removes it.
    ///
    /// - Complexity: O(*n*) in the number of tags.
    public subscript<Key: RouteTagKey>(key: Key.Type) -> Key.Value? {
        get {
            for case let tag as Tagged<Key> in tags { return tag.value }
            return nil
        }
        set {
            let index = tags.firstIndex { $0 is Tagged<Key> }
            switch (newValue.map(Tagged<Key>.init), index) {
            case (let tag?, let index?): tags[index] = tag
            case (let tag?, nil): tags.append(tag)
            case (nil, let index?): tags.remove(at: index)
            case (nil, nil): break
            }
        }
    }

    var isEmpty: Bool { tags.isEmpty }

    var logged: RouteTags {
        var copy = self
        copy.tags.removeAll { $0.text == nil }
        return copy
    }

    private protocol Tag: Sendable {
        /// The key's name and the value; `nil` if logs must not show them.
        var text: String? { get }
    }

    private struct Tagged<Key: RouteTagKey>: Tag {
        var value: Key.Value

        // Escaped, because the value may contain user input and the text may be written to a terminal.
        var text: String? { Key.self is any LoggedRouteTagKey.Type ? "\(Key.self): \(value)".escapedForDisplay() : nil }
    }
}

extension RouteTags: CustomStringConvertible {
    /// The names and values of the logged tags, in the order in which they were set.
    public var description: String { tags.compactMap(\.text).joined(separator: ", ") }
}

extension RouteTags: CustomReflectable {
    /// Mirrors only the description, so that dumping a route or request shows no private values.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: tags.compactMap(\.text)) }
}

extension Routable {
    /// Returns the same route with a tag.
    ///
    /// - Parameters:
    ///   - key: The key of the tag.
    ///   - value: The value; it replaces an earlier value of the key.
    public func tagged<Key: RouteTagKey>(_ key: Key.Type, _ value: Key.Value) -> Route {
        var route = Route(self)
        route.options.tags[key] = value
        return route
    }
}

extension HTTPRequest {
    /// The route that the request was built from, for interceptors and transports; `nil` without a route.
    ///
    /// The route stays as the caller sent it: credentials, interceptors and redirects change only the request.
    public internal(set) var route: Route? {
        get { origin?.value }
        set { source = newValue.map { Box($0) } }
    }

    /// The tags of the route; none without a route.
    public var tags: RouteTags { origin?.value.options.tags ?? RouteTags() }

    private var origin: Box<Route>? { source as? Box<Route> }
}
