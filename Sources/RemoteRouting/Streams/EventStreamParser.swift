/// Turns the bytes of a `text/event-stream` into events, as the HTML standard §9.2.6 has it.
///
/// ```swift
/// var parser = EventStreamParser()
/// for chunk in chunks {
///     for event in try parser.consume(chunk) { handle(event) }
/// }
/// ```
///
/// Chunks may end anywhere, also inside a letter or between CR and LF. An event that is not followed by an empty line when the stream
/// ends is dropped, so nothing has to be called at the end.
package struct EventStreamParser: Sendable {
    /// An event, or one of its lines, is larger than the parser was told to hold.
    package struct TooLarge: Error, Hashable, Sendable, CustomStringConvertible {
        /// The bound, in bytes.
        package let limit: Int

        /// What was too large and what to do.
        package var description: String {
            "a server-sent event is larger than \(limit) bytes; raise the limit if the server is to be trusted"
        }
    }

    /// The id to reconnect with (`Last-Event-ID`); empty where the stream has given none.
    package private(set) var lastEventID: String
    /// How long the server wants to be left alone before a reconnection; `nil` where it did not say.
    package private(set) var reconnectionTime: Duration?

    private let limit: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var type = ""
    private var pendingID: String
    private var isAtStart = true
    private var lastWasCR = false

    /// Makes a parser at the beginning of a stream.
    ///
    /// - Parameters:
    ///   - lastEventID: The id with which the stream was asked for.
    ///   - limit: How many bytes one event may have.
    package init(lastEventID: String = "", limit: Int = 1 << 20) {
        self.lastEventID = lastEventID
        self.limit = limit
        pendingID = lastEventID
    }

    /// A parser for the next connection: it has the id and the time that the server gave, and nothing of a broken event.
    func forNextConnection() -> EventStreamParser {
        var next = EventStreamParser(lastEventID: lastEventID, limit: limit)
        next.reconnectionTime = reconnectionTime
        return next
    }

    /// Takes the next bytes.
    ///
    /// - Parameter bytes: The bytes, of any number.
    /// - Returns: The events that are complete with them, in order.
    /// - Throws: ``TooLarge``; the parser is of no further use then.
    package mutating func consume(_ bytes: some Sequence<UInt8>) throws(TooLarge) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            let follows = lastWasCR
            lastWasCR = byte == 0x0D
            switch byte {
            case 0x0A where follows: break
            case 0x0A, 0x0D: if let event = endLine() { events.append(event) }
            default:
                line.append(byte)
                guard line.count + data.count <= limit else { throw TooLarge(limit: limit) }
            }
        }
        return events
    }

    private mutating func endLine() -> ServerSentEvent? {
        var content = line[...]
        if isAtStart, content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
        isAtStart = false
        defer { line.removeAll(keepingCapacity: true) }
        guard !content.isEmpty else { return dispatch() }
        let colon = content.firstIndex(of: UInt8(ascii: ":"))
        // A line that begins with a colon is a comment.
        if colon == content.startIndex { return nil }
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
        case "id" where !value.contains(0):
            pendingID = String(decoding: value, as: UTF8.self)
        case "retry":
            if let milliseconds = EventStreamParser.digits(value) { reconnectionTime = .milliseconds(milliseconds) }
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
        // A number that does not fit is as good as never; a century of milliseconds still does.
        return min(3_155_760_000_000, Int64(String(decoding: value, as: UTF8.self)) ?? .max)
    }
}

/// An event of a stream of server-sent events.
public struct ServerSentEvent: Hashable, Sendable {
    /// What kind of event this is; `message` where the stream does not say.
    public var type: String
    /// The content, with its lines joined by line feeds.
    public var data: String
    /// The last id that the stream has given; empty where there was none.
    public var lastEventID: String

    /// Makes an event.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}
