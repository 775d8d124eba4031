import StorePlatform

extension LoopbackOrigin {
    /// An error of starting or restarting the origin, or of a wait.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The kinds of failures.
        public enum Code: Sendable, Hashable {
            /// The system refused a call.
            case system
            /// The origin was stopped.
            case stopped
            /// A wait exceeded its time limit.
            case timedOut
        }

        /// The kind of failure.
        public let code: Code
        /// The operation that failed, and the reason.
        public let description: String

        /// Makes the failure of a system call from its `errno`.
        static func system(_ operation: String, _ number: Int32) -> Failure {
            Failure(code: .system, description: "cannot \(operation): \(String(cString: strerror(number))) (\(number))")
        }

        static let stopped = Failure(code: .stopped, description: "the origin has been stopped")
    }
}
