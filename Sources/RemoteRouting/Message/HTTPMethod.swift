/// A request method of RFC 9110 §9, or an extension method that is a token.
///
/// Methods are case-sensitive: `patch` is another method than ``patch-swift.type.property`` (RFC 9110 §9.1).
public struct HTTPMethod: RawRepresentable, Hashable, Sendable {
    /// The method as it goes on the wire.
    public let rawValue: String

    /// Makes a method from a token.
    ///
    /// - Parameter rawValue: A token of RFC 9110 §5.6.2; `nil` is returned for anything else, so that a method cannot inject a line.
    public init?(rawValue: String) {
        guard rawValue.isToken else { return nil }
        self.rawValue = rawValue
    }

    private init(known: String) { rawValue = known }

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
