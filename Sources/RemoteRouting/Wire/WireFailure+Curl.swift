#if os(Linux)
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
        switch code {
        case 2, 4: (.engineFailed, "libcurl refused the exchange")
        case 27 where !mayHaveArrived: (.engineFailed, "libcurl has no memory left for the exchange")
        case 3, 67: (.invalidRequest, "the address is not one that can be sent to; check it")
        case 5: (.unreachable, "the proxy cannot be found; check its address in the environment, and the network")
        case 6: (.hostNotFound, "the host's name is not known; check it, and the network")
        case 7, 28, 97: WireFailure.unconnected(systemError)
        case 35 where systemError == ECONNRESET || text.contains("SYSCALL") || text.contains("unexpected eof"):
            (.connectionLost, "the connection ended while it was secured; try again")
        case 77: (.tls(.other), "the system's certificate authorities cannot be read; install them (ca-certificates)")
        case 35 where ["wrong version number", "packet length too long", "http request"].contains { text.contains($0) }:
            (.tls(.other), "the server does not speak TLS on this port; check the port and the scheme")
        case 35 where text.contains("alert handshake failure"):
            (.tls(.other), "the server refuses a secure connection; it may require a client certificate, or offer only old ciphers")
        case 35, 51, 53, 54, 58, 59, 60, 64, 66, 80, 82, 83, 90, 91, 98: WireTLS.Fault.other.failure
        case 18, 42, 52, 55, 65, 81, 92: (.connectionLost, "the connection ended in the middle; try again")
        case 56 where text.contains("CONNECT") && !mayHaveArrived:
            (.unreachable, "the proxy refused to connect; check its address and its credentials in the environment")
        // One code for a reset connection and for chunks that are none.
        case 56 where !text.contains("chunk"): (.connectionLost, "the connection ended in the middle; try again")
        // 43: a line of a trailer that is no field.
        case 1, 8, 16, 23, 27, 43, 56, 61, 95, 100:
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
