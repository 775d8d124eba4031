internal import StoreCore

/// A key of a value that travels with a route, such as the screen that needs it.
///
/// ```swift
/// enum Experiment: RouteTagKey { typealias Value = Int }
/// ```
/// ```swift
/// let orders: [Order] = try await api.send(Route(path: "/orders").tagged(Experiment.self, 2))
/// ```
///
/// A key is a type without values. Its value type is fixed, so a value of another type does not compile. Logs show only
/// the values of a ``LoggedRouteTagKey``.
public protocol RouteTagKey: SendableMetatype {
    /// The type of the values.
    associatedtype Value: Sendable
}

/// A key of a value that logs show beside the request.
///
/// ```swift
/// enum ScreenName: LoggedRouteTagKey { typealias Value = String }
/// ```
///
/// An ``ExchangeLog`` gets no tag of another key, since its value may be private.
public protocol LoggedRouteTagKey: RouteTagKey {}

/// The values that travel with a route to interceptors, transports and logs; nothing of them is sent.
///
/// ```swift
/// var options = RouteOptions()
/// options.tags[ScreenName.self] = "list"
/// ```
///
/// Interceptors and transports read them in ``HTTPRequest/tags``. An ``ExchangeLog`` gets only those of a
/// ``LoggedRouteTagKey``.
public struct RouteTags: Sendable {
    /// In the order in which they were set; few, so that a search is cheaper than a table.
    private var tags: [any Tag] = []

    /// Makes no tags.
    public init() {}

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

    /// Whether there are none.
    public var isEmpty: Bool { tags.isEmpty }

    /// The tags that logs may show.
    var logged: RouteTags {
        var copy = self
        copy.tags.removeAll { $0.text == nil }
        return copy
    }

    /// A tag of any key.
    private protocol Tag: Sendable {
        /// The key's name and the value; `nil` if logs must not show it.
        var text: String? { get }
    }

    private struct Tagged<Key: RouteTagKey>: Tag {
        var value: Key.Value

        // The value may hold what a user typed, and the text may go to a terminal.
        var text: String? { Key.self is any LoggedRouteTagKey.Type ? "\(Key.self): \(value)".escapedForDisplay() : nil }
    }
}

extension RouteTags: CustomStringConvertible {
    /// The names and values of the tags that logs may show, in the order in which they were set.
    public var description: String { tags.compactMap(\.text).joined(separator: ", ") }
}

extension RouteTags: CustomReflectable {
    /// The same as the description shows, so that a dump of a route or request has no private values either.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: tags.compactMap(\.text)) }
}

extension Routable {
    /// The same route with a tag.
    ///
    /// - Parameters:
    ///   - key: The key of the tag.
    ///   - value: The value; it replaces the route's own of that key.
    public func tagged<Key: RouteTagKey>(_ key: Key.Type, _ value: Key.Value) -> Route {
        var route = Route(self)
        route.options.tags[key] = value
        return route
    }
}
