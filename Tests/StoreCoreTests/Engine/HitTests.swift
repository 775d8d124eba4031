import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

extension CountingActor {
    /// Requires the data the given number of times and returns the number of additional jobs: a suspended task resumes as another one.
    fileprivate func jobs(_ handle: StoreFlowable<Int, Int>, from source: GettingFrom = .both, times: Int) async throws -> Int {
        let before = jobCount
        for _ in 0..<times { _ = try await handle.requireData(from: source) }
        return jobCount - before
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct HitTests {
    @Test(arguments: [Backing.memory, .tiered], [Expiry.never, .after(.seconds(10))])
    func `a hit in memory does not suspend`(_ backing: Backing, _ expiry: Expiry) async throws {
        let bench = Bench(backing, expiry: expiry)
        await bench.store[1].update(7)
        try await bench.idle()
        #expect(try await CountingActor().jobs(bench.store[1], times: 1_000) == 0)
        #expect(bench.liveKeys == 0)
    }

    @Test(arguments: [Backing.memory, .tiered])
    func `a hit in memory does not suspend during a refresh with observers`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let observer = try await bench.observeUpdate(7)
        bench.fetcher.hold()
        let refresh = Task { [handle = bench.store[1]] in await handle.refresh() }
        try await bench.fetcher.started(count: 1)
        #expect(try await CountingActor().jobs(bench.store[1], times: 1_000) == 0)
        bench.fetcher.release()
        await refresh.value
        withExtendedLifetime(observer) {}
    }

    @Test func `a miss suspends, and so do hits without memory`() async throws {
        let bench = Bench()
        for source in [GettingFrom.both, .origin] {
            bench.fetcher.hold()
            try await expectSuspension(bench, from: source) { bench.fetcher.release() }
        }
        let plain = Bench(.plain)
        await plain.store[1].update(7)
        try await plain.idle()
        plain.cacher.hold(.load)
        try await expectSuspension(plain, from: .both) { plain.cacher.release() }
    }

    /// Expects a call to suspend until `proceed` is called.
    ///
    /// A call resumes at once, and costs no additional job, if its result arrives before its suspension is complete.
    private func expectSuspension(_ bench: Bench, from source: GettingFrom, _ proceed: () -> Void) async throws {
        let caller = CountingActor()
        let jobs = Task { [handle = bench.store[1]] in try await caller.jobs(handle, from: source, times: 1) }
        try await bench.callers(1)
        // A job of its own, which runs when the call is suspended.
        _ = await caller.jobCount
        proceed()
        #expect(try await jobs.value > 1)
    }
}
