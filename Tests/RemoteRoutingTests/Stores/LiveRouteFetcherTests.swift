import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// Stores that follow server-sent events.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveRouteFetcherTests {
    struct Price: Codable, Hashable, Sendable { var cents: Int }

    private func events(_ text: String) -> LoopbackOrigin.Response { .data(Data(text.utf8), type: "text/event-stream") }

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
            case nil: events(first + event(3, 300)).misbehaving(.truncate(afterBodyBytes: first.utf8.count + 10))
            case "2": events(event(3, 300) + ": end of the test\n\n").misbehaving(.stall(afterBodyBytes: event(3, 300).utf8.count))
            default: .status(500)
            }
        }
        // The error is shown until the store connects again.
        let time = ManualTime()
        let store = store(bench, time: time)
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.error != nil && $0.content == Price(cents: 200) }
        try await time.sleepers(atLeast: 1)
        // The server asked for this time.
        #expect(time.nextDeadline == time.now.advanced(by: .seconds(7)))
        time.advance(by: .seconds(7))
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
        bench.on("GET", "/prices/A", inTurn: events("retry: 7000\n\n" + event(1, 100)), events(event(2, 200)), .status(204))
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

    @Test(arguments: TransportKind.allCases)
    func `L8: comments keep a silent connection`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let text = event(1, 100) + String(repeating: ":\n\n", count: 40) + event(2, 200)
        bench.on("GET", "/prices/A") { _ in
            events(text).misbehaving(.drip(bytes: 3, every: .milliseconds(40)), .stall(afterBodyBytes: text.utf8.count))
        }
        let store = store(bench, idleTimeout: .seconds(600))
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.content == Price(cents: 200) }
        #expect(bench.asked.count == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `L8: a connection that stalls is lost after the idle timeout`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/prices/A") { asked in
            let text = asked["Last-Event-ID"] == nil ? event(1, 100) : event(2, 200)
            return events(text + "data: ").misbehaving(.stall(afterBodyBytes: text.utf8.count))
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
        let bench = try Bench(.memory, on: "GET", "/prices/A") { _ in events("data: none\n\n") }
        let store = store(bench, attempts: 1)
        let error = try await remoteError { _ = try await store["A"].requireData() }
        #expect(error.code == .undecodable && error.stage == .decode)
    }

    @Test func `L8: tokens are appended, and other events are skipped`() async throws {
        let bench = try Bench(.memory)
        let text = "event: start\ndata: x\n\nevent: ping\ndata: x\n\nevent: token\ndata: Hello,\n\nevent: token\ndata:  world\n\n"
        bench.on("GET", "/x") { _ in events(text) }
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

    @Test(arguments: [false, true])
    func `H20: a store sends a POST with a new idempotency key for each connection once`(_ isCut: Bool) async throws {
        let bench = try Bench(.memory)
        let text = event(1, 100) + "data: "
        bench.on("POST", "/x") { _ in isCut ? events(text).misbehaving(.truncate(afterBodyBytes: text.utf8.count)) : events(text) }
        let store = Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: bench.host { $0.timeouts = .init() }.liveFetcher { (_: String) in
                Route(path: "/x", method: .post, options: RouteOptions(idempotencyKey: .unique))
            }, policy: StorePolicy(retry: RetryPolicy(attempts: .max, base: .zero)))
        let observer = RecordingObserver(store["A"].publish())
        let end = try await observer.next { $0.content == Price(cents: 100) && (isCut ? $0.error != nil : $0.isCompleted) }
        // Otherwise, the store would connect again.
        #expect((end.error as? RemoteError)?.isRetryable != true)
        try await observer.stopAndLeave()
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

    @Test func `H20: a store that follows a POST is complete when its stream ends`() async throws {
        let bench = try Bench(.memory, on: "POST", "/x") { _ in events("event: start\ndata: Hello\n\ndata:  world\n\n") }
        let store = Store(
            cacher: MemoryCacher<String, String>(),
            fetcher: bench.host().liveFetcher(reading: { event in
                event.type == "start" ? .content(event.data) : .change { $0 += event.data }
            }) { (_: String) in Route(path: "/x", method: .post, body: .json(["prompt": "hello"])) },
            policy: StorePolicy(retry: RetryPolicy(attempts: .max, base: .zero)))
        let observer = RecordingObserver(store["A"].publish())
        try await observer.next { $0.isCompleted && $0.content == "Hello world" }
        try await observer.stopAndLeave()
        #expect(bench.asked.count == 1)
    }
}
