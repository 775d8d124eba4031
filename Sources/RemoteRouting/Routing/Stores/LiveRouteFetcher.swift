internal import Foundation
internal import RemoteHTTP
public import StoreCore

/// A store's fetcher that follows the server-sent events of routes (HTML standard §9.2).
///
/// ```swift
/// let prices = Store(
///     cacher: MemoryCacher<String, Price>(),
///     fetcher: api.liveFetcher(of: Price.self) { ticker in
///         Route(path: "/prices/\(ticker)")
///     },
///     policy: StorePolicy(
///         retry: .exponential(attempts: .max), idleTimeout: .seconds(60)))
/// ```
///
/// The id of the last event is the validator of the store's content, and is sent with the next connection (`Last-Event-ID`). The store
/// connects again as its `StorePolicy.retry` states, not earlier than the server asks by `retry` or `Retry-After`, within the policy's
/// limit. A comment from the server keeps the connection alive. A response of 204 ends the stream, and so does the end of a response whose
/// request must not be repeated, such as a POST without an idempotency key. The key ``RouteOptions/IdempotencyKey/unique`` does not count,
/// because each connection has another one. Saved content with an id is a miss if the request now has another value of a field that `Vary`
/// names.
///
/// <doc:StreamsAndFiles> explains events and their connections.
public struct LiveRouteFetcher<Param: Hashable & Sendable, Content: Sendable>: LiveFetcher {
    let host: RemoteHost
    let route: @Sendable (Param) -> any Routable
    let read: @Sendable (ServerSentEvent) throws -> LiveValue<Content>?

    /// Follows the events of a key's route in one connection, after the event with the id in `Validator.entityTag`.
    ///
    /// Reading throws ``RemoteError``. Canceling the task ends the connection.
    public func values(param: Param, after last: Validator?) -> Values {
        Values(
            events: RemoteEvents(host: host, route: route(param), lastEventID: last?.entityTag ?? ""), read: read,
            confirms: last.map { $0.entityTag != nil } ?? true)
    }

    /// Returns whether the request of a key has the values of all fields that selected a saved version (RFC 9111 §4.1).
    ///
    /// - Parameters:
    ///   - validator: The validator of the saved version.
    ///   - param: The key.
    public func accepts(_ validator: Validator, param: Param) async -> Bool {
        await validator.fits { try RemoteEvents(host: host, route: route(param), lastEventID: "").call(lastEventID: "") }
    }

    /// The values that the fetcher reads from the events of one stream.
    public struct Values: AsyncSequence, Sendable {
        let events: RemoteEvents
        let read: @Sendable (ServerSentEvent) throws -> LiveValue<Content>?
        /// Whether a connection confirms the store's version; one without an id has to be sent again.
        let confirms: Bool

        /// Creates the iterator, which connects when the first value is requested.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }

        /// An iterator, which connects when the first value is requested.
        public struct Iterator: AsyncIteratorProtocol {
            private let values: Values
            private var bytes: RemoteBytes.AsyncIterator?
            private var parser: ServerSentEvents
            private var ready: [ServerSentEvent] = []
            /// The error of the parser, which follows the events before it.
            private var failure: RemoteError?
            private var commentsSeen = 0
            private var isOver = false
            private var confirms: Bool
            private var notes: String?
            private var operation = ""
            private var reconnects = true
            /// Whether each connection has another idempotency key, so that the next one would not repeat the same request.
            private let isSentOnce: Bool

            init(_ values: Values) {
                self.values = values
                confirms = values.confirms
                parser = ServerSentEvents(lastEventID: values.events.lastEventID)
                let route = Route(values.events.route)
                isSentOnce = route.options.idempotencyKey == .unique && !route.method.isIdempotent
            }

            /// Returns the next value; `nil` after the server has ended the stream with 204, or has closed the only connection of a request
            /// that is sent once.
            ///
            /// - Throws: ``RemoteError``. Canceling the task ends the connection.
            public mutating func next() async throws -> LiveValue<Content>? {
                do {
                    return try await following()
                } catch let error where (isSentOnce || !reconnects) && !(error is CancellationError) {
                    let message = "reading an event failed with \(type(of: error)); see the underlying error"
                    let undecodable = RemoteError(.decode, .undecodable, operation: operation, message, underlyingError: error)
                    var failure = error as? RemoteError ?? undecodable
                    // Otherwise, the store would connect again.
                    failure.mayRepeat = false
                    throw failure
                }
            }

            private mutating func following() async throws -> LiveValue<Content>? {
                while !isOver {
                    while let event = ready.popLast() {
                        guard let value = try values.value(of: event, notes) else { continue }
                        confirms = true
                        return value
                    }
                    if parser.commentCount > commentsSeen {
                        commentsSeen = parser.commentCount
                        if confirms { return .current }
                    }
                    if let failure { throw failure }
                    guard bytes != nil else {
                        try await connect()
                        // The server continues after the id that was sent.
                        if confirms { return .current }
                        continue
                    }
                    guard let piece = try await nextPiece() else {
                        guard reconnects else { break }
                        throw lost
                    }
                    (ready, failure) = parser.parse(piece, of: operation)
                }
                isOver = true
                return nil
            }

            private mutating func connect() async throws {
                let connection = try await values.events.connect(lastEventID: parser.lastEventID)
                bytes = connection.bytes.makeAsyncIterator()
                operation = connection.operation
                notes = connection.notes
                reconnects = connection.mayRepeat && !isSentOnce
                isOver = connection.bytes.response.status == 204
            }

            private mutating func nextPiece() async throws -> Data? {
                do {
                    return try await bytes?.nextOfEvents()
                } catch var error as RemoteError where error.failureKind == .transient {
                    error.retryAfter = error.retryAfter ?? parser.reconnectionTime
                    throw error
                }
            }

            /// The error of a connection that the server has closed. Servers close connections as a matter of course, so it is transient.
            private var lost: RemoteError {
                var error = RemoteError(.transport, .connectionLost, operation: operation, "the server closed the stream; connect again")
                error.mayRepeat = true
                error.retryAfter = parser.reconnectionTime
                return error
            }
        }

        /// Reads an event, and gives its value the event's id and the notes of the connection.
        private func value(of event: ServerSentEvent, _ notes: String?) throws -> LiveValue<Content>? {
            func version(_ own: Validator?) -> Validator? {
                var validator = own ?? (event.lastEventID.isEmpty ? nil : Validator(entityTag: event.lastEventID))
                if validator?.notes == nil { validator?.notes = notes }
                return validator
            }
            switch try read(event) {
            case .content(let content, let validator): return .content(content, version(validator))
            case .change(let change, let validator): return .change(change, version(validator))
            case .current: return .current
            case nil: return nil
            }
        }
    }
}

@available(*, unavailable)
extension LiveRouteFetcher.Values.Iterator: Sendable {}

extension LiveValue where Content: Decodable {
    init(json: Data, by decoder: JSONDecoder, of part: String) throws {
        do {
            self = .content(try decoder.decode(Content.self, from: json))
        } catch {
            throw RemoteError(
                .decode, .undecodable, operation: "reading \(part)s",
                "the data of the \(part) is not a \(Content.self); compare the type with the data", underlyingError: error)
        }
    }
}

extension RemoteHost {
    /// Creates a fetcher that follows the server-sent events of each key's route, with the whole content in each event.
    ///
    /// ```swift
    /// let fetcher = api.liveFetcher(of: Price.self) { (ticker: String) in
    ///     Route(path: "/prices/\(ticker)")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type to decode from the data of each event, as JSON; ``makeDecoder`` makes the decoder.
    ///   - route: Returns the route of a key. A request that must not be repeated (H7) is sent once for each observation.
    public func liveFetcher<Param: Hashable & Sendable, Content: Decodable & Sendable & SendableMetatype>(
        of type: Content.Type = Content.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> LiveRouteFetcher<Param, Content> {
        liveFetcher(reading: { try LiveValue<Content>(json: Data($0.data.utf8), by: makeDecoder(), of: "event") }, route)
    }

    /// Creates a fetcher that follows the server-sent events of each key's route, and reads each event with a custom function.
    ///
    /// ```swift
    /// let answers = api.liveFetcher(reading: { event in
    ///     event.type == "token" ? .change { $0 += event.data } : .content("")
    /// }) { (question: Question.ID) in Route(path: "/answers/\(question)") }
    /// ```
    ///
    /// - Parameters:
    ///   - read: Reads an event; `nil` skips it. A value without a validator gets the id of its event. An error ends the connection. If the
    ///     request is sent once, callers receive the error as the underlying error of ``RemoteError/Code/undecodable``.
    ///   - route: Returns the route of a key. A request that must not be repeated (H7) is sent once for each observation.
    public func liveFetcher<Param: Hashable & Sendable, Content: Sendable>(
        reading read: @escaping @Sendable (_ event: ServerSentEvent) throws -> LiveValue<Content>?,
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> LiveRouteFetcher<Param, Content> {
        LiveRouteFetcher(host: self, route: { route($0) }, read: read)
    }
}
