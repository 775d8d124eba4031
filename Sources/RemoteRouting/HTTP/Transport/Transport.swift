internal import Foundation
public import StoreCore

/// A type that performs exchanges: it sends a request, and receives the head of the response and then the body in chunks.
///
/// A transport does not follow redirects, respond to challenges, store cookies, cache or retry. Hosts and stores do. An ``Exchange``
/// enforces the limits:
///
/// ```swift
/// struct EchoTransport: Transport {
///     func perform(
///         _ request: HTTPRequest, limits: ExchangeLimits
///     ) async throws -> HTTPResponse {
///         let exchange = Exchange(limits: limits)
///         exchange.receive(
///             HTTPResponse(
///                 status: 200, url: request.url, body: Data("hello".utf8)))
///         exchange.finish()
///         return try await exchange.response()
///     }
/// }
/// ```
public protocol Transport: Sendable {
    /// Sends a request and returns once the head of the response has arrived.
    ///
    /// An unsafe request (RFC 9110 §9.2.1) must reach the server at most once. Canceling the task or releasing the body before its end must
    /// end the exchange on the wire. A transport sends nothing for a canceled task; ``Exchange/mayBegin()`` checks this.
    ///
    /// - Parameters:
    ///   - request: The request, complete and validated.
    ///   - limits: The deadlines and size limits of the exchange.
    /// - Returns: The response; its body may still be arriving.
    /// - Throws: ``TransportFailure``; any other error counts as a failed connection.
    func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse

    /// Sends a request over a connection with options and returns once the head of the response has arrived.
    ///
    /// Hosts call this requirement. The default implementation refuses all options except the defaults, for which it calls the
    /// requirement without options. A transport must not ignore an option that it cannot fulfill.
    ///
    /// - Parameters:
    ///   - request: The request, complete and validated.
    ///   - connection: The requirements for the connection.
    ///   - limits: The deadlines and size limits of the exchange.
    /// - Returns: The response; its body may still be arriving.
    /// - Throws: ``TransportFailure``, with ``RemoteError/Code/unsupported`` for an option that the transport cannot fulfill.
    func perform(_ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits) async throws -> HTTPResponse
}

extension Transport {
    /// Sends the request if all options have their defaults, and throws otherwise.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        guard connection == ConnectionOptions() else {
            throw TransportFailure(
                .unsupported,
                "this transport does not support the host's options for TLS, proxy, HTTP/2 or Unix domain sockets; remove them, or use "
                    + "another transport"
            )
        }
        return try await perform(request, limits: limits)
    }
}

/// The deadlines and size limits of one exchange.
public struct ExchangeLimits: Sendable {
    /// The deadlines of an exchange and its parts; a `nil` part has no deadline.
    public struct Timeouts: Hashable, Sendable {
        /// From the last sent byte of an attempt, or from its start, to the head of its response.
        public var head: Duration?
        /// Between two chunks of a response.
        public var idle: Duration?
        /// For one attempt, from its start to the last byte.
        public var attempt: Duration?
        /// For a whole call of a host: all attempts, the delays between them, and credential refreshes.
        ///
        /// An exchange is only a part of a call. Its limits contain the moment at which the call ends.
        public var overall: Duration?

        /// Creates timeouts.
        ///
        /// - Parameters:
        ///   - head: From the last sent byte of an attempt to the head of its response.
        ///   - idle: Between two chunks of a response.
        ///   - attempt: For one attempt, from its start to the last byte.
        ///   - overall: For the whole call.
        public init(head: Duration? = nil, idle: Duration? = nil, attempt: Duration? = nil, overall: Duration? = nil) {
            self.head = head
            self.idle = idle
            self.attempt = attempt
            self.overall = overall
        }

        package func or(_ others: Timeouts) -> Timeouts {
            Timeouts(
                head: head ?? others.head, idle: idle ?? others.idle, attempt: attempt ?? others.attempt,
                overall: overall ?? others.overall)
        }
    }

    /// The deadlines of the exchange; the overall one has become `deadline`.
    package var timeouts: Timeouts
    package var deadline: MonotonicInstant?
    package var bodyBytes: Int
    /// The maximum number of unread bytes in memory; further bytes are spilled to an unlinked temporary file.
    package var memoryBytes: Int
    package var spillBytes: Int
    /// The clock that measures the limits and reaches the deadline.
    package var time: any TimeSource
    /// The upgrade to a WebSocket, which the response must accept; `nil` for other exchanges.
    package var upgrade: SocketUpgrade?
    /// Receives the number of request body bytes sent so far and their total; `nil` if the total is unknown.
    package var onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)?

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - head: The maximum time from the last sent byte to the head of the response; `nil` for no limit.
    ///   - idle: The maximum time between two chunks of the response; `nil` for no limit.
    ///   - attempt: The maximum time from the start to the last byte; `nil` for no limit.
    ///   - deadline: The moment at which the whole call must end; `nil` for none.
    ///   - bodyBytes: The maximum size of the body in bytes, after decoding.
    ///   - memoryBytes: The maximum number of unread bytes in memory.
    ///   - spillBytes: The maximum number of unread bytes in a temporary file.
    ///   - time: The clock of the durations.
    public init(
        head: Duration? = .seconds(30), idle: Duration? = .seconds(30), attempt: Duration? = nil, deadline: MonotonicInstant? = nil,
        bodyBytes: Int = 16 << 20, memoryBytes: Int = 1 << 20, spillBytes: Int = 1 << 30, time: any TimeSource = .system
    ) {
        timeouts = Timeouts(head: head, idle: idle, attempt: attempt)
        self.deadline = deadline
        self.bodyBytes = bodyBytes
        self.memoryBytes = memoryBytes
        self.spillBytes = spillBytes
        self.time = time
    }
}

/// The requirements for the connections of a host.
///
/// A host passes them to its transport with each request. A transport refuses options that it cannot fulfill; see ``Transport``.
public struct ConnectionOptions: Hashable, Sendable {
    /// The trust requirements for secure connections.
    public var tls = TLSOptions()
    /// The proxy of the connections; that of the system by default.
    public var proxy = ProxyOptions.system
    /// Whether HTTP/2 is used if the server offers it; otherwise HTTP/1.1.
    public var allowsHTTP2 = true
    /// The path of the Unix domain socket that replaces TCP; `nil` for TCP.
    public var unixSocketPath: String?

    /// Creates options with the system's authorities, the system's proxy, HTTP/2, and TCP.
    public init() {}

    /// The maximum number of bytes in the path of a Unix domain socket, which the system's `sockaddr_un` limits.
    #if os(Linux)
    package static let unixSocketPathBytes = 107
    #else
    package static let unixSocketPathBytes = 103
    #endif

    func checkUnixSocket() throws(TransportFailure) {
        guard let path = unixSocketPath else { return }
        guard !path.isEmpty, !path.utf8.contains(0), path.utf8.count <= ConnectionOptions.unixSocketPathBytes else {
            throw TransportFailure(
                .invalidSocketPath,
                "the path of the Unix domain socket has \(path.utf8.count) bytes; use 1 to \(ConnectionOptions.unixSocketPathBytes) bytes, "
                    + "none of them zero")
        }
        if case .server = proxy.choice {
            throw TransportFailure(.unsupported, "a proxy cannot connect to a Unix domain socket; remove the proxy or unixSocketPath")
        }
    }
}
