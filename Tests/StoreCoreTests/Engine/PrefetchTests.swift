import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct PrefetchTests {
    private func params(_ bench: Bench) -> [Int] { bench.fetcher.requests.map(\.param) }

    @Test(arguments: Backing.allCases)
    func `C1: prefetch fetches eight keys at a time, in the order given`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.fetcher.hold()
        bench.store.prefetch(1...100)
        try await bench.fetcher.started(count: 8)
        for _ in 0..<200 { await Task.yield() }
        #expect(bench.fetcher.startedCount == 8 && bench.liveKeys == 8)
        #expect(params(bench).sorted() == Array(1...8))
        bench.fetcher.release()
        try await bench.fetcher.started(count: 100)
        try await bench.idle()
        #expect(Set(params(bench)) == Set(1...100))
    }

    @Test(arguments: Backing.allCases)
    func `C1: a caller does not wait behind the prefetch queue`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.fetcher.hold()
        bench.store.prefetch(1...100)
        try await bench.fetcher.started(count: 8)
        let caller = Task { [handle = bench.store[90]] in try await handle.requireData() }
        try await bench.fetcher.started(count: 9)
        #expect(params(bench).last == 90)
        bench.fetcher.release()
        #expect(try await caller.value == 9)
        try await bench.fetcher.started(count: 100)
        try await bench.idle()
        #expect(params(bench).count { $0 == 90 } == 1)
    }

    @Test func `C1: prefetch skips valid keys and fetches a repeated key once`() async throws {
        let bench = Bench()
        for key in 1...50 { await bench.store[key].update(0) }
        bench.fetcher.hold()
        bench.store.prefetch(Array(repeating: 60, count: 30) + Array(1...50) + [61] + Array(repeating: 60, count: 30))
        try await bench.fetcher.started(count: 2)
        #expect(Set(params(bench)) == [60, 61])
        bench.fetcher.release()
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 2)
    }

    @Test func `C2: clear() drops the queued keys and the fetches of prefetch`() async throws {
        let bench = Bench()
        bench.fetcher.hold()
        bench.store.prefetch(1...100)
        try await bench.fetcher.started(count: 8)
        try await bench.store.clear()
        bench.fetcher.release()
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 8)
        #expect(await bench.store[1].getData(from: .cache) == nil)
    }

    @Test func `C2: clearing a key ends its own prefetch only`() async throws {
        let bench = Bench()
        bench.fetcher.hold()
        bench.store.prefetch(1...9)
        try await bench.fetcher.started(count: 8)
        await bench.store[3].clear()
        try await bench.fetcher.started(count: 9)
        #expect(params(bench).last == 9)
        bench.fetcher.release()
        try await bench.idle()
        #expect(await bench.store[3].getData(from: .cache) == nil)
        #expect(await bench.store[9].getData(from: .cache) != nil)
    }

    @Test func `C15: a released store drops its queued keys`() async throws {
        var bench: Bench? = Bench(fetcher: .counting(cancellation: .ignored))
        guard let fetcher = bench?.fetcher else { return }
        weak let engine = bench?.store.engineObject
        fetcher.hold()
        bench?.store.prefetch(1...1_000)
        try await fetcher.started(count: 8)
        bench = nil
        try await until("the engine is released") { engine == nil }
        fetcher.release()
        for _ in 0..<200 { await Task.yield() }
        #expect(fetcher.startedCount == 8)
    }

    @Test func `C1: a canceled prefetch drops its queued keys and lets running fetches end`() async throws {
        let bench = Bench()
        bench.fetcher.hold()
        let prefetching = bench.store.prefetch(1...100)
        let other = bench.store.prefetch(201...203)
        try await bench.fetcher.started(count: 8)
        prefetching.cancel()
        prefetching.cancel()
        bench.fetcher.release()
        try await bench.fetcher.started(count: 11)
        try await bench.idle()
        #expect(Set(params(bench)) == Set(1...8).union(201...203))
        #expect(await bench.store[8].getData(from: .cache) != nil)
        other.cancel()
    }

    @Test(arguments: [(Int.min, 1), (0, 1), (1, 1), (3, 3), (Int.max, 20)])
    func `C1: the policy's width limits the fetches of prefetch`(_ width: Int, _ expected: Int) async throws {
        let bench = Bench(policy: StorePolicy(prefetchWidth: width))
        bench.fetcher.hold()
        bench.store.prefetch(1...20)
        try await bench.fetcher.started(count: expected)
        for _ in 0..<200 { await Task.yield() }
        #expect(bench.fetcher.startedCount == expected && bench.store.prefetchers <= max(1, expected + 1))
        bench.fetcher.release()
        try await bench.fetcher.started(count: 20)
        try await bench.idle()
        // The order is exact only with a single worker.
        if expected == 1 { #expect(params(bench) == Array(1...20)) }
        try await until("the workers end") { bench.store.prefetchers == 0 }
    }

    @Test func `C15: many calls of prefetch, some of them empty, leave no worker behind`() async throws {
        let bench = Bench(fetcher: ScriptedFetcher { _ in .success(1) })
        for key in 0..<1_000 { bench.store.prefetch(key.isMultiple(of: 3) ? [] : [key]) }
        try await bench.idle()
        try await until("the workers end") { bench.store.prefetchers == 0 }
        #expect(Set(params(bench)) == Set((0..<1_000).filter { !$0.isMultiple(of: 3) }))
    }

    @Test(arguments: Backing.allCases)
    func `C5: prefetch counts as a wanting caller, of an invalidated key too, and leaves no key live`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        await bench.store[3].update(7)
        bench.fetcher.hold()
        bench.store.prefetch(1...3)
        try await bench.fetcher.started(count: 2)
        bench.time.advance(by: .seconds(60))
        await bench.store[1].invalidate()
        try await bench.fetcher.started(count: 3)
        bench.fetcher.release()
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 3)
        #expect(await bench.store[1].getData(from: .cache) == 3)
        #expect(await bench.store[2].getData(from: .cache) != nil)
    }

    @Test func `C1, C12: prefetch fetches each key once at any width and ends even if every fetch fails`() async throws {
        for width in [Int.min, -1, 0, 1, Int.max] {
            let fetcher = ScriptedFetcher<Int, Int>.counting()
            let store = Store(cacher: MemoryCacher<Int, Int>(limit: 1_000_000), fetcher: fetcher, policy: StorePolicy(prefetchWidth: width))
            store.prefetch(Array(repeating: 5, count: 1_000) + Array(0..<50))
            try await until("the prefetch ends") { store.engineIsIdle && store.isPrefetchQueueEmpty && store.prefetchers == 0 }
            #expect(fetcher.startedCount == 50)
        }
        let failing = Bench(fetcher: ScriptedFetcher { _ in throw Offline() })
        failing.store.prefetch(0..<200)
        try await failing.idle()
        try await until("the workers end") { failing.store.engineIsIdle && failing.store.prefetchers == 0 }
        #expect(failing.fetcher.startedCount == 200)
    }
}
