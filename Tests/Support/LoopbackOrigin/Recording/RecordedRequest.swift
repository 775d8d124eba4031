extension LoopbackOrigin {
    /// A recorded request with its outcome.
    ///
    /// The parts of the request can be read directly:
    ///
    /// ```swift
    /// #expect(origin.requests.map(\.path) == ["/users", "/users/7"])
    /// #expect(origin.requests.first?.headers["Accept"] == "application/json")
    /// ```
    @dynamicMemberLookup
    public struct RecordedRequest: Sendable, CustomStringConvertible {
        /// The end of an exchange.
        public enum Ending: Sendable, Hashable {
            /// The kernel accepted the last byte of the promised response.
            case complete
            /// The response was truncated, withheld, or reset on command.
            case cut
            /// The client closed the connection before the response was complete.
            case clientLeft
            /// The origin went down or was stopped before the response was complete.
            case originLeft
        }

        /// The request.
        public let request: Request
        /// The sent status; `nil` before a head was sent, or without one.
        public internal(set) var status: Int?
        /// The number of bytes after the head that the kernel accepted, including chunked coding.
        public internal(set) var bodyBytesSent = 0
        /// The end of the exchange; `nil` while it lasts.
        public internal(set) var ending: Ending?

        /// A part of the request.
        public subscript<Value>(dynamicMember part: KeyPath<Request, Value>) -> Value {
            request[keyPath: part]
        }

        /// The exchange in one line, such as `GET /users → 200, 512 bytes`.
        public var description: String {
            let response = status.map { "\($0), \(bodyBytesSent) bytes" } ?? "no response"
            let remark =
                switch ending {
                case .complete: ""
                case .cut: ", cut short"
                case .clientLeft: ", client left"
                case .originLeft: ", origin left"
                case nil: ", in flight"
                }
            return "\(request.method) \(request.target) → \(response)\(remark)"
        }
    }

    /// Bytes that were refused before any handler saw them.
    public struct Rejection: Sendable, Hashable {
        /// The number of the connection.
        public let connection: Int
        /// The status of the response.
        public let status: Int
        /// The reason for the refusal.
        public let reason: String
    }
}
