import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore
@testable import StoreFiles

/// Tests hostile conditions: reentrant calls, cachers that hang, numbers at the limits of their range.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct HostileTests {
    private typealias Box = WatchedState<Store<Int, Int>?>

    // MARK: Reentrancy

    @Test func `C1: a fetcher may use its store, for other keys and for its own`() async throws {
        let box = Box(nil)
        let store = Store<Int, Int>(cacher: MemoryCacher()) { key in
            guard key > 0, let store = box.current else { return 0 }
            let below = try await store[key - 1].requireData()
            await store[key - 1].update(below + 1)
            store.prefetch([key])
            return below + 1
        }
        box.update { $0 = store }
        #expect(try await store[20].requireData() == 20)
        box.update { $0 = nil }
    }

    @Test func `C5: a fetcher that updates its own key makes its result outdated`() async throws {
        let box = Box(nil)
        let store = Store<Int, Int>(cacher: MemoryCacher()) { key in
            await box.current?[key].update(7)
            return 8
        }
        box.update { $0 = store }
        #expect(try await store[1].requireData() == 7)
        #expect(await store[1].getData(from: .cache) == 7)
        box.update { $0 = nil }
    }

    @Test func `C6: an update closure may use the store and runs once`() async throws {
        let store = Store<Int, Int>(cacher: MemoryCacher()) { $0 }
        await store[1].update(10)
        let calls = WatchedState(0)
        let changed = await store[1].update { content in
            let count = calls.increment()
            store.prefetch([1, 2])
            content += count
        }
        #expect(changed && calls.current == 1)
        #expect(try await store[1].requireData() == 11)
    }

    @Test(arguments: Backing.withCacher)
    func `C17: the hook may use the store on each event, of a failing cacher as well`(_ backing: Backing) async throws {
        let box = Box(nil)
        let cacher = GatedCacher<Int, Int>()
        cacher.fail(.load, .save, .remove, .removeAll)
        let faults = WatchedState(0)
        let onEvent: @Sendable (StoreEvent<Int>) -> Void = { event in
            if event.param == 1 { box.current?.prefetch([2]) }
            guard case .cacherFault = event.kind else { return }
            if faults.increment() < 50 { box.current?.prefetch([100 + faults.current]) }
        }
        let store = Store(backing, over: cacher, fetcher: ClosureFetcher<Int, Int> { $0 }, onEvent: onEvent)
        box.update { $0 = store }
        for key in 1...2 { #expect(try await store[key].requireData() == key) }
        try await faults.wait { $0 >= 50 ? () : nil }
        await #expect(throws: StoreError.self) { try await store.clear() }
        box.update { $0 = nil }
    }

    // MARK: Cachers that hang

    @Test(arguments: [GatedCacher<Int, Int>.Operation.load, .save, .removeAll], Backing.withCacher)
    func `C9: a canceled call returns at once while the cacher hangs`(
        _ operation: GatedCacher<Int, Int>.Operation, _ backing: Backing
    ) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(operation)
        let store = bench.store
        let works: [@Sendable () async -> Void] = [
            { _ = await store[1].getData() }, { await store[1].refresh() }, { await store[1].validate() }, { await store[1].invalidate() },
            { await store[1].update(5) }, { _ = await store[1].update { $0 += 1 } }, { await store[1].clear() },
            { _ = try? await store[1].mutate(optimistically: { $0 += 1 }, perform: {}) }, { try? await store.clear() },
            { for await _ in store[1].publish() {} },
        ]
        let tasks = works.map { work in Task { await work() } }
        try await bench.cacher.began(operation)
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        bench.cacher.release()
        try await until("the engine is idle") { store.engineIsIdle || bench.liveKeys == 1 }
        #expect(bench.cacher.breaches == [])
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a key with a load that never returns does not affect other keys`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.load)
        let stuck = Task { [handle = bench.store[1]] in await handle.getData() }
        try await bench.cacher.began(.load)
        await bench.store[2].update(5)
        #expect(bench.cacher.record(of: 2)?.content == 5)
        stuck.cancel()
        #expect(await stuck.value == nil)
        bench.cacher.release()
    }

    // MARK: Numbers

    @Test(arguments: [Duration.seconds(Int64.max), .nanoseconds(Int64.max), .seconds(Int64.min)], Backing.allCases)
    func `C11: durations at the limits of their range neither trap nor spin`(_ duration: Duration, _ backing: Backing) async throws {
        let policy = StorePolicy(
            staleWhileRevalidate: duration, staleIfError: duration, revalidatesOnExpiry: true, minimumInterval: duration,
            retry: RetryPolicy(attempts: 2, base: duration, cap: duration) { _ in false }, errorExpiry: duration,
            unwantedFetch: .cancel(after: duration), staleAfter: duration)
        let bench = Bench(
            backing, expiry: .after(duration), policy: policy, fetcher: ScriptedFetcher(.success(1), .failure(Offline()), .success(3)))
        bench.cacher.put(bench.record(fetchedAgo: .nanoseconds(Int64.max), 70), param: 1)
        let observer = try await observeCompleted(bench.store[1].publish(forceRefresh: true))
        await bench.store[1].refresh()
        await bench.store[1].validate()
        bench.time.advance(by: .seconds(60))
        bench.time.shiftDate(by: .seconds(-1_000_000_000))
        _ = await bench.store[1].getData()
        await bench.store[1].invalidate()
        try await observer.stopAndLeave()
        #expect(bench.fetcher.startedCount < 10)
    }

    // MARK: Files

    @Test func `F6: a store with a file in place of its directory works in memory and reports faults`() async throws {
        let place = temporaryURL()
        try Data("not a directory".utf8).write(to: place)
        let events = EventLog()
        let store = Store<Int, Int>(cacher: TieredCacher(over: FileCacher(directory: place)), onEvent: events.append) { $0 * 2 }
        #expect(try await store[1].requireData() == 2)
        await store[1].update(70)
        #expect(try await store[1].requireData() == 70)
        try await events.first("fault save", count: 2)
        try await events.first("fault load")
        // After the directory is repaired, the next save includes the record that could not be saved.
        try FileManager.default.removeItem(at: place)
        await store[1].update(71)
        #expect(try await FileCacher<Int, Int>(directory: place).load(param: 1)?.content == 71)
    }
}
