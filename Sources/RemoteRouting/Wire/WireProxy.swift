#if os(Linux)
internal import CurlShim
internal import Foundation
#endif

/// The proxy that a request goes through.
package enum WireProxy: Hashable, Sendable {
    /// The one that the environment names.
    case system
    /// None.
    case none
    /// One that the app names.
    case server(Server)

    /// A proxy, checked and in the form that libcurl takes.
    package struct Server: Hashable, Sendable {
        /// Scheme, host and port.
        package var url: String
        /// The user; empty for no credentials.
        package var user: String
        package var password: String

        package init(url: String, user: String = "", password: String = "") {
            self.url = url
            self.user = user
            self.password = password
        }
    }

    /// What libcurl knows about the proxy of a failed exchange.
    package struct Trace: Hashable, Sendable {
        /// Whether the connection that failed was to go to a proxy.
        package var isUsed: Bool
        /// The status of the response to CONNECT (RFC 9110 §9.3.6); 0 where there is none.
        package var status: Int
        /// The `CURLproxycode`, which tells the reasons of SOCKS apart.
        package var reason: Int

        package init(isUsed: Bool = false, status: Int = 0, reason: Int = 0) {
            self.isUsed = isUsed
            self.status = status
            self.reason = reason
        }
    }
}

#if os(Linux)
extension WireFailure {
    /// Reads a failure of a proxy; `nil` where the failure is none of the proxy's, or cannot be told from one of the host.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - text: libcurl's own words, which tell apart what shares a code.
    ///   - systemError: The `errno` of the connection.
    ///   - trace: What libcurl knows about the proxy.
    package init?(proxyCode code: Int32, text: String, systemError: Int32, _ trace: WireProxy.Trace) {
        let found: (Code, String)? =
            switch wire_curl_code(rawValue: code) {
            case CURLE_COULDNT_RESOLVE_PROXY: (.proxyUnreachable, "the proxy's name is not known; check it, and the network")
            case CURLE_PROXY: WireFailure.socks(trace.reason)
            case _ where trace.status >= 300: WireFailure.tunnel(trace.status)
            case CURLE_COULDNT_CONNECT where trace.isUsed && systemError != EMFILE && systemError != ENFILE:
                (.proxyUnreachable, "the proxy cannot be reached; check its address, and whether it runs")
            case CURLE_RECV_ERROR where text.contains("CONNECT aborted"):
                (.proxyUnreachable, "the proxy ended the connection; check its address and its type, then try again")
            case CURLE_WEIRD_SERVER_REPLY where trace.isUsed, CURLE_RECV_ERROR where text.contains("CONNECT tunnel failed"):
                (.protocolViolation, "what came from the proxy is not proper HTTP; check its address and its type")
            default: nil
            }
        guard let (kind, message) = found else { return nil }
        self.init(kind, message, underlyingError: CurlError(code: code, text: text))
    }

    /// Says why a proxy made no tunnel (RFC 9110 §9.3.6), by the status of its response.
    private static func tunnel(_ status: Int) -> (Code, String) {
        switch status {
        case 407: (.proxyUnauthorized, "the proxy wants credentials, or other ones; check them")
        // The proxy works, and the host behind it does not.
        case 502, 503, 504: (.unreachable, "the proxy cannot reach the host; check the host, then try again")
        default: (.proxyRefused, "the proxy refused to connect with status \(status); check what it allows")
        }
    }

    /// Says why a proxy of SOCKS made no connection (RFC 1928 §6), by the `CURLproxycode`.
    private static func socks(_ reason: Int) -> (Code, String) {
        switch SOCKSReason(rawValue: reason) {
        case .noMethod, .userRejected: (.proxyUnauthorized, "the proxy wants credentials, or other ones; check them")
        case .notAllowed: (.proxyRefused, "the proxy refused to connect; check what it allows")
        case .connectionRefused:
            (.connectionRefused, "the host does not accept connections there; check the port, and whether the server runs")
        case .hostUnreachable, .networkUnreachable, .generalFailure, .expired:
            (.unreachable, "the proxy cannot reach the host; check the host, then try again")
        case .badVersion, .badAddressType, .unknownMode:
            (.protocolViolation, "what came from the proxy is not SOCKS 5; check its address and its type")
        case nil: (.proxyUnreachable, "the proxy made no connection; check its address and its type")
        }
    }

    private enum SOCKSReason: Int {
        case badAddressType = 1
        case badVersion = 2
        case noMethod = 12
        case connectionRefused = 19
        case generalFailure = 20
        case hostUnreachable = 21
        case networkUnreachable = 22
        case notAllowed = 23
        case expired = 24
        case unknownMode = 32
        case userRejected = 33
    }
}
#endif
