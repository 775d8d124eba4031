import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct SingleFlightTests {
    @Test(arguments: Backing.allCases, isWholeRun || isLongRun ? [1_000, 10_000] : [500])
    func `C1: any number of concurrent callers cause one fetch, even during a slow cache read`(
        _ backing: Backing, _ count: Int
    ) async throws {
        let bench = Bench(backing)
        bench.fetcher.hold()
        bench.cacher.hold(.load)
        let handle = bench.store[1]
        let callers = (0..<count).map { _ in Task { try await handle.requireData() } }
        try await bench.callers(count)
        // The fetch runs in its own task, which may be one of the last to run on a busy machine.
        if backing == .memory { try await bench.fetcher.started(count: 1) }
        #expect(bench.fetcher.startedCount == (backing == .memory ? 1 : 0))
        bench.cacher.release()
        try await bench.fetcher.started(count: 1)
        bench.fetcher.release()
        for caller in callers { #expect(try await caller.value == 1) }
        #expect(bench.fetcher.startedCount == 1)
        #expect(bench.cacher.calls(.load).count == (backing == .memory ? 0 : 1))
    }

    @Test(arguments: Backing.allCases)
    func `C1: callers on expired content cause one fetch`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)))
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(10))
        bench.fetcher.hold()
        let handle = bench.store[1]
        let callers = (0..<100).map { _ in Task { try await handle.requireData() } }
        try await bench.callers(100)
        try await bench.fetcher.started(count: 2)
        bench.fetcher.release()
        for caller in callers { #expect(try await caller.value == 2) }
        #expect(bench.fetcher.startedCount == 2)
    }

    enum Joining: CaseIterable, Sendable { case refresh, origin, validate, publish, forced, trigger, prefetch, expiry }

    @Test(arguments: Joining.allCases)
    func `C1: a request during a fetch of the current epoch joins it`(_ joining: Joining) async throws {
        let bench = Bench(expiry: .after(.seconds(10)), policy: StorePolicy(revalidatesOnExpiry: true), reports: true)
        let (store, handle) = (bench.store, bench.store[1])
        await handle.update(0)
        let observer = try await observeFirst(handle.publish())
        bench.fetcher.hold()
        let refresh = Task { await handle.refresh() }
        try await bench.fetcher.started(count: 1)
        var joined: Task<Void, Never>?
        var second: RecordingObserver<Int>?
        switch joining {
        case .refresh: joined = Task { await handle.refresh() }
        case .origin: joined = Task { _ = await handle.getData(from: .origin) }
        case .validate: bench.time.advance(by: .seconds(10)); joined = Task { await handle.validate() }
        case .publish: second = RecordingObserver(handle.publish())
        case .forced: second = RecordingObserver(handle.publish(forceRefresh: true))
        case .prefetch:
            bench.time.advance(by: .seconds(10))
            store.prefetch([1])
            try await bench.events.first("coalesced")
        case .expiry: bench.time.advance(by: .seconds(11))
        case .trigger:
            let trigger = AsyncStream<Void> { continuation in
                continuation.yield()
                continuation.finish()
            }
            store.revalidate(on: trigger)
            try await bench.events.first("coalesced")
        }
        if joined != nil { try await bench.callers(2) }
        if let second { _ = try await second.states(count: 1) }
        bench.fetcher.release()
        await refresh.value
        await joined?.value
        try await observer.next { $0.content == 1 && $0.isCompleted }
        #expect(bench.fetcher.startedCount == 1)
        withExtendedLifetime(second) {}
    }

    @Test(arguments: Backing.allCases, Clumsy.spreads)
    func `C1: keys with equal hash values are distinct`(_ backing: Backing, _ spread: Int) async throws {
        let fetcher = ScriptedFetcher<Clumsy, Int> { .success($0.param.id) }
        let store = Store(backing, over: GatedCacher<Clumsy, Int>(), fetcher: fetcher)
        fetcher.hold()
        let keys = (0..<60).map { Clumsy($0, spread: spread) }
        let callers = (keys + keys).map { key in Task { try await store[key].requireData() } }
        try await fetcher.started(count: 60)
        fetcher.release()
        for (caller, key) in zip(callers, keys + keys) { #expect(try await caller.value == key.id) }
        #expect(Set(fetcher.requests.map(\.param)) == Set(keys))
        #expect(fetcher.startedCount == 60)
        for key in keys where key.id.isMultiple(of: 3) { await store[key].clear() }
        for key in keys where key.id % 3 == 1 { await store[key].update(-key.id) }
        for key in keys {
            let expected = key.id.isMultiple(of: 3) ? nil : key.id % 3 == 1 ? -key.id : key.id
            #expect(await store[key].getData(from: .cache) == expected)
        }
    }

    @Test func `C1: callers after the end of a fetch are hits`() async throws {
        let bench = Bench(reports: true)
        _ = try await bench.store[1].requireData()
        for _ in 0..<10 { #expect(try await bench.store[1].requireData() == 1) }
        #expect(bench.fetcher.startedCount == 1)
        #expect(bench.events.names.count { $0 == "hit" } == 10)
    }

    @Test func `C5: an update leaves other live keys with the same hash value alone`() async throws {
        let store = Store(cacher: MemoryCacher(), fetcher: ScriptedFetcher<Clumsy, Int> { .success($0.param.id) })
        let keys = (1...3).map { Clumsy($0, spread: 1) }
        let observers = keys.map { RecordingObserver(store[$0].publish()) }
        for (observer, key) in zip(observers, keys) { _ = try await observer.next { $0.content == key.id } }
        for key in keys {
            await store[key].update(-key.id)
            for other in keys { #expect(await store[other].getData(from: .cache) == (other.id > key.id ? other.id : -other.id)) }
        }
    }
}
