import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Tests streams that use their own store, and policies that invite loops.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveHostileTests {
    @TaskLocal static var span = "none"

    /// Creates an origin whose connections run a closure before their one value, and stay connected after it.
    private func meddler(_ before: @escaping @Sendable (_ key: Int) async throws -> Int) -> ClosureLiveFetcher<Int> {
        ClosureLiveFetcher { key, number in
            if number == 1 { return .content(try await before(key)) }
            try await untilCanceled()
            return nil
        }
    }

    enum Writing: CaseIterable, Sendable { case clear, clearAll, invalidate, update, mutate }

    @Test(arguments: Writing.allCases)
    func `L3, L4: a stream that changes its own key does not cause an endless loop of connections`(_ writing: Writing) async throws {
        let time = ManualTime()
        let stores = WatchedState<Store<Int, Int>?>(nil)
        let count = WatchedState(0)
        let origin = meddler { key in
            count.update { $0 += 1 }
            guard let store = stores.current else { return 0 }
            switch writing {
            case .clear: await store[key].clear()
            case .clearAll: try await store.clear()
            case .invalidate: await store[key].invalidate()
            case .update: await store[key].update(7)
            case .mutate: try await store[key].mutate(optimistically: { $0 += 1 }, perform: {})
            }
            return 1
        }
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: origin, policy: .reconnecting(), time: time)
        stores.update { $0 = store }
        defer { stores.update { $0 = nil } }
        await store[1].update(5)
        let observer = RecordingObserver(store[1].publish(forceRefresh: true))
        try await until("the first stream begins") { count.current > 0 }
        for _ in 0..<3_000 { await Task.yield() }
        let first = count.current
        #expect(first <= 3)
        for _ in 0..<5 {
            time.advance(by: .seconds(1))
            for _ in 0..<500 { await Task.yield() }
        }
        #expect(count.current <= first + 12)
        if writing == .update || writing == .mutate {
            // These leave the stream running, and its value replaces theirs.
            try await observer.sees("completed(1)")
            #expect(count.current == 1)
        }
    }

    @Test func `C1, L2: a stream that waits for its own first value fails`() async throws {
        let stores = WatchedState<Store<Int, Int>?>(nil)
        let store = Store(
            cacher: MemoryCacher<Int, Int>(),
            fetcher: meddler { key in try await stores.current?[key].requireData() ?? 0 })
        stores.update { $0 = store }
        defer { stores.update { $0 = nil } }
        let caller = Task { try await store[1].requireData() }
        let error = await #expect(throws: StoreError.self) { try await caller.value(of: "the caller fails") }
        #expect(error?.code == .reentrantFetch)
    }

    @Test(arguments: Backing.allCases)
    func `L4, C22: a stream has the values of its first caller, and one that the store connects again has none`(
        _ backing: Backing
    ) async throws {
        let (time, cacher) = (ManualTime(), GatedCacher<Int, Int>())
        let seen = WatchedState<[String]>([])
        let policy = StorePolicy(retry: .exponential(attempts: .max), fetchContext: .firstCaller)
        let origin = meddler { _ in
            seen.update { $0.append(Self.span) }
            if seen.current.count == 1 { throw Lost() }
            return 1
        }
        let store = Store(backing, over: cacher, fetcher: origin, policy: policy, time: time)
        let caller = Self.$span.withValue("caller") { Task { try await store[1].requireData() } }
        try await time.advance(by: .seconds(1), sleepers: 1)
        #expect(await caller.outcome == "1")
        #expect(seen.current == ["caller", "none"])
        #expect(store.engine.state.withLock { $0.starters.isEmpty })
    }

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `L4, L5: an idle timeout that every connection exceeds connects at the shortest interval`(_ limit: Duration) async throws {
        let bench = LiveBench(policy: StorePolicy(retry: RetryPolicy(attempts: .max, base: .zero), idleTimeout: limit))
        let observer = bench.observe()
        for number in 1...5 {
            try await bench.feed.cancelled(count: number)
            try await bench.time.advance(by: StorePolicy.shortestInterval - .nanoseconds(1), sleepers: 1)
            for _ in 0..<100 { await Task.yield() }
            #expect(bench.feed.connections.count == number)
            bench.time.advance(by: .nanoseconds(1))
            try await bench.feed.connected(count: number + 1)
        }
        withExtendedLifetime(observer) {}
    }

    @Test func `L3: a late change of a stream that has ended leaves memory as it is`() async throws {
        let (feed, cacher, time) = (ScriptedLiveFetcher<Int, String>(cancellation: .ignored), MemoryCacher<Int, String>(), ManualTime())
        let store = Store(cacher: cacher, fetcher: feed, policy: StorePolicy(idleTimeout: .seconds(5)), time: time)
        let observer = RecordingObserver(store[1].publish())
        try await feed.send(.content("a"))
        try await time.advance(by: .seconds(5), sleepers: 1)
        try await feed.cancelled(count: 1)
        try await observer.next { $0.error != nil }
        try await feed.send(.change { $0 += "late" }, on: 1)
        #expect(await cacher.load(param: 1)?.content == "a")
        // The same while another stream runs.
        let second = RecordingObserver(store[1].publish())
        try await feed.send(.content("b"), on: 2)
        let refresh = Task { await store[1].refresh() }
        try await feed.connected(count: 3)
        try await feed.send(.content("c"), on: 3)
        await refresh.value
        try await feed.send(.change { $0 += "late" }, on: 2)
        #expect(await cacher.load(param: 1)?.content == "c")
        try await second.sees("completed(c)")
    }

    @Test func `L5: confirmations before any content neither end the loading nor answer a caller`() async throws {
        let bench = LiveBench()
        let observer = bench.observe()
        _ = try await observer.states(count: 1)
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.callers(1)
        for _ in 0..<1_000 { try await bench.feed.send(.current) }
        #expect(observer.summary == "loading(nil)" && bench.store.waiting(1) == 1)
        try await bench.feed.send(.content("a"))
        #expect(try await caller.value == "a")
        try await observer.sees("completed(a)")
    }

    @Test func `L2: a prefetched stream ends after its first value and the grace period`() async throws {
        let bench = LiveBench()
        bench.store.prefetch([1, 2, 1])
        try await bench.feed.connected(count: 2)
        for number in 1...2 { try await bench.feed.send(.content("\(number)"), on: number) }
        try await bench.time.advance(by: .seconds(1), until: "the streams are canceled") { bench.feed.cancelledCount == 2 }
        try await bench.idle()
        #expect(bench.feed.connections.count == 2)
    }

    @Test func `L1, L3: clearing a store ends each of its streams, and each wanted key begins one`() async throws {
        let bench = LiveBench(.tiered)
        let observers = (0..<200).map { bench.observe($0) }
        try await bench.feed.connected(count: 200)
        for connection in bench.feed.connections { try await bench.feed.send(.content("old"), on: connection.number) }
        try await bench.store.clear()
        try await bench.feed.ended(count: 200)
        try await bench.feed.connected(count: 400)
        for connection in bench.feed.connections.dropFirst(200) {
            try await bench.feed.send(.content("\(connection.param)"), on: connection.number)
        }
        for (key, observer) in observers.enumerated() { try await observer.sees("completed(\(key))") }
        #expect(bench.feed.connections.count == 400 && bench.feed.openCount == 200)
        #expect(Set(bench.feed.connections.dropFirst(200).map(\.param)) == Set(0..<200))
    }

    @Test func `C6, L6: a save that failed is tried again with the newest value`() async throws {
        let bench = LiveBench(.plain, reports: true)
        let observer = bench.observe()
        bench.cacher.fail(.save)
        try await bench.feed.send(.content("a"))
        try await bench.events.first("fault save")
        try await bench.feed.send(.content("b"))
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await bench.events.first("fault save", count: 2)
        bench.cacher.recover()
        try await bench.feed.send(.content("c"))
        try await bench.store.waitUntilSaved()
        #expect(bench.cacher.record(of: 1)?.content == "c")
        withExtendedLifetime(observer) {}
    }
}
