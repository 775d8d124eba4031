public import Foundation
public import RemoteHTTP

/// The body of a response as a sequence of pieces, which can be read once.
///
/// ```swift
/// let bytes = try await api.bytes(for: Route(path: "/export"))
/// for try await piece in bytes { try file.write(contentsOf: piece) }
/// for try await line in try await api.bytes(for: Route(path: "/log")).lines() {
///     print(line)
/// }
/// ```
///
/// Memory use is constant, even if the body is large or read slowly. Over libcurl, a slow reader pauses the socket before the
/// unread bytes exceed ``HostLimits/memoryBytes``. Over `URLSession`, further unread bytes go to an unlinked temporary file, up to
/// ``HostLimits/spillBytes``. Releasing the sequence before its end ends the exchange on the wire.
///
/// <doc:StreamsAndFiles> explains streams, downloads and uploads.
public struct RemoteBytes: AsyncSequence, Sendable {
    /// The status, the fields and the URL of the response.
    public let response: RemoteResponse<Void>
    let body: HTTPResponse.Body
    private let explain: @Sendable (any Error) -> RemoteError

    init(_ response: RemoteResponse<HTTPResponse.Body>, explain: @escaping @Sendable (any Error) -> RemoteError) {
        self.response = response.map(())
        body = response.value
        self.explain = explain
    }

    /// The metrics of the exchange; `nil` until the body has arrived, and complete once its last piece has been read.
    public var metrics: ExchangeMetrics? { body.metrics }

    /// The number of bytes of the body; `nil` if the server did not send it or compressed the body.
    public var length: Int64? {
        guard response.fields.contentCodings.isEmpty else { return nil }
        return response.fields["Content-Length"].flatMap { Int64($0) }
    }

    /// Returns the lines of the body as UTF-8 text, without line endings.
    ///
    /// A line ends with LF, CRLF or CR. Invalid UTF-8 is replaced with U+FFFD.
    ///
    /// - Parameter limit: The maximum number of bytes of a line.
    /// - Returns: The lines, which can be read once. Reading throws ``RemoteError``, with ``RemoteError/Code/bodyTooLarge`` for a line
    ///   over the limit.
    public func lines(limit: Int = 1 << 20) -> some AsyncSequence<String, any Error> & Sendable {
        BodyParts<String>(bytes: self) { [explain] in
            var splitter = LineSplitter(limit: limit)
            return { piece, lines in
                lines = piece.map { splitter.take($0) } ?? splitter.finish().map { [$0] } ?? []
                guard splitter.isTooLong else { return }
                throw explain(
                    TransportFailure(.bodyTooLarge, "a line is longer than \(limit) bytes; raise the limit, or read the body as bytes"))
            }
        }
    }

    /// An iterator of the pieces; a body can be read once.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var base: HTTPResponse.Body.AsyncIterator
        let explain: @Sendable (any Error) -> RemoteError

        /// Returns the next piece; `nil` at the end.
        ///
        /// - Throws: ``RemoteError``. Canceling the task ends the exchange.
        public mutating func next() async throws -> Data? {
            do {
                return try await base.next()
            } catch {
                throw explain(error)
            }
        }
    }

    /// Creates the iterator; only one can read the body.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator(), explain: explain) }
}

@available(*, unavailable)
extension RemoteBytes.AsyncIterator: Sendable {}

extension RemoteHost {
    /// Sends a route, and returns the body as a stream once the head of a successful response has arrived.
    ///
    /// Failures before the head are retried as for any route. A failure within the body is not retried.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - limit: The maximum number of bytes of the body; unlimited by default. The route's ``RouteOptions/responseLimit`` overrides it.
    /// - Returns: The body, which is still arriving.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange.
    public func bytes(for route: some Routable, limit: Int? = nil) async throws -> RemoteBytes {
        try await RouteCall(route, at: self, .stream(limit: limit ?? .max)).bytes()
    }
}

extension RouteCall {
    func bytes() async throws -> RemoteBytes {
        RemoteBytes(try await run()) { [self] error in self.error(for: error, sentRequest) }
    }
}
