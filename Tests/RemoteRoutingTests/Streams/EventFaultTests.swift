import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// Event streams of misbehaving servers.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct EventFaultTests {
    private func event(_ text: String) -> LoopbackOrigin.Response { .data(Data(text.utf8), type: "text/event-stream") }

    @Test func `H13: a reconnection waits after a connection without events, even if the retry time is zero`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: event("retry: 0\n\ndata: a\n\n"), event(": nothing\n\n"), event(""), .status(204))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }
        let task = Task {
            var seen: [String] = []
            for try await event in host.events(for: Route(path: "/x")) { seen.append(event.data) }
            return seen
        }
        // The first connection delivered an event, so the next one follows at once; each further one waits.
        for count in 2...3 {
            try await time.sleepers(atLeast: 1)
            #expect(bench.asked.count == count)
            #expect(time.nextDeadline == time.now.advanced(by: .seconds(1)))
            time.advance(by: .seconds(1))
        }
        #expect(try await task.value == ["a"])
        #expect(bench.asked.count == 4)
    }

    @Test(arguments: [(nil, Duration.seconds(3)), ("1", .seconds(3)), ("60", .seconds(60))])
    func `H7: a refused stream is retried within the host's policy and after Retry-After`(
        _ retryAfter: String?, _ wait: Duration
    ) async throws {
        let memory = MemoryTransport { _ in
            retryAfter.map { .status(503).adding("Retry-After", $0) } ?? .status(503)
        }
        let time = ManualTime()
        let host = RemoteHost("a.example", transport: memory, time: time).with { $0.timeouts = .init() }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        for count in 1...2 {
            try await time.sleepers(atLeast: 1)
            #expect(memory.requests.count == count)
            #expect(time.nextDeadline == time.now.advanced(by: wait))
            time.advance(by: wait)
        }
        let error = try await remoteError { try await task.value }
        #expect(error.status == 503 && error.attempts == 3)
        #expect(memory.requests.count == 3)
    }

    @Test func `the parser of the next connection keeps the id and the delay, but no incomplete event`() throws {
        var parser = EventStreamParser()
        _ = try parser.consume("retry: 7\nid: 1\ndata: a\n\nid: 2\ndata: b\nevent: e".utf8)
        var next = parser.forNextConnection()
        #expect((next.lastEventID, next.reconnectionTime) == ("1", .milliseconds(7)))
        #expect(try next.consume("\ndata: c\n\n".utf8) == [ServerSentEvent(type: "message", data: "c", lastEventID: "1")])
    }

    @Test(arguments: [("a ", "a"), ("\ta", "a"), ("a b", "a b"), ("\u{E4}", "\u{E4}")])
    func `an id with whitespace at its ends does not end the stream`(_ id: String, _ sent: String) async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: event("retry: 0\nid:\(id)\ndata: a\n\n"), .status(204))
        let host = bench.host { $0.timeouts = .init() }
        for try await event in host.events(for: Route(path: "/x")) { #expect(event.lastEventID == id) }
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, sent])
    }

    @Test func `H3: an invalid id is a typed error`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: event("retry: 0\nid: a\u{1}b\ndata: a\n\n"), .status(204))
        let host = bench.host { $0.timeouts = .init() }
        let error = try await remoteError { for try await _ in host.events(for: Route(path: "/x")) {} }
        #expect((error.underlyingError as? RouteFault)?.part == "header Last-Event-ID")
    }

    @Test func `H8: an endless line and an endless event are errors`() async throws {
        for line in [String(repeating: "x", count: 2 << 20), String(repeating: "data: 0123456789\n", count: 200_000)] {
            let bench = try Bench(.memory)
            bench.on("GET", "/x", inTurn: event(line))
            let error = try await remoteError { for try await _ in bench.host().events(for: Route(path: "/x")) {} }
            #expect(error.code == .bodyTooLarge)
            #expect(error.operation.hasPrefix("GET http") && error.operation.hasSuffix("/x"))
        }
    }

    @Test func `an error between two connections names the address`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: event("data: a\n\n"))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        try await time.sleepers(atLeast: 1)
        task.cancel()
        let error = try await remoteError { try await task.value }
        #expect(error.code == .cancelled)
        #expect(error.operation.hasPrefix("GET http") && error.operation.hasSuffix("/x"))
    }

    @Test func `a byte order mark in the middle is content`() throws {
        var parser = EventStreamParser()
        let events = try parser.consume("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\ndata: \u{FEFF}c\n\n".utf8)
        #expect(events.map(\.data) == ["a", "\u{FEFF}c"])
    }

    @Test func `an error after a refused connection names the address`() async throws {
        let time = ManualTime()
        let host = RemoteHost("a.example", transport: MemoryTransport { _ in .status(503) }, time: time).with { $0.timeouts = .init() }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        try await time.sleepers(atLeast: 1)
        task.cancel()
        let error = try await remoteError { try await task.value }
        #expect(error.code == .cancelled)
        #expect(error.operation == "GET https://a.example/x")
    }

    @Test func `H7: the delay that a refusal requests does not outlive the next connection`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: .status(503).adding("Retry-After", "60"), event("data: a\n\n"), .status(204))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        for wait in [Duration.seconds(60), .seconds(3)] {
            try await time.sleepers(atLeast: 1)
            #expect(time.nextDeadline == time.now.advanced(by: wait))
            time.advance(by: wait)
        }
        time.advance(by: .seconds(60))
        try await task.value
        #expect(bench.asked.count == 3)
    }
}
