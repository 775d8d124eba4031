public import Foundation
public import StoreCore

/// Performs one exchange: a request goes out, the head of its answer comes back, and then the body in pieces.
///
/// A transport follows no redirect, answers no challenge, keeps no cookie, caches nothing and tries nothing twice: all of that is decided
/// above it. Most are made of an ``Exchange``, which keeps the limits:
///
/// ```swift
/// struct EchoTransport: Transport {
///     func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPReply {
///         let exchange = Exchange(limits: limits)
///         exchange.receive(HTTPHead(status: 200, url: request.url))
///         exchange.receive(Data("hello".utf8))
///         exchange.finish()
///         return try await exchange.reply()
///     }
/// }
/// ```
public protocol Transport: Sendable {
    /// Sends a request and returns once the head of the answer is there.
    ///
    /// An unsafe request (RFC 9110 §9.2.1) must reach the server at most once. Cancelling the task, and letting go of the reply before its
    /// end, must end the exchange on the wire. Nothing may be sent for a task that is cancelled already; ``Exchange/mayBegin()`` tells.
    ///
    /// - Parameters:
    ///   - request: The request, complete and checked.
    ///   - limits: How long it may take and how much may come.
    /// - Returns: The head, and a body to read.
    /// - Throws: ``TransportFailure``; any other error is taken for a connection that failed.
    func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPReply
}

/// How long one exchange may take, and how much may come back.
public struct ExchangeLimits: Sendable {
    /// From the last byte sent to the head of the answer; `nil` waits for ever.
    public var head: Duration?
    /// Between two pieces of the answer; `nil` waits for ever.
    public var idle: Duration?
    /// From the start to the last byte; `nil` waits for ever.
    public var attempt: Duration?
    /// The moment at which everything must be over, whatever the attempt; `nil` where there is none.
    public var deadline: MonotonicInstant?
    /// How many bytes the body may have, once decoded.
    public var bodyBytes: Int
    /// How many bytes that nobody has read yet are held in memory; what is more goes to an unlinked temporary file.
    public var memoryBytes: Int
    /// How many bytes that file may have.
    public var spillBytes: Int
    /// The clock that the durations are measured on.
    public var time: any TimeSource
    /// Called with how many bytes of the request's body have been sent in all, and how many there are; `nil` where nobody knows.
    public var onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)?

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

/// What comes before the body of an answer.
public struct HTTPHead: Hashable, Sendable {
    /// The status code.
    public var status: Int
    /// The header, with the fields of one name joined where the platform joins them.
    public var fields: HTTPFields
    /// Who answered.
    public var url: URL

    /// Makes a head.
    public init(status: Int, fields: HTTPFields = HTTPFields(), url: URL) {
        self.status = status
        self.fields = fields
        self.url = url
    }
}

/// An answer whose head is there and whose body is still coming.
public struct HTTPReply: Sendable {
    /// Status and fields.
    public var head: HTTPHead
    /// The body; letting go of it before its end ends the exchange on the wire.
    public var body: HTTPReplyBody
}
