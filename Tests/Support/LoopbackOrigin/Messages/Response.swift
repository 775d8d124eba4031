public import Foundation

extension LoopbackOrigin {
    /// A response: a status, fields, a body, and misbehaviors during its transmission.
    ///
    /// The origin adds only `Content-Length` or `Transfer-Encoding`, and `Connection` if it closes, so that tests can assert on exact
    /// bytes. It checks nothing, because some tests need malformed responses.
    ///
    /// ```swift
    /// origin.on(.get, "/slow") { _ in
    ///     .text("drop by drop").misbehaving(.delayHead(by: .milliseconds(50)), .drip(bytes: 1, every: .milliseconds(5)))
    /// }
    /// ```
    public struct Response: Sendable, Hashable {
        /// The bytes after the head.
        public enum Body: Sendable, Hashable {
            /// The given bytes.
            case data(Data)
            /// A gzip stream that inflates to that many zero bytes, with about a thousandth of them on the wire.
            case gzippedZeros(count: Int)
            /// The given bytes, repeated without holding them all in memory.
            case repeated(Data, times: Int)
            /// The exact bytes of the whole response, head included.
            case verbatim(Data)
        }

        /// The way in which the client finds the end of the body.
        public enum Framing: Sendable, Hashable {
            /// By `Content-Length`.
            case length
            /// By chunked coding, in chunks of at most that many bytes; by the end of the connection for an HTTP/1.0 client.
            case chunked(bytes: Int)
            /// By the end of the connection.
            case untilClosed
        }

        /// The status code.
        public var status: Int
        /// The header fields, sent in order and unchanged.
        public var headers: Headers
        /// The bytes after the head.
        public var body: Body
        /// The way in which the client finds the end of the body.
        public var framing: Framing
        /// The deviations from a correct response; their order does not matter.
        public var misbehaviors: [Misbehavior]

        /// Makes a correct response.
        public init(status: Int = 200, headers: Headers = [:], body: Data = Data(), framing: Framing = .length) {
            self.status = status
            self.headers = headers
            self.body = .data(body)
            self.framing = framing
            misbehaviors = []
        }

        /// The bytes of the body if they are in memory.
        public var data: Data? { if case .data(let data) = body { data } else { nil } }
    }
}

extension LoopbackOrigin.Response {
    /// Returns the same response with one field of that name and value.
    public func setting(_ name: String, to value: String) -> Self { changing { $0.headers.set(name, to: value) } }

    /// Returns the same response with an additional field, even if the name already exists.
    public func adding(_ name: String, _ value: String) -> Self { changing { $0.headers.add(name, value) } }

    /// Returns the same response with another status.
    public func with(status: Int) -> Self { changing { $0.status = status } }

    /// Returns the same response with another framing of its body.
    public func framed(_ framing: Framing) -> Self { changing { $0.framing = framing } }

    /// Returns the same response with additional misbehaviors.
    public func misbehaving(_ ways: LoopbackOrigin.Misbehavior...) -> Self { changing { $0.misbehaviors += ways } }

    func changing(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
    }
}
