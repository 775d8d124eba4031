public import Foundation

/// A request that is ready for the wire: everything is encoded and checked.
public struct HTTPRequest: Sendable {
    /// The method.
    public var method: HTTPMethod
    /// The absolute address, http or https.
    public var url: URL
    /// The header, without what the transport writes itself (`Host`, `Content-Length`, `Connection`).
    public var fields: HTTPFields
    /// The body.
    public var body: HTTPBody
    /// The route of the request; an object, so that a request stays small.
    private var source: RouteSource?

    /// Makes a request.
    public init(method: HTTPMethod = .get, url: URL, fields: HTTPFields = HTTPFields(), body: HTTPBody = .none) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }

    /// The route that the request was made of, for interceptors and transports; `nil` for a request without one.
    ///
    /// It is what the caller sent: credentials, interceptors and redirects change the request and not its route.
    public internal(set) var route: Route? {
        get { source?.route }
        set { source = newValue.map(RouteSource.init) }
    }

    /// The tags of the route.
    public var tags: RouteTags { source?.route.options.tags ?? RouteTags() }

    /// The same request as one of the route of another.
    func made(like other: HTTPRequest) -> HTTPRequest {
        var copy = self
        copy.source = other.source
        return copy
    }

    private final class RouteSource: Sendable {
        let route: Route

        init(_ route: Route) { self.route = route }
    }
}

/// The bytes of a request's body, once encoded.
public enum HTTPBody: Sendable {
    /// There is none.
    case none
    /// Bytes in memory.
    case data(Data)
    /// Bytes that are made while they are sent.
    case stream(HTTPBodyStream)

    /// Whether the body can be sent a second time.
    var isReplayable: Bool {
        switch self {
        case .none, .data: true
        case .stream(let stream): stream.isReplayable
        }
    }
}

/// A body that is read piece by piece while it is sent, so that a file never has to be in memory.
public struct HTTPBodyStream: Sendable {
    /// The length in bytes, where it is known.
    public var length: Int64?
    /// Whether `open` may be called again and gives the same bytes.
    package var isReplayable: Bool
    /// Begins at the first byte, and returns what reads on: at most so many bytes a call, `nil` at the end.
    public var open: @Sendable () throws -> @Sendable (_ upTo: Int) throws -> Data?

    /// Makes a streamed body.
    public init(
        length: Int64?, isReplayable: Bool, open: @escaping @Sendable () throws -> @Sendable (_ upTo: Int) throws -> Data?
    ) {
        self.length = length
        self.isReplayable = isReplayable
        self.open = open
    }
}

/// A request method of RFC 9110 §9, or an extension method that is a token.
///
/// Methods are case-sensitive: `patch` is another method than ``patch-swift.type.property`` (RFC 9110 §9.1).
public struct HTTPMethod: RawRepresentable, Hashable, Sendable {
    /// The method as it goes on the wire.
    public let rawValue: String

    /// Whether no route has named the method, so that a body is a sign of a forgotten one.
    let isAssumed: Bool

    /// Makes a method from a token.
    ///
    /// - Parameter rawValue: A token of RFC 9110 §5.6.2; `nil` is returned for anything else, so that a method cannot inject a line.
    public init?(rawValue: String) {
        guard rawValue.isToken else { return nil }
        self.rawValue = rawValue
        isAssumed = false
    }

    private init(known: String, isAssumed: Bool = false) {
        rawValue = known
        self.isAssumed = isAssumed
    }

    /// Whether two methods are the same on the wire.
    public static func == (lhs: HTTPMethod, rhs: HTTPMethod) -> Bool { lhs.rawValue == rhs.rawValue }

    /// Hashes the method as it goes on the wire.
    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

    /// GET for want of a method.
    static let assumed = HTTPMethod(known: "GET", isAssumed: true)

    /// Transfers a representation of the resource.
    public static let get = HTTPMethod(known: "GET")
    /// As GET, without the body.
    public static let head = HTTPMethod(known: "HEAD")
    /// Lets the resource process the body.
    public static let post = HTTPMethod(known: "POST")
    /// Replaces the resource by the body.
    public static let put = HTTPMethod(known: "PUT")
    /// Removes the resource.
    public static let delete = HTTPMethod(known: "DELETE")
    /// Changes the resource in part (RFC 5789).
    public static let patch = HTTPMethod(known: "PATCH")
    /// Asks what the resource can do.
    public static let options = HTTPMethod(known: "OPTIONS")

    /// Whether the method only reads (RFC 9110 §9.2.1).
    public var isSafe: Bool { self == .get || self == .head || self == .options || rawValue == "TRACE" }

    /// Whether doing it twice is doing it once (RFC 9110 §9.2.2).
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}
