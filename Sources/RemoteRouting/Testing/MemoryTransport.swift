public import Foundation
internal import StoreCore

/// A transport without a network: a closure answers, and what was asked is kept.
///
/// ```swift
/// let transport = MemoryTransport { request in
///     .json(#"{"id": 7}"#, status: request.method == .post ? 201 : 200)
/// }
/// let api = RemoteHost("api.example.com", transport: transport)
/// let user: User = try await api.send("/users/7")
/// #expect(transport.requests.map(\.url.path) == ["/users/7"])
/// ```
///
/// Deadlines, limits and cancellation are those of a real exchange; time is the host's, so that a `ManualTime` moves them.
public final class MemoryTransport: Transport {
    /// What comes back.
    public struct Answer: Sendable {
        /// The status code.
        package var status: Int
        /// The header.
        package var fields: HTTPFields
        /// The body, in the pieces in which it comes.
        public var pieces: [Data]
        /// What ends the exchange behind the pieces; `nil` ends it well.
        package var failure: TransportFailure?
        /// Whether neither an end nor a failure comes behind the pieces.
        package var stalls: Bool

        /// Makes an answer.
        ///
        /// - Parameters:
        ///   - status: The status code.
        ///   - headers: The header; a name or value that cannot be on the wire is left out.
        ///   - body: The body.
        public init(status: Int = 200, headers: [(String, String)] = [], body: Data = Data()) {
            self.status = status
            fields = HTTPFields()
            // A test that wants to see nonsense needs a real server.
            for (name, value) in headers { try? fields.append(name, value) }
            pieces = body.isEmpty ? [] : [body]
            stalls = false
        }

        /// A text of JSON.
        public static func json(_ text: String, status: Int = 200) -> Answer {
            Answer(status: status, headers: [("Content-Type", "application/json")], body: Data(text.utf8))
        }

        /// A status without a body.
        public static func status(_ status: Int) -> Answer { Answer(status: status) }

        /// The same answer with one more field.
        public func adding(_ name: String, _ value: String) -> Answer {
            var copy = self
            // As above.
            try? copy.fields.append(name, value)
            return copy
        }

        /// The same answer, broken off behind its pieces.
        public func failing(with failure: TransportFailure) -> Answer {
            var copy = self
            copy.failure = failure
            return copy
        }

        /// The same answer without an end.
        public var stalling: Answer {
            var copy = self
            copy.stalls = true
            return copy
        }
    }

    private struct Kept {
        var requests: [HTTPRequest] = []
        var open = 0
    }

    private let handler: @Sendable (HTTPRequest) async throws -> Answer
    /// Guards what was asked.
    private let kept = Lock(Kept())

    /// Makes a transport.
    ///
    /// - Parameter handler: Makes the answer to a request; throws a `TransportFailure` to fail the exchange.
    public init(_ handler: @escaping @Sendable (_ request: HTTPRequest) async throws -> Answer) { self.handler = handler }

    /// Makes a transport that gives these answers, one for each request, in this order.
    ///
    /// ```swift
    /// let transport = MemoryTransport(inTurn: .status(503), .json(#"{"id": 7}"#))
    /// ```
    ///
    /// A request that no answer is left for fails with ``RemoteError/Code/unsupported``.
    ///
    /// - Parameter answers: The answers.
    public convenience init(inTurn answers: Answer...) {
        let left = Left(answers)
        self.init { _ in
            guard let answer = left.take() else {
                throw TransportFailure(.unsupported, "all \(answers.count) answers of the test's transport have been given; add one")
            }
            return answer
        }
    }

    /// Answers that have not been given yet.
    private final class Left: Sendable {
        private let answers: Lock<ArraySlice<Answer>>

        init(_ answers: [Answer]) { self.answers = Lock(answers[...]) }

        func take() -> Answer? { answers.withLock { $0.popFirst() } }
    }

    /// What was asked, in order, redirects and further attempts included.
    public var requests: [HTTPRequest] { kept.withLock(\.requests) }

    /// How many exchanges are under way.
    public var exchangeCount: Int { kept.withLock(\.open) }

    /// Answers a request, whatever the options: no connection is made.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        try await perform(request, limits: limits)
    }

    /// Answers a request.
    public func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        let exchange = Exchange(limits: limits)
        guard exchange.mayBegin() else { return try await exchange.response() }
        kept.withLock { kept in
            kept.requests.append(request)
            kept.open += 1
        }
        exchange.onEnd { [self] in kept.withLock { $0.open -= 1 } }
        let work = Task { [handler] in
            do {
                let answer = try await handler(request)
                exchange.receive(HTTPResponse(status: answer.status, fields: answer.fields, url: request.url))
                for piece in answer.pieces { exchange.receive(piece) }
                if let failure = answer.failure { return exchange.fail(failure) }
                if !answer.stalls { exchange.finish() }
            } catch let failure as TransportFailure {
                exchange.fail(failure)
            } catch is CancellationError {
                exchange.fail(.cancelled)
            } catch {
                exchange.fail(TransportFailure(.unreachable, "the test's handler failed", underlyingError: error))
            }
        }
        exchange.onStop { work.cancel() }
        return try await exchange.response()
    }
}
