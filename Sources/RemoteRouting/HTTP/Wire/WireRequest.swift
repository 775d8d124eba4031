#if os(Linux)
internal import Foundation
internal import StoreCore

/// A request whose header has libcurl's form, which takes time and therefore precedes the engine's thread.
package struct WireRequest: Sendable {
    /// The maximum size of the address and the fields in bytes. libcurl's limit is 1 MiB, including its own lines and a proxy's.
    static let headLimit = 1_000_000

    let message: HTTPRequest
    /// The proxy of the connection, and whether it may use HTTP/2.
    let connection: ConnectionOptions
    /// The TLS requirements; `nil` for the defaults.
    let tls: TLSOptions?
    let url: String
    /// Whether the reader consumes the body at its own pace. Streams never hold all connections and read larger blocks.
    let isStream: Bool
    /// The upgrade to a WebSocket; `nil` for other requests.
    let socket: FrameLink?
    /// The local port of a new connection, for tests; 0 for any.
    package var localPort: Int32 = 0
    /// The header lines, each terminated by NUL, in the shim's form.
    private(set) var lines: [UInt8] = []

    /// Encodes a request; throws if libcurl cannot send it, or if the named proxy cannot be used.
    package init(_ message: HTTPRequest, over connection: ConnectionOptions, _ limits: ExchangeLimits) throws(TransportFailure) {
        self.message = message
        self.connection = connection
        tls = connection.tls == TLSOptions() ? nil : connection.tls
        url = message.url.absoluteString
        // A body without a practical limit is streamed, not collected.
        isStream = limits.bodyBytes > 64 << 20
        // Each attempt has a new key for its handshake.
        socket = limits.upgrade.map { FrameLink(protocols: $0.protocols, messageBytes: $0.messageBytes) }
        if let socket { limits.upgrade?.began(socket) }
        try connection.proxy.check()
        try connection.checkUnixSocket()
        if message.method == .head, !message.body.isNone {
            throw TransportFailure(.unsupported, "a HEAD request with a body cannot be sent; use POST")
        }
        lines.reserveCapacity(256)
        addFields()
    }

    private mutating func addFields() {
        var (hasCoding, hasAccept, hasType) = (false, false, false)
        for field in message.fields.fields {
            switch field.name.utf8.count {
            case 6 where field.name.equalsIgnoringCase("Accept"): hasAccept = true
            case 12 where field.name.equalsIgnoringCase("Content-Type"): hasType = true
            case 15 where field.name.equalsIgnoringCase("Accept-Encoding"): hasCoding = true
            default: break
            }
            add(field.name, field.value)
        }
        if !hasCoding {
            // A range counts stored bytes, so it must not be compressed.
            add("Accept-Encoding", message.fields["Range"] == nil && socket == nil ? ContentCoding.offer : "identity")
        }
        if !hasAccept { suppress("Accept") }
        if let socket {
            for (name, value) in socket.handshake { add(name, value) }
            // What follows the head is not a body.
            for name in ["Transfer-Encoding", "Content-Type", "Expect"] { suppress(name) }
            return
        }
        guard !message.body.isNone || needsLength else { return }
        if !hasType { suppress("Content-Type") }
        suppress("Expect")
    }

    private mutating func add(_ name: String, _ value: String) {
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
    private mutating func suppress(_ name: String) {
        lines.append(contentsOf: name.utf8)
        lines.append(UInt8(ascii: ":"))
        lines.append(0)
    }

    /// Whether a request without a body has an explicit length of zero (RFC 9110 §8.6).
    var needsLength: Bool { message.method == .post || message.method == .put || message.method == .patch }

    var fits: Bool { url.utf8.count + lines.count <= WireRequest.headLimit }

    var isSecure: Bool { url.prefix(6).lowercased() == "https:" }

    /// Whether HTTP/2 may be used. A WebSocket needs HTTP/1.1, and libcurl's messages do not identify connections to Unix domain sockets.
    var mayUseHTTP2: Bool { connection.allowsHTTP2 && socket == nil && connection.unixSocketPath == nil }

    /// Whether an idle connection does not show that its server has closed it.
    var hidesClosing: Bool { isSecure || connection.unixSocketPath != nil }

    var origin: String { connection.unixSocketPath.map { "\(address) \($0)" } ?? address }

    private var address: String {
        let start = isSecure ? 8 : 7
        let authority = url.utf8.dropFirst(start).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        return String(decoding: url.utf8.prefix(start + authority.count), as: UTF8.self)
    }

    /// Whether a new connection needs a name server, for the host or the proxy that the app names.
    var needsLookup: Bool {
        if connection.unixSocketPath != nil { return false }
        var name = address.dropFirst(isSecure ? 8 : 7).hostAndPort.host.lowercased()
        if case .server(let server) = connection.proxy.choice { name = server.host.lowercased() }
        // Only IPv6 addresses are left with a colon.
        let isAddress = name.utf8.contains(UInt8(ascii: ":")) || name.utf8.allSatisfy { $0.isDigit || $0 == UInt8(ascii: ".") }
        return !isAddress && name != "localhost" && !name.hasSuffix(".localhost")
    }

    var sharingKey: ConnectionSharing.Key { ConnectionSharing.Key(origin: address, tls: tls, proxy: connection.proxy) }

    /// A hash of the connection's secrets, which libcurl does not compare exactly; 0 without secrets.
    var connectionOwner: UInt64 {
        guard isSecure else { return 0 }
        var hasher = Hasher()
        var hasSecrets = tls?.hashSecrets(into: &hasher) ?? false
        if case .server(let server) = connection.proxy.choice, server.credentials != nil {
            hasSecrets = true
            hasher.combine(connection.proxy)
        }
        return hasSecrets ? UInt64(truncatingIfNeeded: hasher.finalize()) : 0
    }
}
#endif
