internal import Foundation
public import StoreCore
internal import Wire

/// Performs one exchange: sends a request, receives the head of the response, and then the body in pieces.
///
/// A transport follows no redirect, responds to no challenge, keeps no cookie, caches nothing and retries nothing: ``RemoteHost`` does that.
/// An ``Exchange`` keeps the limits:
///
/// ```swift
/// struct EchoTransport: Transport {
///     func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
///         let exchange = Exchange(limits: limits)
///         exchange.receive(HTTPResponse(status: 200, url: request.url, body: Data("hello".utf8)))
///         exchange.finish()
///         return try await exchange.response()
///     }
/// }
/// ```
public protocol Transport: Sendable {
    /// Sends a request and returns once the head of the response has arrived.
    ///
    /// An unsafe request (RFC 9110 §9.2.1) must reach the server at most once. Canceling the task, and releasing the body before its end,
    /// must end the exchange on the wire. A transport sends nothing for a task that is canceled already; ``Exchange/mayBegin()`` checks that.
    ///
    /// - Parameters:
    ///   - request: The request, complete and checked.
    ///   - limits: How long the exchange may take, and how much may arrive.
    /// - Returns: The response, whose body still arrives.
    /// - Throws: ``TransportFailure``; any other error counts as a connection that failed.
    func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse

    /// Sends a request over a connection with special demands, and returns once the head of the response has arrived.
    ///
    /// Hosts call this requirement. By default it refuses all options but the default ones, and otherwise calls the requirement without
    /// options. A transport must not ignore an option that it does not know how to keep.
    ///
    /// - Parameters:
    ///   - request: The request, complete and checked.
    ///   - connection: The demands on the connection.
    ///   - limits: How long the exchange may take, and how much may arrive.
    /// - Returns: The response, whose body still arrives.
    /// - Throws: ``TransportFailure``, with ``RemoteError/Code/unsupported`` for an option that the transport cannot keep.
    func perform(_ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits) async throws -> HTTPResponse
}

extension Transport {
    /// Refuses all options but the default ones, and sends the request.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        guard connection == ConnectionOptions() else {
            throw TransportFailure(
                .unsupported, "this transport cannot keep the host's options for TLS, its proxy or HTTP/2; remove them, or use one that can"
            )
        }
        return try await perform(request, limits: limits)
    }
}

/// How long one exchange may take, and how much may come back.
public struct ExchangeLimits: Sendable {
    /// From the last byte sent to the head of the answer; `nil` waits for ever.
    package var head: Duration?
    /// Between two pieces of the answer; `nil` waits for ever.
    package var idle: Duration?
    /// From the start to the last byte; `nil` waits for ever.
    package var attempt: Duration?
    /// The moment at which everything must be over, whatever the attempt; `nil` where there is none.
    package var deadline: MonotonicInstant?
    /// How many bytes the body may have, once decoded.
    package var bodyBytes: Int
    /// How many bytes that nobody has read yet are held in memory; what is more goes to an unlinked temporary file.
    package var memoryBytes: Int
    /// How many bytes that file may have.
    package var spillBytes: Int
    /// The clock that the durations are measured on.
    package var time: any TimeSource
    /// Called with how many bytes of the request's body have been sent in all, and how many there are; `nil` where nobody knows.
    package var onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)?

    /// Makes limits.
    ///
    /// - Parameters:
    ///   - head: From the last byte sent to the head of the answer.
    ///   - idle: Between two pieces of the answer.
    ///   - attempt: From the start to the last byte.
    ///   - deadline: The moment at which everything must be over.
    ///   - bodyBytes: How many bytes the body may have, once decoded.
    ///   - memoryBytes: How many unread bytes are held in memory.
    ///   - spillBytes: How many unread bytes may lie in a temporary file.
    ///   - time: The clock.
    public init(
        head: Duration? = .seconds(30), idle: Duration? = .seconds(30), attempt: Duration? = nil, deadline: MonotonicInstant? = nil,
        bodyBytes: Int = 16 << 20, memoryBytes: Int = 1 << 20, spillBytes: Int = 1 << 30, time: any TimeSource = .system
    ) {
        self.head = head
        self.idle = idle
        self.attempt = attempt
        self.deadline = deadline
        self.bodyBytes = bodyBytes
        self.memoryBytes = memoryBytes
        self.spillBytes = spillBytes
        self.time = time
    }
}

extension ExchangeLimits {
    /// The deadlines among the limits.
    var deadlines: Deadlines.Limits { Deadlines.Limits(head: head, idle: idle, attempt: attempt, overall: deadline) }
}

extension Deadlines {
    init(_ limits: ExchangeLimits, started: MonotonicInstant) { self.init(limits.deadlines, started: started) }
}
