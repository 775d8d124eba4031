internal import Foundation
internal import RemoteHTTP
public import StoreCore

/// A store's fetcher that follows the messages of WebSockets.
///
/// ```swift
/// let prices = Store(
///     cacher: MemoryCacher<String, Price>(),
///     fetcher: api.socketFetcher(of: Price.self) { ticker in
///         Route(path: "/prices/\(ticker)")
///     },
///     policy: StorePolicy(retry: .exponential(attempts: .max)))
/// ```
///
/// The store connects again as its `StorePolicy.retry` states: after a lost connection, and after any close of the server except the normal
/// one, which ends the stream. Messages are read no faster than the store accepts values.
///
/// <doc:StreamsAndFiles> explains sockets and their connections.
public struct LiveSocketFetcher<Param: Hashable & Sendable, Content: Sendable>: LiveFetcher {
    let host: RemoteHost
    let options: WebSocket.Options
    let route: @Sendable (Param) -> any Routable
    let greeting: @Sendable (Param, Validator?) throws -> [WebSocket.Message]
    let read: @Sendable (WebSocket.Message) throws -> LiveValue<Content>?

    /// Follows the messages of a key's socket in one connection; the greeting receives the validator of the store's version.
    ///
    /// Reading throws ``RemoteError``. Canceling the task ends the connection.
    public func values(param: Param, after last: Validator?) -> Values { Values(fetcher: self, param: param, last: last) }

    /// The values that the fetcher reads from the messages of one socket.
    public struct Values: AsyncSequence, Sendable {
        let fetcher: LiveSocketFetcher
        let param: Param
        let last: Validator?

        /// Creates the iterator, which connects when the first value is requested.
        public func makeAsyncIterator() -> Iterator { Iterator(values: self) }

        /// An iterator, which connects when the first value is requested.
        public struct Iterator: AsyncIteratorProtocol {
            let values: Values
            private var socket: WebSocket?
            private var messages: WebSocket.AsyncIterator?

            init(values: Values) { self.values = values }

            /// Returns the next value; `nil` after the server has closed the socket normally.
            ///
            /// - Throws: ``RemoteError``, and the errors of the functions that greet and read. Canceling the task ends the connection.
            public mutating func next() async throws -> LiveValue<Content>? {
                if messages == nil { try await connect() }
                while let message = try await messages?.next() {
                    if let value = try values.fetcher.read(message) { return value }
                }
                guard let closure = socket?.closure, closure.code != .normal else { return nil }
                let code = closure.code.map { "\($0.rawValue)" } ?? "no code"
                var error = RemoteError(
                    .transport, .connectionLost, operation: "following a WebSocket",
                    "the server closed the socket with \(code); connect again")
                error.mayRepeat = true
                throw error
            }

            private mutating func connect() async throws {
                let fetcher = values.fetcher
                // The store counts failed connections.
                let opened = try await fetcher.host.withoutRetries.webSocket(
                    for: Route(fetcher.route(values.param)), options: fetcher.options)
                for message in try fetcher.greeting(values.param, values.last) { try await opened.send(message) }
                (socket, messages) = (opened, opened.makeAsyncIterator())
            }
        }
    }
}

@available(*, unavailable)
extension LiveSocketFetcher.Values.Iterator: Sendable {}

extension RemoteHost {
    /// Creates a fetcher that follows the WebSocket of each key's route, with the whole content in each message.
    ///
    /// - Parameters:
    ///   - type: The type to decode from each message, as JSON; ``makeDecoder`` makes the decoder.
    ///   - options: The settings of the sockets.
    ///   - route: Returns the route of a key.
    public func socketFetcher<Param: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>(
        of type: Content.Type = Content.self, options: WebSocket.Options = WebSocket.Options(),
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> LiveSocketFetcher<Param, Content> {
        socketFetcher(
            options: options, reading: { try LiveValue<Content>(json: $0.bytes, by: makeDecoder(), of: "message") }, route)
    }

    /// Creates a fetcher that follows the WebSocket of each key's route, and reads each message with a custom function.
    ///
    /// ```swift
    /// let rooms: LiveSocketFetcher<String, [String]> = api.socketFetcher(
    ///     greeting: { room, _ in [.text("join \(room)")] },
    ///     reading: { message in
    ///         guard case .text(let line) = message else { return nil }
    ///         return line == "welcome" ? .content([]) : .change { $0 += [line] }
    ///     }
    /// ) { room in Route(path: "/chat") }
    /// ```
    ///
    /// - Parameters:
    ///   - options: The settings of the sockets.
    ///   - greeting: Returns the first messages to send for a key, and for the validator of the store's version if it has one.
    ///   - read: Reads a message; `nil` skips it. An error ends the connection.
    ///   - route: Returns the route of a key.
    public func socketFetcher<Param: Hashable & Sendable, Content: Sendable>(
        options: WebSocket.Options = WebSocket.Options(),
        greeting: @escaping @Sendable (_ param: Param, _ last: Validator?) throws -> [WebSocket.Message] = { _, _ in [] },
        reading read: @escaping @Sendable (_ message: WebSocket.Message) throws -> LiveValue<Content>?,
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> LiveSocketFetcher<Param, Content> {
        LiveSocketFetcher(host: self, options: options, route: { route($0) }, greeting: greeting, read: read)
    }
}

extension WebSocket.Message {
    fileprivate var bytes: Data {
        switch self {
        case .text(let text): Data(text.utf8)
        case .data(let data): data
        }
    }
}
