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

    /// Makes a request.
    public init(method: HTTPMethod = .get, url: URL, fields: HTTPFields = HTTPFields(), body: HTTPBody = .none) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
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
    public var isReplayable: Bool {
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
    public var isReplayable: Bool
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
