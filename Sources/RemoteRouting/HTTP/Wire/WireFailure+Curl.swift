#if os(Linux)
internal import CurlShim
internal import Foundation

extension WireFailure {
    /// Converts a `CURLcode`.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - text: libcurl's message, which distinguishes failures with the same code.
    ///   - systemError: The `errno` of the connection.
    ///   - verification: OpenSSL's number for the reason of a refused certificate.
    ///   - tls: The TLS requirements of the request.
    ///   - mayHaveArrived: Whether the request was sent.
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
        case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED: (.invalidRequest, "the address cannot be used; check it")
        case CURLE_COULDNT_RESOLVE_HOST: (.hostNotFound, "the host's name cannot be resolved; check the name and the network")
        case CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT: WireFailure.unconnected(systemError)
        case CURLE_SSL_CONNECT_ERROR
        where systemError == ECONNRESET || text.contains("SYSCALL") || text.contains("unexpected eof"):
            (.connectionLost, "the connection ended during the TLS handshake; try again")
        case CURLE_SSL_CACERT_BADFILE:
            (.tls(.other), "the system's certificate authorities cannot be read; install the package ca-certificates")
        case CURLE_SSL_CONNECT_ERROR
        where ["wrong version number", "packet length too long", "http request"].contains { text.contains($0) }:
            (.tls(.other), "the server does not use TLS on this port; check the port and the scheme")
        case CURLE_SSL_CONNECT_ERROR where text.contains("alert handshake failure"):
            (.tls(.other), "the server refuses a secure connection; it may require a client certificate, or offer only old ciphers")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION_OLD, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
            WireTLS.Fault.other.failure
        // A GOAWAY right before a request has the same code as malformed frames, and is not a fault of the server.
        case CURLE_HTTP2, CURLE_PARTIAL_FILE, CURLE_ABORTED_BY_CALLBACK, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND,
            CURLE_AGAIN,
            CURLE_HTTP2_STREAM:
            (.connectionLost, "the connection ended before the response was complete; try again")
        // A reset connection and malformed chunks have the same code.
        case CURLE_RECV_ERROR where !text.contains("chunk"):
            (.connectionLost, "the connection ended before the response was complete; try again")
        // A malformed trailer line is reported as a bad function argument.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_WRITE_ERROR, CURLE_OUT_OF_MEMORY,
            CURLE_BAD_FUNCTION_ARGUMENT, CURLE_RECV_ERROR, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP3, CURLE_TOO_LARGE:
            (.protocolViolation, "the response is not valid HTTP; check the server and any proxy in between")
        default: (.unreachable, "the exchange failed; check the network, then try again")
        }
    }

    private static func unconnected(_ systemError: Int32) -> (Code, String) {
        switch systemError {
        case ECONNREFUSED:
            (.connectionRefused, "the host refused the connection; check the port and that the server is running")
        case EMFILE, ENFILE: (.engineFailed, "no file descriptor is left for a connection; close some, or raise the limit")
        default: (.unreachable, "the host cannot be reached; check the network")
        }
    }
}

/// An error of libcurl that caused a failure.
package struct CurlError: Error, Sendable, CustomStringConvertible {
    /// The `CURLcode`.
    package let code: Int32
    /// libcurl's message, which may name hosts.
    package let text: String

    init(code: Int32, text: String) {
        self.code = code
        // libcurl's message about an unusable proxy contains the proxy's address with its password.
        self.text = text.contains("@") ? "the text is omitted, because it may contain credentials" : text
    }

    package var description: String { "CURLcode \(code): \(text)" }
}
#endif
