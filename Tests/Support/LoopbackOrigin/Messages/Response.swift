public import Foundation

extension LoopbackOrigin {
    /// What the origin answers: a status, fields, a body, and how it misbehaves while sending them.
    ///
    /// Nothing but `Content-Length` or `Transfer-Encoding`, and `Connection` where it closes, is added to the fields; so a test can
    /// assert on exact bytes. Nothing is checked either: an origin that sends nonsense is sometimes what is wanted.
    ///
    /// ```swift
    /// origin.on(.get, "/slow") { _ in
    ///     .text("drop by drop").misbehaving(.delayHead(by: .milliseconds(50)), .drip(bytes: 1, every: .milliseconds(5)))
    /// }
    /// ```
    public struct Response: Sendable, Hashable {
        /// What stands behind the head.
        public enum Body: Sendable, Hashable {
            /// The given bytes.
            case data(Data)
            /// A gzip stream that inflates to that many zero bytes, about a thousandth of that on the wire.
            case gzippedZeros(count: Int)
            /// The given bytes so many times, without holding them all.
            case repeated(Data, times: Int)
            /// Not a body but the whole answer, head included, byte by byte.
            case verbatim(Data)
        }

        /// How the client learns where the body ends.
        public enum Framing: Sendable, Hashable {
            /// By `Content-Length`.
            case length
            /// By chunked coding, in chunks of at most that many bytes; for an HTTP/1.0 client, by the end of the connection.
            case chunked(bytes: Int)
            /// By the end of the connection.
            case untilClosed
        }

        /// The status code.
        public var status: Int
        /// The header fields, sent in order and as they are.
        public var headers: Headers
        /// What stands behind the head.
        public var body: Body
        /// How the client learns where the body ends.
        public var framing: Framing
        /// How the answer departs from what it should be; the order does not matter.
        public var misbehaviors: [Misbehavior]

        /// A response of the given parts that behaves.
        public init(status: Int = 200, headers: Headers = [:], body: Data = Data(), framing: Framing = .length) {
            self.status = status
            self.headers = headers
            self.body = .data(body)
            self.framing = framing
            misbehaviors = []
        }

        /// The bytes of a body that is known in advance.
        public var data: Data? {
            if case .data(let data) = body { data } else { nil }
        }
    }
}

extension LoopbackOrigin.Response {
    /// The same response with one field of that name and value.
    public func setting(_ name: String, to value: String) -> Self {
        var copy = self
        copy.headers.set(name, to: value)
        return copy
    }

    /// The same response with one field more, even if it has one of that name.
    public func adding(_ name: String, _ value: String) -> Self {
        var copy = self
        copy.headers.add(name, value)
        return copy
    }

    /// The same response with another status.
    public func with(status: Int) -> Self {
        var copy = self
        copy.status = status
        return copy
    }

    /// The same response with another framing of its body.
    public func framed(_ framing: Framing) -> Self {
        var copy = self
        copy.framing = framing
        return copy
    }

    /// The same response that misbehaves in these ways as well.
    public func misbehaving(_ ways: LoopbackOrigin.Misbehavior...) -> Self {
        var copy = self
        copy.misbehaviors += ways
        return copy
    }
}
