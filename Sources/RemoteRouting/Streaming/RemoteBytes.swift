public import Foundation

/// The body of an answer, in the pieces in which it comes; can be read once.
///
/// ```swift
/// let bytes = try await api.bytes(for: Route(path: "/export"))
/// for try await piece in bytes { try file.write(contentsOf: piece) }
/// for try await line in try await api.bytes(for: Route(path: "/log")).lines { print(line) }
/// ```
///
/// Memory stays constant however large the body is and however slowly it is read: beyond ``HostLimits/memoryBytes`` unread bytes lie in
/// an unlinked temporary file, up to ``HostLimits/spillBytes``. Letting go of it before its end ends the exchange on the wire.
public struct RemoteBytes: AsyncSequence, Sendable {
    /// A piece of the body.
    public typealias Element = Data
    /// A `RemoteError`.
    public typealias Failure = any Error

    /// Status, fields, and who answered.
    public let head: HTTPHead
    let body: HTTPReplyBody
    private let explain: @Sendable (any Error) -> RemoteError

    init(head: HTTPHead, body: HTTPReplyBody, explain: @escaping @Sendable (any Error) -> RemoteError) {
        self.head = head
        self.body = body
        self.explain = explain
    }

    /// How many bytes there are; `nil` where the server did not say, or packed them.
    public var length: Int64? {
        guard head.fields["Content-Encoding"] == nil else { return nil }
        return head.fields["Content-Length"].flatMap { Int64($0) }
    }

    /// The body as text in UTF-8, line by line, without the ends of the lines.
    ///
    /// A line ends with LF, CRLF or CR. Bytes that are not UTF-8 are replaced.
    ///
    /// - Parameter limit: How many bytes a line may have.
    public func lines(limit: Int = 1 << 20) -> RemoteLines { RemoteLines(bytes: self, limit: limit) }

    /// The body as text, line by line, with lines of at most 1 MiB.
    public var lines: RemoteLines { lines() }

    /// Reads the pieces.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: HTTPReplyBody.AsyncIterator
        fileprivate let explain: @Sendable (any Error) -> RemoteError

        /// The next piece; `nil` at the end.
        ///
        /// - Throws: ``RemoteError``; cancelling the task ends the exchange.
        public mutating func next() async throws -> Data? {
            do {
                return try await base.next()
            } catch {
                throw explain(error)
            }
        }
    }

    /// Begins to read.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator(), explain: explain) }

    func tooLong(_ limit: Int) -> RemoteError {
        explain(TransportFailure(.bodyTooLarge, "a line has more than \(limit) bytes; raise the limit, or read bytes"))
    }
}

@available(*, unavailable)
extension RemoteBytes.AsyncIterator: Sendable {}

extension RemoteHost {
    /// Sends a route and gives the body as it comes, once the head is there and is one of success.
    ///
    /// Failures before the head are tried again like those of any route; one in the middle of the body is not.
    ///
    /// - Parameters:
    ///   - route: What to send.
    ///   - limit: How many bytes there may be; without it there is no limit but the route's own.
    /// - Returns: The body, still coming.
    /// - Throws: ``RemoteError``.
    public func bytes(for route: some Routable, limit: Int? = nil) async throws -> RemoteBytes {
        var sending = try RouteSending(route, at: self)
        if let limit { sending.streamBytes = limit }
        return try await sending.bytes()
    }
}

extension RouteSending {
    /// The body of the answer as it comes.
    func bytes() async throws -> RemoteBytes {
        let outcome = try await run(.stream)
        let body = try stream(of: outcome)
        return RemoteBytes(head: outcome.response.head, body: body) { [self] error in self.error(for: error, outcome.request) }
    }

    /// The body that is still coming.
    func stream(of outcome: Outcome) throws -> HTTPReplyBody {
        if let stream = outcome.stream { return stream }
        // An answer that was accepted although it is none of success has been read already.
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil))
        exchange.receive(outcome.response.head)
        exchange.receive(outcome.body)
        exchange.finish()
        return HTTPReplyBody(exchange)
    }
}
