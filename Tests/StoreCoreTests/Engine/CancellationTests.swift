import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct CancellationTests {
    enum Leaver: CaseIterable, Sendable { case leader, follower }

    @Test(arguments: Backing.allCases, Leaver.allCases)
    func `C9: a canceled caller returns at once and does not affect other callers`(_ backing: Backing, _ leaver: Leaver) async throws {
        let bench = Bench(backing)
        let leader = try await bench.heldCaller()
        let follower = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.callers(2)
        let (gone, stays) = leaver == .leader ? (leader, follower) : (follower, leader)
        gone.cancel()
        #expect(await gone.outcome == "CancellationError")
        #expect(bench.fetcher.cancelledCount == 0)
        bench.time.advance(by: .seconds(5))
        bench.fetcher.release()
        #expect(try await stays.value == 1)
        #expect(bench.fetcher.startedCount == 1)
    }

    @Test(arguments: Backing.withCacher)
    func `C9: a canceled caller returns at once during a cache read or a save`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.load, .save)
        let reader = Task { [handle = bench.store[1]] in try await handle.requireData() }
        let changer = Task { [handle = bench.store[2]] in await handle.update { $0 += 1 } }
        let writer = Task { [handle = bench.store[3]] in await handle.update(1) }
        for key in 1...3 { try await bench.callers(1, of: key) }
        reader.cancel()
        changer.cancel()
        writer.cancel()
        #expect(await reader.outcome == "CancellationError")
        #expect(await changer.value == false)
        await writer.value
        bench.cacher.release()
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test func `C9: an unwanted fetch is canceled silently after the grace period`() async throws {
        let bench = Bench()
        await bench.store[1].update(7)
        bench.fetcher.hold()
        let refresh = Task { [handle = bench.store[1]] in await handle.refresh() }
        try await bench.fetcher.started(count: 1)
        try await bench.callers(1)
        await refresh.cancelAndWait()
        try await bench.time.advance(by: .seconds(1) - .nanoseconds(1), sleepers: 1)
        #expect(bench.fetcher.cancelledCount == 0 && bench.liveKeys == 1)
        bench.time.advance(by: .nanoseconds(1))
        try await bench.fetcher.cancelled(count: 1)
        try await bench.idle()
        let observer = try await observeFirst(bench.store[1].publish())
        #expect(observer.summary == "completed(7)")
    }

    @Test(arguments: [false, true])
    func `C9: a fetch survives its last observer if a caller needs it, or arrives within the grace period`(arrives: Bool) async throws {
        let bench = Bench()
        bench.fetcher.hold()
        let observer = try await observeFirst(bench.store[1].publish())
        if arrives {
            try await observer.stopAndLeave()
            bench.time.advance(by: .milliseconds(900))
        }
        let caller = try await bench.waitingCaller()
        if !arrives { try await observer.stopAndLeave() }
        bench.time.advance(by: .seconds(60))
        bench.fetcher.release()
        #expect(try await caller.value == 1)
        #expect(bench.fetcher.startedCount == 1 && bench.fetcher.cancelledCount == 0)
    }

    @Test(arguments: Backing.allCases)
    func `C9: an unwanted fetch runs to completion by policy, and its result is kept`(_ backing: Backing) async throws {
        let bench = Bench(backing, policy: StorePolicy(unwantedFetch: .complete))
        let caller = try await bench.heldCaller()
        await caller.cancelAndWait()
        bench.time.advance(by: .seconds(60))
        bench.fetcher.release()
        try await bench.idle()
        #expect(try await bench.store[1].requireData(from: .cache) == 1)
    }

    @Test func `C9: a fetch that never returns blocks no caller and keeps no key live`() async throws {
        let bench = Bench(fetcher: .counting(cancellation: .ignored))
        let caller = try await bench.heldCaller()
        caller.cancel()
        #expect(await caller.outcome == "CancellationError")
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await bench.idle()
        let again = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.fetcher.started(count: 2)
        try await bench.fetcher.answer(2, with: .success(20))
        #expect(try await again.value == 20)
        bench.fetcher.release()
        try await bench.fetcher.ended(count: 2)
        #expect(try await bench.store[1].requireData() == 20)
    }

    @Test func `C9: a cancellation error that the store did not cause is a failure like any other`() async throws {
        let bench = Bench(fetcher: ScriptedFetcher { _ in throw CancellationError() }, reports: true)
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.error != nil }
        #expect(observer.states.last?.summary == "error(CancellationError,nil)")
        try await bench.events.first("failed")
        #expect(!bench.events.names.contains("cancelled"))
    }

    @Test func `C9: a task canceled before its call starts no fetch`() async throws {
        let bench = Bench()
        let task = Task { [handle = bench.store[1]] in
            withUnsafeCurrentTask { $0?.cancel() }
            await handle.refresh()
            await handle.validate()
            return try await handle.requireData()
        }
        #expect(await task.outcome == "CancellationError")
        #expect(bench.fetcher.startedCount == 0 && bench.liveKeys == 0)
    }

    @Test(arguments: Backing.allCases)
    func `C9: an update is made even if its caller is canceled`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let task = Task { [handle = bench.store[1]] in
            withUnsafeCurrentTask { $0?.cancel() }
            await handle.update(7)
        }
        await task.value
        #expect(try await bench.store[1].requireData(from: .cache) == 7)
    }
}
