public import Foundation
internal import StoreCore

/// A response: status, fields and body.
///
/// ```swift
/// let response = HTTPResponse(
///     status: 200, url: request.url, body: Data("hello".utf8))
/// ```
public struct HTTPResponse: Sendable {
    /// The status code in three digits (RFC 9110 §15).
    public var status: Int
    /// The header; the platform may join fields of the same name, except `Set-Cookie`.
    public var fields: HTTPFields
    /// The address that responded, to which relative links of the response refer.
    public var url: URL
    /// The body, after its content coding was removed.
    public var body: Body
    package var ownMetrics: Box<ExchangeMetrics>?

    /// The metrics of the exchange; `nil` before the body has arrived, or if the transport reports none.
    public var metrics: ExchangeMetrics? {
        get { ownMetrics?.value ?? body.metrics }
        set { ownMetrics = newValue.map { Box($0) } }
    }

    /// Creates a response with a body in memory.
    public init(status: Int, fields: HTTPFields = HTTPFields(), url: URL, body: Data = Data()) {
        self.status = status
        self.fields = fields
        self.url = url
        self.body = Body(body)
    }

    /// The body of a response: bytes in memory, or chunks that still arrive and can be read once.
    ///
    /// ```swift
    /// for try await piece in response.body { digest.update(piece) }
    /// ```
    ///
    /// Releasing an arriving body before its end ends the exchange on the wire.
    public struct Body: AsyncSequence, Sendable {
        /// Ends the exchange when the last reader is released.
        final class Holder: Sendable {
            let exchange: Exchange
            init(_ exchange: Exchange) { self.exchange = exchange }
            deinit { exchange.stop(.abandoned) }
        }

        fileprivate enum Content: Sendable {
            case data(Data)
            case arriving(Holder)
        }

        private let content: Content

        /// Creates a body from bytes in memory.
        public init(_ data: Data) { content = .data(data) }

        init(_ exchange: Exchange) { content = .arriving(Holder(exchange)) }

        /// The bytes; `nil` while the body arrives.
        public var data: Data? {
            if case .data(let data) = content { data } else { nil }
        }

        fileprivate var exchange: Exchange? {
            if case .arriving(let holder) = content { holder.exchange } else { nil }
        }

        /// The number of received unread bytes, for tests.
        var unreadBytes: Int { exchange?.unreadBytes ?? 0 }

        /// The metrics of the exchange; `nil` until it has succeeded, and for a body in memory.
        package var metrics: ExchangeMetrics? { exchange?.metrics }

        package var isArriving: Bool { exchange != nil }

        /// An iterator over the chunks; only one task at a time may use it.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var content: Content

            /// Returns the next chunk; `nil` at the end.
            ///
            /// - Throws: ``TransportFailure``. Canceling the task ends the exchange.
            public mutating func next() async throws -> Data? {
                switch content {
                case .arriving(let holder): return try await holder.exchange.next()
                case .data(let data):
                    content = .data(Data())
                    return data.isEmpty ? nil : data
                }
            }
        }

        /// Creates an iterator over the chunks.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(content: content) }

        /// Waits for the end and returns all bytes not yet read.
        ///
        /// - Throws: ``TransportFailure``, with ``RemoteError/Code/bodyTooLarge`` if the body exceeds its limit. Canceling the task ends
        ///   the exchange.
        public func collect() async throws -> Data {
            switch content {
            case .data(let data): data
            case .arriving(let holder): try await holder.exchange.collect()
            }
        }

        package func stop() { exchange?.stop(.abandoned) }

        package func onEnd(_ action: @escaping @Sendable () -> Void) { exchange?.onEnd(action) }
    }
}

extension HTTPResponse {
    /// Whether the body is announced to be short enough to be read for the connection's sake, which can then be used again.
    package var hasShortBody: Bool { fields["Content-Length"].flatMap { Int($0) }.map { $0 <= 65_536 } ?? false }

    /// Reads a short body to its end, as it is encoded, and ignores it and its failures.
    package func skipShortBody() async {
        // The body may be longer than it was announced to be, because it is chunked.
        var left = hasShortBody ? 65_536 : -1
        while left >= 0, let piece = try? await body.exchange?.nextPiece() { left -= piece.count }
    }
}

@available(*, unavailable)
extension HTTPResponse.Body.AsyncIterator: Sendable {}
