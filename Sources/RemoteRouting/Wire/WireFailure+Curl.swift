#if os(Linux)
internal import CurlShim
internal import Foundation

extension WireFailure {
    /// Reads a `CURLcode`.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - text: libcurl's own words, which tell apart what shares a code.
    ///   - systemError: The `errno` of the connection.
    ///   - verification: OpenSSL's number for why it refused the certificate.
    ///   - tls: The demands on the connection.
    ///   - mayHaveArrived: Whether the request went out.
    package init(
        curlCode code: Int32, text: String, systemError: Int32, verification: Int = 0, tls: WireTLS? = nil, mayHaveArrived: Bool
    ) {
        let fault = WireTLS.Fault(code, text, verification, tls, mayHaveArrived: mayHaveArrived)
        let (kind, message) = fault?.failure ?? WireFailure.explain(code, text, systemError, mayHaveArrived)
        self.init(kind, message, mayHaveArrived: mayHaveArrived, underlyingError: CurlError(code: code, text: text))
    }

    private static func explain(_ code: Int32, _ text: String, _ systemError: Int32, _ mayHaveArrived: Bool) -> (Code, String) {
        switch wire_curl_code(rawValue: code) {
        case CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN: (.engineFailed, "libcurl refused the exchange")
        case CURLE_OUT_OF_MEMORY where !mayHaveArrived: (.engineFailed, "libcurl has no memory left for the exchange")
        case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED: (.invalidRequest, "the address is not one that can be sent to; check it")
        case CURLE_COULDNT_RESOLVE_HOST: (.hostNotFound, "the host's name is not known; check it, and the network")
        case CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT: WireFailure.unconnected(systemError)
        case CURLE_SSL_CONNECT_ERROR
        where systemError == ECONNRESET || text.contains("SYSCALL") || text.contains("unexpected eof"):
            (.connectionLost, "the connection ended while it was secured; try again")
        case CURLE_SSL_CACERT_BADFILE:
            (.tls(.other), "the system's certificate authorities cannot be read; install them (ca-certificates)")
        case CURLE_SSL_CONNECT_ERROR
        where ["wrong version number", "packet length too long", "http request"].contains { text.contains($0) }:
            (.tls(.other), "the server does not speak TLS on this port; check the port and the scheme")
        case CURLE_SSL_CONNECT_ERROR where text.contains("alert handshake failure"):
            (.tls(.other), "the server refuses a secure connection; it may require a client certificate, or offer only old ciphers")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION_OLD, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
            WireTLS.Fault.other.failure
        // A GOAWAY right before a request has the code of frames that are none, and is no fault of the server.
        case CURLE_HTTP2, CURLE_PARTIAL_FILE, CURLE_ABORTED_BY_CALLBACK, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND,
            CURLE_AGAIN,
            CURLE_HTTP2_STREAM:
            (.connectionLost, "the connection ended in the middle; try again")
        // One code for a reset connection and for chunks that are none.
        case CURLE_RECV_ERROR where !text.contains("chunk"): (.connectionLost, "the connection ended in the middle; try again")
        // A function argument is bad where a line of a trailer is no field.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_WRITE_ERROR, CURLE_OUT_OF_MEMORY,
            CURLE_BAD_FUNCTION_ARGUMENT, CURLE_RECV_ERROR, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP3, CURLE_TOO_LARGE:
            (.protocolViolation, "what came is not proper HTTP; look at the server, or at what stands in between")
        default: (.unreachable, "the exchange failed; check the network, then try again")
        }
    }

    private static func unconnected(_ systemError: Int32) -> (Code, String) {
        switch systemError {
        case ECONNREFUSED:
            (.connectionRefused, "the host does not accept connections there; check the port, and whether the server runs")
        case EMFILE, ENFILE: (.engineFailed, "no descriptor is left for a connection; close some, or raise the limit")
        default: (.unreachable, "the host cannot be reached; check the network")
        }
    }
}

/// libcurl's own words.
package struct CurlError: Error, Sendable, CustomStringConvertible {
    /// The `CURLcode`.
    package let code: Int32
    /// What libcurl says; it may name hosts.
    package let text: String

    init(code: Int32, text: String) {
        self.code = code
        // Where libcurl cannot use a proxy, it names the address of the proxy, password included.
        self.text = text.contains("@") ? "the text is left out, since it may hold credentials" : text
    }

    package var description: String { "CURLcode \(code): \(text)" }
}
#endif
