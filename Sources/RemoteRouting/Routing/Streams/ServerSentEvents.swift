public import RemoteHTTP
internal import StoreCore

/// A parser of server-sent events (`text/event-stream`, HTML standard §9.2.6), for any sequence of bytes.
///
/// ```swift
/// var parser = ServerSentEvents()
/// for chunk in chunks {
///     for event in try parser.consume(chunk) { handle(event) }
/// }
/// ```
///
/// Chunks may end anywhere, even inside a character or between CR and LF. At the end of the stream, the parser drops an event without a
/// final empty line, so no call is needed at the end. ``RemoteHost/events(for:after:)`` sends a route and parses its response.
///
/// <doc:StreamsAndFiles> explains events and their connections.
public struct ServerSentEvents: Sendable {
    /// The id for a reconnection (`Last-Event-ID`); empty if the stream contained none.
    public private(set) var lastEventID: String
    /// The delay that the server requested before a reconnection; `nil` if it requested none.
    ///
    /// The server may request any delay, so bound it before waiting.
    public private(set) var reconnectionTime: Duration?
    /// The number of comments so far, which servers send to keep a connection open.
    public private(set) var commentCount = 0

    private let limit: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var type = ""
    private var pendingID: String
    private var isAtStart = true
    private var lastWasCR = false

    /// Creates a parser for the beginning of a stream.
    ///
    /// - Parameters:
    ///   - lastEventID: The id that was sent in the request; empty if none was sent.
    ///   - limit: The maximum number of bytes of an event.
    public init(lastEventID: String = "", limit: Int = 1 << 20) {
        self.lastEventID = lastEventID
        self.limit = limit
        pendingID = lastEventID
    }

    /// Returns a parser for the next connection, with the last id and the reconnection delay but no incomplete event.
    func forNextConnection() -> ServerSentEvents {
        var next = ServerSentEvents(lastEventID: lastEventID, limit: limit)
        next.reconnectionTime = reconnectionTime
        return next
    }

    /// Parses the next bytes.
    ///
    /// - Parameter bytes: Any number of bytes.
    /// - Returns: The events that these bytes complete, in order.
    /// - Throws: ``RemoteError`` with the code ``RemoteError/Code/bodyTooLarge`` for an event over the limit. The parser must not be used
    ///   afterward.
    public mutating func consume(_ bytes: some Sequence<UInt8>) throws(RemoteError) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        try consume(bytes, into: &events)
        return events
    }

    /// Parses the next bytes, and appends the events that they complete, also those before an error.
    mutating func consume(_ bytes: some Sequence<UInt8>, into events: inout [ServerSentEvent]) throws(RemoteError) {
        for byte in bytes {
            let follows = lastWasCR
            lastWasCR = byte == 0x0D
            switch byte {
            case 0x0A where follows: break
            case 0x0A, 0x0D: if let event = endLine() { events.append(event) }
            default:
                line.append(byte)
                guard line.count + data.count <= limit else {
                    throw RemoteError(
                        .decode, .bodyTooLarge, operation: "parsing events",
                        "a server-sent event is larger than \(limit) bytes; make the server send smaller events")
                }
            }
        }
    }

    /// Parses the next bytes for an iterator; returns the events in reverse order, and the error that follows them.
    mutating func parse(_ bytes: some Sequence<UInt8>, of operation: String) -> (reversed: [ServerSentEvent], failure: RemoteError?) {
        var events: [ServerSentEvent] = [], failure: RemoteError?
        do throws(RemoteError) {
            try consume(bytes, into: &events)
        } catch {
            failure = error
            failure?.operation = operation
        }
        return (events.reversed(), failure)
    }

    private mutating func endLine() -> ServerSentEvent? {
        var content = line[...]
        if isAtStart, content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
        isAtStart = false
        defer { line.removeAll(keepingCapacity: true) }
        guard !content.isEmpty else { return dispatch() }
        let colon = content.firstIndex(of: UInt8(ascii: ":"))
        // A line that begins with a colon is a comment.
        if colon == content.startIndex {
            commentCount += 1
            return nil
        }
        var value = colon.map { content[($0 + 1)...] } ?? []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        take(field: content[..<(colon ?? content.endIndex)], value)
        return nil
    }

    private mutating func take(field: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
        switch String(decoding: field, as: UTF8.self) {
        case "event":
            type = String(decoding: value, as: UTF8.self)
        case "data":
            data.append(contentsOf: value)
            data.append(0x0A)
        // The standard ignores an id with NUL. Other control characters cannot be sent back in a field either (RFC 9110 §5.5), and neither can
        // an id that fills the header of a request.
        case "id" where value.count <= 65_536 && !value.contains(where: { $0.isControl && $0 != 0x09 }):
            pendingID = String(decoding: value, as: UTF8.self)
        case "retry":
            if let milliseconds = ServerSentEvents.digits(value) { reconnectionTime = .milliseconds(milliseconds) }
        default:
            break
        }
    }

    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = pendingID
        defer {
            data.removeAll(keepingCapacity: true)
            type = ""
        }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(
            type: type.isEmpty ? "message" : type, data: String(decoding: data.dropLast(), as: UTF8.self), lastEventID: lastEventID)
    }

    private static func digits(_ value: ArraySlice<UInt8>) -> Int64? {
        guard !value.isEmpty, value.allSatisfy(\.isDigit) else { return nil }
        // Caps the delay at a century, even if the number is too large for Int64.
        return min(3_155_760_000_000, Int64(String(decoding: value, as: UTF8.self)) ?? .max)
    }
}

/// An event of a stream, as the HTML standard defines it.
///
/// <doc:StreamsAndFiles> shows how to stream events.
public struct ServerSentEvent: Hashable, Sendable {
    /// The type of the event; `message` if the stream names none.
    public var type: String
    /// The content, with its lines joined by line feeds.
    public var data: String
    /// The last id of the stream; empty if the stream contained none.
    public var lastEventID: String

    /// Creates an event, for tests of code that reads events.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}

extension RemoteBytes {
    /// Returns the server-sent events of this body, without a reconnection at its end.
    ///
    /// ```swift
    /// let body = try await api.bytes(for: completion)
    /// for try await event in body.events() { show(event.data) }
    /// ```
    ///
    /// - Parameter limit: The maximum number of bytes of an event.
    /// - Returns: The events, which can be read once. Reading throws ``RemoteError``, with ``RemoteError/Code/bodyTooLarge`` for an event
    ///   over the limit.
    public func events(limit: Int = 1 << 20) -> some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        BodyParts<ServerSentEvent>(bytes: self) {
            var parser = ServerSentEvents(limit: limit)
            return { piece, events in
                if let piece { try parser.consume(piece, into: &events) }
            }
        }
    }
}
