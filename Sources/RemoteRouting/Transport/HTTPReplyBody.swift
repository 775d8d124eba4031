public import Foundation

/// The body of a reply, in the pieces in which it came; can be read once.
///
/// ```swift
/// for try await piece in reply.body { digest.update(piece) }
/// ```
///
/// Letting go of it before its end ends the exchange on the wire.
public struct HTTPReplyBody: AsyncSequence, Sendable {
    /// A piece of the body.
    public typealias Element = Data
    /// A `TransportFailure`, or what another transport throws.
    public typealias Failure = any Error

    /// Ends the exchange when nobody can read it any more.
    final class Holder: Sendable {
        let exchange: Exchange
        init(_ exchange: Exchange) { self.exchange = exchange }
        deinit { exchange.stop(.abandoned) }
    }

    let holder: Holder

    init(_ exchange: Exchange) { holder = Holder(exchange) }

    /// Reads the pieces; not to be used from several tasks at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let holder: Holder

        /// The next piece; `nil` at the end.
        ///
        /// - Throws: ``TransportFailure``.
        public mutating func next() async throws -> Data? {
            try await holder.exchange.next()
        }
    }

    /// Begins to read.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(holder: holder) }

    /// What is left of the body, once all of it is there.
    ///
    /// - Throws: ``TransportFailure``; with ``RemoteError/Code/bodyTooLarge`` where it is longer than the limits allow.
    public func collect() async throws -> Data {
        try await holder.exchange.collect()
    }
}

@available(*, unavailable)
extension HTTPReplyBody.AsyncIterator: Sendable {}
