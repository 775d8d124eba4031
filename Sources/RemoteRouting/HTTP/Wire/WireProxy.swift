#if os(Linux)
internal import CurlShim
internal import Foundation
#endif

/// The proxy of a request, as the engine applies it.
package enum WireProxy: Hashable, Sendable {
    /// The proxy that the environment names.
    case system
    /// No proxy, regardless of the environment.
    case none
    /// The proxy that the app names.
    case server(Server)

    /// A proxy, validated and in libcurl's form.
    package struct Server: Hashable, Sendable {
        /// The proxy's scheme, host and port, without credentials.
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

    /// libcurl's information about the proxy of a failed exchange.
    package struct Trace: Hashable, Sendable {
        /// Whether the failed connection was to a proxy.
        package var isUsed: Bool
        /// The status of the response to CONNECT (RFC 9110 §9.3.6); 0 without a response.
        package var status: Int
        /// The `CURLproxycode`, which distinguishes SOCKS failures.
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
    /// Converts a failure of a proxy; `nil` if the proxy did not fail, or the failure may be the host's.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - text: libcurl's message, which distinguishes failures with the same code.
    ///   - systemError: The `errno` of the connection.
    ///   - trace: libcurl's information about the proxy.
    package init?(proxyCode code: Int32, text: String, systemError: Int32, _ trace: WireProxy.Trace) {
        let found: (Code, String)? =
            switch wire_curl_code(rawValue: code) {
            case CURLE_COULDNT_RESOLVE_PROXY: (.proxyUnreachable, "the proxy's name cannot be resolved; check the name and the network")
            case CURLE_PROXY: WireFailure.socks(trace.reason)
            case _ where trace.status >= 300: WireFailure.tunnel(trace.status)
            case CURLE_COULDNT_CONNECT where trace.isUsed && systemError != EMFILE && systemError != ENFILE:
                (.proxyUnreachable, "the proxy cannot be reached; check its address and that it is running")
            case CURLE_RECV_ERROR where text.contains("CONNECT aborted"):
                (.proxyUnreachable, "the proxy ended the connection; check its address and its type, then try again")
            case CURLE_WEIRD_SERVER_REPLY where trace.isUsed, CURLE_RECV_ERROR where text.contains("CONNECT tunnel failed"):
                (.protocolViolation, "the proxy's response is not valid HTTP; check its address and its type")
            default: nil
            }
        guard let (kind, message) = found else { return nil }
        self.init(kind, message, mayHaveArrived: false, underlyingError: CurlError(code: code, text: text))
    }

    /// Returns the failure of a refused tunnel (RFC 9110 §9.3.6), by the status of the response.
    private static func tunnel(_ status: Int) -> (Code, String) {
        switch status {
        case 407: (.proxyUnauthorized, "the proxy requires valid credentials; check them")
        // The proxy works, but the host behind it fails.
        case 502, 503, 504: (.unreachable, "the proxy cannot reach the host; check the host, then try again")
        default: (.proxyRefused, "the proxy refused to connect with status \(status); check which connections it allows")
        }
    }

    /// Returns the failure of a SOCKS proxy (RFC 1928 §6), by the `CURLproxycode`.
    private static func socks(_ reason: Int) -> (Code, String) {
        switch SOCKSReason(rawValue: reason) {
        case .noMethod, .userRejected: (.proxyUnauthorized, "the proxy requires valid credentials; check them")
        case .notAllowed: (.proxyRefused, "the proxy refused to connect; check which connections it allows")
        case .connectionRefused:
            (.connectionRefused, "the host refused the connection; check the port and that the server is running")
        case .hostUnreachable, .networkUnreachable, .generalFailure, .expired:
            (.unreachable, "the proxy cannot reach the host; check the host, then try again")
        case .badVersion, .badAddressType, .unknownMode:
            (.protocolViolation, "the proxy does not use SOCKS 5; check its address and its type")
        case nil: (.proxyUnreachable, "the proxy opened no connection; check its address and its type")
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
