#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension LoopbackOrigin {
    /// Why the origin could not start or come back, or why a wait ended without what it waited for.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// What kind of failure it is; more kinds may be added.
        public struct Code: RawRepresentable, Sendable, Hashable {
            /// The kind's name.
            public let rawValue: String

            /// A kind by its name.
            public init(rawValue: String) {
                self.rawValue = rawValue
            }

            /// The system refused a call.
            public static let system = Code(rawValue: "system")
            /// The origin was stopped.
            public static let stopped = Code(rawValue: "stopped")
            /// A wait lasted longer than it was allowed to.
            public static let timedOut = Code(rawValue: "timedOut")
        }

        /// What kind of failure it is.
        public let code: Code
        /// What was attempted and what came of it.
        public let description: String

        /// The system refused to do `operation` with the given `errno`.
        static func system(_ operation: String, _ number: Int32) -> Failure {
            Failure(code: .system, description: "could not \(operation): \(String(cString: strerror(number))) (\(number))")
        }

        static let stopped = Failure(code: .stopped, description: "the origin has been stopped")
    }
}
