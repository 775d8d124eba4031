import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore
@testable import StoreFiles

@Suite(.timeLimit(.minutes(hangMinutes)))
struct WaitingForSavesTests {
    /// The object that the test calls.
    enum Asked: CaseIterable, Sendable {
        case store, handle

        func wait(_ bench: Bench, _ param: Int = 1) async throws {
            switch self {
            case .store: try await bench.store.waitUntilSaved()
            case .handle: try await bench.store[param].waitUntilSaved()
            }
        }
    }

    // MARK: Slow cachers

    @Test(arguments: Backing.withCacher, Asked.allCases)
    func `C6: fetched content is saved when waitUntilSaved() returns`(_ backing: Backing, _ asked: Asked) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        #expect(try await bench.store[1].requireData() == 1)
        let waiter = Waiter { try await asked.wait(bench) }
        try await bench.callers(1)
        #expect(waiter.isWaiting && bench.cacher.record(of: 1) == nil)
        try await bench.cacher.releaseNext(.save)
        try await waiter.task.value
        #expect(bench.cacher.record(of: 1)?.content == 1)
        try await bench.idle()
    }

    @Test(arguments: Backing.withCacher, Asked.allCases)
    func `C6: waitUntilSaved() awaits a running removal`(_ backing: Backing, _ asked: Asked) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(7)
        bench.cacher.hold(.remove)
        let clear = Task { await bench.store[1].clear() }
        try await bench.cacher.began(.remove)
        let waiter = Waiter { try await asked.wait(bench) }
        try await bench.callers(2)
        #expect(waiter.isWaiting)
        try await bench.cacher.releaseNext(.remove)
        try await waiter.task.value
        #expect(bench.cacher.record(of: 1) == nil)
        await clear.value
    }

    @Test(arguments: Backing.allCases, Asked.allCases)
    func `C6: waitUntilSaved() calls no cacher if everything is saved`(_ backing: Backing, _ asked: Asked) async throws {
        let bench = Bench(backing)
        try await asked.wait(bench)
        let observer = try await bench.observeUpdate(7)
        let calls = bench.cacher.calls.count
        try await asked.wait(bench)
        #expect(bench.cacher.calls.count == calls && bench.registered() == 0 && bench.liveKeys == 1)
        try await asked.wait(bench, 2)
        #expect(bench.liveKeys == 1)
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: Asked.allCases)
    func `C6: a list is saved with its pages`(_ asked: Asked) async throws {
        let cacher = GatedCacher<Int, [Int]>()
        let lists = PaginationStore(
            cacher: TieredCacher(over: cacher), fetcher: ScriptedPaginationFetcher(.page([1], nextKey: "n"), .page([2])))
        cacher.hold(.save)
        _ = try await lists[1].requireData()
        #expect(await lists[1].requestNextData() == .loaded)
        let waiter = Waiter { asked == .store ? try await lists.waitUntilSaved() : try await lists[1].waitUntilSaved() }
        try await until("the wait begins") { lists.waiting(1) == 1 }
        try await cacher.releaseNext(.save)
        #expect(waiter.isWaiting, "the wait returned after the first page was saved")
        try await cacher.releaseNext(.save)
        try await waiter.task.value
        #expect(cacher.record(of: 1)?.content == [1, 2])
    }

    @Test func `F1: another cacher finds every file once the wait for its save returns`() async throws {
        let directory = temporaryURL()
        let store = Store<Int, Int>(cacher: TieredCacher(over: FileCacher(directory: directory))) { $0 * 2 }
        for key in 0..<50 { #expect(try await store[key].requireData() == key * 2) }
        try await store.waitUntilSaved()
        let files = FileCacher<Int, Int>(directory: directory)
        for key in 0..<50 { #expect(try await files.load(param: key)?.content == key * 2) }
    }

    // MARK: Changes during the wait

    @Test(arguments: Backing.withCacher)
    func `C6: waitUntilSaved() does not await a later save of another key`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        _ = try await bench.store[1].requireData()
        let waiter = Waiter { try await bench.store.waitUntilSaved() }
        try await bench.callers(1)
        _ = try await bench.store[2].requireData()
        try await bench.cacher.began(.save, count: 2)
        try await bench.cacher.releaseNext(.save)
        try await waiter.task.value
        #expect(bench.cacher.record(of: 1) != nil && bench.cacher.record(of: 2) == nil)
        bench.cacher.release()
        try await bench.store.waitUntilSaved()
        #expect(bench.cacher.record(of: 2) != nil)
    }

    @Test(arguments: Backing.withCacher, Asked.allCases)
    func `C6: a newer record is awaited only by calls made after it`(_ backing: Backing, _ asked: Asked) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        let updates = [Task { await bench.store[1].update(1) }]
        try await bench.cacher.began(.save)
        let first = Waiter { try await asked.wait(bench) }
        try await bench.callers(2)
        let update = Task { await bench.store[1].update(2) }
        try await bench.callers(3)
        let second = Waiter { try await asked.wait(bench) }
        try await bench.callers(4)
        try await bench.cacher.releaseNext(.save)
        try await first.task.value
        #expect(second.isWaiting && bench.cacher.record(of: 1)?.content == 1)
        try await bench.cacher.releaseNext(.save)
        try await second.task.value
        #expect(bench.cacher.record(of: 1)?.content == 2)
        for update in updates + [update] { await update.value }
    }

    @Test func `C6: waitUntilSaved() does not await a fetch`() async throws {
        let bench = Bench(.plain)
        let caller = try await bench.heldCaller()
        try await bench.store.waitUntilSaved()
        bench.fetcher.release()
        _ = try await caller.value
    }

    // MARK: Failing cachers

    @Test(arguments: Backing.withCacher, Asked.allCases)
    func `C6: a failed save is thrown after all other saves have ended`(_ backing: Backing, _ asked: Asked) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        let others = asked == .store ? [2, 3, 4] : []
        for key in [1] + others { _ = try await bench.store[key].requireData() }
        try await bench.cacher.began(.save, count: 1 + others.count)
        let waiter = Waiter { try await asked.wait(bench) }
        for key in [1] + others { try await bench.callers(1, of: key) }
        let number = try #require(bench.cacher.calls(.save).first { $0.param == 1 }?.number)
        bench.cacher.release(number, failing: true)
        for _ in others {
            #expect(waiter.isWaiting)
            try await bench.cacher.releaseNext(.save)
        }
        let error = try #require(await #expect(throws: StoreError.self) { try await waiter.task.value })
        #expect(error.code == .cacherFailed && error.underlyingError is GatedCacher<Int, Int>.Broken)
        for key in others { #expect(bench.cacher.record(of: key) != nil) }
        #expect(await bench.store[1].getData(from: .cache) != nil, "the content is lost")
    }

    @Test(arguments: [GatedCacher<Int, Int>.Operation.save, .remove, .load], Asked.allCases)
    func `C5, C6: each call retries a failed save, removal or read for an invalidation at once`(
        _ failing: GatedCacher<Int, Int>.Operation, _ asked: Asked
    ) async throws {
        for backing in Backing.withCacher {
            let bench = Bench(backing, saved: 3)
            bench.cacher.fail(failing)
            switch failing {
            case .load: await bench.store[1].invalidate()
            case .remove:
                await bench.store[1].update(7)
                await bench.store[1].clear()
            default: await bench.store[1].update(7)
            }
            for count in 2...(failing == .save ? 3 : 2) {
                await #expect(throws: StoreError.self) { try await asked.wait(bench) }
                #expect(bench.liveKeys == 1)
                if failing == .save { #expect(bench.cacher.calls(.save).count == count) }
            }
            bench.cacher.recover()
            try await asked.wait(bench)
            let record = bench.cacher.record(of: 1)
            #expect(record?.content == (failing == .save ? 7 : failing == .load ? 3 : nil))
            #expect(record?.isInvalidated == (failing == .remove ? nil : failing == .load))
            #expect(bench.cacher.breaches == [])
            try await bench.idle()
        }
    }

    @Test(arguments: Backing.withCacher)
    func `C5, C6: waitUntilSaved() awaits an invalidation in progress`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.hold(.load)
        let invalidation = Task { await bench.store[1].invalidate() }
        try await bench.cacher.began(.load)
        let waiter = Waiter { try await bench.store.waitUntilSaved() }
        try await bench.callers(2)
        try await bench.cacher.releaseNext(.load)
        try await waiter.task.value
        #expect(bench.cacher.record(of: 1)?.isInvalidated == true)
        await invalidation.value
    }

    @Test func `C5, C6: waitUntilSaved() throws if an invalidation cannot be saved yet`() async throws {
        let bench = Bench(.plain, fetcher: ScriptedFetcher { _ in .failure(Offline()) }, saved: 3)
        bench.cacher.fail(.load)
        await bench.store[1].invalidate()
        bench.cacher.recover()
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.error != nil }
        let error = await #expect(throws: StoreError.self) { try await bench.store.waitUntilSaved() }
        #expect(error?.code == .cacherFailed)
        try await observer.stopAndLeave()
        try await bench.store.waitUntilSaved()
        #expect(bench.cacher.record(of: 1)?.isInvalidated == true)
    }

    /// A cacher that throws a cancellation error by itself.
    private struct Cancelled: Cacher {
        var expiry: Expiry { .never }
        func load(param: Int) -> CacheRecord<Int>? { nil }
        func save(_ record: CacheRecord<Int>, param: Int) throws { throw CancellationError() }
        func remove(param: Int) {}
        func removeAll() {}
    }

    @Test func `C9: a cancellation error thrown by the cacher is a failure like any other`() async throws {
        let store = Store(cacher: Cancelled()) { $0 }
        await store[1].update(1)
        let error = await #expect(throws: StoreError.self) { try await store.waitUntilSaved() }
        #expect(error?.underlyingError is CancellationError)
    }

    // MARK: Cancellation

    @Test(arguments: Backing.withCacher, Asked.allCases)
    func `C9: a canceled waitUntilSaved() returns at once, and the save continues`(_ backing: Backing, _ asked: Asked) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        for key in 1...3 { _ = try await bench.store[key].requireData() }
        let waiter = Waiter { try await asked.wait(bench) }
        for key in 1...(asked == .store ? 3 : 1) { try await bench.callers(1, of: key) }
        waiter.task.cancel()
        #expect(await waiter.outcome == "CancellationError")
        for key in 1...3 { #expect(bench.registered(key) == 0 && bench.waiting(key) == 0) }
        bench.cacher.release()
        try await bench.idle()
        for key in 1...3 { #expect(bench.cacher.record(of: key) != nil) }
        #expect(bench.cacher.breaches == [])
    }

    @Test(arguments: Asked.allCases)
    func `C9: waitUntilSaved() in a canceled task throws and retries no save`(_ asked: Asked) async throws {
        let bench = Bench(.plain)
        bench.cacher.fail(.save)
        await bench.store[1].update(7)
        let waiter = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await asked.wait(bench)
        }
        #expect(await waiter.outcome == "CancellationError")
        #expect(bench.cacher.calls(.save).count == 1)
    }

    // MARK: Several stores

    @Test func `C6: a scope waits for all its stores and then throws the failure of one`() async throws {
        let scope = CacheScope()
        let benches = (0..<3).map { _ in Bench(.plain, scope: scope) }
        benches[0].cacher.fail(.save)
        for bench in benches.dropFirst() { bench.cacher.hold(.save) }
        for bench in benches { #expect(try await bench.store[1].requireData() == 1) }
        let waiter = Waiter { try await scope.waitUntilSaved() }
        for bench in benches.dropFirst() { try await bench.callers(1) }
        try await benches[1].cacher.releaseNext(.save)
        try await benches[1].idle()
        #expect(waiter.isWaiting && benches[2].cacher.record(of: 1) == nil)
        try await benches[2].cacher.releaseNext(.save)
        #expect(await waiter.outcome == "StoreError")
        #expect(benches[2].cacher.record(of: 1)?.content == 1)
        for bench in benches { bench.cacher.recover() }
        try await scope.waitUntilSaved()
        #expect(benches.allSatisfy { $0.cacher.record(of: 1)?.content == 1 })
    }

    @Test func `C6: waiting for a scope can be canceled, and returns at once without stores`() async throws {
        let scope = CacheScope()
        try await scope.waitUntilSaved()
        let bench = Bench(.plain, scope: scope)
        bench.cacher.hold(.save)
        #expect(try await bench.store[1].requireData() == 1)
        let waiter = Waiter { try await scope.waitUntilSaved() }
        try await bench.callers(1)
        waiter.task.cancel()
        #expect(await waiter.outcome == "CancellationError")
        try await bench.cacher.releaseNext(.save)
        try await bench.idle()
        #expect(bench.cacher.record(of: 1)?.content == 1)
    }

    // MARK: Clearing

    @Test(arguments: Backing.withCacher, [false, true])
    func `C6: waitUntilSaved() awaits a running clear() and throws its failure`(_ backing: Backing, _ fails: Bool) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(7)
        bench.cacher.hold(.removeAll)
        let clear = Task { try await bench.store.clear() }
        try await bench.cacher.began(.removeAll)
        let canceled = Waiter { try await bench.store.waitUntilSaved() }
        let waiter = Waiter { try await bench.store[1].waitUntilSaved() }
        try await bench.clearers(served: 3, waiting: 0)
        canceled.task.cancel()
        #expect(await canceled.outcome == "CancellationError" && waiter.isWaiting)
        try await bench.cacher.releaseNext(.removeAll, failing: fails)
        #expect(await waiter.outcome == (fails ? "StoreError" : "()"))
        #expect(await clear.outcome == (fails ? "StoreError" : "()"))
    }

    @Test func `C6: waitUntilSaved() awaits a clear() that waits behind another one`() async throws {
        let bench = Bench(.plain)
        bench.cacher.hold(.removeAll)
        let clears = [Task { try await bench.store.clear() }]
        try await bench.cacher.began(.removeAll)
        let clear = Task { try await bench.store.clear() }
        try await bench.clearers(served: 1, waiting: 1)
        let waiter = Waiter { try await bench.store.waitUntilSaved() }
        try await bench.clearers(served: 1, waiting: 2)
        try await bench.cacher.releaseNext(.removeAll)
        try await bench.cacher.began(.removeAll, count: 2)
        #expect(waiter.isWaiting)
        try await bench.cacher.releaseNext(.removeAll)
        try await waiter.task.value
        for clear in clears + [clear] { try await clear.value }
    }
}

extension Bench {
    /// Waits until the given numbers of calls wait for the running clear() and for the next one.
    fileprivate func clearers(served: Int, waiting: Int) async throws {
        try await until("\(served) and \(waiting) calls wait to clear") {
            self.store.engine.state.withLock { $0.clearing?.count == served && ($0.nextClearing?.count ?? 0) == waiting }
        }
    }
}
