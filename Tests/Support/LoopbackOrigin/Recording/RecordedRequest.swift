extension LoopbackOrigin {
    /// A request the origin got, and what became of it.
    ///
    /// The parts of the request can be read directly:
    ///
    /// ```swift
    /// #expect(origin.requests.map(\.path) == ["/users", "/users/7"])
    /// #expect(origin.requests.first?.headers["Accept"] == "application/json")
    /// ```
    @dynamicMemberLookup
    public struct RecordedRequest: Sendable, CustomStringConvertible {
        /// How an exchange ended.
        public enum Ending: Sendable, Hashable {
            /// The kernel took the last byte of what the response promised.
            case complete
            /// The response was cut short, withheld or reset on command.
            case cut
            /// The client closed the connection before the answer was complete.
            case clientLeft
            /// The origin went down or was stopped before the answer was complete.
            case originLeft
        }

        /// The request.
        public let request: Request
        /// The status that was sent; `nil` until a head was, or when none is.
        public internal(set) var status: Int?
        /// How many bytes behind the head the kernel took, chunked coding included.
        public internal(set) var bodyBytesSent = 0
        /// How the exchange ended; `nil` while it lasts.
        public internal(set) var ending: Ending?

        /// Whether the client went away before it had the whole answer.
        public var clientLeftEarly: Bool { ending == .clientLeft }

        /// A part of the request.
        public subscript<Value>(dynamicMember part: KeyPath<Request, Value>) -> Value {
            request[keyPath: part]
        }

        /// The exchange in one line, such as `GET /users → 200, 512 bytes`.
        public var description: String {
            let answer = status.map { "\($0), \(bodyBytesSent) bytes" } ?? "no answer"
            let remark =
                switch ending {
                case .complete: ""
                case .cut: ", cut short"
                case .clientLeft: ", client left"
                case .originLeft: ", origin left"
                case nil: ", under way"
                }
            return "\(request.method) \(request.target) → \(answer)\(remark)"
        }
    }

    /// Bytes that were refused before any handler saw them.
    public struct Rejection: Sendable, Hashable {
        /// The connection they arrived on.
        public let connection: Int
        /// The status they were answered with.
        public let status: Int
        /// What is wrong with them.
        public let reason: String
    }
}
