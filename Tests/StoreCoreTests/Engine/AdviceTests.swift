import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
import StoreResilience

@testable import StoreCore
@testable import StoreFiles

/// Tests the bounds of the delays that an origin names.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct AdviceTests {
    /// Delays that an origin must not impose: in the past, none, and beyond every limit.
    static let hostile: [Duration] = [
        .seconds(-1), .seconds(Int64.min), .zero, .nanoseconds(1), .seconds(2_147_483_647), .seconds(Int64.max),
    ]

    private static func isTooLong(_ delay: Duration) -> Bool { delay > .seconds(3600) }

    @Test(arguments: hostile)
    func `C24: advice is bounded by the policy's own delay and by a limit`(_ advised: Duration) {
        for own in [Duration.zero, .milliseconds(1), .seconds(30), .seconds(7200)] {
            let delay = RetryPolicy.delay(own: own, advised: advised, limit: .seconds(3600))
            #expect(delay >= own && delay <= max(own, .seconds(3600)))
        }
        let policy = RetryPolicy(attempts: .max, base: .seconds(8), cap: .seconds(60))
        for attempt in [1, 2, 100, .max - 1] {
            for unit in [0, 0.25, 0.999] {
                let own = policy.delay(after: Offline(), attempt: attempt, unit: unit) ?? .zero
                let delay = policy.delay(after: Advice(retryAfter: advised), attempt: attempt, unit: unit)
                #expect(delay == (Self.isTooLong(advised) ? .seconds(3600) : max(own, advised)))
            }
        }
    }

    @Test func `C24: a limit never shortens the policy's own delay`() {
        var policy = RetryPolicy(attempts: 3, base: .seconds(100), cap: .seconds(100))
        for limit in [Duration.zero, .seconds(-5), .seconds(10)] {
            policy.adviceLimit = limit
            #expect(policy.delay(after: Advice(retryAfter: .seconds(3600)), attempt: 1, unit: 0.5) == .seconds(50))
        }
    }

    @Test(arguments: [(Duration.seconds(90), 90), (.seconds(2_147_483_647), 600), (.seconds(Int64.max), 600)])
    func `C12, C24: a fetch is retried after exactly the origin's delay or the limit`(_ advised: Duration, _ delay: Int) async throws {
        var policy = StorePolicy(retry: .exponential(attempts: 2, base: .seconds(8)))
        policy.retry.adviceLimit = .seconds(600)
        let bench = Bench(policy: policy, fetcher: ScriptedFetcher(.failure(Advice(retryAfter: advised)), .success(7)))
        let caller = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.time.sleepers(atLeast: 1)
        #expect(bench.time.nextDeadline == bench.time.now.advanced(by: .seconds(delay)))
        bench.time.advance(by: .seconds(delay))
        #expect(try await caller.value == 7)
    }

    @Test(arguments: [Duration.zero, .seconds(-9), .seconds(2_147_483_647)])
    func `C24, L4: a stream connects again neither at once nor after years`(_ advised: Duration) async throws {
        let bench = LiveBench(policy: StorePolicy(retry: .exponential(attempts: .max)), reports: true)
        let observer = bench.observe()
        for attempt in 1...20 {
            try await bench.feed.end(throwing: Lost(retryAfter: advised))
            try await bench.events.first("retried", count: attempt)
            try await bench.time.advance(by: .seconds(3600), sleepers: 1)
        }
        let delays = bench.events.all.compactMap { if case .retried(_, _, let delay, _) = $0.kind { delay } else { nil } }
        #expect(delays.count == 20)
        #expect(delays.allSatisfy { $0 >= StorePolicy.shortestInterval && $0 <= .seconds(3600) })
        _ = observer
    }

    @Test(arguments: hostile)
    func `C19, C24: a remembered failure passes on a bounded delay`(_ advised: Duration) async throws {
        let time = ManualTime()
        let script = ScriptedFetcher<Int, Int>(.failure(Advice(retryAfter: advised)))
        let store = Store(cacher: MemoryCacher(), fetcher: script.rememberingFailures(for: .seconds(10), time: time), time: time)
        await #expect(throws: Advice.self) { try await store[1].requireData() }
        time.advance(by: .seconds(4))
        let error = await #expect(throws: FetchError.self) { try await store[1].requireData() }
        #expect(error?.retryAfter == (Self.isTooLong(advised) ? .seconds(3596) : .seconds(6)))
    }

    @Test(arguments: [-1e300, -1, 0, 12.5, 2_147_483_647, 1e300])
    func `C24, D5: a delay in the file of a lease is bounded, whatever the file says`(_ seconds: Double) throws {
        let failure = #"{"kind":"transient","retryAfter":\#(seconds),"allowsStale":true,"message":"m"}"#
        let json = #"{"expires":0,"ended":{"holder":1,"failure":\#(failure)}}"#
        let note = try JSONDecoder().decode(LeaseNote.self, from: Data(json.utf8))
        let delay = try #require(note.ended?.failure?.retryAfter)
        #expect(delay == .seconds(min(max(seconds, 0), 3600)))
    }

    @Test(arguments: [-1e300, 0, 1e300, 4_000_000_000])
    func `C24, D5: a lease ends after its duration, whatever the date in its file`(_ expires: Double) {
        let remaining = LeaseNote(holder: 1, expires: expires).remaining(atMost: .seconds(30))
        #expect(remaining <= .seconds(30))
    }
}
