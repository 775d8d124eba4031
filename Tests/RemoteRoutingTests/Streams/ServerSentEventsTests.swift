import Foundation
import Testing

@testable import RemoteRouting

/// The parser of server-sent events, without a connection.
struct ServerSentEventsTests {
    private typealias Event = ServerSentEvent

    /// Parses a stream in chunks of a size, which must not affect the events.
    private func events(_ text: String, chunk: Int) throws -> [ServerSentEvent] {
        var parser = ServerSentEvents()
        let bytes = Array(text.utf8)
        return try stride(from: 0, to: bytes.count, by: chunk).flatMap { try parser.consume(bytes[$0..<min($0 + chunk, bytes.count)]) }
    }

    @Test func `L8: comments are counted, so that a stream without events shows that it is alive`() throws {
        var parser = ServerSentEvents()
        for expected in 1...3 {
            #expect(try parser.consume(Array(": alive\n".utf8)[...]).isEmpty)
            #expect(parser.commentCount == expected)
        }
    }

    private static let cases: [(String, [ServerSentEvent])] = [
        ("data: a\n\n", [Event(data: "a")]),
        ("data:a\r\ndata: b\r\n\r\n", [Event(data: "a\nb")]),
        ("data:a\rdata:b\r\r", [Event(data: "a\nb")]),
        ("data: a\r\n\ndata: b\n\r\n", [Event(data: "a"), Event(data: "b")]),
        ("\u{FEFF}data: a\n\n", [Event(data: "a")]),
        ("\u{FEFF}\u{FEFF}data: a\n\n", []),
        ("\n\u{FEFF}data: a\n\n", []),
        ("data:  a\n\n", [Event(data: " a")]),
        ("data\n\n", [Event(data: "")]),
        ("data\ndata\n\n", [Event(data: "\n")]),
        ("data:\n\n", [Event(data: "")]),
        (": comment\ndata: a\n:\n\n", [Event(data: "a")]),
        ("event: add\ndata: 1\n\ndata: 2\n\n", [Event(type: "add", data: "1"), Event(data: "2")]),
        ("event: add\n\ndata: 2\n\n", [Event(data: "2")]),
        ("event:\ndata: 1\n\n", [Event(data: "1")]),
        (
            "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
            [Event(data: "a", lastEventID: "7"), Event(data: "b", lastEventID: "7"), Event(data: "c")]
        ),
        ("id: 7\n\ndata: a\n\n", [Event(data: "a", lastEventID: "7")]),
        ("id: 7\ndata: a\n\nid: 8\u{0}\ndata: b\n\n", [Event(data: "a", lastEventID: "7"), Event(data: "b", lastEventID: "7")]),
        (
            "id: 7\ndata: a\n\nid: 8\u{1}\ndata: b\n\nid: 9\t9\ndata: c\n\n",
            [Event(data: "a", lastEventID: "7"), Event(data: "b", lastEventID: "7"), Event(data: "c", lastEventID: "9\t9")]
        ),
        ("data: a", []), ("data: a\n", []), ("data: a\nid: 3\n", []),
        ("Data: a\n\n", []), (" data: a\n\n", []), ("data : a\n\n", []), ("unknown: x\ndata: a\n\n", [Event(data: "a")]),
        ("data: a:b: c\n\n", [Event(data: "a:b: c")]), ("data: äöü👍\n\n", [Event(data: "äöü👍")]), ("", []), ("\n\n\n", []),
    ]

    @Test(arguments: cases.indices, [1, 2, 3, 5, 1000])
    func `H20: a stream yields the same events for every chunk size`(index: Int, chunk: Int) throws {
        let (text, expected) = ServerSentEventsTests.cases[index]
        #expect(try events(text, chunk: chunk) == expected)
    }

    @Test(arguments: [
        ("retry: 1500\n", Duration.milliseconds(1500)), ("retry:0\n", .zero), ("retry: 1.5\n", nil), ("retry: -1\n", nil),
        ("retry:\n", nil),
        ("retry: 99999999999999999999\n", .milliseconds(3_155_760_000_000)), ("retry: 10\nretry: x\n", .milliseconds(10)),
    ])
    func `H20: a reconnection time with characters other than digits is ignored`(text: String, expected: Duration?) throws {
        var parser = ServerSentEvents()
        _ = try parser.consume(text.utf8)
        #expect(parser.reconnectionTime == expected)
    }

    @Test func `L8: the id for a reconnection is that of the last complete event`() throws {
        var parser = ServerSentEvents(lastEventID: "5")
        #expect(parser.lastEventID == "5")
        _ = try parser.consume("id: 6\ndata: x\n".utf8)
        #expect(parser.lastEventID == "5")
        #expect(try parser.consume("\n".utf8) == [Event(data: "x", lastEventID: "6")])
        #expect(parser.lastEventID == "6")
    }

    @Test func `H20: the parser reads any sequence of bytes`() throws {
        var parser = ServerSentEvents()
        let text = "data: a\n\ndata: b\n\n"
        #expect(try parser.consume(text.utf8.lazy.map { $0 }).map(\.data) == ["a", "b"])
        #expect(try parser.consume(Data(text.utf8)).map(\.data) == ["a", "b"])
        #expect(try parser.consume(AnySequence(text.utf8)).map(\.data) == ["a", "b"])
    }

    @Test func `H20: invalid UTF-8 is replaced`() throws {
        var parser = ServerSentEvents()
        #expect(try parser.consume(Array("data: ".utf8) + [0xFF, 0x0A, 0x0A]) == [Event(data: "\u{FFFD}")])
    }

    @Test(arguments: ["data: 0123456789", "data: 01234\ndata: 56789", ": 012345678901234567890"])
    func `H8: an event over the limit throws`(text: String) {
        var parser = ServerSentEvents(limit: 12)
        let error = #expect(throws: RemoteError.self) { try parser.consume(text.utf8) }
        #expect(error?.code == .bodyTooLarge)
    }

    @Test func `H8: the limit applies to each event`() throws {
        var parser = ServerSentEvents(limit: 12)
        let count = try (0..<100).reduce(0) { count, _ in try count + parser.consume("data: 012\n\n".utf8).count }
        #expect(count == 100)
    }
}
