#if os(Linux)
internal import Foundation

extension WireFailure {
    /// Reads a `CURLcode`.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - text: libcurl's own words, which tell apart what shares a code.
    ///   - systemError: The `errno` of the connection.
    ///   - mayHaveArrived: Whether the request went out.
    package init(curlCode code: Int32, text: String, systemError: Int32, mayHaveArrived: Bool) {
        let (kind, message): (Code, String) =
            switch code {
            case 2, 4: (.engineFailed, "libcurl refused the exchange")
            case 27 where !mayHaveArrived: (.engineFailed, "libcurl has no memory left for the exchange")
            case 3, 67: (.invalidRequest, "the address is not one that can be sent to; check it")
            case 5: (.unreachable, "the proxy cannot be found; check its address in the environment, and the network")
            case 6: (.hostNotFound, "the host's name is not known; check it, and the network")
            case 7, 28, 97: WireFailure.unconnected(systemError)
            case 35 where systemError == ECONNRESET || text.contains("SYSCALL"):
                (.connectionLost, "the connection ended while it was secured; try again")
            case 35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98:
                (.tlsFailed, "no secure connection could be made; check the server's certificate and the scheme")
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
        self.init(kind, message, mayHaveArrived: mayHaveArrived, underlyingError: CurlError(code: code, text: text))
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
