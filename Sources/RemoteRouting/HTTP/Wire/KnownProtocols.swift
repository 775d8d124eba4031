#if os(Linux)
internal import CurlShim

/// The protocols of origins that use TLS, as far as responses and failures have shown them.
struct KnownProtocols {
    enum Support {
        /// HTTP/1.1, and perhaps HTTP/2.
        case http1
        /// HTTP/2 only, so that streams use it too.
        case onlyHTTP2
        /// HTTP/2 that was broken, so that HTTP/1.1 is tried first.
        case brokenHTTP2
        /// HTTP/2 that kept the thread from other exchanges, so that it is not used again.
        case flood
    }

    private static let limit = 1000

    private var known: [String: Support] = [:]

    /// The known protocols of an origin; `nil` before the first response.
    subscript(origin: String) -> Support? { known[origin] }

    private mutating func set(_ support: Support, of origin: String) {
        if known.count >= KnownProtocols.limit { known.removeAll(keepingCapacity: true) }
        known[origin] = support
    }

    /// Learns the protocol of an origin from a response; a shared connection shows HTTP/2.
    mutating func responded(_ transfer: WireTransfer, isShared: Bool) {
        let origin = transfer.request.origin
        if isShared {
            if transfer.isRepeated, known[origin] != .http1 { set(.onlyHTTP2, of: origin) }
        } else if known[origin] == nil || known[origin] == .onlyHTTP2 {
            set(.http1, of: origin)
        }
    }

    /// Learns from HTTP/2 that was broken or flooded; further exchanges with the origin use HTTP/1.1.
    mutating func broke(_ transfer: WireTransfer, byFlood isFlood: Bool) {
        guard transfer.offersHTTP2, isFlood || known[transfer.request.origin] != .onlyHTTP2 else { return }
        set(isFlood ? .flood : .brokenHTTP2, of: transfer.request.origin)
    }

    /// Returns whether a transfer without HTTP/2 failed because its server has nothing else, and learns from a repeated one.
    mutating func needsHTTP2(_ transfer: WireTransfer, after code: Int32, _ build: WireLibrary.Build) -> Bool {
        let request = transfer.request
        guard !transfer.offersHTTP2, !transfer.hasHead, request.isSecure, request.mayUseHTTP2, build.hasTestedHTTP2 else {
            return false
        }
        guard known[request.origin] != .http1, known[request.origin] != .flood, isForeign(transfer, code) else { return false }
        if transfer.isRepeated { set(.onlyHTTP2, of: request.origin) }
        return true
    }

    /// Whether a failure without HTTP/2 may mean that the server has only HTTP/2.
    private func isForeign(_ transfer: WireTransfer, _ code: Int32) -> Bool {
        switch wire_curl_code(rawValue: code) {
        // The server has refused the handshake, so nothing was sent.
        case CURLE_SSL_CONNECT_ERROR: return transfer.isRefusedProtocol
        // A server of frames closes the connection, or sends its settings, which are not HTTP/1.1.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR:
            return transfer.request.message.mayRepeat
        default: return false
        }
    }
}
#endif
