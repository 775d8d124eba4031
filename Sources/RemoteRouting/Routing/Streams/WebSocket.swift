public import Foundation
internal import RemoteHTTP
internal import StoreCore

/// An open WebSocket (RFC 6455): a sequence of received messages, and a way to send others.
///
/// ```swift
/// let socket = try await api.webSocket(for: Route(path: "/chat"))
/// try await socket.send(.text("hello"))
/// for try await message in socket {
///     if case .text(let text) = message { show(text) }
/// }
/// ```
///
/// One task reads the messages. The server is not read faster than the task: beyond 64 KiB of unread messages, the connection is paused.
/// Pings of the server are answered until then. The sequence ends when either side has closed the socket, and throws if the connection is
/// lost. Canceling the reading task ends the connection at once. Releasing the iterator or the socket closes it in the background.
///
/// <doc:StreamsAndFiles> shows a conversation, and a store that follows a socket.
public final class WebSocket: AsyncSequence, Sendable {
    /// A message in either direction.
    public enum Message: Hashable, Sendable {
        /// A text, sent as UTF-8.
        case text(String)
        /// Bytes of any kind.
        case data(Data)
    }

    /// The settings of a socket; each has a default.
    public struct Options: Hashable, Sendable {
        /// The subprotocols that the app speaks, the preferred one first; the server chooses one or none.
        public var protocols: [String]
        /// The maximum size of a received message in bytes; a larger one ends the connection.
        public var messageBytes: Int
        /// The time between two pings; at least 10 milliseconds, `nil` for no pings.
        ///
        /// A connection on which nothing arrives for twice this time is lost: ``RemoteError/Code/idleTimedOut``.
        public var pingInterval: Duration?

        /// Creates settings.
        ///
        /// - Parameters:
        ///   - protocols: The subprotocols that the app speaks, the preferred one first.
        ///   - messageBytes: The maximum size of a received message in bytes; 16 MiB by default.
        ///   - pingInterval: The time between two pings; 30 seconds by default.
        public init(protocols: [String] = [], messageBytes: Int = 16 << 20, pingInterval: Duration? = .seconds(30)) {
            self.protocols = protocols
            self.messageBytes = messageBytes
            self.pingInterval = pingInterval
        }
    }

    /// The reason for a close, as a number; the set is open (RFC 6455 §7.4).
    public struct CloseCode: RawRepresentable, Hashable, Sendable {
        /// The number; an app may use 3000 to 4999.
        public let rawValue: UInt16

        /// Creates a code with a number.
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The purpose of the connection is fulfilled.
        public static let normal = CloseCode(rawValue: 1000)
        /// The side that closes goes away, such as a server that stops.
        public static let goingAway = CloseCode(rawValue: 1001)
        /// A message breaks a rule of the app.
        public static let policyViolation = CloseCode(rawValue: 1008)
        /// The server has met an unexpected condition.
        public static let internalError = CloseCode(rawValue: 1011)
    }

    /// The close that the server has sent.
    public struct Closure: Hashable, Sendable {
        /// The code; `nil` if the server has sent none.
        public let code: CloseCode?
        /// The reason in words, for logs.
        public let reason: String
    }

    /// The response that accepted the handshake.
    public let response: RemoteResponse<Void>
    private let connection: SocketConnection

    init(_ response: RemoteResponse<Void>, _ connection: SocketConnection) {
        self.response = response
        self.connection = connection
        Task { await connection.run() }
    }

    deinit { connection.abandon() }

    /// The subprotocol that the server has chosen; `nil` for none.
    public var subprotocol: String? { response.fields["Sec-WebSocket-Protocol"] }

    /// The close that the server has sent; `nil` before that, and if the connection was lost.
    public var closure: Closure? { connection.closure }

    /// Sends a message, and waits until the connection has taken it, or the first part of a long one.
    ///
    /// Messages of several tasks are sent whole, in the order of the calls.
    ///
    /// - Throws: ``RemoteError``, with ``RemoteError/Code/connectionLost`` if the socket is closed. A canceled task sends the whole message
    ///   or nothing of it.
    public func send(_ message: Message) async throws {
        switch message {
        case .text(let text): try await connection.send(.text(text))
        case .data(let data): try await connection.send(.data(data))
        }
    }

    /// Closes the socket, and waits until the server has closed it too, for five seconds at most.
    ///
    /// Messages that arrive meanwhile are dropped.
    ///
    /// - Parameters:
    ///   - code: The reason as a number: 1000 to 1003, 1007 to 1014, or 3000 to 4999.
    ///   - reason: The reason in words, of at most 123 bytes.
    /// - Throws: ``RemoteError``, with ``RemoteError/Code/invalidRoute`` for another code or a longer reason. Canceling the task ends the
    ///   connection at once.
    public func close(code: CloseCode = .normal, reason: String = "") async throws {
        try await connection.close(code.rawValue, reason)
    }

    /// An iterator of the messages; one task at a time may use it.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader

        /// Returns the next message; `nil` after the socket was closed.
        ///
        /// - Throws: ``RemoteError``. Canceling the task ends the connection.
        public mutating func next() async throws -> Message? { try await reader.socket.connection.next() }
    }

    /// Closes the socket when the iterator is released.
    fileprivate final class Reader: Sendable {
        let socket: WebSocket
        init(_ socket: WebSocket) { self.socket = socket }
        deinit { socket.connection.abandon() }
    }

    /// Creates the iterator; only one may read the messages.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reader: Reader(self)) }
}

@available(*, unavailable)
extension WebSocket.AsyncIterator: Sendable {}

extension RemoteHost {
    /// Opens a WebSocket with a GET request (RFC 6455 §4).
    ///
    /// ```swift
    /// let feed = try await api.webSocket(
    ///     for: Route(path: "/feed"),
    ///     options: .init(protocols: ["feed.v2"], messageBytes: 65_536))
    /// ```
    ///
    /// The handshake has the host's fields, credentials, cookies, deadlines, TLS and proxy, and is retried like any other GET. A redirect is
    /// not followed. An open socket counts as a stream: ``HostLimits/concurrentStreams``.
    ///
    /// - Parameters:
    ///   - route: The route, with the method GET and without a body. An https host uses `wss`, an http host `ws`.
    ///   - options: The settings of the socket.
    /// - Returns: The open socket.
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/badStatus`` and the status if the server refuses the handshake, and with
    ///   ``RemoteError/Code/unsupported`` if the transport opens no WebSockets.
    public func webSocket(for route: some Routable, options: WebSocket.Options = WebSocket.Options()) async throws -> WebSocket {
        let interval = options.pingInterval.map { max($0, .milliseconds(10)) }
        let upgrade = SocketUpgrade(
            protocols: options.protocols, messageBytes: options.messageBytes, silence: interval.map { $0 * 2 })
        let call = try RouteCall(route, at: self, .upgrade(upgrade))
        guard call.request.method == .get, case .none = call.request.body else {
            throw call.error(
                .build, .invalidRoute, call.request, "a WebSocket begins with a GET without a body (RFC 6455 §4.1); change the route")
        }
        guard Set(options.protocols).count == options.protocols.count, options.protocols.allSatisfy(\.isToken) else {
            throw call.error(
                .build, .invalidRoute, call.request, "the subprotocols are not distinct tokens (RFC 6455 §4.1); correct the options")
        }
        let response = try await call.run()
        guard let link = upgrade.link else {
            throw call.error(
                .build, .unsupported, call.sentRequest, "this transport opens no WebSockets; use the default transport of the host")
        }
        do throws(TransportFailure) {
            try link.check(response.fields)
        } catch {
            throw call.error(for: error, call.sentRequest)
        }
        return WebSocket(response.map(()), SocketConnection(link, response.value, call, pingInterval: interval))
    }
}
