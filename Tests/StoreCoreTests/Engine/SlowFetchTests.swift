import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// The soft limit of a fetch, after which callers get stale content.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SlowFetchTests {
    /// A bench with content for key 1 that expired long ago, and with a fetcher that holds its fetches.
    private func slow(
        _ backing: Backing = .memory, freshness: Freshness = .unspecified, reports: Bool = false,
        _ change: (inout StorePolicy) -> Void = { _ in }
    ) async throws -> Bench {
        var policy = StorePolicy(staleAfter: .seconds(2))
        change(&policy)
        let bench = Bench(
            backing, expiry: .after(.seconds(60)), policy: policy,
            fetcher: ScriptedFetcher { .success($0.number, freshness: freshness) }, reports: reports)
        #expect(try await bench.store[1].requireData() == 1)
        try await bench.idle()
        bench.time.advance(by: .seconds(100_000))
        bench.fetcher.hold()
        return bench
    }

    /// Waits until the limit of the fetch of key 1 has passed and the machine knows it.
    private func passLimit(_ bench: Bench) async throws {
        try await bench.time.advance(by: .seconds(2), sleepers: 1)
        try await until("the fetch is slow") {
            bench.store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.machine.origin.flight?.staleDue == .distantPast }
        }
    }

    @Test(arguments: Backing.allCases, [false, true])
    func `C26: callers of a slow fetch get stale content, and the fetch goes on`(_ backing: Backing, _ reports: Bool) async throws {
        let bench = try await slow(backing, reports: reports)
        let callers = (0..<3).map { _ in bench.caller() }
        try await bench.callers(3)
        try await bench.time.advance(by: .seconds(2) - .milliseconds(1), sleepers: 1)
        #expect(bench.waiting() == 3)
        bench.time.advance(by: .milliseconds(1))
        for caller in callers { #expect(try await caller.value == 1) }
        #expect(try await bench.store[1].requireData() == 1)
        // No caller waits for the fetch any longer, and it is not canceled.
        bench.time.advance(by: .seconds(60))
        bench.fetcher.release()
        try await bench.fetcher.ended(count: 2)
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 2 && bench.fetcher.cancelledCount == 0)
        #expect(try await bench.store[1].requireData(from: .cache) == 2)
    }

    @Test func `C26: callers without content, and callers that need fresh data, wait for the slow fetch`() async throws {
        let bench = try await slow()
        let handle = bench.store[1]
        let origin = Task { try await handle.requireData(from: .origin) }
        let refresh = Task { await handle.refresh() }
        let validation = Task { await handle.validate() }
        let missing = bench.caller(of: 2)
        let impatient = bench.caller()
        try await bench.callers(4)
        try await bench.callers(1, of: 2)
        try await passLimit(bench)
        #expect(try await impatient.value == 1)
        #expect(bench.waiting(1) == 3 && bench.waiting(2) == 1)
        bench.fetcher.release()
        let (fresh, first) = (try await origin.value, try await missing.value)
        #expect(fresh > 1 && first > 1 && fresh != first)
        await refresh.value
        await validation.value
    }

    enum Bar: CaseIterable, Sendable { case revalidation, window, invalidation }

    @Test(arguments: Bar.allCases)
    func `C26: content that must not be served stale is not served by a slow fetch`(_ bar: Bar) async throws {
        let freshness =
            switch bar {
            case .revalidation: Freshness(lifetime: .seconds(60), mustRevalidate: true)
            case .window: Freshness(lifetime: .seconds(60), staleWhileRevalidate: .seconds(5))
            case .invalidation: Freshness.unspecified
            }
        let bench = try await slow(freshness: freshness)
        if bar == .invalidation { await bench.store[1].invalidate() }
        let caller = try await bench.waitingCaller()
        try await passLimit(bench)
        #expect(bench.waiting() == 1)
        bench.fetcher.release()
        #expect(try await caller.value == 2)
    }

    @Test(arguments: [FailureKind.transient, .permanent])
    func `C26: a slow fetch serves no stale content after a refusal`(_ kind: FailureKind) async throws {
        let bench = Bench(
            expiry: .after(.seconds(60)), policy: StorePolicy(staleAfter: .seconds(2)),
            fetcher: ScriptedFetcher { request in
                if request.number == 2 { throw Advice(failureKind: kind) }
                return .success(request.number)
            })
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(61))
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.error != nil }
        bench.fetcher.hold()
        let caller = try await bench.waitingCaller()
        try await passLimit(bench)
        if kind == .transient { #expect(try await caller.value == 1) } else { #expect(bench.waiting() == 1) }
        bench.fetcher.release()
        #expect(try await caller.value == (kind == .transient ? 1 : 3))
        try await observer.stopAndLeave()
    }

    @Test func `C4, C26: observers see a failure after the limit, and the next fetch has a limit of its own`() async throws {
        let bench = try await slow { $0.fetchTimeLimit = .seconds(10) }
        let observer = RecordingObserver(bench.store[1].publish())
        let first = try await bench.waitingCaller()
        try await bench.fetcher.started(count: 2)
        try await bench.time.advance(by: .seconds(2), sleepers: 2)
        #expect(try await first.value == 1)
        try await bench.time.advance(by: .seconds(8), sleepers: 1)
        let state = try await observer.next { $0.error != nil }
        #expect(state.content == 1 && (state.error as? StoreError)?.code == .fetchTimedOut)
        let second = try await bench.waitingCaller()
        try await bench.fetcher.started(count: 3)
        try await bench.time.advance(by: .seconds(2), sleepers: 2)
        #expect(try await second.value == 1)
        bench.fetcher.release()
        try await observer.next { $0.isCompleted }
        try await observer.stopAndLeave()
    }

    @Test func `C9, C26: a fetch that has served no caller is canceled as unwanted`() async throws {
        let bench = try await slow()
        let caller = try await bench.waitingCaller()
        try await bench.fetcher.started(count: 2)
        await caller.cancelAndWait()
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await bench.fetcher.cancelled(count: 1)
        bench.fetcher.release()
        try await bench.idle()
        #expect(try await bench.store[1].requireData() == 3)
    }

    @Test func `C26: the wait for a place counts`() async throws {
        let bench = try await slow { $0.fetchWidth = 1 }
        let first = bench.caller(of: 2)
        try await bench.fetcher.started(count: 2)
        let second = try await bench.waitingCaller()
        try await bench.time.advance(by: .seconds(2), sleepers: 1)
        #expect(try await second.value == 1)
        #expect(bench.fetcher.startedCount == 2)
        bench.fetcher.release()
        #expect(try await first.value == 2)
        try await bench.fetcher.ended(count: 3)
    }

    @Test(arguments: [Duration.zero, .seconds(-5)])
    func `C26: without a wait, callers get stale content at once`(_ limit: Duration) async throws {
        let bench = try await slow { $0.staleAfter = limit }
        #expect(try await bench.store[1].requireData() == 1)
        try await bench.fetcher.started(count: 2)
        bench.fetcher.release()
        try await bench.fetcher.ended(count: 2)
    }

    @Test(arguments: [Duration?.none, .seconds(Int64.max)])
    func `C26: a store without the limit has no timer`(_ limit: Duration?) async throws {
        let bench = try await slow { $0.staleAfter = limit }
        let caller = try await bench.waitingCaller()
        try await bench.fetcher.started(count: 2)
        let hasTimer = bench.store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.timer != nil }
        #expect(!hasTimer)
        bench.fetcher.release()
        #expect(try await caller.value == 2)
    }

    @Test func `C26, L4: a stream that connects slowly serves stale content, and then its first value`() async throws {
        let bench = LiveBench(expiry: .after(.seconds(60)), policy: StorePolicy(staleAfter: .seconds(2)))
        await bench.store[1].update("old")
        bench.time.advance(by: .seconds(100))
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.callers(1)
        try await bench.feed.connected(count: 1)
        try await bench.time.advance(by: .seconds(2), sleepers: 1)
        #expect(try await caller.value == "old")
        try await bench.feed.send(.content("new"))
        #expect(try await bench.store[1].requireData(from: .origin) == "new")
    }

    /// With the shorter limit, the stream waits when it passes; with the longer one, the stream connects again.
    @Test(arguments: [500, 1_500])
    func `C26, L4: the failed connections of a stream and the pauses after them count`(_ milliseconds: Int) async throws {
        let policy = StorePolicy(retry: .exponential(attempts: .max), staleAfter: .milliseconds(milliseconds))
        let bench = LiveBench(expiry: .after(.seconds(60)), policy: policy)
        await bench.store[1].update("old")
        bench.time.advance(by: .seconds(100))
        let due = bench.time.now.advanced(by: .milliseconds(milliseconds))
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.callers(1)
        try await bench.feed.connected(count: 1)
        try await bench.feed.end(throwing: Lost())
        try await until("the stream waits") {
            bench.store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.machine.origin.stream?.reconnectsAt != nil }
        }
        if milliseconds > 1_000 {
            bench.time.advance(by: .seconds(1))
            try await bench.feed.connected(count: 2)
        }
        bench.time.advance(by: bench.time.now.duration(to: due))
        #expect(try await caller.value == "old")
    }
}
