import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct FaultTests {
    // MARK: Failed saves and removals

    @Test(arguments: Backing.withCacher, [false, true])
    func `C6: a record that failed to save, observed or not, is saved again after another record could be`(
        _ backing: Backing, _ isObserved: Bool
    ) async throws {
        let bench = Bench(backing)
        bench.cacher.fail(.save)
        await bench.store[1].update(70)
        let observer = try await isObserved ? observeCompleted(bench.store[1].publish()) : nil
        bench.cacher.recover()
        await bench.store[2].update(71)
        #expect(bench.cacher.record(of: 1) == nil, "a cacher that has just failed is not called for a while")
        bench.time.advance(by: StorePolicy.default.minimumInterval)
        await bench.store[2].update(72)
        try await until("the record is saved") { bench.cacher.record(of: 1)?.content == 70 }
        if let observer { #expect(observer.summary == "completed(70)") } else { try await bench.idle() }
        #expect(bench.cacher.calls(.save).count { $0.param == 1 } == 2)
        #expect(bench.cacher.breaches == [])
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a failed removal is repeated after a record could be saved, and readers find no content meanwhile`(
        _ backing: Backing
    ) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(70)
        bench.cacher.fail(.remove)
        await bench.store[1].clear()
        #expect(bench.cacher.record(of: 1)?.content == 70)
        await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
        bench.cacher.recover()
        bench.time.advance(by: .seconds(1))
        await bench.store[2].update(72)
        try await bench.idle()
        #expect(bench.cacher.record(of: 1) == nil)
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a cacher that keeps failing is retried once for each record that it saves`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        for key in 1...3 {
            let update = Task { [handle = bench.store[key]] in await handle.update(key) }
            try await bench.cacher.releaseNext(.save, failing: true)
            await update.value
        }
        bench.time.advance(by: .seconds(1))
        let update = Task { [handle = bench.store[9]] in await handle.update(9) }
        try await bench.cacher.releaseNext(.save)
        await update.value
        try await bench.cacher.releaseNext(.save, failing: true)
        try await until("the cacher is idle") { bench.cacher.runningCount == 0 && bench.liveKeys == 3 }
        #expect(bench.cacher.calls(.save).compactMap(\.param) == [1, 2, 3, 9, 1])
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a failed invalidation of a key in use does not keep other records from being saved again`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.fail(.load)
        bench.fetcher.hold()
        await bench.store[1].invalidate()
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.isLoading }
        bench.cacher.recover()
        bench.cacher.fail(.save)
        await bench.store[2].update(70)
        bench.cacher.recover()
        bench.time.advance(by: .seconds(1))
        await bench.store[3].update(71)
        try await until("the record is saved") { bench.cacher.record(of: 2)?.content == 70 }
        #expect(observer.summary == "loading(nil)")
    }

    // MARK: Invalidation

    @Test(arguments: Backing.withCacher)
    func `C5: an invalidation is not lost if the record cannot be read`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.fail(.load)
        await bench.store[1].invalidate()
        bench.cacher.recover()
        #expect(await bench.store[1].getData(from: .cache) == nil)
        #expect(try await bench.store[1].requireData() == 1)
        try await bench.idle()
        #expect(bench.cacher.record(of: 1)?.content == 1)
    }

    @Test(arguments: Backing.withCacher)
    func `C4, C5: a record that could not be read is dated expired later, and kept`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.fail(.load)
        await bench.store[1].invalidate()
        bench.cacher.recover()
        bench.time.advance(by: .seconds(1))
        await bench.store[2].update(9)
        try await bench.idle()
        let record = bench.cacher.record(of: 1)
        #expect(record?.content == 3 && record?.isInvalidated == true)
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test(arguments: Backing.withCacher)
    func `C14: a mutation is not lost if the record could not be read`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.fail(.load)
        try await bench.store[1].mutate(optimistically: { $0 = 1 }, perform: {})
        bench.cacher.recover()
        #expect(try await bench.store[1].requireData() == 1)
        try await bench.idle()
        #expect(bench.cacher.record(of: 1)?.content == 1)
    }

    // MARK: Clearing

    @Test(arguments: Backing.withCacher, [false, true])
    func `C6: a record saved after a failed clear() is returned, even after a successful one`(
        _ backing: Backing, _ clearsAgain: Bool
    ) async throws {
        let bench = Bench(backing)
        bench.cacher.fail(.removeAll)
        await #expect(throws: StoreError.self) { try await bench.store.clear() }
        if clearsAgain {
            bench.cacher.recover()
            try await bench.store.clear()
        } else {
            bench.time.advance(by: .seconds(1))
        }
        await bench.store[1].update(70)
        try await bench.idle()
        #expect(await bench.store[1].getData(from: .cache) == 70)
    }

    @Test(arguments: Backing.withCacher, [Duration.zero, .seconds(86_400), .seconds(-86_400)])
    func `C6: after a failed clear(), only records saved since are returned, even if the clock was set forward or back`(
        _ backing: Backing, _ shift: Duration
    ) async throws {
        let bench = Bench(backing)
        // The clock is ahead either at the save or at the clearing.
        if shift < .zero { bench.time.shiftDate(by: Duration.zero - shift) }
        for key in 1...2 { await bench.store[key].update(70) }
        if shift < .zero { bench.time.shiftDate(by: shift) }
        bench.cacher.fail(.removeAll)
        if shift > .zero { bench.time.shiftDate(by: shift) }
        await #expect(throws: StoreError.self) { try await bench.store.clear() }
        if shift > .zero { bench.time.shiftDate(by: Duration.zero - shift) }
        bench.cacher.recover()
        #expect(bench.cacher.storedCount == 2)
        #expect(await bench.store[1].getData(from: .cache) == nil)
        let observer = try await observeCompleted(bench.store[2].publish())
        #expect(observer.states.compactMap(\.content) == [1])
        try await observer.stopAndLeave()
        await bench.store[3].update(71)
        try await bench.idle()
        #expect(await bench.store[3].getData(from: .cache) == 71)
    }

    // MARK: Listing

    @Test(arguments: Backing.withCacher, [false, true])
    func `C6, C9: invalidate(where:) lists no keys while the store is being cleared, and returns at once if it is canceled`(
        _ backing: Backing, _ isCanceled: Bool
    ) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(70)
        let clear = try await bench.heldClear()
        let invalidation = Task { [store = bench.store] in try await store.invalidate { _ in true } }
        try await bench.listings(1)
        if isCanceled {
            invalidation.cancel()
            #expect(await invalidation.outcome == "CancellationError")
        }
        bench.cacher.release()
        try await clear.value
        if !isCanceled { try await invalidation.value }
        #expect(bench.cacher.calls(.load).isEmpty && bench.cacher.breaches == [])
        try await until("the engine is idle") { bench.store.engineIsIdle }
    }

    // MARK: Hops

    @Test func `clearing a store in memory costs its actor no job`() async throws {
        #expect(try await CountingActor().clear(Bench(.memory).store) == 0)
    }

    @Test func `clearing a store costs its actor one job if it has to wait`() async throws {
        let (bench, actor) = (Bench(.plain), CountingActor())
        bench.cacher.hold(.removeAll)
        let clear = Task { [store = bench.store] in try await actor.clear(store) }
        try await bench.cacher.began(.removeAll)
        // A job of its own, which runs when the call is suspended.
        _ = await actor.jobCount
        bench.cacher.release()
        #expect(try await clear.value == 1 + 1)
    }
}

extension CountingActor {
    /// Clears a store and returns the number of jobs that the actor got meanwhile.
    fileprivate func clear(_ store: Store<Int, Int>) async throws -> Int {
        let before = jobCount
        try await store.clear()
        return jobCount - before
    }
}

extension Bench {
    /// Waits until the given number of calls wait to list the keys.
    fileprivate func listings(_ count: Int) async throws {
        try await until("\(count) calls wait to list keys") {
            self.store.engine.state.withLock { $0.listings.count { $0.value.suspendedCount > 0 } == count }
        }
    }
}
