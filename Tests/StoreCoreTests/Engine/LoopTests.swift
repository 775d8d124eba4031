import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

/// Tests loops in which an automatic action of the store would cause itself again.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LoopTests {
    enum Writing: CaseIterable, Sendable { case clear, clearAll, invalidate, update, mutate, other }

    private static func write(_ writing: Writing, _ stores: [Store<Int, Int>], _ key: Int) async throws {
        // The last fetch may begin after the test has released its stores.
        guard !stores.isEmpty else { return }
        switch writing {
        case .clear: await stores[0][key].clear()
        case .clearAll: try await stores[0].clear()
        case .invalidate: await stores[0][key].invalidate()
        case .update: await stores[0][key].update(7)
        case .mutate: try await stores[0][key].mutate(optimistically: { $0 += 1 }, perform: {})
        case .other: for store in stores { await store[key].clear() }
        }
    }

    @Test(arguments: Writing.allCases)
    func `C5: a fetcher that changes its own key does not cause an endless loop of fetches`(_ writing: Writing) async throws {
        let time = ManualTime()
        let stores = WatchedState<[Store<Int, Int>]>([])
        let count = WatchedState(0)
        let fetch: @Sendable (Int) async throws -> Int = { key in
            count.update { $0 += 1 }
            try await Self.write(writing, stores.current, key)
            return 1
        }
        let made = (0..<2).map { _ in Store<Int, Int>(cacher: MemoryCacher(), time: time, fetch: fetch) }
        await made[0][1].update(5)
        stores.update { $0 = made }
        defer { stores.update { $0 = [] } }
        let observers = made.map { RecordingObserver($0[1].publish(forceRefresh: true)) }
        let refresh = Task { await made[0][1].refresh() }
        for _ in 0..<3_000 { await Task.yield() }
        try await until("the first fetch began") { count.current > 0 }
        for _ in 0..<3_000 { await Task.yield() }
        let first = count.current
        #expect(first <= 4)
        // The next fetch starts after the interval, so that no caller hangs.
        for _ in 0..<5 {
            time.advance(by: .seconds(1))
            for _ in 0..<500 { await Task.yield() }
        }
        #expect(count.current <= first + 24)
        refresh.cancel()
        withExtendedLifetime(observers) {}
    }

    @Test(arguments: [1, 10])
    func `C5: the first change by another key's fetcher starts a fetch at once, and frequent ones do not postpone the next`(
        changes: Int
    ) async throws {
        let stores = WatchedState<Store<Int, Int>?>(nil)
        let (time, log) = (ManualTime(), WatchedState<[Int]>([]))
        let store = Store<Int, Int>(cacher: MemoryCacher(), time: time) { key in
            log.update { $0.append(key) }
            if key == 1 { for _ in 0..<changes { await stores.current?[2].invalidate() } }
            return key
        }
        stores.update { $0 = store }
        defer { stores.update { $0 = nil } }
        let observer = try await observeCompleted(store[2].publish())
        _ = try await store[1].requireData()
        if changes == 1 {
            try await until("the key was fetched again") { log.current == [2, 1, 2] }
        } else {
            try await time.advance(by: .seconds(1), sleepers: 1)
            try await observer.next { $0.isCompleted }
        }
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: [(Duration.nanoseconds(1), Duration.milliseconds(100)), (.milliseconds(150), .milliseconds(150))])
    func `C10: content is fetched again after its lifetime, and at the earliest after the shortest interval`(
        _ lifetime: Duration, _ distance: Duration
    ) async throws {
        let bench = Bench(expiry: .after(lifetime), policy: StorePolicy(revalidatesOnExpiry: true, minimumInterval: .zero))
        let observer = RecordingObserver(bench.store[1].publish())
        for number in 1...3 {
            try await observer.next { $0.summary == "completed(\(number))" }
            try await until("the timer is set") { bench.time.nextDeadline == bench.time.now.advanced(by: distance) }
            bench.time.advance(by: distance - .milliseconds(1))
            for _ in 0..<100 { await Task.yield() }
            #expect(bench.fetcher.startedCount == number)
            bench.time.advance(by: .milliseconds(1))
        }
        try await observer.next { $0.summary == "completed(4)" }
    }

    /// A trigger that never suspends.
    private struct Endless: AsyncSequence, Sendable {
        let ended: WatchedState<Bool>
        let calls: WatchedState<Int>

        final class Iterator: AsyncIteratorProtocol {
            let sequence: Endless
            init(_ sequence: Endless) { self.sequence = sequence }
            deinit { sequence.ended.update { $0 = true } }

            func next() async -> Void? {
                sequence.calls.update { $0 += 1 }
                return ()
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(self) }
    }

    @Test func `C16: a trigger that never suspends fetches once per interval and ends when it is canceled`() async throws {
        let bench = Bench()
        let observer = try await observeCompleted(bench.store[1].publish())
        let endless = Endless(ended: WatchedState(false), calls: WatchedState(0))
        let trigger = bench.store.revalidate(on: endless)
        try await until("the trigger was called") { endless.calls.current > 100 }
        #expect(bench.fetcher.startedCount == 1)
        bench.time.advance(by: .seconds(1))
        try await observer.next { $0.summary == "completed(2)" }
        #expect(bench.fetcher.startedCount == 2)
        trigger.cancel()
        try await until("the trigger ends") { endless.ended.current }
    }

    @Test func `C15: a trigger that never suspends ends with its store`() async throws {
        let endless = Endless(ended: WatchedState(false), calls: WatchedState(0))
        var bench: Bench? = Bench()
        bench?.store.revalidate(on: endless)
        try await until("the trigger was called") { endless.calls.current > 0 }
        bench = nil
        try await until("the trigger ends") { endless.ended.current }
    }

    /// A cacher that never accepts a record as fresh.
    private actor Restless: Cacher {
        private var records: [Int: CacheRecord<Int>] = [:]

        func load(param: Int) -> CacheRecord<Int>? { records[param] }
        func save(_ record: CacheRecord<Int>, param: Int) { records[param] = record }
        func remove(param: Int) { records[param] = nil }
        func removeAll() { records = [:] }
        nonisolated func needsRefresh(_ record: CacheRecord<Int>, param: Int, now: Date) -> Bool { true }
    }

    @Test func `C10: a cacher that always needs a refresh causes one fetch for each observer that joins`() async throws {
        let policy = StorePolicy(revalidatesOnExpiry: true, minimumInterval: .zero)
        let (time, fetcher) = (ManualTime(), ScriptedFetcher<Int, Int>.counting())
        let store = Store(cacher: Restless(), fetcher: fetcher, policy: policy, time: time)
        for number in 1...2 {
            let observer = RecordingObserver(store[1].publish())
            try await observer.next { $0.summary == "completed(\(number))" }
            for _ in 0..<10 {
                time.advance(by: .seconds(10))
                await Task.yield()
            }
            #expect(fetcher.startedCount == number)
            try await observer.stopAndLeave()
            try await until("the key is idle") { store.engineIsIdle }
        }
    }
}
