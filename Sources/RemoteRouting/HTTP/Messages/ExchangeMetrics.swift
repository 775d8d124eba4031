internal import StoreCore

/// The metrics of one exchange on the wire: times, bytes, version and connection.
///
/// ```swift
/// let response: RemoteResponse<User> = try await api.response(
///     for: Route(path: "/user"))
/// // Prints “HTTP/2, reused connection, first byte after 11 ms, 12 ms”.
/// if let metrics = response.metrics { print(metrics) }
/// ```
///
/// A redirect or a further attempt is a separate exchange; a response has the metrics of the last one. A part is `nil` if the platform does
/// not report it: `URLSession` on Linux reports only ``firstByte``, ``total`` and ``decodedBodyBytes``.
public struct ExchangeMetrics: Hashable, Sendable, CustomStringConvertible {
    /// The version of HTTP that an exchange used.
    public enum Version: String, Hashable, Sendable {
        /// HTTP/1.0 (RFC 1945).
        case http1_0 = "HTTP/1.0"
        /// HTTP/1.1 (RFC 9112).
        case http1_1 = "HTTP/1.1"
        /// HTTP/2 (RFC 9113).
        case http2 = "HTTP/2"
        /// HTTP/3 (RFC 9114).
        case http3 = "HTTP/3"
    }

    /// The HTTP version of the response.
    public var version: Version?
    /// Whether an earlier exchange opened the connection.
    public var isReused: Bool?
    /// The time to resolve the name of the host or the proxy; `nil` on a reused connection.
    public var nameLookup: Duration?
    /// The time to connect, after the name lookup; `nil` on a reused connection.
    public var connect: Duration?
    /// The time of the TLS handshake; `nil` without TLS and on a reused connection. With libcurl, it includes a proxy's tunnel.
    public var secure: Duration?
    /// The time from the start of the exchange to the first byte of the response.
    public var firstByte: Duration?
    /// The time from the start of the exchange to the last byte of the response.
    public var total: Duration?
    /// The size of the sent request line and header, in bytes; for HTTP/2 before compression.
    public var sentHeadBytes: Int64?
    /// The size of the sent body, in bytes.
    public var sentBodyBytes: Int64?
    /// The size of the received status line and header, in bytes; for HTTP/2 after decompression.
    public var receivedHeadBytes: Int64?
    /// The size of the received body, in bytes, before its content coding is removed.
    public var receivedBodyBytes: Int64?
    /// The size of the body, in bytes, after its content coding is removed.
    public var decodedBodyBytes: Int64?

    /// Creates metrics with all parts `nil`.
    public init() {}

    /// The version, the connection and the times, as far as they are known.
    public var description: String {
        var parts: [String] = []
        if let version { parts.append(version.rawValue) }
        if let isReused { parts.append(isReused ? "reused connection" : "new connection") }
        if let firstByte { parts.append("first byte after \(firstByte.inWords)") }
        if let total { parts.append(total.inWords) }
        return parts.joined(separator: ", ")
    }
}

extension ExchangeMetrics {
    /// Converts libcurl's marks, which are microseconds since the start of the exchange.
    init(
        version: Int, connections: Int, nameLookup: Int64, connect: Int64, secure: Int64, firstByte: Int64, total: Int64
    ) {
        self.version = Version(libcurl: version)
        isReused = connections == 0
        if connections > 0 {
            self.nameLookup = .microseconds(nameLookup)
            self.connect = .microseconds(max(0, connect - nameLookup))
            if secure > 0 { self.secure = .microseconds(max(0, secure - connect)) }
        }
        self.firstByte = .microseconds(firstByte)
        self.total = .microseconds(total)
    }

    /// Returns the number of bytes of a request's head, which libcurl counts together with the body; before 8.7, only with a body that it
    /// has copied.
    static func headBytes(of request: Int64, body: Int64, isCopied: Bool, countsBodies: Bool) -> Int64 {
        isCopied || countsBodies ? max(0, request - body) : request
    }
}

extension ExchangeMetrics.Version {
    init?(libcurl number: Int) {
        switch number {
        case 1: self = .http1_0
        case 2: self = .http1_1
        case 3: self = .http2
        case 30: self = .http3
        default: return nil
        }
    }

    /// Converts the ALPN name of a version (RFC 7301 §6).
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
