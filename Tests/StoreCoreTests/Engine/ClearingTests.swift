@testable import StoreCore
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ClearingTests {
    @Test(arguments: Backing.withCacher)
    func `C6: clearing the store is a barrier for saves`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save, .removeAll)
        let before = Task { [handle = bench.store[1]] in await handle.update(1) }
        try await bench.cacher.began(.save)
        let clear = Task { [store = bench.store] in try await store.clear() }
        try await until("the store is being cleared") { bench.store.engine.state.withLock { $0.queue.isBarred } }
        #expect(bench.cacher.calls(.removeAll).isEmpty)
        let after = Task { [handle = bench.store[2]] in await handle.update(2) }
        try await bench.callers(1, of: 2)
        try await bench.cacher.releaseNext(.save)
        await before.value
        try await bench.cacher.began(.removeAll)
        #expect(bench.cacher.calls(.save).count == 1)
        #expect(try await bench.store[2].requireData() == 2)
        bench.cacher.release()
        try await clear.value
        await after.value
        #expect(bench.cacher.record(of: 1) == nil && bench.cacher.record(of: 2)?.content == 2)
        #expect(bench.cacher.breaches == [])
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a load that waits behind the barrier finds no record`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        let clear = try await bench.heldClear()
        let caller = Task { [handle = bench.store[1]] in try await handle.requireData(from: .cache) }
        try await bench.callers(1)
        bench.cacher.release()
        try await clear.value
        #expect(await caller.outcome == "StoreError")
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a record that waits behind one clear() does not survive a second one`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let first = try await bench.heldClear()
        let update = Task { [handle = bench.store[1]] in await handle.update(70) }
        try await bench.callers(1)
        let second = Task { [store = bench.store] in try await store.clear() }
        try await until("the second clear waits") { bench.store.engine.state.withLock { $0.nextClearing != nil } }
        bench.cacher.release()
        await update.value
        try await first.value
        try await second.value
        try await bench.idle()
        #expect(bench.cacher.storedCount == 0)
        #expect(await bench.store[1].getData(from: .cache) == nil)
    }

    @Test(arguments: Backing.withCacher)
    func `C6: clear() throws if the cacher fails, and the store keeps working`(_ backing: Backing) async throws {
        let bench = Bench(backing, reports: true)
        bench.cacher.fail(.removeAll)
        let error = await #expect(throws: StoreError.self) { try await bench.store.clear() }
        #expect(error?.code == .cacherFailed && error?.underlyingError is GatedCacher<Int, Int>.Broken)
        try await bench.events.first("fault removeAll")
        #expect(try await bench.store[1].requireData() == 1)
        try await bench.idle()
        #expect(bench.cacher.record(of: 1)?.content == 1)
    }

    @Test func `C6: a record that a failed clear() has left behind does not return with a load by its cacher`() async throws {
        let backing = GatedCacher<Int, Int>()
        let cacher = TieredCacher(over: backing)
        let store = Store(cacher: cacher) { _ in 2 }
        await store[1].update(1)
        backing.fail(.removeAll)
        await #expect(throws: StoreError.self) { try await store.clear() }
        #expect(try await cacher.load(param: 1)?.content == 1)
        #expect(await store[1].getData(from: .cache) == nil)
    }

    @Test(arguments: Backing.withCacher)
    func `C6: canceling the caller of clear() does not stop the clearing`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(1)
        let clear = try await bench.heldClear()
        clear.cancel()
        #expect(await clear.outcome == "CancellationError")
        bench.cacher.release()
        try await until("the cacher is empty") { bench.cacher.storedCount == 0 }
    }

    @Test(arguments: Backing.allCases)
    func `C6, C9: clear() in a canceled task clears and always throws CancellationError`(_ backing: Backing) async throws {
        for round in 1...rounds(50, quick: 20) {
            let scope = CacheScope()
            let bench = Bench(backing, scope: scope)
            await bench.store[1].update(round)
            let clear = Task { [store = bench.store] in
                // Canceling from inside the task ensures that no round begins before its cancellation.
                withUnsafeCurrentTask { $0?.cancel() }
                if round.isMultiple(of: 2) { try await store.clear() } else { try await scope.clear() }
            }
            #expect(await clear.outcome == "CancellationError", "round \(round)")
            try await until("the cacher is empty") { bench.cacher.storedCount == 0 }
            #expect(await bench.store[1].getData(from: .cache) == nil, "round \(round)")
        }
    }

    @Test(arguments: Backing.allCases)
    func `C6: clearing the store drops running fetches of the old data`(_ backing: Backing) async throws {
        let bench = Bench(backing, fetcher: .counting(cancellation: .ignored), reports: true)
        let caller = try await bench.heldCaller()
        await caller.cancelAndWait()
        try await bench.store.clear()
        bench.fetcher.release()
        try await bench.events.first("cancelled")
        #expect(await bench.store[1].getData(from: .cache) == nil)
        #expect(bench.cacher.storedCount == 0)
    }

    @Test(arguments: Backing.allCases)
    func `C6: clearing a scope clears all its stores and does not retain them`(_ backing: Backing) async throws {
        let scope = CacheScope()
        let benches = (0..<3).map { _ in Bench(backing, scope: scope) }
        for bench in benches { await bench.store[1].update(7) }
        var brief: Bench? = Bench(backing, scope: scope)
        weak let engine = brief?.store.engineObject
        brief = nil
        #expect(engine == nil)
        try await scope.clear()
        for bench in benches {
            #expect(await bench.store[1].getData(from: .cache) == nil)
            #expect(bench.cacher.storedCount == 0)
        }
    }

    @Test func `C6: a slow or failing store in a scope does not let the others publish old data`() async throws {
        let scope = CacheScope()
        let slow = Bench(.plain, scope: scope)
        slow.cacher.hold(.removeAll)
        let other = Bench(fetcher: .counting(cancellation: .ignored), scope: scope)
        other.fetcher.hold()
        let observer = RecordingObserver(other.store[1].publish())
        try await other.fetcher.started(count: 1)
        let clear = Task { try await scope.clear() }
        try await slow.cacher.began(.removeAll)
        // The other store has begun to clear although the first one has not finished.
        try await other.fetcher.started(count: 2)
        try await other.fetcher.answer(1, with: .success(-1))
        try await other.fetcher.ended(count: 1)
        try await other.fetcher.answer(2, with: .success(2))
        try await observer.next { $0.isCompleted }
        #expect(observer.states.compactMap(\.content) == [2])
        try await slow.cacher.releaseNext(.removeAll, failing: true)
        #expect(await clear.outcome == "StoreError")
    }
}
