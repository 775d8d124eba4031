import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct RetryTests {
    private static let policy = StorePolicy(retry: .exponential(attempts: 3, base: .seconds(8)))

    @Test func `C12: a transient failure is retried after a jittered delay without publishing a state`() async throws {
        let bench = Bench(
            policy: Self.policy, fetcher: ScriptedFetcher(.failure(Offline()), .failure(Offline()), .success(7)), reports: true)
        let observer = RecordingObserver(bench.store[1].publish())
        // A slow observer would skip this state.
        _ = try await observer.states(count: 1)
        for attempt in 1...2 {
            try await bench.events.first("retried", count: attempt)
            try await bench.time.sleepers(atLeast: 1)
            bench.time.advanceToNextDeadline()
        }
        try await observer.next { $0.isCompleted }
        #expect(observer.summary == "loading(nil) completed(7)")
        let bounds: [Duration] = bench.events.all.compactMap { if case .retried(_, _, let delay, _) = $0.kind { delay } else { nil } }
        #expect(bounds.count == 2 && bounds[0] < .seconds(8) && bounds[1] < .seconds(16))
        try await bench.events.first("began")
        #expect(bench.events.names.count { $0 == "began" } == 1)
    }

    @Test func `C12: each retry has its own jitter`() async throws {
        let policy = StorePolicy(retry: .exponential(attempts: 2, base: .seconds(8)), prefetchWidth: 32)
        let bench = Bench(policy: policy, fetcher: ScriptedFetcher { _ in throw Offline() }, reports: true)
        bench.store.prefetch(1...32)
        try await bench.events.first("retried", count: 32)
        let delays = bench.events.all.compactMap { if case .retried(_, _, let delay, _) = $0.kind { delay } else { nil } }
        #expect(Set(delays).count > 16)
        try await bench.time.advance(by: .seconds(60), sleepers: 32)
        try await bench.idle()
    }

    @Test(arguments: [Advice(failureKind: .permanent), Advice(failureKind: .fatal), Advice(failureKind: .cancelled), Advice(attempts: 2)])
    func `C12: a permanent, fatal or cancellation failure, and one that was already retried below, is not retried`(
        _ failure: Advice
    ) async throws {
        let bench = Bench(policy: Self.policy, fetcher: ScriptedFetcher(.failure(failure)))
        await #expect(throws: Advice.self) { try await bench.store[1].requireData() }
        #expect(bench.fetcher.startedCount == 1)
    }

    @Test func `C12: an unwanted fetch is canceled while it waits for a retry`() async throws {
        let bench = Bench(policy: Self.policy, fetcher: ScriptedFetcher { _ in throw Advice(retryAfter: .seconds(90)) })
        let caller = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.time.sleepers(atLeast: 1)
        await caller.cancelAndWait()
        try await bench.time.advance(by: .seconds(1), sleepers: 2)
        try await bench.idle()
        try await bench.time.sleepers(atMost: 0)
        #expect(bench.fetcher.startedCount == 1)
    }

    @Test func `C12: after a failure errorExpiry holds off automatic fetches of a live key, but not explicit ones`() async throws {
        let bench = Bench(policy: StorePolicy(errorExpiry: .seconds(30)), fetcher: ScriptedFetcher { _ in throw Offline() })
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.error != nil }
        await #expect(throws: Offline.self) { try await bench.store[1].requireData() }
        await bench.store[1].validate()
        let second = try await observeFirst(bench.store[1].publish())
        #expect(second.summary == "error(Offline,nil)")
        #expect(bench.fetcher.startedCount == 1)
        await bench.store[1].refresh()
        await #expect(throws: Offline.self) { try await bench.store[1].requireData(from: .origin) }
        #expect(bench.fetcher.startedCount == 3)
        bench.time.advance(by: .seconds(30))
        await #expect(throws: Offline.self) { try await bench.store[1].requireData() }
        #expect(bench.fetcher.startedCount == 4)
    }

    @Test func `C12: without errorExpiry the next caller retries at once`() async throws {
        let bench = Bench(fetcher: ScriptedFetcher { _ in throw Offline() })
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.error != nil }
        await #expect(throws: Offline.self) { try await bench.store[1].requireData() }
        let second = RecordingObserver(bench.store[1].publish())
        try await second.next { $0.error != nil }
        #expect(bench.fetcher.startedCount == 3)
    }
}
