public import Foundation

/// The body of an answer, in the pieces in which it comes; can be read once.
///
/// ```swift
/// let bytes = try await api.bytes(for: Route(path: "/export"))
/// for try await piece in bytes { try file.write(contentsOf: piece) }
/// for try await line in try await api.bytes(for: Route(path: "/log")).lines() { print(line) }
/// ```
///
/// Memory stays constant however large the body is and however slowly it is read: beyond ``HostLimits/memoryBytes`` unread bytes lie in
/// an unlinked temporary file, up to ``HostLimits/spillBytes``. Letting go of it before its end ends the exchange on the wire.
public struct RemoteBytes: AsyncSequence, Sendable {
    /// Status, fields and address of the response.
    public let response: RemoteResponse<Void>
    let body: HTTPResponse.Body
    private let explain: @Sendable (any Error) -> RemoteError

    init(_ response: RemoteResponse<HTTPResponse.Body>, explain: @escaping @Sendable (any Error) -> RemoteError) {
        self.response = response.map(())
        body = response.value
        self.explain = explain
    }

    /// How the exchange went; `nil` until the last piece was read.
    public var metrics: ExchangeMetrics? { body.metrics }

    /// How many bytes there are; `nil` where the server did not say, or packed them.
    public var length: Int64? {
        guard response.fields["Content-Encoding"] == nil else { return nil }
        return response.fields["Content-Length"].flatMap { Int64($0) }
    }

    /// The body as text in UTF-8, line by line, without the ends of the lines.
    ///
    /// A line ends with LF, CRLF or CR. Bytes that are not UTF-8 are replaced.
    ///
    /// - Parameter limit: The most bytes that a line may have.
    /// - Returns: The lines, to be read once. Reading throws ``RemoteError``, with ``RemoteError/Code/bodyTooLarge`` for a longer line.
    public func lines(limit: Int = 1 << 20) -> some AsyncSequence<String, any Error> & Sendable { RemoteLines(bytes: self, limit: limit) }

    /// Reads the pieces.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var base: HTTPResponse.Body.AsyncIterator
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
        try await RouteCall(route, at: self, .stream(limit: limit ?? .max)).bytes()
    }
}

extension RouteCall {
    /// Sends and returns the body as it arrives.
    func bytes() async throws -> RemoteBytes {
        RemoteBytes(try await run()) { [self] error in self.error(for: error, sentRequest) }
    }
}
