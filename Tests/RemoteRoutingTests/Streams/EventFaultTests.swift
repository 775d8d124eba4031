import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct EventFaultTests {
    @Test func `H13: a reconnection waits after a connection without events, even if the retry time is zero`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: .events("retry: 0\n\ndata: a\n\n"), .events(": nothing\n\n"), .events(""), .status(204))
        let time = ManualTime()
        let host = bench.host(time: time, unit: 0)
        let task = Task { try await host.events(for: Route(path: "/x")).texts() }
        // The first connection delivered an event, so the next one follows at once; each further one waits.
        for count in 2...3 {
            try await time.sleepers(atLeast: 1)
            #expect(bench.asked.count == count)
            try await time.advance(overSleepOf: .seconds(1))
        }
        #expect(try await task.value == ["a"])
        #expect(bench.asked.count == 4)
    }

    @Test(arguments: [
        RouteOptions.Timeouts(head: .seconds(10), idle: .seconds(20), attempt: .seconds(30), overall: .seconds(40)),
        .init(head: .seconds(30), idle: .seconds(20), attempt: .seconds(10)), .init(idle: .seconds(20), attempt: .seconds(10)),
    ])
    func `H6, H20, H25: the deadline of an attempt limits only the head of a stream, a download and a socket`(
        timeouts: RouteOptions.Timeouts
    ) async throws {
        let seen = WatchedState<[ExchangeLimits.Timeouts]>([])
        let transport = CustomTransport { request, limits in
            seen.update { $0.append(limits.timeouts) }
            return HTTPResponse(status: 204, url: request.url)
        }
        let host = RemoteHost("a.example", transport: transport).with { $0.timeouts = timeouts }
        for try await _ in host.events(for: Route(path: "/x")) {}
        let place = try TemporaryDirectory()
        // The status is not that of a file.
        _ = try await remoteError { try await host.download(Route(path: "/x"), to: place.file("x")) }
        let options = WebSocket.Options(pingInterval: .seconds(10))
        _ = try await remoteError { _ = try await host.webSocket(for: Route(path: "/x"), options: options) }
        let (events, others) = (RouteOptions.Timeouts(head: .seconds(10)), RouteOptions.Timeouts(head: .seconds(10), idle: .seconds(20)))
        #expect(seen.current == [events, others, others])
    }

    @Test(arguments: [(nil, Duration.seconds(3)), ("1", .seconds(3)), ("60", .seconds(60)), ("2147483647", .seconds(3_600))])
    func `H20, C24: a refused stream is requested again until it is canceled, after Retry-After within its limit`(
        _ retryAfter: String?, _ wait: Duration
    ) async throws {
        let memory = MemoryTransport { _ in retryAfter.map { .status(503).adding("Retry-After", $0) } ?? .status(503) }
        let time = ManualTime()
        let host = RemoteHost("a.example", transport: memory, time: time).withoutDeadlines(unit: 0)
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        for count in 1...20 {
            try await time.sleepers(atLeast: 1)
            #expect(memory.requests.count == count)
            try await time.advance(overSleepOf: wait)
        }
        try await time.sleepers(atLeast: 1)
        task.cancel()
        #expect(try await remoteError { try await task.value }.code == .cancelled)
    }

    @Test func `H20, C24: the delays between lost connections grow as in the policy`() async throws {
        let memory = MemoryTransport { _ in throw TransportFailure(.connectionRefused, "refused") }
        let time = ManualTime()
        let host = RemoteHost("a.example", transport: memory, time: time).withoutDeadlines(unit: 1).with {
            $0.retry = .exponential(attempts: 2, base: .seconds(2), cap: .seconds(20))
        }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        for wait in [3, 4, 8, 16, 20, 20] { try await time.advance(overSleepOf: .seconds(wait)) }
        try await time.sleepers(atLeast: 1)
        task.cancel()
        _ = try await remoteError { try await task.value }
        #expect(memory.requests.count == 7)
    }

    @Test func `H20: a policy that refuses to retry an error ends the stream with it`() async throws {
        let memory = MemoryTransport { _ in .status(503) }
        let host = RemoteHost("a.example", transport: memory).with { $0.retry.shouldRetry = { _ in false } }
        let error = try await remoteError { for try await _ in host.events(for: Route(path: "/x")) {} }
        #expect(error.status == 503 && memory.requests.count == 1)
    }

    @Test(arguments: [("0", 200), ("99999999999999999999", 3_600_000), ("1500", 1_500)])
    func `C24: the retry time of a stream is at least the policy's back-off and at most its limit`(
        _ retry: String, _ milliseconds: Int
    ) async throws {
        let bench = try Bench(.memory, on: "GET", "/x", inTurn: .events("retry: \(retry)\n\ndata: a\n\n"), .status(204))
        let time = ManualTime()
        let host = bench.host(time: time, unit: 1)
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        try await time.advance(overSleepOf: .milliseconds(milliseconds))
        try await task.value
    }

    @Test(arguments: TransportKind.allCases)
    func `H20: a POST with a body streams events, and is sent once`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "POST", "/chat") { _ in .events("retry: 0\n\ndata: a\n\ndata: b\n\n") }
        let route = Route(path: "/chat", method: .post, body: .json(["prompt": "hello"]))
        #expect(try await bench.host().events(for: route).texts() == ["a", "b"])
        #expect(bench.asked.map(\.body) == [Data(#"{"prompt":"hello"}"#.utf8)])
        #expect(bench.asked.first?["Accept"] == "text/event-stream")
    }

    @Test(arguments: TransportKind.allCases)
    func `H20: a POST with a cut stream fails, and is not sent again`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("POST", "/chat") { _ in .events("retry: 0\n\ndata: a\n\ndata: b").misbehaving(.truncate(afterBodyBytes: 22)) }
        var seen: [String] = []
        let error = try await remoteError {
            for try await event in bench.host().events(for: Route(path: "/chat", method: .post)) { seen.append(event.data) }
        }
        #expect(error.code == .connectionLost && error.mayHaveArrived)
        #expect(seen == ["a"] && bench.asked.count == 1)
    }

    @Test func `H20: a POST with an idempotency key reconnects with the last id, and a one-shot body does not`() async throws {
        let bench = try Bench(.memory)
        bench.on("POST", "/chat", inTurn: .events("retry: 0\nid: 1\ndata: a\n\n"), .events("data: b\n\n"), .status(204))
        let host = bench.host(unit: 0)
        var route = Route(path: "/chat", method: .post, body: .data(Data("x".utf8)), options: RouteOptions(idempotencyKey: .key("k")))
        #expect(try await host.events(for: route).texts() == ["a", "b"])
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, "1", "1"])
        #expect(bench.asked.allSatisfy { $0.body == Data("x".utf8) && $0["Idempotency-Key"] == "\"k\"" })

        bench.on("POST", "/once") { _ in .events("data: c\n\n") }
        let once = RouteBody.stream(HTTPBodyStream(chunks: [Data("x".utf8)], length: 1, isReplayable: false))
        route = Route(path: "/once", method: .post, body: once, options: RouteOptions(idempotencyKey: .key("k")))
        #expect(try await host.events(for: route).texts() == ["c"])
        #expect(bench.asked("/once").count == 1)
    }

    @Test func `H7, H20: events that an interceptor requests by POST are requested once`() async throws {
        let bench = try Bench(.memory, on: "POST", "/x", inTurn: .events("retry: 0\n\ndata: a\n\n"), .status(204))
        let host = bench.host(unit: 0).intercepting(requests: Changing { $0.method = .post })
        #expect(try await host.events(for: Route(path: "/x")).texts() == ["a"])
        #expect(bench.asked.count == 1)
    }

    @Test func `H20: all connections of a stream have the same unique idempotency key`() async throws {
        let bench = try Bench(
            .memory, on: "POST", "/chat", inTurn: .events("retry: 0\n\ndata: a\n\n"), .events("data: b\n\n"), .status(204))
        let host = bench.host(unit: 0)
        let events = host.events(for: Route(path: "/chat", method: .post, options: RouteOptions(idempotencyKey: .unique)))
        for _ in 0..<2 { for try await _ in events {} }
        let keys = bench.asked.map { $0["Idempotency-Key"] ?? "none" }
        #expect(keys.count == 4 && Set(keys.prefix(3)).count == 1 && keys[0] != keys[3] && keys[0] != "none", "\(keys)")
    }

    @Test(arguments: [201, 205, 206, 299])
    func `H20: only 200 begins a stream of events`(_ status: Int) async throws {
        let memory = MemoryTransport { _ in
            .init(status: status, headers: [("Content-Type", "text/event-stream")], body: Data("data: a\n\n".utf8))
        }
        let host = RemoteHost("a.example", transport: memory)
        let error = try await remoteError { for try await _ in host.events(for: Route(path: "/x")) { Issue.record("an event") } }
        #expect(error.code == .badStatus && error.status == status)
        #expect(memory.requests.count == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `H20: the events of a body are read once, and an event over the limit is an error`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "POST", "/x") { _ in .events("data: a\n\ndata: 0123456789\n\n") }
        let route = Route(path: "/x", method: .post)
        #expect(try await bench.host().bytes(for: route).events().texts() == ["a", "0123456789"])
        let error = try await remoteError { for try await _ in try await bench.host().bytes(for: route).events(limit: 10) {} }
        #expect(error.code == .bodyTooLarge)
    }

    @Test func `H8: the lines and events before one over the limit are read first`() async throws {
        let text = "data: a\n\ndata: " + String(repeating: "x", count: 2 << 20)
        let bench = try Bench(.memory, on: "GET", "/x", inTurn: .events(text))
        // The whole body is one piece.
        let host = bench.host { $0.limits.memoryBytes = 4 << 20 }
        var seen: [String] = []
        let route = Route(path: "/x")
        do { for try await line in try await host.bytes(for: route).lines() { seen.append(line) } } catch is RemoteError {}
        do { for try await event in try await host.bytes(for: route).events() { seen.append(event.data) } } catch is RemoteError {}
        do { for try await event in host.events(for: route) { seen.append(event.data) } } catch is RemoteError {}
        #expect(seen == ["data: a", "", "a", "a"])
    }

    @Test func `L8: the parser of the next connection keeps the id and the delay, but no incomplete event`() throws {
        var parser = ServerSentEvents()
        _ = try parser.consume("retry: 7\nid: 1\ndata: a\n\nid: 2\ndata: b\nevent: e".utf8)
        var next = parser.forNextConnection()
        #expect((next.lastEventID, next.reconnectionTime) == ("1", .milliseconds(7)))
        #expect(try next.consume("\ndata: c\n\n".utf8) == [ServerSentEvent(type: "message", data: "c", lastEventID: "1")])
    }

    @Test(
        arguments: [
            ("a ", "a ", "a"), ("\ta", "\ta", "a"), ("a b", "a b", "a b"), ("\u{E4}", "\u{E4}", "\u{E4}"), ("a\u{1}b", "1", "1"),
            (String(repeating: "x", count: 1_000_001), "1", "1"),
        ] as [(String, String, String)])
    func `H20: an id is sent back without whitespace at its ends, or ignored, and does not end the stream`(
        _ id: String, _ kept: String, _ sent: String
    ) async throws {
        let bench = try Bench(.memory, on: "GET", "/x", inTurn: .events("retry: 0\nid: 1\n\nid:\(id)\ndata: a\n\n"), .status(204))
        for try await event in bench.host(unit: 0).events(for: Route(path: "/x")) { #expect(event.lastEventID == kept) }
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, sent])
    }

    @Test func `H3: an invalid id of the caller is a typed error`() async throws {
        let bench = try Bench(.memory)
        let error = try await remoteError { for try await _ in bench.host().events(for: Route(path: "/x"), after: "a\u{1}b") {} }
        #expect((error.underlyingError as? RouteFault)?.part == "header Last-Event-ID")
    }

    @Test func `H8: an endless line and an endless event are errors`() async throws {
        for line in [String(repeating: "x", count: 2 << 20), String(repeating: "data: 0123456789\n", count: 200_000)] {
            let bench = try Bench(.memory, on: "GET", "/x", inTurn: .events(line))
            let error = try await remoteError { for try await _ in bench.host().events(for: Route(path: "/x")) {} }
            #expect(error.code == .bodyTooLarge)
            #expect(error.operation.hasPrefix("GET http") && error.operation.hasSuffix("/x"))
        }
    }

    @Test(arguments: [true, false])
    func `an error between two connections names the address, after a refused one too`(_ isRefused: Bool) async throws {
        let bench = try Bench(.memory, on: "GET", "/x", inTurn: isRefused ? .status(503) : .events("data: a\n\n"))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        try await time.sleepers(atLeast: 1)
        task.cancel()
        let error = try await remoteError { try await task.value }
        #expect(error.code == .cancelled && error.operation == "GET \(bench.origin.url.absoluteString)/x", "\(error)")
    }

    @Test(arguments: [(RemoteError.Code.protocolViolation, true), (.protocolViolation, false), (.connectionLost, false)])
    func `H7, H20, H22: a stream that breaks off is requested again under any rules for retries`(
        _ code: RemoteError.Code, _ hasRules: Bool
    ) async throws {
        let broken = MemoryTransport.Response(
            headers: [("Content-Type", "text/event-stream")], body: Data("retry: 0\n\ndata: a\n\n".utf8))
        let memory = MemoryTransport(inTurn: broken.failing(with: TransportFailure(code, "broken off")), .status(204))
        var host = RemoteHost("a.example", transport: memory).withoutDeadlines(unit: 0)
        if hasRules { host.retryRules.statuses.insert(500) }
        #expect(try await host.events(for: Route(path: "/x")).texts() == ["a"])
        #expect(memory.requests.count == 2)
    }

    @Test func `H7: the delay that a refusal requests does not outlive the next connection`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x", inTurn: .status(503).adding("Retry-After", "60"), .events("data: a\n\n"), .status(204))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }
        let task = Task { for try await _ in host.events(for: Route(path: "/x")) {} }
        for wait in [60, 3] { try await time.advance(overSleepOf: .seconds(wait)) }
        time.advance(by: .seconds(60))
        try await task.value
        #expect(bench.asked.count == 3)
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveRouteFetcherTests {
    struct Price: Codable, Hashable, Sendable { var cents: Int }

    private func event(_ id: Int, _ cents: Int) -> String { "id: \(id)\ndata: {\"cents\":\(cents)}\n\n" }

    private func store(
        _ bench: Bench, time: some TimeSource = .system, attempts: Int = .max, idleTimeout: Duration? = nil
    ) -> Store<String, Price> {
        Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: bench.host { $0.timeouts = .init() }.liveFetcher { (ticker: String) in Route(path: "/prices/\(ticker)") },
            policy: StorePolicy(retry: RetryPolicy(attempts: attempts, base: .zero), idleTimeout: idleTimeout), time: time)
    }

    @Test(arguments: TransportKind.allCases)
    func `L8: a cut connection is an error with the last content, and the next one continues after the last event`(
        _ kind: TransportKind
    ) async throws {
        let bench = try Bench(kind)
        let first = "retry: 7000\n\n" + event(1, 100) + event(2, 200)
        bench.on("GET", "/prices/A") { asked in
            switch asked["Last-Event-ID"] {
            // Cut within the third event, without its end.
            case nil: .events(first + event(3, 300)).misbehaving(.truncate(afterBodyBytes: first.utf8.count + 10))
            case "2": .events(event(3, 300) + ": end of the test\n\n").misbehaving(.stall(afterBodyBytes: event(3, 300).utf8.count))
            default: .status(500)
            }
        }
        // The error is shown until the store connects again.
        let time = ManualTime()
        let store = store(bench, time: time)
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.error != nil && $0.content == Price(cents: 200) }
        // The server asked for this time.
        try await time.advance(overSleepOf: .seconds(7))
        try await observer.next { $0.isCompleted && $0.content == Price(cents: 300) }
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, "2"])
        // No observer saw the event that was cut.
        #expect(observer.states.compactMap(\.content).allSatisfy { [100, 200, 300].contains($0.cents) })
        try await observer.stopAndLeave()
        // The stream ends after the grace period.
        try await time.advance(by: .seconds(3_600), sleepers: 1)
        if kind.isReal { try await bench.origin.waitUntil { $0.requests.last?.ending == .clientLeft } }
    }

    @Test func `L8: a stream that the server closes is connected again after the time that it asked for`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/prices/A", inTurn: .events("retry: 7000\n\n" + event(1, 100)), .events(event(2, 200)), .status(204))
        let time = ManualTime()
        let store = store(bench, time: time)
        let observer = RecordingObserver(store["A"].publish())
        for cents in [100, 200] {
            try await observer.next { $0.error != nil && $0.content == Price(cents: cents) }
            try await time.sleepers(atLeast: 1)
            if cents == 100 { #expect(time.nextDeadline == time.now.advanced(by: .seconds(7))) }
            time.advanceToNextDeadline()
        }
        // A response of 204 confirms the last event and ends the stream.
        try await observer.next { $0.isCompleted && $0.content == Price(cents: 200) }
        time.advance(by: .seconds(3_600))
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, "1", "2"])
    }

    @Test func `H4, L8: the id of the last event follows a redirect to another origin`() async throws {
        let memory = MemoryTransport { request in
            guard request.url.host() == "b.example" else { return .status(307).adding("Location", "https://b.example/x") }
            let text = request.fields["Last-Event-ID"] == nil ? event(1, 100) : event(2, 200)
            return .init(headers: [("Content-Type", "text/event-stream")], body: Data(text.utf8))
        }
        var events = RemoteHost("a.example", transport: memory).events(for: Route(path: "/x"), after: "1").makeAsyncIterator()
        #expect(try await events.next()?.lastEventID == "2")
    }

    @Test func `L8: a comment keeps a silent connection, as a value without content`() async throws {
        let bench = try Bench(.memory, on: "GET", "/prices/A") { _ in .events(event(1, 100) + ":\n\n") }
        let fetcher = bench.host().liveFetcher(of: Price.self) { (ticker: String) in Route(path: "/prices/\(ticker)") }
        var values = fetcher.values(param: "A", after: nil).makeAsyncIterator()
        var isCurrent: [Bool] = []
        for _ in 1...3 {
            if case .current = try await values.next() { isCurrent.append(true) } else { isCurrent.append(false) }
        }
        // The connection, its event and the comment.
        #expect(isCurrent == [true, false, true])
    }

    @Test(arguments: TransportKind.allCases)
    func `L8: a connection that stalls is lost after the idle timeout`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/prices/A") { asked in
            let text = asked["Last-Event-ID"] == nil ? event(1, 100) : event(2, 200)
            return .events(text + "data: ").misbehaving(.stall(afterBodyBytes: text.utf8.count))
        }
        let time = ManualTime()
        let store = store(bench, time: time, idleTimeout: .seconds(30))
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.content == Price(cents: 100) }
        try await time.advance(by: .seconds(30), sleepers: 1)
        try await observer.next { ($0.error as? StoreError)?.code == .silentStream }
        try await time.advance(by: .seconds(1), sleepers: 1)
        try await observer.next { $0.isCompleted && $0.content == Price(cents: 200) }
        #expect(bench.asked.map { $0["Last-Event-ID"] } == [nil, "1"])
    }

    @Test func `L8: an event that cannot be decoded is a typed error`() async throws {
        let bench = try Bench(.memory, on: "GET", "/prices/A") { _ in .events("data: none\n\n") }
        let store = store(bench, attempts: 1)
        let error = try await remoteError { _ = try await store["A"].requireData() }
        #expect(error.code == .undecodable && error.stage == .decode)
    }

    @Test func `L8: tokens are appended, and other events are skipped`() async throws {
        let bench = try Bench(.memory)
        let text = "event: start\ndata: x\n\nevent: ping\ndata: x\n\nevent: token\ndata: Hello,\n\nevent: token\ndata:  world\n\n"
        bench.on("GET", "/x") { _ in .events(text) }
        let store = Store(
            cacher: MemoryCacher<String, String>(),
            fetcher: bench.host().liveFetcher(reading: { event in
                switch event.type {
                case "start": .content("")
                case "token": .change { $0 += event.data }
                default: nil
                }
            }) { (_: String) in Route(path: "/x") })
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.content == "Hello, world" }
    }

    @Test(arguments: [(false, true), (true, true), (false, false)])
    func `H20: a store sends a POST once, without an idempotency key or with a new one for each connection`(
        _ isCut: Bool, _ hasKey: Bool
    ) async throws {
        let bench = try Bench(.memory)
        let text = event(1, 100) + "data: "
        bench.on("POST", "/x") { _ in isCut ? .events(text).misbehaving(.truncate(afterBodyBytes: text.utf8.count)) : .events(text) }
        let store = Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: bench.host { $0.timeouts = .init() }.liveFetcher { (_: String) in
                Route(path: "/x", method: .post, options: RouteOptions(idempotencyKey: hasKey ? .unique : nil))
            }, policy: StorePolicy(retry: RetryPolicy(attempts: .max, base: .zero)))
        let observer = RecordingObserver(store["A"].publish())
        let end = try await observer.next { $0.content == Price(cents: 100) && (isCut ? $0.error != nil : $0.isCompleted) }
        // Otherwise, the store would connect again.
        #expect((end.error as? RemoteError)?.isRetryable != true)
        try await observer.stopAndLeave()
        #expect(bench.asked.count == 1)
    }

    @Test(arguments: [false, true])
    func `H20: an event that cannot be read does not repeat the POST of a store`(_ hasKey: Bool) async throws {
        let bench = try Bench(.memory)
        bench.on("POST", "/x") { _ in .events("data: x\n\n") }
        let fetcher: LiveRouteFetcher<String, String> = bench.host().liveFetcher(reading: { _ in throw TestError() }) { _ in
            Route(path: "/x", method: .post, options: RouteOptions(idempotencyKey: hasKey ? .unique : nil))
        }
        let store = Store(
            cacher: MemoryCacher<String, String>(), fetcher: fetcher, policy: StorePolicy(retry: RetryPolicy(attempts: 3, base: .zero)))
        let error = try await remoteError { _ = try await store["A"].requireData() }
        #expect(error.code == .undecodable && error.underlyingError is TestError)
        #expect(bench.asked.count == 1)
    }

    @Test func `L8: a connection confirms the content of an event with an id, and no other content`() async throws {
        let memory = MemoryTransport { _ in
            .init(headers: [("Content-Type", "text/event-stream")], body: Data(": nothing\n\ndata: {\"cents\":100}\n\n".utf8)).stalling
        }
        let fetcher = RemoteHost("a.example", transport: memory).liveFetcher(of: Price.self) { (_: String) in Route(path: "/x") }
        func isConfirmed(_ last: Validator?) async throws -> Bool {
            var values = fetcher.values(param: "A", after: last).makeAsyncIterator()
            if case .current = try await values.next() { return true }
            return false
        }
        #expect(try await isConfirmed(nil))
        #expect(try await isConfirmed(Validator(entityTag: "1")))
        // The server does not learn of such a version.
        #expect(try await !isConfirmed(Validator(lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")))
    }
}
