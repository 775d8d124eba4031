internal import Foundation
internal import StoreCore

/// The server-sent events of a route, across reconnections.
///
/// ```swift
/// for try await event in api.events(for: Route(path: "/changes")) {
///     apply(event.data)
/// }
/// ```
///
/// When a connection ends or is lost, the sequence reconnects with the last event id (`Last-Event-ID`). It waits for the delay that the
/// server requested, or three seconds. After a connection without events it waits at least one second.
///
/// A response with status 204 ends the sequence. The sequence fails if a response is unsuccessful or has another media type. It also fails
/// after as many consecutive failures without an event as ``RemoteHost/retry`` allows attempts.
struct RemoteEvents: AsyncSequence, Sendable {
    let host: RemoteHost
    let route: any Routable
    let lastEventID: String

    /// An iterator of the events.
    struct AsyncIterator: AsyncIteratorProtocol {
        private let events: RemoteEvents
        private var bytes: RemoteBytes.AsyncIterator?
        private var parser: EventStreamParser
        private var ready: [ServerSentEvent] = []
        private var failures = 0
        private var isFirst = true
        /// The method and the address of the last connection.
        private var operation = ""
        private var hadEvent = true
        /// Whether the sequence has ended or failed.
        private var isOver = false
        /// The delay that the server requested when the last connection failed (`Retry-After`).
        private var requestedDelay: Duration?

        fileprivate init(_ events: RemoteEvents) {
            self.events = events
            parser = EventStreamParser(lastEventID: events.lastEventID)
        }

        /// Returns the next event; `nil` if the server has ended the stream with status 204.
        ///
        /// - Throws: ``RemoteError``. Canceling the task ends the connection.
        mutating func next() async throws -> ServerSentEvent? {
            if isOver { return nil }
            // Until the next event: after the end and after an error there is none.
            isOver = true
            let event = try await following()
            isOver = event == nil
            return event
        }

        private mutating func following() async throws -> ServerSentEvent? {
            while true {
                if let event = ready.popLast() {
                    failures = 0
                    hadEvent = true
                    return event
                }
                do {
                    if bytes == nil, try await !connect() { return nil }
                    if let piece = try await bytes?.nextOfEvents() {
                        ready = try parser.consume(piece).reversed()
                    } else {
                        bytes = nil
                    }
                } catch var error as RemoteError where error.failureKind == .transient {
                    bytes = nil
                    failures += 1
                    operation = error.operation
                    error.attempts = failures
                    requestedDelay = error.retryAfter
                    guard failures < retry.attempts, retry.shouldRetry(error) else { throw error }
                } catch let error as EventStreamParser.TooLarge {
                    bytes = nil
                    throw RemoteError(.decode, .bodyTooLarge, operation: operation, error.description, underlyingError: error)
                }
            }
        }

        private var retry: RetryPolicy { events.host.retry }

        /// Connects, after a delay in the case of a reconnection; returns `false` if the server ended the stream.
        private mutating func connect() async throws -> Bool {
            if !isFirst {
                // Without a minimum, a server with a delay of zero and no events would cause an endless loop of requests.
                let shortest: Duration = hadEvent ? .zero : .seconds(1)
                let wait = Swift.max(parser.reconnectionTime ?? .seconds(3), shortest, requestedDelay ?? .zero)
                let time = events.host.time
                do {
                    try await time.sleep(until: time.now.advanced(by: wait))
                } catch {
                    throw RemoteError(.cancelled, .cancelled, operation: operation, "the task was canceled", underlyingError: error)
                }
            }
            isFirst = false
            hadEvent = false
            requestedDelay = nil
            parser = parser.forNextConnection()
            let body = try await events.connect(lastEventID: parser.lastEventID)
            operation = "GET \(body.response.url.withoutSecrets)"
            guard body.response.status != 204 else { return false }
            bytes = body.makeAsyncIterator()
            return true
        }
    }

    /// Creates an iterator, which connects when the first event is requested.
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Connects once.
    func connect(lastEventID: String) async throws -> RemoteBytes {
        // Only the head has a deadline, because events may be far apart. The iterator counts failed connections.
        var host = host
        host.retry = .never
        host.timeouts.overall = nil
        host.timeouts.idle = nil
        return try await connect(route, at: host, lastEventID: lastEventID)
    }

    private func connect(_ route: some Routable, at host: RemoteHost, lastEventID: String) async throws -> RemoteBytes {
        let plain = try RouteCall(route, at: host, .stream())
        // A reconnection would send an unsafe request again (H7).
        guard plain.request.method == .get else {
            throw plain.error(
                .build, .unsupported, plain.request, "events need a GET route, because each reconnection sends it again; read bytes(for:)")
        }
        let call = try RouteCall(repeating: plain, at: host, .stream()) { fields throws(RouteFault) in
            try fields.set("Accept", MimeType.eventStream.rawValue)
            try fields.set("Cache-Control", "no-store")
            // Trims blanks, because a field value cannot begin or end with them.
            let id = lastEventID.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
            if !id.isEmpty { try fields.set("Last-Event-ID", id) }
        }
        let bytes = try await call.bytes()
        let type = bytes.response.fields["Content-Type"].flatMap { MimeType(rawValue: $0) }
        guard bytes.response.status == 204 || type?.essence == MimeType.eventStream.essence else {
            throw call.error(
                .decode, .unexpectedType, call.request,
                "the response is \(type?.essence ?? "of unknown type") instead of text/event-stream; check the route",
                status: bytes.response.status, fields: bytes.response.fields)
        }
        return bytes
    }
}

extension RemoteBytes.AsyncIterator {
    /// Returns the next piece of a stream of events; a stream that breaks off against its framing or coding counts as lost.
    mutating func nextOfEvents() async throws -> Data? {
        do {
            return try await next()
        } catch var error as RemoteError where error.code == .protocolViolation {
            error.code = .connectionLost
            throw error
        }
    }
}

@available(*, unavailable)
extension RemoteEvents.AsyncIterator: Sendable {}

extension RemoteHost {
    /// Returns the server-sent events of a route, reconnecting when the connection ends (HTML standard §9.2).
    ///
    /// - Parameters:
    ///   - route: The route; a GET, because each reconnection sends it again.
    ///   - lastEventID: The id of the last known event; the stream continues after it.
    /// - Returns: The events, which end when the server responds with 204. Reading throws ``RemoteError``.
    public func events(
        for route: some Routable, after lastEventID: String = ""
    ) -> some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        RemoteEvents(host: self, route: route, lastEventID: lastEventID)
    }
}
