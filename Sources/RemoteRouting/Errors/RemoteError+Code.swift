extension RemoteError {
    /// The kinds of failures; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name.
        public let rawValue: String

        /// Makes a code of that name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The route cannot become a request; the underlying `RouteFault` says why.
        public static let invalidRoute = Code(rawValue: "invalidRoute")
        /// An interceptor failed.
        public static let interceptorFailed = Code(rawValue: "interceptorFailed")
        /// Certificates, keys or pins cannot be used.
        public static let invalidTLSOptions = Code(rawValue: "invalidTLSOptions")
        /// A proxy was named that cannot be used.
        public static let invalidProxyOptions = Code(rawValue: "invalidProxyOptions")
        /// This platform cannot do what was asked.
        public static let unsupported = Code(rawValue: "unsupported")

        /// The system has no network at all.
        public static let offline = Code(rawValue: "offline")
        /// The host's name could not be resolved.
        public static let hostNotFound = Code(rawValue: "hostNotFound")
        /// The host is there and does not listen.
        public static let connectionRefused = Code(rawValue: "connectionRefused")
        /// The proxy's name could not be resolved, or the proxy made no connection.
        public static let proxyUnreachable = Code(rawValue: "proxyUnreachable")
        /// The proxy does not connect to the host.
        public static let proxyRefused = Code(rawValue: "proxyRefused")
        /// The proxy wants credentials, or other ones: it made no tunnel, or responded with status 407 (RFC 9110 §15.5.8).
        public static let proxyUnauthorized = Code(rawValue: "proxyUnauthorized")
        /// The host cannot be reached, for a reason that the platform does not tell.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The connection ended in the middle.
        public static let connectionLost = Code(rawValue: "connectionLost")
        /// The server's certificate has expired or is not valid yet.
        public static let certificateExpired = Code(rawValue: "certificateExpired")
        /// No trusted authority has signed the server's certificate.
        public static let certificateUntrusted = Code(rawValue: "certificateUntrusted")
        /// The server's certificate is for another host.
        public static let certificateNameMismatch = Code(rawValue: "certificateNameMismatch")
        /// The server's public key is none of the host's pins.
        public static let pinMismatch = Code(rawValue: "pinMismatch")
        /// The server refuses the client's certificate, or requires one.
        public static let clientCertificateRefused = Code(rawValue: "clientCertificateRefused")
        /// The server offers no version of TLS that the host accepts.
        public static let tlsVersionRefused = Code(rawValue: "tlsVersionRefused")
        /// No secure connection could be made, for another reason.
        public static let tlsFailed = Code(rawValue: "tlsFailed")
        /// What came is not HTTP, or contradicts itself.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// The body to send could not be read.
        public static let bodyUnreadable = Code(rawValue: "bodyUnreadable")
        /// The answer is larger than allowed.
        public static let bodyTooLarge = Code(rawValue: "bodyTooLarge")
        /// Unread bytes could not be kept on disk.
        public static let spillFailed = Code(rawValue: "spillFailed")

        /// The head of the answer took too long.
        public static let headTimedOut = Code(rawValue: "headTimedOut")
        /// The answer stopped coming.
        public static let idleTimedOut = Code(rawValue: "idleTimedOut")
        /// One attempt took too long.
        public static let attemptTimedOut = Code(rawValue: "attemptTimedOut")
        /// All attempts together took too long.
        public static let overallTimedOut = Code(rawValue: "overallTimedOut")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")

        /// The server answered with a status outside 2xx.
        public static let badStatus = Code(rawValue: "badStatus")
        /// A redirect leads where none is followed to.
        public static let redirectRefused = Code(rawValue: "redirectRefused")
        /// Redirects do not come to an end.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// Credentials would be sent without encryption.
        public static let insecureCredentials = Code(rawValue: "insecureCredentials")
        /// New credentials could not be got.
        public static let refreshFailed = Code(rawValue: "refreshFailed")

        /// The answer has no body, and a value was expected.
        public static let emptyBody = Code(rawValue: "emptyBody")
        /// The answer is of another media type than expected.
        public static let unexpectedType = Code(rawValue: "unexpectedType")
        /// The answer does not have the shape of the value.
        public static let undecodable = Code(rawValue: "undecodable")
        /// A part of a file came that was not asked for, or does not fit what is there.
        public static let wrongRange = Code(rawValue: "wrongRange")
        /// A file is whole and has another digest than expected.
        public static let wrongDigest = Code(rawValue: "wrongDigest")
        /// A file could not be written.
        public static let fileFailed = Code(rawValue: "fileFailed")

        /// Those of the way that pass by themselves.
        static let passing: Set<Code> = [
            .offline, .hostNotFound, .connectionRefused, .proxyUnreachable, .unreachable, .connectionLost,
        ]

        /// The failures that come before anything is sent.
        static let precedingSending: Set<Code> = [
            .invalidProxyOptions, .unsupported, .invalidTLSOptions, .offline, .hostNotFound, .connectionRefused, .proxyUnreachable,
            .proxyRefused, .proxyUnauthorized, .certificateExpired, .certificateUntrusted, .certificateNameMismatch, .pinMismatch,
            .tlsVersionRefused,
        ]

        /// At which stage a transport's failure stands.
        var stage: Stage {
            switch self {
            case .cancelled: .cancelled
            case .headTimedOut, .idleTimedOut, .attemptTimedOut, .overallTimedOut: .timeout
            case .unsupported, .invalidTLSOptions, .invalidProxyOptions, .bodyUnreadable: .build
            default: .transport
            }
        }
    }
}
