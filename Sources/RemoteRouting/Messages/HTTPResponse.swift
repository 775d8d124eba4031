public import Foundation

/// A response: status, fields and body.
///
/// ```swift
/// let response = HTTPResponse(status: 200, url: request.url, body: Data("hello".utf8))
/// ```
public struct HTTPResponse: Sendable {
    /// The status code.
    public var status: Int
    /// The header, with the fields of one name joined where the platform joins them, except `Set-Cookie`.
    public var fields: HTTPFields
    /// The address that responded.
    public var url: URL
    /// The body, with its content coding removed.
    public var body: Body
    var ownMetrics: ExchangeMetrics.Box?

    /// How the exchange went; `nil` until the body has arrived, and where the transport does not tell.
    public var metrics: ExchangeMetrics? {
        get { ownMetrics?.metrics ?? body.metrics }
        set { ownMetrics = newValue.map { ExchangeMetrics.Box($0) } }
    }

    /// Makes a response whose body is in memory.
    public init(status: Int, fields: HTTPFields = HTTPFields(), url: URL, body: Data = Data()) {
        self.status = status
        self.fields = fields
        self.url = url
        self.body = Body(body)
    }

    /// The body of a response: bytes in memory, or pieces that still arrive and can be read once.
    ///
    /// ```swift
    /// for try await piece in response.body { digest.update(piece) }
    /// ```
    ///
    /// Releasing an arriving body before its end ends the exchange on the wire.
    public struct Body: AsyncSequence, Sendable {
        /// Ends the exchange once no reader is left.
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

        /// Makes a body of bytes in memory.
        public init(_ data: Data) { content = .data(data) }

        init(_ exchange: Exchange) { content = .arriving(Holder(exchange)) }

        /// The bytes; `nil` while the body still arrives.
        public var data: Data? {
            if case .data(let data) = content { data } else { nil }
        }

        /// The number of bytes that arrived and were not read, for tests.
        var unreadBytes: Int {
            if case .arriving(let holder) = content { holder.exchange.unreadBytes } else { 0 }
        }

        /// How the exchange of the body went; `nil` until it has ended well, and of a body in memory.
        var metrics: ExchangeMetrics? {
            if case .arriving(let holder) = content { holder.exchange.metrics } else { nil }
        }

        var isArriving: Bool {
            if case .arriving = content { true } else { false }
        }

        /// Reads the pieces, from one task at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate var content: Content

            /// The next piece; `nil` at the end.
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

        /// Begins to read.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(content: content) }

        /// Waits for the end and returns the bytes that were not read before.
        ///
        /// - Throws: ``TransportFailure``, with ``RemoteError/Code/bodyTooLarge`` if the body is longer than the limits allow. Canceling the
        ///   task ends the exchange.
        public func collect() async throws -> Data {
            switch content {
            case .data(let data): data
            case .arriving(let holder): try await holder.exchange.collect()
            }
        }

        /// The first bytes; ends the exchange if there are more.
        func beginning(_ count: Int) async throws -> Data {
            if let data { return data.prefix(count) }
            var data = Data()
            var iterator = makeAsyncIterator()
            do {
                while data.count < count, let piece = try await iterator.next() { data.append(piece) }
            } catch let failure as TransportFailure where failure.code != .cancelled {
                // Only the status counts here; a body that breaks off or is too long does not change it.
            }
            return data.prefix(count)
        }

        /// Registers an action for the end of the exchange of an arriving body.
        func onEnd(_ action: @escaping @Sendable () -> Void) {
            if case .arriving(let holder) = content { holder.exchange.onEnd(action) }
        }
    }
}

@available(*, unavailable)
extension HTTPResponse.Body.AsyncIterator: Sendable {}
