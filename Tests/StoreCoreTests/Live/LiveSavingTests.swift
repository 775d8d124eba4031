import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveSavingTests {
    private func contents(_ bench: LiveBench) -> [String?] { bench.cacher.calls(.save).map(\.content) }

    @Test(arguments: Backing.withCacher)
    func `L6: the values of an interval are saved once, with the last of them`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let observer = bench.observe()
        for value in 0..<100 { try await bench.feed.send(.content("\(value)")) }
        try await until("the first value is saved") { bench.cacher.record(of: 1)?.content == "0" }
        try await bench.time.advance(by: .seconds(1) - .nanoseconds(1), sleepers: 1)
        #expect(contents(bench) == ["0"])
        #expect(bench.store.snapshot().unsavedKeys == 1 && bench.store.keySnapshots(.unsaved).keys.map(\.content) == ["99"])
        bench.time.advance(by: .nanoseconds(1))
        try await until("the last value is saved") { bench.cacher.record(of: 1)?.content == "99" }
        #expect(contents(bench) == ["0", "99"])
        bench.time.advance(by: .seconds(10))
        try await bench.feed.send(.content("later"))
        try await until("a value after a pause is saved at once") { bench.cacher.record(of: 1)?.content == "later" }
        withExtendedLifetime(observer) {}
    }

    enum End: CaseIterable, Sendable { case observerLeaves, streamEnds, connectionIsLost, waitUntilSaved, update }

    @Test(arguments: End.allCases)
    func `L6: the last value is saved without delay when the stream pauses or a caller waits for it`(_ end: End) async throws {
        let policy = StorePolicy(retry: .exponential(attempts: .max), unwantedFetch: .cancel(after: .zero), saveInterval: .seconds(3_600))
        let bench = LiveBench(.plain, policy: policy)
        let observer = try await bench.observe(sending: .content("a"))
        try await bench.feed.send(.content("b"))
        try await until("the first value is saved") { bench.cacher.record(of: 1)?.content == "a" }
        switch end {
        case .observerLeaves: try await observer.stopAndLeave()
        case .streamEnds: try await bench.feed.end()
        case .connectionIsLost: try await bench.feed.end(throwing: Lost())
        case .waitUntilSaved: try await bench.store.waitUntilSaved()
        case .update: await bench.store[1].update { $0 += "!" }
        }
        try await until("the last value is saved") { bench.cacher.record(of: 1)?.content == (end == .update ? "b!" : "b") }
        withExtendedLifetime(observer) {}
    }

    @Test func `L6: a slow cacher gets the newest value after the running save`() async throws {
        let bench = LiveBench(.plain, policy: StorePolicy(saveInterval: .zero))
        bench.cacher.hold(.save)
        let observer = bench.observe()
        for value in 0..<50 { try await bench.feed.send(.content("\(value)")) }
        bench.cacher.release()
        try await until("the last value is saved") { bench.cacher.record(of: 1)?.content == "49" }
        #expect(contents(bench).count <= 3)
        #expect(bench.cacher.breaches.isEmpty)
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: Backing.withCacher)
    func `L6: the release of a store saves the last value`(_ backing: Backing) async throws {
        var bench: LiveBench? = LiveBench(backing)
        let (feed, cacher) = try (#require(bench).feed, #require(bench).cacher)
        let observer = try #require(bench).observe()
        try await feed.send(.content("a"))
        try await until("the first value is saved") { cacher.record(of: 1)?.content == "a" }
        try await feed.send(.content("b"))
        try await observer.stopAndLeave()
        bench = nil
        try await feed.ended(count: 1)
        try await until("the last value is saved") { cacher.record(of: 1)?.content == "b" }
        #expect(cacher.calls(.save).map(\.content) == ["a", "b"] && cacher.breaches.isEmpty)
    }

    @Test func `L5, L6: the release of a store dates the saved content of its streams, and reports a fault`() async throws {
        var bench: LiveBench? = LiveBench(.plain, expiry: .after(.seconds(10)), reports: true)
        let (feed, cacher, time, events) = try #require(bench.map { ($0.feed, $0.cacher, $0.time, $0.events) })
        let observers = try [1, 2].map { try #require(bench).observe($0) }
        try await feed.connected(count: 2)
        for connection in feed.connections { try await feed.send(.content("\(connection.param)"), on: connection.number) }
        for param in 1...2 { try await until("the value is saved") { cacher.record(of: param)?.content == "\(param)" } }
        time.advance(by: .seconds(3_600))
        for observer in observers { try await observer.stopAndLeave() }
        cacher.hold(.save)
        bench = nil
        try await cacher.releaseNext(.save, failing: true)
        try await until("the fault is reported") { events.names.contains("fault save") }
        cacher.release()
        try await until("one record is dated") { [1, 2].count { cacher.record(of: $0)?.fetchedAt == time.date } == 1 }
        // Each event is delivered after its transition.
        try await until("the events have no gap") {
            let numbers = events.all.map(\.number)
            return Set(numbers) == Set(1...UInt64(numbers.count))
        }
    }
}
