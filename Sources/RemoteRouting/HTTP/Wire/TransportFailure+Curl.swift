#if os(Linux)
internal import CurlShim
internal import Foundation

extension TransportFailure {
    /// Converts a `CURLcode`. libcurl's message distinguishes failures with the same code. The verification is OpenSSL's number for the
    /// reason of a refused certificate; 0 or 1 if it was not refused.
    init(curlCode code: Int32, text: String, systemError: Int32, verification: Int = 0, tls: TLSOptions? = nil, mayHaveArrived: Bool) {
        self =
            TransportFailure.tls(code, text, verification, tls, mayHaveArrived: mayHaveArrived)
            ?? TransportFailure.explain(code, text, systemError, mayHaveArrived)
        underlyingError = CurlError(code: code, text: text)
    }

    private static func explain(_ code: Int32, _ text: String, _ systemError: Int32, _ mayHaveArrived: Bool) -> TransportFailure {
        switch wire_curl_code(rawValue: code) {
        case CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN: .init(.engineFailed, "libcurl refused the exchange; install a complete libcurl")
        case CURLE_OUT_OF_MEMORY where !mayHaveArrived:
            .init(.engineFailed, "libcurl has no memory left for the exchange; send fewer at once")
        case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED: .init(.unsupported, "the address cannot be used; check it")
        // Reported for this reason only, before the request is sent (RFC 9112 §6.1). A later connection may have another version.
        case CURLE_UPLOAD_FAILED:
            .init(.unreachable, "the server uses HTTP/1.0, which has no chunks; state the length of the body, or send it from memory")
        case CURLE_COULDNT_RESOLVE_HOST: .unresolved
        case CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT: unconnected(systemError)
        case CURLE_SSL_CONNECT_ERROR
        where systemError == ECONNRESET || text.contains("SYSCALL") || text.contains("unexpected eof"):
            .init(.connectionLost, "the connection ended during the TLS handshake; try again")
        case CURLE_SSL_CACERT_BADFILE:
            .init(.tlsFailed, "the system's certificate authorities cannot be read; install the package ca-certificates")
        case CURLE_SSL_CONNECT_ERROR
        where ["wrong version number", "packet length too long", "http request"].contains { text.contains($0) }:
            .init(.tlsFailed, "the server does not use TLS on this port; check the port and the scheme")
        case CURLE_SSL_CONNECT_ERROR where text.contains("alert handshake failure"):
            .init(.tlsFailed, "the server refuses a secure connection; it may require a client certificate, or offer only old ciphers")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION_OLD, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
            .insecure
        // A GOAWAY right before a request has the same code as malformed frames, and is not a fault of the server.
        case CURLE_HTTP2, CURLE_PARTIAL_FILE, CURLE_ABORTED_BY_CALLBACK, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND,
            CURLE_AGAIN, CURLE_HTTP2_STREAM:
            .lost
        // A reset connection and malformed chunks have the same code.
        case CURLE_RECV_ERROR where !text.contains("chunk"): .lost
        // A malformed trailer line is reported as a bad function argument.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_WRITE_ERROR, CURLE_OUT_OF_MEMORY,
            CURLE_BAD_FUNCTION_ARGUMENT, CURLE_RECV_ERROR, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP3, CURLE_TOO_LARGE:
            .malformed
        default: .init(.unreachable, "the exchange failed; check the network, then try again")
        }
    }

    private static func unconnected(_ systemError: Int32) -> TransportFailure {
        switch systemError {
        case ECONNREFUSED: .refused
        // Only a Unix domain socket has a path.
        case ENOENT: .init(.connectionRefused, "no server listens on the Unix domain socket; check its path and that the server is running")
        case EACCES, EPERM:
            .init(.unreachable, "the system forbids the connection; check the permissions of the Unix domain socket, or the firewall")
        case EMFILE, ENFILE: .init(.engineFailed, "no file descriptor is left for a connection; close some, or raise the limit")
        default: .unreached
        }
    }

    // MARK: Proxies

    /// Converts a failure of a proxy; `nil` if the proxy did not fail, or the failure may be the host's.
    init?(proxyCode code: Int32, text: String, systemError: Int32, isUsed: Bool, _ trace: wire_proxy_trace) {
        let found: TransportFailure? =
            switch wire_curl_code(rawValue: code) {
            case CURLE_COULDNT_RESOLVE_PROXY:
                TransportFailure(.proxyUnreachable, "the proxy's name cannot be resolved; check the name and the network")
            case CURLE_PROXY: TransportFailure.socks(trace.reason)
            case _ where trace.status >= 300: TransportFailure.tunnel(trace.status)
            case CURLE_COULDNT_CONNECT where isUsed && systemError != EMFILE && systemError != ENFILE:
                TransportFailure(.proxyUnreachable, "the proxy cannot be reached; check its address and that it is running")
            case CURLE_RECV_ERROR where text.contains("CONNECT aborted"):
                TransportFailure(.proxyUnreachable, "the proxy ended the connection; check its address and its type, then try again")
            case CURLE_WEIRD_SERVER_REPLY where isUsed, CURLE_RECV_ERROR where text.contains("CONNECT tunnel failed"):
                TransportFailure(.protocolViolation, "the proxy's response is not valid HTTP; check its address and its type")
            default: nil
            }
        guard let found else { return nil }
        self = found.caused(by: CurlError(code: code, text: text))
    }

    /// Returns the failure of a refused tunnel (RFC 9110 §9.3.6), by the status of the response.
    private static func tunnel(_ status: Int) -> TransportFailure {
        switch status {
        case 407: .init(.proxyUnauthorized, "the proxy requires valid credentials; check them")
        // The proxy works, but the host behind it fails.
        case 502, 503, 504: .init(.unreachable, "the proxy cannot reach the host; check the host, then try again")
        default: .init(.proxyRefused, "the proxy refused to connect with status \(status); check which connections it allows")
        }
    }

    /// Returns the failure of a SOCKS proxy (RFC 1928 §6), by the `CURLproxycode`.
    private static func socks(_ reason: Int) -> TransportFailure {
        switch SOCKSReason(rawValue: reason) {
        case .noMethod, .userRejected: .init(.proxyUnauthorized, "the proxy requires valid credentials; check them")
        case .notAllowed: .init(.proxyRefused, "the proxy refused to connect; check which connections it allows")
        case .connectionRefused: .refused
        case .hostUnreachable, .networkUnreachable, .generalFailure, .expired:
            .init(.unreachable, "the proxy cannot reach the host; check the host, then try again")
        case .badVersion, .badAddressType, .unknownMode:
            .init(.protocolViolation, "the proxy does not use SOCKS 5; check its address and its type")
        case nil: .init(.proxyUnreachable, "the proxy opened no connection; check its address and its type")
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

    // MARK: Secure connections

    /// The TLS alerts that refuse a client certificate (RFC 8446 §6.2), in OpenSSL's words.
    private static let refusals = [
        "certificate required", "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
        "certificate unknown", "unknown ca", "access denied",
    ]

    /// Converts a failure to secure a connection; `nil` if it concerns neither certificates nor versions.
    private static func tls(
        _ code: Int32, _ text: String, _ verification: Int, _ tls: TLSOptions?, mayHaveArrived: Bool
    ) -> TransportFailure? {
        switch (code, verification) {
        case (77, _) where tls?.authorities != nil: return .unusableAuthorities
        // Newer versions of libcurl report a wrong password or a mismatched key as a bad argument.
        case (58, _) where tls?.clientCertificate != nil, (43, _) where tls?.clientCertificate != nil && !mayHaveArrived:
            return .unusableClientCertificate
        case (60, 9), (60, 10), (60, 13), (60, 14): return .expiredCertificate
        case (60, 62...64): return .certificateOfOtherHost
        case (60, 2...): return .untrustedCertificate
        // libcurl compares the names itself, after OpenSSL's verification.
        case (60, _) where text.contains("match") || text.contains("cert name") || text.contains("common name"):
            return .certificateOfOtherHost
        // An alert from the server, which newer versions report with the code of a refused server certificate.
        case (60, _) where tls?.clientCertificate != nil && text == "SSL certificate verification failed": return .clientRefused
        case (90, _): return .otherKey
        case (98, _): return .clientRefused
        case (35, _) where ["alert protocol version", "unsupported protocol", "no protocols available"].contains { text.contains($0) }:
            return .otherTLSVersion
        // A forged certificate has a wrong signature. Before libcurl 8, the message contains OpenSSL's first error instead of the last.
        case (35, _) where ["asn1 encoding routines", "rsa routines"].contains { text.contains($0) }: return .untrustedCertificate
        // In TLS 1.3 the alert arrives after the client has sent its request.
        case (35, _), (55, _), (56, _):
            guard refusals.contains(where: { text.contains("alert " + $0) }) else { return nil }
            return .clientRefused
        default: return nil
        }
    }
}

package struct CurlError: Error, Sendable, CustomStringConvertible {
    package let code: Int32
    /// libcurl's message, which may name hosts.
    package let text: String

    init(code: Int32, text: String) {
        self.code = code
        // libcurl's message about an unusable proxy contains the proxy's address with its password.
        self.text = text.utf8.contains(UInt8(ascii: "@")) ? "the text is omitted, because it may contain credentials" : text
    }

    package var description: String { "CURLcode \(code): \(text)" }
}
#endif
