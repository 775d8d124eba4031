extension RemoteError {
    /// The kinds of failures; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the error's description: `badStatus`.
        public let rawValue: String

        /// Creates a code with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The route cannot become a request; the underlying `RouteFault` gives the reason.
        public static let invalidRoute = Code(rawValue: "invalidRoute")
        /// An interceptor threw an error, which is the underlying error.
        public static let interceptorFailed = Code(rawValue: "interceptorFailed")
        /// The certificates, keys or pins cannot be used.
        public static let invalidTLSOptions = Code(rawValue: "invalidTLSOptions")
        /// The proxy options cannot be used.
        public static let invalidProxyOptions = Code(rawValue: "invalidProxyOptions")
        /// The path of the Unix domain socket is empty, too long, or contains a zero byte.
        public static let invalidSocketPath = Code(rawValue: "invalidSocketPath")
        /// The transport cannot fulfill a requirement of the request or the host.
        public static let unsupported = Code(rawValue: "unsupported")

        /// The system has no network connection.
        public static let offline = Code(rawValue: "offline")
        /// The host's name could not be resolved.
        public static let hostNotFound = Code(rawValue: "hostNotFound")
        /// The host refused the connection; check the port, and that the server runs.
        public static let connectionRefused = Code(rawValue: "connectionRefused")
        /// The proxy's name could not be resolved, or the proxy accepted no connection.
        public static let proxyUnreachable = Code(rawValue: "proxyUnreachable")
        /// The proxy refused to connect to the host.
        public static let proxyRefused = Code(rawValue: "proxyRefused")
        /// The proxy requires credentials or rejected them: it refused the tunnel, or responded with 407 (RFC 9110 §15.5.8).
        public static let proxyUnauthorized = Code(rawValue: "proxyUnauthorized")
        /// The host cannot be reached, and the platform does not report the reason.
        public static let unreachable = Code(rawValue: "unreachable")
        /// This system lacks a resource for the exchange, such as a file descriptor or memory.
        public static let engineFailed = Code(rawValue: "engineFailed")
        /// The connection ended before the response was complete.
        public static let connectionLost = Code(rawValue: "connectionLost")
        /// The server's certificate has expired or is not valid yet.
        public static let certificateExpired = Code(rawValue: "certificateExpired")
        /// The server's certificate is not signed by a trusted authority.
        public static let certificateUntrusted = Code(rawValue: "certificateUntrusted")
        /// The server's certificate is for another host.
        public static let certificateNameMismatch = Code(rawValue: "certificateNameMismatch")
        /// The server's public key matches none of the host's pins.
        public static let pinMismatch = Code(rawValue: "pinMismatch")
        /// The server refuses the client's certificate, or requires one.
        public static let clientCertificateRefused = Code(rawValue: "clientCertificateRefused")
        /// The server offers no version of TLS that the host accepts.
        public static let tlsVersionRefused = Code(rawValue: "tlsVersionRefused")
        /// No secure connection could be established, for another reason.
        public static let tlsFailed = Code(rawValue: "tlsFailed")
        /// The received bytes are not valid HTTP.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// The request body could not be read.
        public static let bodyUnreadable = Code(rawValue: "bodyUnreadable")
        /// The response exceeds its size limit.
        public static let bodyTooLarge = Code(rawValue: "bodyTooLarge")
        /// Unread bytes could not be written to disk.
        public static let spillFailed = Code(rawValue: "spillFailed")

        /// The head of the response did not arrive in time.
        public static let headTimedOut = Code(rawValue: "headTimedOut")
        /// No further chunk of the response arrived within the idle timeout.
        public static let idleTimedOut = Code(rawValue: "idleTimedOut")
        /// One attempt took longer than its own timeout, from its start to the last byte.
        public static let attemptTimedOut = Code(rawValue: "attemptTimedOut")
        /// All attempts together took too long.
        public static let overallTimedOut = Code(rawValue: "overallTimedOut")
        /// The task was canceled, or the body was released before its end.
        public static let cancelled = Code(rawValue: "cancelled")

        /// The server responded with a status outside 2xx.
        public static let badStatus = Code(rawValue: "badStatus")
        /// A redirect leads to a forbidden target.
        public static let redirectRefused = Code(rawValue: "redirectRefused")
        /// The request was redirected too often.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// Credentials would be sent without encryption.
        public static let insecureCredentials = Code(rawValue: "insecureCredentials")
        /// The credentials could not be refreshed.
        public static let refreshFailed = Code(rawValue: "refreshFailed")

        /// The response has no body, but a value is required.
        public static let emptyBody = Code(rawValue: "emptyBody")
        /// The response has an unexpected media type.
        public static let unexpectedType = Code(rawValue: "unexpectedType")
        /// The response cannot be decoded as the value.
        public static let undecodable = Code(rawValue: "undecodable")
        /// The server sent a range that was not requested or does not fit the partial file.
        public static let wrongRange = Code(rawValue: "wrongRange")
        /// The complete file does not have the expected digest.
        public static let wrongDigest = Code(rawValue: "wrongDigest")
        /// A file could not be written.
        public static let fileFailed = Code(rawValue: "fileFailed")

        /// The transient failures to connect or to stay connected.
        package static let passing: Set<Code> = [
            .offline, .hostNotFound, .connectionRefused, .proxyUnreachable, .unreachable, .connectionLost, .engineFailed,
        ]

        /// The failures that occur before anything is sent.
        static let precedingSending: Set<Code> = [
            .invalidProxyOptions, .invalidSocketPath, .unsupported, .invalidTLSOptions, .offline, .hostNotFound, .connectionRefused,
            .proxyUnreachable, .proxyRefused, .proxyUnauthorized, .certificateExpired, .certificateUntrusted, .certificateNameMismatch,
            .pinMismatch, .tlsVersionRefused,
        ]

        package var stage: Stage {
            switch self {
            case .cancelled: .cancelled
            case .headTimedOut, .idleTimedOut, .attemptTimedOut, .overallTimedOut: .timeout
            case .unsupported, .invalidTLSOptions, .invalidProxyOptions, .invalidSocketPath, .bodyUnreadable: .build
            default: .transport
            }
        }
    }
}
