extension RemoteError {
    /// The kinds of failures; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name.
        public let rawValue: String

        /// Makes a code; `nil` for an empty name.
        public init?(rawValue: String) {
            guard !rawValue.isEmpty else { return nil }
            self.init(verbatim: rawValue)
        }

        init(verbatim name: String) { rawValue = name }

        /// The route cannot become a request; the underlying `RouteFault` says why.
        public static let invalidRoute = Code(verbatim: "invalidRoute")
        /// An interceptor failed.
        public static let interceptorFailed = Code(verbatim: "interceptorFailed")
        /// This platform cannot do what was asked.
        public static let unsupported = Code(verbatim: "unsupported")

        /// The system has no network at all.
        public static let offline = Code(verbatim: "offline")
        /// The host's name could not be resolved.
        public static let hostNotFound = Code(verbatim: "hostNotFound")
        /// The host is there and does not listen.
        public static let connectionRefused = Code(verbatim: "connectionRefused")
        /// The host cannot be reached, for a reason that the platform does not tell.
        public static let unreachable = Code(verbatim: "unreachable")
        /// The connection ended in the middle.
        public static let connectionLost = Code(verbatim: "connectionLost")
        /// No secure connection could be made.
        public static let tlsFailed = Code(verbatim: "tlsFailed")
        /// What came is not HTTP, or contradicts itself.
        public static let protocolViolation = Code(verbatim: "protocolViolation")
        /// The body to send could not be read.
        public static let bodyUnreadable = Code(verbatim: "bodyUnreadable")
        /// The answer is larger than allowed.
        public static let bodyTooLarge = Code(verbatim: "bodyTooLarge")
        /// Unread bytes could not be kept on disk.
        public static let spillFailed = Code(verbatim: "spillFailed")

        /// The head of the answer took too long.
        public static let headTimedOut = Code(verbatim: "headTimedOut")
        /// The answer stopped coming.
        public static let idleTimedOut = Code(verbatim: "idleTimedOut")
        /// One attempt took too long.
        public static let attemptTimedOut = Code(verbatim: "attemptTimedOut")
        /// All attempts together took too long.
        public static let overallTimedOut = Code(verbatim: "overallTimedOut")
        /// The task was cancelled.
        public static let cancelled = Code(verbatim: "cancelled")

        /// The server answered with a status outside 2xx.
        public static let badStatus = Code(verbatim: "badStatus")
        /// A redirect leads where none is followed to.
        public static let redirectRefused = Code(verbatim: "redirectRefused")
        /// Redirects do not come to an end.
        public static let tooManyRedirects = Code(verbatim: "tooManyRedirects")
        /// Credentials would be sent without encryption.
        public static let insecureCredentials = Code(verbatim: "insecureCredentials")
        /// New credentials could not be got.
        public static let refreshFailed = Code(verbatim: "refreshFailed")

        /// The answer has no body, and a value was expected.
        public static let emptyBody = Code(verbatim: "emptyBody")
        /// The answer is of another media type than expected.
        public static let unexpectedType = Code(verbatim: "unexpectedType")
        /// The answer does not have the shape of the value.
        public static let undecodable = Code(verbatim: "undecodable")
        /// A part of a file came that was not asked for, or does not fit what is there.
        public static let wrongRange = Code(verbatim: "wrongRange")
        /// A file is whole and has another digest than expected.
        public static let wrongDigest = Code(verbatim: "wrongDigest")
        /// A file could not be written.
        public static let fileFailed = Code(verbatim: "fileFailed")

        /// Those of the way that pass by themselves.
        static let passing: Set<Code> = [.offline, .hostNotFound, .connectionRefused, .unreachable, .connectionLost]

        /// At which stage a transport's failure stands.
        var stage: Stage {
            switch self {
            case .cancelled: .cancelled
            case .headTimedOut, .idleTimedOut, .attemptTimedOut, .overallTimedOut: .timeout
            case .unsupported, .bodyUnreadable: .build
            default: .transport
            }
        }
    }
}
