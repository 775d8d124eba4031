package import Foundation

/// One request as the engine sends it; everything is encoded and checked.
package struct WireRequest: Sendable {
    /// The bytes behind the head.
    package enum Body: Sendable {
        /// No body and no length.
        case none
        /// A body of length zero, which is said (RFC 9110 §8.6).
        case empty
        /// Bytes in memory.
        case bytes(Data)
        /// Bytes that are read while they are sent, on a thread that may block; without a length they go in chunks (RFC 9112 §7.1).
        case stream(length: Int64?, open: @Sendable () throws -> @Sendable (_ upTo: Int) throws -> Data?)
    }

    /// How many bytes the address and the fields may have: libcurl holds heads of 1 MiB, its own lines and a proxy's included.
    package static let headLimit = 1_000_000

    /// The absolute address.
    package var url: String
    /// The method, a token.
    package var method: String
    /// The body.
    package var body: Body
    /// Whether the request may arrive twice: it is idempotent (RFC 9110 §9.2.2) or carries an `Idempotency-Key`.
    package var mayRepeat: Bool
    /// The deadlines that the engine keeps.
    package var deadlines: Deadlines.Limits
    /// Whether the caller wants to know about each part of the body that is sent.
    package var reportsProgress = false
    /// Whether the reader takes the body in its own time; streams never hold all connections, and each read from the socket takes more.
    package var isStream = false
    /// What is demanded of a secure connection; `nil` for the defaults.
    package var tls: WireTLS?
    /// The proxy.
    package var proxy = WireProxy.system
    /// Whether HTTP/2 may be used where the server offers it.
    package var allowsHTTP2 = true
    /// The exchanges that may share a connection with this one.
    var sharingKey: ConnectionSharing.Key {
        let authority = url.utf8.dropFirst("https://".utf8.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return ConnectionSharing.Key(origin: String(decoding: authority, as: UTF8.self), tls: tls, proxy: proxy)
    }
    /// The number of the secrets that a connection is made with, which libcurl does not compare, or not exactly; 0 without any.
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
    /// Whether the address is one of https.
    var isSecure: Bool { url.prefix(6).lowercased() == "https:" }
    /// The lines of the header, each ended by NUL, as the shim wants them.
    private(set) var lines: [UInt8] = []

    /// Whether libcurl can hold the head of the request.
    var fits: Bool { url.utf8.count + lines.count <= WireRequest.headLimit }

    package init(url: String, method: String, body: Body = .none, mayRepeat: Bool, deadlines: Deadlines.Limits = Deadlines.Limits()) {
        self.url = url
        self.method = method
        self.body = body
        self.mayRepeat = mayRepeat
        self.deadlines = deadlines
        lines.reserveCapacity(256)
    }

    /// Adds a field; the caller has checked that name and value hold no control characters.
    package mutating func add(_ name: String, _ value: String) {
        lines.append(contentsOf: name.utf8)
        if value.isEmpty {
            // The form that libcurl takes for a field without a value.
            lines.append(UInt8(ascii: ";"))
        } else {
            lines.append(contentsOf: ": ".utf8)
            lines.append(contentsOf: value.utf8)
        }
        lines.append(0)
    }

    /// Keeps libcurl from adding a field of its own.
    package mutating func suppress(_ name: String) {
        lines.append(contentsOf: name.utf8)
        lines.append(UInt8(ascii: ":"))
        lines.append(0)
    }
}

/// What comes before the body of a response.
package struct WireHead: Sendable {
    /// One field line.
    package struct Field: Sendable {
        package let name: String
        package internal(set) var value: String
    }

    /// The status code.
    package let status: Int
    /// The fields in the order of the wire, unchecked.
    package let fields: [Field]

    package func values(of name: String) -> [String] {
        fields.filter { $0.name.utf8.count == name.utf8.count && $0.name.lowercased() == name.lowercased() }.map(\.value)
    }
}

/// Whether the source of a body goes on.
package enum WireFlow: Sendable {
    /// The reader takes more.
    case goesOn
    /// The reader is behind; the source waits for ``WireEngine/resume(_:)``.
    case pauses
}

/// The caller's side of an exchange.
///
/// The engine calls it on its own thread, in the order of the wire, and not again after an end. Implementations must not block.
package protocol WireReceiver: AnyObject, Sendable {
    /// So many bytes of the request's body have been handed over in all.
    func sent(_ total: Int64)
    /// A head, the next bytes of the body, or both arrived; `isComplete` where nothing follows.
    func received(_ head: WireHead?, _ body: Data, isComplete: Bool) -> WireFlow
    /// The exchange succeeded; the rest of the response arrived, and how all of it went is known.
    func completed(_ head: WireHead?, _ body: Data, _ metrics: WireMetrics)
    /// The exchange failed.
    func failed(_ failure: WireFailure)
}

extension WireReceiver {
    /// Ignores how the exchange went.
    package func completed(_ head: WireHead?, _ body: Data, _ metrics: WireMetrics) { _ = received(head, body, isComplete: true) }
}

/// Why an exchange failed.
package struct WireFailure: Error, Sendable, CustomStringConvertible {
    /// The kinds of failures.
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
    /// What happened, without addresses or field values.
    package var message: String
    /// Whether the request, or a part of it, may have reached the server.
    package var mayHaveArrived: Bool
    package var underlyingError: (any Error)?

    package init(_ code: Code, _ message: String, mayHaveArrived: Bool = false, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveArrived = mayHaveArrived
        self.underlyingError = underlyingError
    }

    package var description: String { "\(code): \(message)" }
}
