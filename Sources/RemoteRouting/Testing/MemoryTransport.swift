public import Foundation
internal import StoreCore
public import RemoteRouting

/// A transport without a network, which gets responses from a closure and records the requests.
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
/// Deadlines, limits and cancellation work as in a real exchange. Deadlines use the host's time source, so a `ManualTime` can advance them.
///
/// <doc:TestingWithoutANetwork> tests retries, revalidation and deliveries.
public final class MemoryTransport: Transport {
    /// A response that a test scripts, with the way in which it arrives and ends.
    public struct Response: Sendable {
        package var status: Int
        package var fields = HTTPFields()
        /// The body, in the pieces in which it arrives.
        public var pieces: [Data]
        /// The failure after the last piece; `nil` if the exchange succeeds.
        package var failure: TransportFailure?
        /// Whether the exchange neither ends nor fails after the last piece.
        package var stalls = false

        /// Creates a response.
        ///
        /// - Parameters:
        ///   - status: The status code.
        ///   - headers: The header fields; a malformed name or value is ignored.
        ///   - body: The body.
        public init(status: Int = 200, headers: [(String, String)] = [], body: Data = Data()) {
            self.status = status
            // Ignores malformed fields: testing them takes a real server.
            for (name, value) in headers { try? fields.append(name, value) }
            pieces = body.isEmpty ? [] : [body]
        }

        /// Returns a response with a JSON body.
        public static func json(_ text: String, status: Int = 200) -> Response {
            Response(status: status, headers: [("Content-Type", "application/json")], body: Data(text.utf8))
        }

        /// Returns a response with a status and no body.
        public static func status(_ status: Int) -> Response { Response(status: status) }

        /// Returns a copy of the response with an additional field; a malformed field is ignored.
        public func adding(_ name: String, _ value: String) -> Response {
            var copy = self
            try? copy.fields.append(name, value)
            return copy
        }

        /// Returns a copy of the response that fails after its last piece.
        public func failing(with failure: TransportFailure) -> Response {
            var copy = self
            copy.failure = failure
            return copy
        }

        /// A copy of the response that never ends.
        public var stalling: Response {
            var copy = self
            copy.stalls = true
            return copy
        }
    }

    private let handler: @Sendable (HTTPRequest) async throws -> Response
    private let kept = Lock((requests: [HTTPRequest](), open: 0))

    /// Creates a transport.
    ///
    /// - Parameter handler: Returns the response. A `TransportFailure` fails the exchange as stated; any other error means an unreachable server.
    public init(_ handler: @escaping @Sendable (_ request: HTTPRequest) async throws -> Response) { self.handler = handler }

    /// Creates a transport that returns one response per request, in order.
    ///
    /// ```swift
    /// let transport = MemoryTransport(inTurn: .status(503), .json(#"{"id": 7}"#))
    /// ```
    ///
    /// A request without a remaining response fails with ``RemoteError/Code/unsupported``.
    ///
    /// - Parameter responses: The responses.
    public convenience init(inTurn responses: Response...) {
        let left = Lock(responses[...])
        self.init { _ in
            guard let response = left.withLock({ $0.popFirst() }) else {
                throw TransportFailure(.unsupported, "all \(responses.count) responses of the MemoryTransport are used up; add a response")
            }
            return response
        }
    }

    /// The requests, in order, including redirects and further attempts.
    public var requests: [HTTPRequest] { kept.withLock(\.requests) }

    /// The number of exchanges that have begun and not ended.
    public var exchangeCount: Int { kept.withLock(\.open) }

    /// Performs a request with the handler's response; ignores the options, because no connection is made.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        try await perform(request, limits: limits)
    }

    /// Performs a request with the handler's response.
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
                let response = try await handler(request)
                exchange.receive(HTTPResponse(status: response.status, fields: response.fields, url: request.url))
                for piece in response.pieces { exchange.receive(piece) }
                if let failure = response.failure { return exchange.fail(failure) }
                if !response.stalls { exchange.finish() }
            } catch let failure as TransportFailure {
                exchange.fail(failure)
            } catch is CancellationError {
                exchange.fail(.cancelled)
            } catch {
                exchange.fail(TransportFailure(.unreachable, "the MemoryTransport's handler failed; see the cause", underlyingError: error))
            }
        }
        exchange.onStop { work.cancel() }
        return try await exchange.response()
    }
}
