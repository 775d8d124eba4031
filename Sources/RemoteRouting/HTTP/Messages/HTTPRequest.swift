public import Foundation

/// A request in its final form, encoded and validated.
public struct HTTPRequest: Sendable {
    private struct Parts: Sendable {
        var method: HTTPMethod
        var url: URL
        var fields: HTTPFields
        var body: HTTPBody
        var source: (any AnyObject & Sendable)?
    }

    /// An object, because the frames of a waiting call have room for ten requests.
    private var box: Box<Parts>

    /// Creates a request: by default a GET without fields and without a body.
    public init(method: HTTPMethod = .get, url: URL, fields: HTTPFields = HTTPFields(), body: HTTPBody = .none) {
        box = Box(Parts(method: method, url: url, fields: fields, body: body))
    }

    /// The method, which also decides whether the request may be repeated.
    public var method: HTTPMethod {
        get { box.value.method }
        set { change { $0.method = newValue } }
    }
    /// The absolute http or https address.
    public var url: URL {
        get { box.value.url }
        set { change { $0.url = newValue } }
    }
    /// The header, without the fields that the transport writes (`Host`, `Content-Length`, `Connection`).
    public var fields: HTTPFields {
        get { box.value.fields }
        set { change { $0.fields = newValue } }
    }
    /// The encoded body; its media type is among the fields.
    public var body: HTTPBody {
        get { box.value.body }
        set { change { $0.body = newValue } }
    }
    /// The object that the request was built from; only its builder knows the type. A message carries it along and does not send it.
    package var source: (any AnyObject & Sendable)? {
        get { box.value.source }
        set { change { $0.source = newValue } }
    }

    /// Whether repeating the request is possible and has no further effect (RFC 9110 §9.2.2).
    package var mayRepeat: Bool {
        (method.isIdempotent || fields["Idempotency-Key"] != nil) && body.isReplayable
    }

    private mutating func change(_ change: (inout Parts) -> Void) {
        var parts = box.value
        change(&parts)
        box = Box(parts)
    }
}

extension HTTPRequest: CustomStringConvertible {
    /// The method and the address, without its query, fragment and user.
    public var description: String { "\(method.rawValue) \(url.withoutSecrets)" }
}

extension URL {
    /// The address without its query, fragment and user.
    package var withoutSecrets: String {
        let text = absoluteString.prefix { $0 != "?" && $0 != "#" }
        return user(percentEncoded: true) == nil ? String(text) : "\(scheme ?? "")://…\(path(percentEncoded: true))"
    }
}

/// An object with a value, which is as small as a reference wherever it is held.
package final class Box<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}

/// The encoded body of a request.
public enum HTTPBody: Sendable {
    /// No body; the request ends with its fields.
    case none
    /// Bytes in memory, which can be sent again.
    case data(Data)
    /// Bytes that are produced while they are sent.
    case stream(HTTPBodyStream)

    var isNone: Bool { if case .none = self { true } else { false } }

    package var isReplayable: Bool {
        switch self {
        case .none, .data: true
        case .stream(let stream): stream.isReplayable
        }
    }

    package var length: Int64? {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .stream(let stream): stream.length
        }
    }
}

/// A body that is read in chunks while it is sent, so that a file need not fit into memory.
public struct HTTPBodyStream: Sendable {
    /// The length in bytes, if it is known.
    public var length: Int64?
    /// Whether `open` can be called again and produces the same bytes.
    package var isReplayable: Bool
    /// Opens the body and returns a function that reads at most the given number of bytes, and `nil` at the end.
    ///
    /// The function may block its thread. For a body from a sequence, it waits for the next chunk, and returns the whole chunk.
    public var open: @Sendable () throws -> @Sendable (_ upTo: Int) throws -> Data? { didSet { chunks = nil } }
    /// Begins a pass over a sequence of chunks, which blocks no thread; `nil` for a body that only `open` reads.
    private(set) var chunks: (@Sendable () -> ChunkReader)?

    /// Creates a body that `open` produces while it is sent.
    public init(
        length: Int64?, isReplayable: Bool, open: @escaping @Sendable () throws -> @Sendable (_ upTo: Int) throws -> Data?
    ) {
        self.length = length
        self.isReplayable = isReplayable
        self.open = open
    }

    /// Creates a body of chunks, and checks their total length.
    init(chunks: @escaping @Sendable () -> ChunkReader, length: Int64?, isReplayable: Bool) {
        // No transport reads a body of length 0, which the sequence may contradict.
        self.length = length == 0 ? nil : length
        self.isReplayable = isReplayable
        self.chunks = chunks
        open = {
            let reader = chunks()
            return { _ in try reader.waitForNext() }
        }
    }
}

/// A request method of RFC 9110 §9, or an extension method.
///
/// Methods are case-sensitive: `patch` differs from ``patch-swift.type.property`` (RFC 9110 §9.1).
public struct HTTPMethod: RawRepresentable, Hashable, Sendable {
    /// The method as it goes on the wire.
    public let rawValue: String

    /// Whether the route declares no method; a body then means that the method was forgotten.
    ///
    /// Equality ignores it, because values of a `RawRepresentable` type are equal if their raw values are.
    package let isAssumed: Bool

    /// Creates a method from a token.
    ///
    /// - Parameter rawValue: A token (RFC 9110 §5.6.2); for anything else the initializer returns `nil`, so that a method cannot inject a
    ///   line.
    public init?(rawValue: String) {
        guard rawValue.isToken else { return nil }
        self.rawValue = rawValue
        isAssumed = false
    }

    private init(known: String, isAssumed: Bool = false) {
        rawValue = known
        self.isAssumed = isAssumed
    }

    /// GET, because the route declares no method.
    package static let assumed = HTTPMethod(known: "GET", isAssumed: true)

    /// Transfers a representation of the resource.
    public static let get = HTTPMethod(known: "GET")
    /// Like GET, but without the response body.
    public static let head = HTTPMethod(known: "HEAD")
    /// Submits the body to the resource for processing.
    public static let post = HTTPMethod(known: "POST")
    /// Replaces the resource with the body.
    public static let put = HTTPMethod(known: "PUT")
    /// Removes the resource (RFC 9110 §9.3.5).
    public static let delete = HTTPMethod(known: "DELETE")
    /// Modifies the resource partially (RFC 5789).
    public static let patch = HTTPMethod(known: "PATCH")
    /// Requests the communication options of the resource.
    public static let options = HTTPMethod(known: "OPTIONS")

    /// Whether the method only reads (RFC 9110 §9.2.1).
    package var isSafe: Bool { self == .get || self == .head || self == .options || rawValue == "TRACE" }

    /// Whether repeating the request has no further effect (RFC 9110 §9.2.2).
    package var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}
