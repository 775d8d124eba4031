internal import Foundation
internal import RemoteHTTP
internal import StoreCore

/// The server-sent events of a route, across reconnections.
///
/// The sequence reconnects where repeating the request is safe (H7). The delay grows with each connection without an event as in
/// ``RemoteHost/retry``; the policy's number of attempts does not apply. It is at least the delay that the server requested, within the
/// policy's limit, or three seconds. After a connection without events, it is at least one second.
///
/// A response with status 204 ends the sequence. The sequence fails if a response has another status or another media type, except for the
/// transient statuses of H7.
struct RemoteEvents: AsyncSequence, Sendable {
    let host: RemoteHost
    let route: any Routable
    let lastEventID: String

    struct AsyncIterator: AsyncIteratorProtocol {
        private let events: RemoteEvents
        private var bytes: RemoteBytes.AsyncIterator?
        private var parser: ServerSentEvents
        private var ready: [ServerSentEvent] = []
        /// The error of the parser, which follows the events before it.
        private var failure: RemoteError?
        /// The number of consecutive connections without an event, including the present one if it has ended.
        private var failures = 0
        private var reconnects = true
        private var operation = ""
        private var hadEvent = true
        private var isOver = false
        /// The delay that the server requested when the last connection failed (`Retry-After`).
        private var requestedDelay: Duration?

        fileprivate init(_ events: RemoteEvents) {
            self.events = events.withOneKey
            parser = ServerSentEvents(lastEventID: events.lastEventID)
        }

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
                if let failure { throw failure }
                do {
                    if bytes == nil, try await !connect() { return nil }
                    if let piece = try await bytes?.nextOfEvents() {
                        (ready, failure) = parser.parse(piece, of: operation)
                    } else {
                        guard reconnects else { return nil }
                        bytes = nil
                        failures += 1
                    }
                } catch var error as RemoteError where error.failureKind == .transient {
                    bytes = nil
                    failures += 1
                    operation = error.operation
                    requestedDelay = error.retryAfter
                    guard events.host.retry.shouldRetry(error) else {
                        error.attempts = failures
                        throw error
                    }
                }
            }
        }

        private var delay: Duration {
            let retry = events.host.retry
            // Without a minimum, a server with a delay of zero and no events would cause an endless loop of requests.
            let shortest: Duration = parser.reconnectionTime == nil ? .seconds(3) : hadEvent ? .zero : .seconds(1)
            return RetryPolicy.delay(
                own: Swift.max(shortest, retry.backOff(attempt: failures, unit: events.host.random())),
                advised: Swift.max(parser.reconnectionTime ?? .zero, requestedDelay ?? .zero), limit: retry.adviceLimit)
        }

        /// Connects, after a delay in the case of a reconnection; returns `false` if the server ended the stream.
        private mutating func connect() async throws -> Bool {
            if failures > 0 {
                let time = events.host.time
                do {
                    try await time.sleep(until: time.now.advanced(by: delay))
                } catch {
                    throw RemoteError(.cancelled, .cancelled, operation: operation, "the task was canceled", underlyingError: error)
                }
            }
            hadEvent = false
            requestedDelay = nil
            parser = parser.forNextConnection()
            let connection = try await events.connect(lastEventID: parser.lastEventID)
            operation = connection.operation
            reconnects = connection.mayRepeat
            guard connection.bytes.response.status != 204 else { return false }
            bytes = connection.bytes.makeAsyncIterator()
            return true
        }
    }

    struct Connection {
        let bytes: RemoteBytes
        let operation: String
        let mayRepeat: Bool

        /// The notes on the fields that selected the response, without the id, which each connection has anew; `nil` without such fields.
        var notes: String? {
            var exchange = bytes.response.exchange
            exchange.request.remove("Last-Event-ID")
            exchange.redirectedFields?.remove("Last-Event-ID")
            return Validator(nil, notesOf: exchange)?.notes
        }
    }

    /// The same events with one idempotency key for all connections, because they repeat one request.
    private var withOneKey: RemoteEvents {
        var fixed = Route(route)
        guard fixed.options.idempotencyKey == .unique else { return self }
        fixed.options.idempotencyKey = .key(UUID().uuidString)
        return RemoteEvents(host: host, route: fixed, lastEventID: lastEventID)
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Connects once, without retries and without deadlines after the head.
    func connect(lastEventID: String) async throws -> Connection {
        // Only the head has a deadline, because events may be far apart. The iterator counts failed connections.
        let call = try call(lastEventID: lastEventID)
        let bytes = try await call.bytes()
        let response = bytes.response
        let operation = "\(call.request.method.rawValue) \(response.url.withoutSecrets)"
        // The standard knows no other status of a stream, and a part is not the stream.
        guard response.status == 200 || response.status == 204 else {
            throw call.error(
                .status, .badStatus, call.request, "the status is \(response.status) instead of 200; check the route",
                status: response.status,
                fields: response.fields)
        }
        let type = response.fields["Content-Type"].flatMap { MimeType(rawValue: $0) }
        guard response.status == 204 || type?.essence == MimeType.eventStream.essence else {
            throw call.error(
                .decode, .unexpectedType, call.request,
                "the response is \(type?.essence ?? "of unknown type") instead of text/event-stream; check the route",
                status: response.status, fields: response.fields)
        }
        return Connection(bytes: bytes, operation: operation, mayRepeat: call.mayRepeat)
    }

    func call(lastEventID: String) throws(RemoteError) -> RouteCall {
        try RouteCall(repeating: RouteCall(route, at: host, .stream()), lasts: true) { fields throws(RouteFault) in
            try fields.set("Accept", MimeType.eventStream.rawValue)
            try fields.set("Cache-Control", "no-store")
            // Trims blanks, because a field value cannot begin or end with them.
            let id = lastEventID.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
            if !id.isEmpty { try fields.set("Last-Event-ID", id) }
        }
    }
}

extension RemoteBytes.AsyncIterator {
    /// Returns the next piece of a stream of events; a stream that breaks off against its framing or coding counts as lost.
    mutating func nextOfEvents() async throws -> Data? {
        do {
            return try await base.next()
        } catch var failure as TransportFailure where failure.code == .protocolViolation {
            // Before the error is made, because the host's rules for retries depend on the code.
            failure.code = .connectionLost
            throw explain(failure)
        } catch {
            throw explain(error)
        }
    }
}

extension RemoteHost {
    /// Returns the server-sent events of a route, reconnecting where repeating the request is safe (HTML standard §9.2).
    ///
    /// ```swift
    /// for try await event in api.events(for: completion) {
    ///     show(event.data)
    /// }
    /// ```
    ///
    /// An idempotent request, or one with ``RouteOptions/idempotencyKey``, reconnects until the task is canceled, with the delays of
    /// ``retry``. Any other request is sent once, and the sequence ends with its response.
    ///
    /// - Parameters:
    ///   - route: The route, of any method and with any body.
    ///   - lastEventID: The id of the last known event; the stream continues after it.
    /// - Returns: The events, which end when the server responds with 204. Reading throws ``RemoteError``.
    public func events(
        for route: some Routable, after lastEventID: String = ""
    ) -> some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        RemoteEvents(host: self, route: route, lastEventID: lastEventID)
    }
}
