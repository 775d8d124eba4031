import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
import StoreResilience

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveInputTests {
    @Test func `L7: any number of values at once hold the memory of one`() async throws {
        let count = max(5_000, rounds(1_000_000, quick: 5_000))
        let flood = ClosureLiveFetcher<Int> { _, number in
            if number <= count { return .content(number) }
            // Connected until the task is canceled.
            try await untilCanceled()
            return nil
        }
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: flood)
        let before = Memory.resident()
        // An observer that takes only the first state, and one that takes as many as it can.
        let slow = Task { for await _ in store[1].publish() { try await untilCanceled() } }
        let last = await store[1].publish().first { $0.content == count }
        #expect(last?.content == count)
        #expect(Memory.resident() - before < Memory.growthLimit)
        slow.cancel()
    }

    @Test func `L7: an origin is never asked for a value before the last one was accepted`() async throws {
        let (count, pending, hurried) = (50, WatchedState(0), WatchedState(0))
        let origin = ClosureLiveFetcher<Int> { _, number in
            if pending.current > 0 { hurried.increment() }
            if number == 1 { return .content(1) }
            guard number <= count else { return nil }
            pending.increment()
            return .change { value in
                // Gives the origin time to be asked too early.
                for _ in 0..<200 { sched_yield() }
                value += 1
                pending.update { $0 -= 1 }
            }
        }
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: origin)
        let observer = RecordingObserver(store[1].publish())
        try await until("each value is accepted, or one is taken too early") {
            observer.states.last?.content == count || hurried.current > 0
        }
        #expect(hurried.current == 0)
    }

    @Test(arguments: [Backing.memory, .tiered])
    func `L7: however many values come, only the newest are alive`(_ backing: Backing) async throws {
        let (counter, peak, ended) = (LifeCounter(), WatchedState(0), WatchedState(false))
        let count = max(4_000, rounds(20_000, quick: 4_000))
        let flood = ClosureLiveFetcher<LifeCounter.Life> { _, number in
            let alive = counter.alive
            peak.update { $0 = max($0, alive) }
            return number <= count ? .content(counter.make()) : nil
        }
        let cacher = MemoryCacher<Int, LifeCounter.Life>()
        let store = backing == .tiered ? Store(cacher: TieredCacher(over: cacher), fetcher: flood) : Store(cacher: cacher, fetcher: flood)
        let slow = Task { for await _ in store[1].publish() { try await ended.wait { $0 ? () : nil } } }
        let observer = Task { for await _ in store[1].publish() {} }
        try await until("the stream has ended") { store.runningFetches == 0 && peak.current > 0 }
        // The accepted value, the next one, those on their way to two observers, and the saved one.
        #expect(peak.current < 16)
        ended.update { $0 = true }
        slow.cancel()
        observer.cancel()
    }

    @Test func `L7: a value that was taken has been accepted`() async throws {
        let bench = LiveBench()
        let observer = bench.observe()
        // `send` returns when the store asks for the next value, so the content must be there at once.
        for value in 0..<1_000 {
            try await bench.feed.send(.content("\(value)"))
            #expect(try await bench.store[1].requireData(from: .cache) == "\(value)")
        }
        withExtendedLifetime(observer) {}
    }

    @Test func `L4: a stream that never yields keeps its key loading, and its callers can leave`() async throws {
        let bench = LiveBench()
        let observer = bench.observe()
        _ = try await observer.states(count: 1)
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.callers(1)
        bench.time.advance(by: .seconds(3_600))
        caller.cancel()
        #expect(await caller.outcome == "CancellationError")
        #expect(observer.summary == "loading(nil)")
        try await observer.stopAndLeave()
        try await bench.time.advance(by: .seconds(1), until: "the stream is canceled") { bench.feed.cancelledCount == 1 }
        try await bench.idle()
    }

    @Test func `L5: a stream that never yields is lost after the idle timeout`() async throws {
        let bench = LiveBench(policy: StorePolicy(idleTimeout: .seconds(5)))
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.feed.connected(count: 1)
        try await bench.time.advance(by: .seconds(5), sleepers: 1)
        #expect(await caller.outcome == "StoreError")
        try await bench.feed.cancelled(count: 1)
    }

    @Test func `L4: connections that fail at once forever are made at a growing distance`() async throws {
        let policy = StorePolicy(retry: RetryPolicy(attempts: .max, base: .seconds(1), multiplier: 2, cap: .seconds(60)))
        let bench = LiveBench(policy: policy, reports: true)
        bench.feed.refusal = Offline()
        let observer = bench.observe()
        for _ in 0..<100 {
            try await until("the stream waits") { bench.time.sleeperCount > 0 }
            bench.time.advanceToNextDeadline()
            let count = bench.feed.connections.count
            try await until("the stream connects") { bench.feed.connections.count > count || bench.time.sleeperCount > 0 }
        }
        let delays = bench.events.all.compactMap { event -> Duration? in
            if case .retried(_, attempt: _, let delay, _) = event.kind { delay } else { nil }
        }
        #expect(delays.allSatisfy { $0 >= .milliseconds(100) && $0 <= .seconds(60) })
        // Full jitter: the mean of the later delays is about half of the cap.
        let late = delays.dropFirst(20)
        #expect(late.reduce(.zero, +) / max(1, late.count) > .seconds(10))
        try await observer.sees("error(Offline,nil)")
    }

    @Test func `L4: a first value does not renew the attempts of the policy`() async throws {
        let bench = LiveBench(policy: StorePolicy(retry: RetryPolicy(attempts: 4, base: .seconds(1), multiplier: 2, cap: .seconds(60))))
        let observer = bench.observe()
        for number in 1...4 {
            try await bench.feed.send(.content("\(number)"), on: number)
            try await bench.feed.end(throwing: Offline(), on: number)
            try await observer.sees("error(Offline,\(number))")
            guard number < 4 else { break }
            try await bench.time.advance(by: .milliseconds(100), until: "the stream connects") { bench.feed.connections.count > number }
        }
        bench.time.advance(by: .seconds(3_600))
        #expect(bench.feed.connections.count == 4)
    }

    @Test func `L4: a stream that ends without a value is a failure`() async throws {
        let bench = LiveBench()
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.feed.end()
        let error = await #expect(throws: StoreError.self) { try await caller.value }
        #expect(error?.code == .endedWithoutValue)
    }

    @Test func `L3: a stream that ignores cancellation delivers to no observer and holds nothing up`() async throws {
        let bench = LiveBench(cancellation: .ignored, reports: true)
        let observer = try await bench.observe(sending: .content("a"))
        await bench.store[1].clear()
        try await bench.feed.send(.content("b"), on: 2)
        try await observer.sees("completed(b)")
        try await bench.feed.send(.content("poison"), on: 1)
        try await bench.events.first("outdated")
        try await bench.feed.send(.content("c"), on: 2)
        try await observer.sees("completed(c)")
        #expect(!observer.summary.contains("poison") && bench.feed.openCount == 1)
    }

    @Test func `L3: a change before any content is a failure`() async throws {
        let bench = LiveBench()
        let observer = try await bench.observe(sending: .change { $0 += "b" })
        let state = try await observer.next { $0.error != nil }
        #expect((state.error as? StoreError)?.code == .nothingToChange)
        try await bench.feed.ended(count: 1)
    }

    @Test(arguments: [nil, Validator("1")])
    func `L3: only a stream with a validator may continue cached content`(_ validator: Validator?) async throws {
        let bench = LiveBench(.plain)
        bench.cacher.put(CacheRecord(content: "old", fetchedAt: bench.time.date, validator: validator), param: 1)
        let observer = bench.observe(forceRefresh: true)
        try await bench.feed.send(.change { $0 += "+" })
        let state = try await observer.next { $0.error != nil || $0.content == "old+" }
        #expect(state.content == (validator == nil ? "old" : "old+") && state.isCompleted == (validator != nil))
        #expect(bench.feed.connections.map(\.last) == [validator])
    }

    @Test func `C19, C20, L1: a decorated origin keeps its streams, and each connection asks the rule`() async throws {
        let (feed, time) = (ScriptedLiveFetcher<Int, String>(), ManualTime())
        let breaker = CircuitBreaker(opensAfter: 2, holdsFor: .seconds(30), time: time)
        let store = Store(
            cacher: MemoryCacher(), fetcher: feed.rememberingFailures(for: .milliseconds(1), time: time).guarded(by: breaker),
            policy: .reconnecting(), time: time)
        let observer = RecordingObserver(store[1].publish())
        try await feed.send(.content("a", Validator("1")))
        try await feed.send(.change({ $0 += "b" }, Validator("2")))
        try await observer.sees("completed(ab)")
        #expect(feed.connections.count == 1)
        // The first connection has had its success. Two that fail open the breaker.
        try await feed.end(throwing: Lost())
        for number in 2...3 {
            try await time.advance(by: .seconds(1), until: "the stream connects") { feed.connections.count == number }
            #expect(breaker.state == .closed)
            try await feed.end(throwing: Lost(), on: number)
        }
        try await observer.next { $0.error is Lost && $0.content == "ab" }
        try await until("the breaker is open") { breaker.state == .open }
        // In small steps, so that the breaker does not let a connection through before the refusal.
        try await time.advance(by: .milliseconds(10), until: "a connection is refused") { observer.states.last?.error is FetchError }
        let refusal = try await observer.next { $0.error is FetchError }
        #expect((refusal.error as? FetchError)?.code == .circuitOpen && refusal.content == "ab")
        #expect(feed.connections.map(\.last) == [nil, Validator("2"), Validator("2")])
        try await time.advance(by: .seconds(1), until: "the stream connects") { feed.connections.count == 4 }
        try await feed.send(.current, on: 4)
        try await observer.sees("completed(ab)")
        #expect(breaker.state == .closed)
    }
}
