internal import Foundation
internal import StoreCore

/// The server-sent events of a route, over as many connections as it takes.
///
/// ```swift
/// for try await event in api.events(for: Route(path: "/changes")) { apply(event.data) }
/// ```
///
/// When the connection ends or is lost, it is made again after the time that the server asked for (three seconds where it did not), with
/// the last id it gave (`Last-Event-ID`); after a connection without any event not before a second has passed. The sequence ends with
/// 204, and fails with an answer that is none of success or no event stream, and once connections fail as often in a row as
/// ``RemoteHost/retry`` allows without a single event between them.
struct RemoteEvents: AsyncSequence, Sendable {
    let host: RemoteHost
    let route: any Routable
    let lastEventID: String

    /// Reads the events.
    struct AsyncIterator: AsyncIteratorProtocol {
        private let events: RemoteEvents
        private var bytes: RemoteBytes.AsyncIterator?
        private var parser: EventStreamParser
        private var ready: [ServerSentEvent] = []
        private var failures = 0
        private var isFirst = true
        private var broughtEvent = true
        /// How long the server asked to be left alone when the last connection failed.
        private var wish: Duration?

        fileprivate init(_ events: RemoteEvents) {
            self.events = events
            parser = EventStreamParser(lastEventID: events.lastEventID)
        }

        /// The next event; `nil` once the server has said that there will be none.
        ///
        /// - Throws: ``RemoteError``; cancelling the task ends the connection.
        mutating func next() async throws -> ServerSentEvent? {
            while true {
                if let event = ready.popLast() {
                    failures = 0
                    broughtEvent = true
                    return event
                }
                do {
                    if bytes == nil, try await !connect() { return nil }
                    if let piece = try await bytes?.next() {
                        ready = try parser.consume(piece).reversed()
                    } else {
                        bytes = nil
                    }
                } catch var error as RemoteError where error.failureKind == .transient {
                    bytes = nil
                    failures += 1
                    error.attempts = failures
                    wish = error.retryAfter
                    guard failures < retry.attempts, retry.shouldRetry(error) else { throw error }
                } catch let error as EventStreamParser.TooLarge {
                    bytes = nil
                    throw RemoteError(.decode, .bodyTooLarge, operation: "GET events", error.description, underlyingError: error)
                }
            }
        }

        private var retry: RetryPolicy { events.host.retry }

        /// Connects, after a wait where it is not the first time; returns whether there are events to come.
        private mutating func connect() async throws -> Bool {
            if !isFirst {
                // A server that wants no pause and sends nothing would be asked without end.
                let shortest: Duration = broughtEvent ? .zero : .seconds(1)
                let wait = Swift.max(parser.reconnectionTime ?? .seconds(3), shortest, wish ?? .zero)
                let time = events.host.time
                do {
                    try await time.sleep(until: time.now.advanced(by: wait))
                } catch {
                    throw RemoteError(.cancelled, .cancelled, operation: "GET events", "the task was cancelled", underlyingError: error)
                }
            }
            isFirst = false
            broughtEvent = false
            wish = nil
            parser = parser.forNextConnection()
            let answer = try await events.connect(lastEventID: parser.lastEventID)
            guard answer.response.status != 204 else { return false }
            bytes = answer.makeAsyncIterator()
            return true
        }
    }

    /// Begins to read; the connection is made with the first event that is asked for.
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    private func connect(lastEventID: String) async throws -> RemoteBytes {
        // Events may be far apart: only the head is waited for with a limit. Connections that fail are counted by whoever reads.
        var host = host
        host.retry = .never
        host.timeouts.overall = nil
        host.timeouts.idle = nil
        return try await connect(route, at: host, lastEventID: lastEventID)
    }

    private func connect(_ route: some Routable, at host: RemoteHost, lastEventID: String) async throws -> RemoteBytes {
        let plain = try RouteCall(route, at: host, .stream())
        let call = try RouteCall(repeating: plain, at: host, .stream()) { fields throws(RouteFault) in
            try fields.set("Accept", MimeType.eventStream.rawValue)
            try fields.set("Cache-Control", "no-store")
            // Blanks at the ends do not survive the way in a field's value, so leaving them out loses nothing.
            let id = lastEventID.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
            if !id.isEmpty { try fields.set("Last-Event-ID", id) }
        }
        let bytes = try await call.bytes()
        let type = bytes.response.fields["Content-Type"].flatMap { MimeType(rawValue: $0) }
        guard bytes.response.status == 204 || type?.essence == MimeType.eventStream.essence else {
            throw call.error(
                .decode, .unexpectedType, call.request, "the answer is \(type?.essence ?? "of no known type") and no event stream",
                status: bytes.response.status, fields: bytes.response.fields)
        }
        return bytes
    }
}

@available(*, unavailable)
extension RemoteEvents.AsyncIterator: Sendable {}

extension RemoteHost {
    /// The server-sent events of a route (HTML standard §9.2).
    ///
    /// - Parameters:
    ///   - route: The route; a GET.
    ///   - lastEventID: The id of the last event that was seen, to go on behind it.
    public func events(
        for route: some Routable, after lastEventID: String = ""
    ) -> some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        RemoteEvents(host: self, route: route, lastEventID: lastEventID)
    }
}
