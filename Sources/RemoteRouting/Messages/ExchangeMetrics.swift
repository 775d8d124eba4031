internal import StoreCore
internal import Wire

/// How one exchange went on the wire: times, bytes, version and connection.
///
/// ```swift
/// let response: RemoteResponse<User> = try await api.response(for: Route(path: "/user"))
/// if let metrics = response.metrics { print(metrics) }       // HTTP/2, reused connection, first byte after 11 ms, 12 ms
/// ```
///
/// A redirect or a further attempt is an exchange of its own; a response has the metrics of the last one. A part that the platform does not
/// tell is `nil`: `URLSession` on Linux tells only ``firstByte``, ``total`` and ``decodedBodyBytes``.
public struct ExchangeMetrics: Hashable, Sendable, CustomStringConvertible {
    /// A version of HTTP.
    public enum Version: String, Hashable, Sendable, CustomStringConvertible {
        /// HTTP/1.0 (RFC 1945).
        case http1_0 = "HTTP/1.0"
        /// HTTP/1.1 (RFC 9112).
        case http1_1 = "HTTP/1.1"
        /// HTTP/2 (RFC 9113).
        case http2 = "HTTP/2"
        /// HTTP/3 (RFC 9114).
        case http3 = "HTTP/3"

        /// The name of the version.
        public var description: String { rawValue }
    }

    /// The version of HTTP that the response came by.
    public var version: Version?
    /// Whether the connection existed before.
    public var isReused: Bool?
    /// The time for looking up the host's name, or the proxy's; `nil` on a reused connection.
    public var nameLookup: Duration?
    /// The time for connecting, from the end of the lookup; `nil` on a reused connection.
    public var connect: Duration?
    /// The time for securing the connection with TLS, from its beginning; `nil` without TLS and on a reused connection.
    public var secure: Duration?
    /// The time from the beginning of the exchange to the first byte of the response.
    public var firstByte: Duration?
    /// The time from the beginning of the exchange to the last byte of the response.
    public var total: Duration?
    /// The bytes of the request line and the header that were sent; over HTTP/2 before their compression.
    public var sentHeadBytes: Int64?
    /// The bytes of the body that were sent.
    public var sentBodyBytes: Int64?
    /// The bytes of the status line and the header that were received; over HTTP/2 after their decompression.
    public var receivedHeadBytes: Int64?
    /// The bytes of the body that were received, encoded as they were.
    public var receivedBodyBytes: Int64?
    /// The bytes of the body after its content coding was removed.
    public var decodedBodyBytes: Int64?

    /// Makes metrics that tell nothing.
    public init() {}

    /// The version, the connection and the times, as far as they are known.
    public var description: String {
        var parts: [String] = []
        if let version { parts.append("\(version)") }
        if let isReused { parts.append(isReused ? "reused connection" : "new connection") }
        if let firstByte { parts.append("first byte after \(firstByte.inWords)") }
        if let total { parts.append(total.inWords) }
        return parts.joined(separator: ", ")
    }

    /// Metrics behind a reference, since a call holds several optional ones.
    final class Box: Sendable {
        let metrics: ExchangeMetrics
        init(_ metrics: ExchangeMetrics) { self.metrics = metrics }
    }
}

extension ExchangeMetrics {
    init(_ wire: WireMetrics) {
        let marks = wire.marks
        version = Version(libcurl: wire.version)
        isReused = wire.connections == 0
        if wire.connections > 0 {
            nameLookup = .microseconds(marks.nameLookup)
            connect = .microseconds(max(0, marks.connect - marks.nameLookup))
            if marks.secure > 0 { secure = .microseconds(max(0, marks.secure - marks.connect)) }
        }
        firstByte = .microseconds(marks.firstByte)
        total = .microseconds(marks.total)
        sentHeadBytes = wire.sentHeadBytes
        sentBodyBytes = wire.sentBodyBytes
        receivedHeadBytes = wire.receivedHeadBytes
        receivedBodyBytes = wire.receivedBodyBytes
    }
}

extension ExchangeMetrics.Version {
    /// Reads libcurl's number of a version.
    init?(libcurl number: Int) {
        switch number {
        case 1: self = .http1_0
        case 2: self = .http1_1
        case 3: self = .http2
        case 30: self = .http3
        default: return nil
        }
    }

    /// Reads the name that ALPN has for a version (RFC 7301 §6).
    init?(alpn name: String) {
        switch name {
        case "http/1.0": self = .http1_0
        case "http/1.1": self = .http1_1
        case "h2", "h2c": self = .http2
        case "h3": self = .http3
        default: return nil
        }
    }
}
