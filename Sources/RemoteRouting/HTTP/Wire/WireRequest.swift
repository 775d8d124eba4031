package import Foundation

/// A request in the form that the engine sends, encoded and validated.
package struct WireRequest: Sendable {
    package enum Body: Sendable {
        /// No body and no `Content-Length` field.
        case none
        /// An empty body with an explicit length of zero (RFC 9110 §8.6).
        case empty
        /// Bytes in memory, with their length.
        case bytes(Data)
        /// Bytes read while they are sent, on a thread that may block; chunked if the length is unknown (RFC 9112 §7.1).
        case stream(length: Int64?, open: @Sendable () throws -> @Sendable (_ upTo: Int) throws -> Data?)
    }

    /// The maximum size of the address and the fields in bytes. libcurl's limit is 1 MiB, including its own lines and a proxy's.
    package static let headLimit = 1_000_000

    /// The absolute http or https address, encoded.
    package var url: String
    /// The method, a token (RFC 9110 §9.1).
    package var method: String
    package var body: Body
    /// Whether the request may arrive twice: it is idempotent (RFC 9110 §9.2.2) or has an `Idempotency-Key`.
    package var mayRepeat: Bool
    /// The deadlines that the engine enforces.
    package var deadlines: Deadlines.Limits
    /// Whether to report the progress of the request body.
    package var reportsProgress = false
    /// Whether the reader consumes the body at its own pace. Streams never hold all connections and read larger blocks.
    package var isStream = false
    /// The TLS requirements; `nil` for the defaults.
    package var tls: WireTLS?
    package var proxy = WireProxy.system
    /// The local port of a new connection, for tests; 0 for any.
    package var localPort: Int32 = 0
    /// Whether HTTP/2 may be used if the server offers it.
    package var allowsHTTP2 = true
    /// The scheme, the host and the port.
    var origin: String {
        let start = isSecure ? 8 : 7
        let authority = url.utf8.dropFirst(start).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return String(decoding: url.utf8.prefix(start + authority.count), as: UTF8.self)
    }
    /// The key of the exchanges that may share a connection with this one.
    var sharingKey: ConnectionSharing.Key {
        let authority = url.utf8.dropFirst("https://".utf8.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return ConnectionSharing.Key(origin: String(decoding: authority, as: UTF8.self), tls: tls, proxy: proxy)
    }
    /// A hash of the connection's secrets, which libcurl does not compare exactly; 0 without secrets.
    var connectionOwner: UInt64 {
        guard isSecure else { return 0 }
        var hasher = Hasher()
        var hasSecrets = false
        if let tls, tls.certificate != nil || !tls.pins.isEmpty {
            hasSecrets = true
            tls.hashSecrets(into: &hasher)
        }
        if case .server(let server) = proxy, !server.user.isEmpty {
            hasSecrets = true
            hasher.combine(server)
        }
        return hasSecrets ? UInt64(truncatingIfNeeded: hasher.finalize()) : 0
    }
    var isSecure: Bool { url.prefix(6).lowercased() == "https:" }
    /// The header lines, each terminated by NUL, in the shim's form.
    private(set) var lines: [UInt8] = []

    /// Whether the head of the request is within libcurl's limit.
    var fits: Bool { url.utf8.count + lines.count <= WireRequest.headLimit }

    package init(url: String, method: String, body: Body = .none, mayRepeat: Bool, deadlines: Deadlines.Limits = Deadlines.Limits()) {
        self.url = url
        self.method = method
        self.body = body
        self.mayRepeat = mayRepeat
        self.deadlines = deadlines
        lines.reserveCapacity(256)
    }

    /// Adds a field; the caller must verify that its name and value contain no control characters.
    package mutating func add(_ name: String, _ value: String) {
        lines.append(contentsOf: name.utf8)
        if value.isEmpty {
            // libcurl's form for a field without a value.
            lines.append(UInt8(ascii: ";"))
        } else {
            lines.append(contentsOf: ": ".utf8)
            FieldBytes.append(value, to: &lines)
        }
        lines.append(0)
    }

    /// Prevents libcurl from adding a field of its own.
    package mutating func suppress(_ name: String) {
        lines.append(contentsOf: name.utf8)
        lines.append(UInt8(ascii: ":"))
        lines.append(0)
    }
}

package struct WireHead: Sendable {
    package struct Field: Sendable {
        package let name: String
        package internal(set) var value: String
    }

    package let status: Int
    /// The fields in the order of the wire, not validated.
    package let fields: [Field]

    package func values(of name: String) -> [String] {
        fields.filter { $0.name.utf8.count == name.utf8.count && $0.name.lowercased() == name.lowercased() }.map(\.value)
    }
}

/// The reaction of a receiver: whether the source of a body continues.
package enum WireFlow: Sendable {
    /// The reader accepts more, so the source continues.
    case goesOn
    /// The reader is behind; the source waits for ``WireEngine/resume(_:)``.
    case pauses
}

/// The caller's side of an exchange.
///
/// The engine calls it on its own thread in the order of the wire, and not again after the end. Implementations must not block.
package protocol WireReceiver: AnyObject, Sendable {
    /// Reports the number of request body bytes handed over so far.
    func sent(_ total: Int64)
    /// Receives a head, the next bytes of the body, or both; `isComplete` is true if nothing follows.
    func received(_ head: WireHead?, _ body: Data, isComplete: Bool) -> WireFlow
    /// Receives the rest of a successful response and the metrics of the exchange.
    func completed(_ head: WireHead?, _ body: Data, _ metrics: WireMetrics)
    /// Receives the failure of the exchange.
    func failed(_ failure: WireFailure)
}

extension WireReceiver {
    /// The default: passes on the end without the metrics.
    package func completed(_ head: WireHead?, _ body: Data, _ metrics: WireMetrics) { _ = received(head, body, isComplete: true) }
}

package struct WireFailure: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        case invalidRequest, bodyUnreadable
        case proxyUnreachable, proxyRefused, proxyUnauthorized
        case hostNotFound, connectionRefused, unreachable, connectionLost
        /// The connection could not be secured.
        case tls(WireTLS.Fault)
        case protocolViolation, headTooLarge
        case timedOut(Deadlines.Part)
        case engineFailed
    }

    package var code: Code
    /// The reason and the remedy, without addresses or header values.
    package var message: String
    /// Whether the request, or a part of it, may have reached the server.
    package var mayHaveArrived: Bool
    package var underlyingError: (any Error)?

    /// Creates a failure; only a failure that is known to precede the first byte of the request excludes arrival.
    package init(_ code: Code, _ message: String, mayHaveArrived: Bool = true, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveArrived = mayHaveArrived
        self.underlyingError = underlyingError
    }

    package var description: String { "\(code): \(message)" }
}
