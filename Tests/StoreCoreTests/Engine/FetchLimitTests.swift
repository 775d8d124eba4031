import Foundation
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// The limits of a store's fetches: places, time, and the jitter of expiry.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct FetchLimitTests {
    private func policy(width: Int? = nil, limit: Duration? = nil, _ change: (inout StorePolicy) -> Void = { _ in }) -> StorePolicy {
        var policy = StorePolicy(fetchWidth: width, fetchTimeLimit: limit)
        change(&policy)
        return policy
    }

    // MARK: Places

    @Test(arguments: [1, 3, 0, -5])
    func `callers and observers together run no more fetches at once than the width`(width: Int) async throws {
        let bench = Bench(policy: policy(width: width), fetcher: ScriptedFetcher { .success($0.param) })
        bench.fetcher.hold()
        let observers = (0..<20).map { RecordingObserver(bench.store[$0].publish()) }
        let callers = (20..<40).map { bench.caller(of: $0) }
        for key in 20..<40 { try await bench.callers(1, of: key) }
        for ended in 0..<40 {
            let running = min(max(1, width), 40 - ended)
            try await bench.fetcher.started(count: ended + running)
            #expect(bench.fetcher.runningCount == running)
            try await bench.fetcher.release(next: 1)
            try await bench.fetcher.ended(count: ended + 1)
        }
        for observer in observers { try await observer.next { $0.isCompleted } }
        for (key, caller) in zip(20..., callers) { #expect(try await caller.value == key) }
    }

    @Test func `a fetch that another fetch waits for needs no place`() async throws {
        let inner = Lock<Store<Int, Int>?>(nil)
        let store = Store(
            cacher: MemoryCacher<Int, Int>(),
            fetcher: ClosureFetcher { key in
                // Each key needs the one below it, so that the fetch of key 0 ends first.
                key == 0 ? 0 : try await inner.withLock { $0 }![key - 1].requireData() + 1
            }, policy: policy(width: 1))
        inner.withLock { $0 = store }
        defer { inner.withLock { $0 = nil } }
        let callers = [50, 10, 30, 49, 0].map { key in (key, Task { try await store[key].requireData() }) }
        for (key, caller) in callers { #expect(try await caller.value == key) }
    }

    @Test(arguments: PageDirection.allCases)
    func `a page that another fetch waits for needs no place, even if the page at the other side waits too`(
        _ awaited: PageDirection
    ) async throws {
        let own = WatchedState<PaginationStore<Int, Int>?>(nil)
        let fetcher = ScriptedPaginationFetcher<Int, Int> { request in
            guard request.param == 2, let store = own.current else { return .page([1], nextKey: "n", prevKey: "p") }
            try await until("both pages wait") { store.lists.engine.fetches.waitingCount == 2 }
            return .page([await store.request(awaited) == .joined ? 2 : 0])
        }
        let store = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher, policy: policy(width: 1))
        own.update { $0 = store }
        defer { own.update { $0 = nil } }
        _ = try await store[1].requireData()
        let other = Task { try await store[2].requireData() }
        try await fetcher.started(count: 2)
        let page = Task { await store.request(awaited) }
        try await until("the page waits") { store.lists.engine.fetches.waitingCount == 1 }
        let opposite = Task { await store.request(awaited == .next ? .prev : .next) }
        #expect(try await other.value == [2])
        #expect(await page.value == .loaded)
        #expect(await opposite.value == .loaded)
    }

    @Test func `C9: a canceled fetch leaves the queue of its store`() async throws {
        let bench = Bench(policy: policy(width: 1) { $0.unwantedFetch = .cancel(after: .zero) })
        bench.fetcher.hold()
        let first = bench.caller(of: 1)
        try await bench.fetcher.started(count: 1)
        let second = bench.caller(of: 2)
        try await bench.callers(1, of: 2)
        second.cancel()
        #expect(await second.outcome == "CancellationError")
        bench.fetcher.release()
        #expect(try await first.value == 1)
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 1)
    }

    @Test func `a fetch that waits before its next attempt gives its place to another fetch`() async throws {
        let bench = Bench(
            policy: policy(width: 1) { $0.retry = .exponential(attempts: 2, base: .seconds(60)) },
            fetcher: ScriptedFetcher { request in
                if request.number == 1 { throw Offline() }
                return .success(request.param)
            })
        let first = bench.caller(of: 1)
        try await bench.time.sleepers(atLeast: 1)
        #expect(try await bench.store[2].requireData() == 2)
        bench.time.advance(by: .seconds(60))
        #expect(try await first.value == 1)
    }

    @Test func `C23: close() ends fetches that wait for a place`() async throws {
        let bench = Bench(policy: policy(width: 1))
        bench.fetcher.hold()
        let callers = (1...5).map { bench.caller(of: $0) }
        try await bench.fetcher.started(count: 1)
        for key in 1...5 { try await bench.callers(1, of: key) }
        try await bench.store.close()
        for caller in callers {
            let error = await #expect(throws: StoreError.self) { try await caller.value }
            #expect(error?.code == .closed)
        }
        #expect(bench.fetcher.startedCount == 1)
    }

    // MARK: Time

    @Test(arguments: [ScriptedCancellation.honored, .ignored])
    func `an attempt that passes the limit fails, even if it ignores its cancellation`(_ cancellation: ScriptedCancellation) async throws {
        let bench = Bench(policy: policy(width: 1, limit: .seconds(5)), fetcher: .counting(cancellation: cancellation), reports: true)
        bench.fetcher.hold()
        let first = bench.caller(of: 1)
        try await bench.fetcher.started(count: 1)
        try await bench.time.advance(by: .seconds(4), sleepers: 1)
        #expect(bench.waiting() == 1)
        bench.time.advance(by: .seconds(1))
        let error = await #expect(throws: StoreError.self) { try await first.value }
        #expect(error?.code == .fetchTimedOut && error?.message.contains("5.0 seconds") == true, "\(String(describing: error))")
        try await bench.events.first("failed")
        // Its place is free, and its late result changes nothing.
        bench.fetcher.release()
        #expect(try await bench.store[1].requireData() == 2)
        try await bench.fetcher.ended(count: 2)
        #expect(await bench.store[1].getData(from: .cache) == 2)
    }

    @Test func `each attempt has the whole limit, and the time in the queue does not count`() async throws {
        let bench = Bench(policy: policy(width: 1, limit: .seconds(5)) { $0.retry = .exponential(attempts: 2, base: .seconds(1)) })
        bench.fetcher.hold()
        let first = bench.caller(of: 1)
        try await bench.fetcher.started(count: 1)
        try await bench.time.sleepers(atLeast: 1)
        let second = bench.caller(of: 2)
        try await bench.callers(1, of: 2)
        bench.time.advance(by: .seconds(5))
        // The second fetch has the place, and the first one waits before its next attempt.
        try await bench.fetcher.started(count: 2)
        try await bench.time.sleepers(atLeast: 2)
        bench.fetcher.release()
        #expect(try await second.value == 2)
        bench.time.advance(by: .seconds(1))
        #expect(try await first.value == 3)
    }

    @Test func `C3: content within its stale window is served after a timeout`() async throws {
        let bench = Bench(expiry: .after(.seconds(60)), policy: policy(limit: .seconds(5)) { $0.staleIfError = .seconds(600) })
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(61))
        bench.fetcher.hold()
        let caller = bench.caller(of: 1)
        try await bench.fetcher.started(count: 2)
        try await bench.time.advance(by: .seconds(5), sleepers: 1)
        #expect(try await caller.value == 1)
    }

    // MARK: Jitter

    @Test func `C11: jitter shortens lifetimes by at most its part, spreads them, and is the same after a load`() async throws {
        let base = Date(timeIntervalSinceReferenceDate: 800_000_000)
        let records = (0..<1_000).map { CacheRecord(content: $0, fetchedAt: base.addingTimeInterval(Double($0) / 1_000)) }
        let lifetimes = records.map { $0.lifetime(expiry: .after(.seconds(100)), jitter: 0.2)! }
        #expect(lifetimes.allSatisfy { $0 > .seconds(80) && $0 <= .seconds(100) })
        let early = lifetimes.count { $0 < .seconds(90) }
        #expect((400...600).contains(early), "\(early) of 1 000 in the earlier half")
        #expect(records.map { $0.lifetime(expiry: .after(.seconds(100)), jitter: 0.2)! } == lifetimes)
        for (record, lifetime) in zip(records, lifetimes).prefix(50) {
            let date = record.fetchedAt.addingTimeInterval(50)
            let remaining = record.remainingLifetime(expiry: .after(.seconds(100)), jitter: 0.2, now: date)
            #expect(abs((lifetime - remaining).timeInterval - 50) < 0.001)
        }
        // Extreme values neither trap nor make content valid for longer.
        for lifetime in [Duration.zero, .seconds(-5), .forever, .seconds(Int64.max)] {
            for jitter in [-1, 0.5, 1, 7, .infinity, .nan] {
                let found = records[0].lifetime(expiry: .after(lifetime), jitter: jitter)!
                #expect(found <= max(.zero, lifetime) && found >= min(.zero, lifetime), "\(lifetime) \(jitter) \(found)")
            }
        }
        #expect(records[0].lifetime(expiry: .never, jitter: 0.5) == nil)
    }

    @Test(arguments: Backing.allCases)
    func `C11: content with jitter expires before its lifetime, from the cacher as well`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(100)), policy: StorePolicy(expiryJitter: 1))
        #expect(try await bench.store[1].requireData() == 1)
        let record = CacheRecord(content: 1, fetchedAt: bench.time.date)
        let lifetime = try #require(record.lifetime(expiry: .after(.seconds(100)), jitter: 1))
        try await bench.idle()
        bench.time.advance(by: lifetime - .seconds(1))
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(2))
        #expect(try await bench.store[1].requireData() == 2)
        #expect(bench.fetcher.startedCount == 2)
    }

    /// A cacher that accepts records of any age.
    private actor Patient: Cacher {
        private var records: [Int: CacheRecord<Int>] = [:]
        nonisolated var expiry: Expiry { .after(.seconds(100)) }

        func load(param: Int) -> CacheRecord<Int>? { records[param] }
        func save(_ record: CacheRecord<Int>, param: Int) { records[param] = record }
        func remove(param: Int) { records[param] = nil }
        func removeAll() { records = [:] }
        nonisolated func needsRefresh(_ record: CacheRecord<Int>, param: Int, now: Date) -> Bool { false }
    }

    @Test func `C11: jitter does not expire a record that the cacher accepts after its lifetime`() async throws {
        let (time, fetcher, cacher) = (ManualTime(), ScriptedFetcher<Int, Int>.counting(), Patient())
        await cacher.save(CacheRecord(content: 7, fetchedAt: time.date.addingTimeInterval(-200)), param: 1)
        let store = Store(cacher: cacher, fetcher: fetcher, policy: StorePolicy(expiryJitter: 0.5), time: time)
        #expect(try await store[1].requireData() == 7)
        #expect(fetcher.startedCount == 0)
    }
}

extension PaginationStore<Int, Int> {
    /// Requests a page of list 1.
    fileprivate func request(_ direction: PageDirection) async -> PageRequest {
        await (direction == .next ? self[1].requestNextData() : self[1].requestPrevData())
    }
}
