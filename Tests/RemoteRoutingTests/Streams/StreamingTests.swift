import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct StreamingTests {
    @Test(arguments: TransportKind.allCases)
    func `a body that is read in chunks is complete`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("0123456789").misbehaving(.drip(bytes: 3, every: .milliseconds(2))) }
        let bytes = try await bench.host().bytes(for: Route(path: "/x"))
        #expect(bytes.length == (kind.isReal ? 10 : nil))
        #expect(try await bytes.whole() == Data("0123456789".utf8))
        #expect(try await bench.host().data(for: Route(path: "/x")) == Data("0123456789".utf8))
    }

    @Test(arguments: TransportKind.allCases)
    func `H8, H13: a body holds its permit while it arrives, and releasing it ends the exchange`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 4)) }
        bench.on("GET", "/y") { _ in .text("y") }
        let host = bench.host { $0.limits.concurrentStreams = 1 }
        var pieces: RemoteBytes.AsyncIterator? = try await host.bytes(for: Route(path: "/x")).makeAsyncIterator()
        #expect(try await pieces?.next() == Data("0123".utf8))
        let second = Task { try await host.bytes(for: Route(path: "/y")).whole() }
        try await until("the second request waits, or is sent") { host.streamGate.waiterCount == 1 || bench.asked.count == 2 }
        #expect(bench.asked.count == 1)
        withExtendedLifetime(pieces) {}
        pieces = nil
        #expect(try await second.value == Data("y".utf8))
        if kind.isReal { try await bench.origin.waitUntil { $0.requests.first?.ending == .clientLeft } }
    }

    @Test(arguments: TransportKind.allCases)
    func `H8: a slow reader receives every byte in order, from memory and disk`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let content = Data(pseudorandomBytes(600_000, seed: 1))
        bench.on("GET", "/x") { _ in .data(content).misbehaving(.drip(bytes: 200_000, every: .milliseconds(1))) }
        let bytes = try await bench.host { $0.limits.memoryBytes = 100_000 }.bytes(for: Route(path: "/x"))
        var whole = Data()
        for try await piece in bytes {
            whole.append(piece)
            await Task.yield()
        }
        #expect(whole == content)
    }

    @Test(arguments: TransportKind.allCases)
    func `H8: a streamed body has the given limit`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .data(Data(count: 100_000)) }
        let error = try await remoteError { for try await _ in try await bench.host().bytes(for: Route(path: "/x"), limit: 50_000) {} }
        #expect(error.code == .bodyTooLarge)
    }

    @Test(arguments: TransportKind.allCases)
    func `W7: a truncated stream fails after its last byte`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("0123456789").misbehaving(.truncate(afterBodyBytes: 4)) }
        let seen = WatchedState(Data())
        let error = try await remoteError {
            for try await piece in try await bench.host().bytes(for: Route(path: "/x")) { seen.update { $0 += piece } }
        }
        #expect(error.code == .connectionLost && seen.current == Data("0123".utf8), "\(error)")
    }

    @Test(arguments: TransportKind.allCases)
    func `the error of a stream keeps the response body`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .problem(422, "No", detail: "because") }
        let error = try await remoteError { _ = try await bench.host().bytes(for: Route(path: "/x")) }
        #expect(error.status == 422 && error.problem?.detail == "because", "\(error)")
    }

    @Test(arguments: [
        ("a\nb\r\nc\rd", ["a", "b", "c", "d"]), ("", []), ("\n\n", ["", ""]), ("a\r\n", ["a"]), ("ä€\n", ["ä€"]), ("\r\r\n", ["", ""]),
    ])
    func `lines are split regardless of the chunks`(_ text: String, _ expected: [String]) {
        let bytes = Data(text.utf8)
        for size in 1...max(1, bytes.count) {
            var splitter = LineSplitter(limit: 100)
            var lines: [String] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                lines += splitter.take(Data(bytes.dropFirst(start).prefix(size)))
            }
            if let last = splitter.finish() { lines.append(last) }
            #expect(lines == expected)
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H8: lines are received over the wire and have a limit`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("GET", "/x") { _ in .text("one\ntwo\r\nthree, which is long").misbehaving(.drip(bytes: 4, every: .milliseconds(1))) }
        var lines: [String] = []
        for try await line in try await bench.host().bytes(for: Route(path: "/x")).lines() { lines.append(line) }
        #expect(lines == ["one", "two", "three, which is long"])
        var short = try await bench.host().bytes(for: Route(path: "/x")).lines(limit: 10).makeAsyncIterator()
        var code: RemoteError.Code?
        do { while try await short.next() != nil {} } catch let error as RemoteError { code = error.code }
        #expect(code == .bodyTooLarge)
        // Not the beginning of the long line.
        #expect(try await short.next() == nil)
    }

    @Test(arguments: TransportKind.allCases)
    func `H20: events are read over several connections, after closed and lost ones`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let first = "retry: 7000\n\nid: 1\ndata: a\n\nid: 2\ndata: b\n\ndata: half"
        let lost = Bench.Response.events("id: 3\ndata: c\n\ndata: d").misbehaving(.truncate(afterBodyBytes: 18))
        bench.on("GET", "/x", inTurn: .events(first), lost, .events("data: e\n\n"), .status(204))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }
        let task = Task { try await host.events(for: Route(path: "/x")).texts() }
        for _ in 1...3 { try await time.advance(overSleepOf: .seconds(7)) }
        #expect(try await task.value == ["a", "b", "c", "e"])
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, "2", "3", "3"])
        #expect(bench.asked.allSatisfy { $0["Accept"] == "text/event-stream" })
    }

    @Test(arguments: TransportKind.allCases)
    func `H20: an unexpected media type and an unsuccessful status fail a stream of events`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/html") { _ in .html("login") }
        bench.on("GET", "/gone") { _ in .status(410) }
        #expect(try await remoteError { for try await _ in bench.host().events(for: Route(path: "/html")) {} }.code == .unexpectedType)
        #expect(try await remoteError { for try await _ in bench.host().events(for: Route(path: "/gone")) {} }.status == 410)
    }

    @Test(arguments: RealTransport.available)
    func `H11: an upload reports its progress`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "POST", "/x") { asked in .json([asked.body.count]) }
        let seen = WatchedState<[TransferProgress]>([])
        let route = Route(path: "/x", method: .post, body: .data(Data(count: 3_000_000)))
        let counts: [Int] = try await bench.host().upload(route) { progress in seen.update { $0.append(progress) } }
        #expect(counts == [3_000_000])
        #expect(seen.current.last == TransferProgress(bytes: 3_000_000, total: 3_000_000))
        #expect(seen.current.map(\.bytes) == seen.current.map(\.bytes).sorted() && seen.current.count > 1)
    }

    @Test(
        arguments: [(0, nil, nil), (7, nil, nil), (0, 4, 0), (1, 4, 0.25), (4, 4, 1), (5, 4, 1), (0, 0, 1)] as [(Int64, Int64?, Double?)])
    func `H11: a fraction is between 0 and 1, and unknown without a total`(_ bytes: Int64, _ total: Int64?, _ fraction: Double?) {
        #expect(TransferProgress(bytes: bytes, total: total).fraction == fraction)
    }

    @Test func `H6: a long upload does not time out while it progresses`() async throws {
        let limits = ExchangeLimits(head: .seconds(10), time: ManualTime())
        let exchange = Exchange(limits: limits)
        let time = try #require(limits.time as? ManualTime)
        let task = Task { try await exchange.response().status }
        try await time.sleepers(atLeast: 1)
        for sent in 1...5 {
            time.advance(by: .seconds(9))
            exchange.sent(Int64(sent), of: 5)
            try await time.sleepers(atLeast: 1)
        }
        exchange.receive(HTTPResponse(status: 204, url: URL(filePath: "/")))
        exchange.finish()
        #expect(try await task.value == 204)
    }
}

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
        ("data: a\n\n", [Event(data: "a")]), ("data:a\r\ndata: b\r\n\r\n", [Event(data: "a\nb")]),
        ("data:a\rdata:b\r\r", [Event(data: "a\nb")]), ("data: a\r\n\ndata: b\n\r\n", [Event(data: "a"), Event(data: "b")]),
        ("\u{FEFF}data: a\n\n", [Event(data: "a")]), ("\u{FEFF}\u{FEFF}data: a\n\n", []), ("\n\u{FEFF}data: a\n\n", []),
        ("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\ndata: \u{FEFF}c\n\n", [Event(data: "a"), Event(data: "\u{FEFF}c")]),
        ("data:  a\n\n", [Event(data: " a")]), ("data\n\n", [Event(data: "")]), ("data\ndata\n\n", [Event(data: "\n")]),
        ("data:\n\n", [Event(data: "")]), (": comment\ndata: a\n:\n\n", [Event(data: "a")]),
        ("event: add\ndata: 1\n\ndata: 2\n\n", [Event(type: "add", data: "1"), Event(data: "2")]),
        ("event: add\n\ndata: 2\n\n", [Event(data: "2")]), ("event:\ndata: 1\n\n", [Event(data: "1")]),
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

    @Test func `H20: the parser reads any sequence of bytes, and replaces invalid UTF-8`() throws {
        var parser = ServerSentEvents()
        let text = "data: a\n\ndata: b\n\n"
        #expect(try parser.consume(text.utf8.lazy.map { $0 }).map(\.data) == ["a", "b"])
        #expect(try parser.consume(Data(text.utf8)).map(\.data) == ["a", "b"])
        #expect(try parser.consume(AnySequence(text.utf8)).map(\.data) == ["a", "b"])
        #expect(try parser.consume(Array("data: ".utf8) + [0xFF, 0x0A, 0x0A]) == [Event(data: "\u{FFFD}")])
    }

    @Test(arguments: ["data: 0123456789", "data: 01234\ndata: 56789", ": 012345678901234567890"])
    func `H8: an event over the limit throws, and the limit applies to each event`(text: String) throws {
        var parser = ServerSentEvents(limit: 12)
        for _ in 0..<100 { #expect(try parser.consume("data: 012\n\n".utf8).count == 1) }
        let error = #expect(throws: RemoteError.self) { try parser.consume(text.utf8) }
        #expect(error?.code == .bodyTooLarge)
    }
}
