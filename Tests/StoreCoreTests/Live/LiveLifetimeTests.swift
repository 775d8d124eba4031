import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveLifetimeTests {
    @Test func `L4: the stream runs while the key is observed, and for the grace period after`() async throws {
        let bench = LiveBench()
        let observer = try await bench.observe(sending: .content("a"))
        bench.time.advance(by: .seconds(3_600))
        try await observer.stopAndLeave()
        try await bench.time.advance(by: .seconds(1) - .nanoseconds(1), sleepers: 1)
        #expect(bench.feed.cancelledCount == 0)
        let second = bench.observe()
        try await second.sees("completed(a)")
        try await bench.feed.send(.content("b"))
        try await second.sees("completed(b)")
        try await second.stopAndLeave()
        try await bench.time.advance(by: .seconds(1), until: "the stream is canceled") { bench.feed.cancelledCount == 1 }
        try await bench.idle()
        #expect(bench.feed.connections.count == 1)
    }

    @Test(arguments: Backing.allCases)
    func `L4: an observer begins a stream even if the content is valid`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let observer = try await bench.observe(sending: .content("a", Validator("1")))
        try await observer.sees("completed(a)")
        try await observer.stopAndLeave()
        try await bench.time.advance(by: .seconds(1), until: "the stream is canceled") { bench.feed.cancelledCount == 1 }
        try await bench.idle()
        // A caller needs no stream.
        #expect(try await bench.store[1].requireData() == "a")
        #expect(bench.feed.connections.count == 1)
        let second = bench.observe()
        try await second.sees("loading(a)")
        try await bench.feed.send(.current, on: 2)
        try await second.sees("completed(a)")
        #expect(bench.feed.connections.last?.last == Validator("1"))
    }

    @Test(arguments: Backing.allCases)
    func `L4: the content of a stream that has ended normally begins no other one while it is valid`(_ backing: Backing) async throws {
        let bench = LiveBench(backing, expiry: .after(.seconds(100)))
        let observer = try await bench.observe(sending: .content("a"))
        try await bench.feed.end()
        try await observer.stopAndLeave()
        try await bench.idle()
        let second = bench.observe()
        try await second.sees("completed(a)")
        try await second.stopAndLeave()
        #expect(bench.feed.connections.count == 1)
        bench.time.advance(by: .seconds(100))
        let third = bench.observe()
        try await bench.feed.send(.content("b"), on: 2)
        try await third.sees("completed(b)")
    }

    @Test(arguments: Backing.allCases)
    func `L4: a change of content whose stream has ended normally begins no other stream`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let observer = try await bench.observe(sending: .content("a"))
        try await bench.feed.end()
        try await observer.stopAndLeave()
        try await bench.idle()
        #expect(await bench.store[1].update { $0 += "!" })
        let second = bench.observe()
        try await second.sees("completed(a!)")
        _ = try await bench.store[1].mutate(optimistically: { $0 += "?" }) { () async throws -> String in "b" }
        try await second.sees("completed(b)")
        try await second.stopAndLeave()
        try await bench.idle()
        let third = bench.observe()
        try await third.sees("completed(b)")
        #expect(bench.feed.connections.count == 1)
    }

    @Test(arguments: Backing.allCases)
    func `L4: a lost connection is an error with the last content, and is made again with the last validator`(
        _ backing: Backing
    ) async throws {
        let bench = LiveBench(backing, policy: .reconnecting(), reports: true)
        let observer = try await bench.observe(sending: .content("a", Validator("1")))
        try await bench.feed.send(.content("b", Validator("2")))
        try await bench.feed.end(throwing: Lost())
        try await observer.sees("error(\(Lost()),b)")
        try await bench.time.advance(by: .seconds(1) - .nanoseconds(1), sleepers: 1)
        #expect(bench.feed.connections.count == 1)
        bench.time.advance(by: .nanoseconds(1))
        try await observer.sees("loading(b)")
        try await bench.feed.send(.current)
        try await observer.sees("completed(b)")
        #expect(bench.feed.connections.map(\.last) == [nil, Validator("2")])
        try await bench.events.first("retried")
    }

    @Test func `C10, L4: content that expires while its stream waits causes neither a fetch nor a timer of its own`() async throws {
        let policy = StorePolicy(revalidatesOnExpiry: true, retry: .exponential(attempts: .max))
        let bench = LiveBench(expiry: .after(.seconds(2)), policy: policy)
        let observer = try await bench.observe(sending: .content("a"))
        try await bench.feed.end(throwing: Lost(retryAfter: .seconds(10)))
        try await observer.next { $0.error != nil && $0.content == "a" }
        // A timer at the deadline would fire again and again, because the stream itself serves the expired content.
        #expect(bench.nextWake == bench.time.now.advanced(by: .seconds(10)))
        try await bench.time.advance(by: .seconds(10) - .nanoseconds(1), sleepers: 1)
        #expect(bench.nextWake == bench.time.now.advanced(by: .nanoseconds(1)))
        #expect(bench.feed.connections.count == 1)
        bench.time.advance(by: .nanoseconds(1))
        try await bench.feed.connected(count: 2)
    }

    @Test func `L4: each connection reports its beginning and its end`() async throws {
        let bench = LiveBench(policy: .reconnecting(), reports: true)
        let observer = bench.observe()
        func reports(_ names: String...) async throws {
            try await until("the streams report \(names)") {
                bench.events.names.filter { ["began", "failed", "cancelled"].contains($0) } == names
            }
        }
        try await bench.feed.send(.content("a"))
        try await reports("began")
        try await bench.feed.end(throwing: Lost())
        try await reports("began", "failed")
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await bench.feed.send(.content("b"), on: 2)
        try await observer.stopAndLeave()
        try await bench.time.advance(by: .seconds(1), until: "the stream is canceled") { bench.feed.cancelledCount == 1 }
        try await reports("began", "failed", "began", "cancelled")
    }

    @Test func `L4: callers wait for the next connection, and fail with the last attempt`() async throws {
        let bench = LiveBench(policy: .reconnecting(attempts: 3))
        let caller = Task { try await bench.store[1].requireData() }
        for attempt in 1...3 {
            try await bench.feed.connected(count: attempt)
            try await bench.feed.end(throwing: Lost())
            guard attempt < 3 else { break }
            try await bench.time.sleepers(atLeast: 1)
            #expect(bench.store.waiting(1) == 1)
            bench.time.advance(by: .seconds(1))
        }
        #expect(await caller.outcome == "Lost")
        #expect(bench.feed.connections.count == 3)
        try await bench.idle()
    }

    @Test func `L4: without a retry policy a lost connection is over until the next observer`() async throws {
        let bench = LiveBench()
        let observer = try await bench.observe(sending: .content("a"))
        try await bench.feed.end(throwing: Lost())
        try await observer.sees("error(\(Lost()),a)")
        bench.time.advance(by: .seconds(3_600))
        #expect(bench.feed.connections.count == 1)
        let second = bench.observe()
        try await bench.feed.send(.content("b"), on: 2)
        try await observer.sees("completed(b)")
        try await second.sees("completed(b)")
    }

    @Test func `L4: a stream that ends is over until the next trigger`() async throws {
        let bench = LiveBench(policy: .reconnecting())
        let bell = Bell()
        bench.store.revalidate(on: bell)
        let observer = try await bench.observe(sending: .content("a", Validator("1")))
        try await bench.feed.end()
        // The trigger would belong to a stream whose end the store has not seen yet.
        try await until("the store knows of the end") { bench.store.runningFetches == 0 }
        bench.time.advance(by: .seconds(3_600))
        let second = bench.observe()
        try await second.sees("completed(a)")
        #expect(bench.feed.connections.count == 1)
        try await bell.ring()
        try await bench.feed.send(.content("b"), on: 2)
        try await observer.sees("completed(b)")
        #expect(bench.feed.connections.last?.last == Validator("1"))
    }

    @Test func `L4: a trigger ends the wait for the next connection, and leaves a connected stream alone`() async throws {
        let bench = LiveBench(policy: .reconnecting())
        let bell = Bell()
        bench.store.revalidate(on: bell)
        let observer = try await bench.observe(sending: .content("a"))
        try await bell.ring()
        try await bench.feed.send(.content("b"))
        try await bench.feed.end(throwing: Lost(retryAfter: .seconds(600)))
        try await observer.sees("error(\(Lost(retryAfter: .seconds(600))),b)")
        try await bench.time.sleepers(atLeast: 1)
        try await bell.ring()
        try await bench.time.advance(by: .seconds(1), until: "the stream connects") { bench.feed.connections.count == 2 }
        try await bench.feed.send(.content("c"), on: 2)
        try await observer.sees("completed(c)")
    }

    @Test(arguments: Backing.allCases)
    func `L5: content does not expire while its stream is connected`(_ backing: Backing) async throws {
        let bench = LiveBench(backing, expiry: .after(.seconds(10)), policy: StorePolicy(revalidatesOnExpiry: true))
        let observer = try await bench.observe(sending: .content("a"))
        bench.time.advance(by: .seconds(60))
        #expect(try await bench.store[1].requireData(from: .cache) == "a")
        try await bench.feed.end()
        try await bench.feed.ended(count: 1)
        try await bench.time.advance(by: .seconds(10) - .nanoseconds(1), sleepers: 1)
        #expect(try await bench.store[1].requireData(from: .cache) == "a")
        #expect(bench.feed.connections.count == 1)
        bench.time.advance(by: .nanoseconds(1))
        try await bench.feed.connected(count: 2)
        try await observer.sees("loading(a)")
    }

    @Test(arguments: Backing.allCases)
    func `L5: the lifetime of content begins when its connection ends, even for the next store`(_ backing: Backing) async throws {
        let bench = LiveBench(backing, expiry: .after(.seconds(10)))
        let observer = try await bench.observe(sending: .content("a"))
        bench.time.advance(by: .seconds(60))
        try await observer.stopAndLeave()
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await until("the stream is canceled") { bench.feed.cancelledCount == 1 }
        try await bench.idle()
        bench.time.advance(by: .seconds(9))
        #expect(try await bench.store[1].requireData(from: .cache) == "a")
        bench.time.advance(by: .seconds(2))
        await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
        if backing != .memory, let record = bench.cacher.record(of: 1) {
            #expect(record.fetchedAt.timeIntervalSince(bench.time.date) > -13)
        }
    }

    @Test func `L5: the release of a store dates the content of its streams`() async throws {
        let cacher = MemoryCacher<Int, String>(expiry: .after(.seconds(10)))
        let time = ManualTime()
        let feed = ScriptedLiveFetcher<Int, String>()
        try await {
            let store = Store(cacher: cacher, fetcher: feed, time: time)
            let caller = Task { try await store[1].requireData() }
            try await feed.send(.content("a"))
            #expect(try await caller.value == "a")
        }()
        try await feed.ended(count: 1)
        let next = Store(cacher: cacher, fetcher: ScriptedLiveFetcher<Int, String>(), time: time)
        #expect(try await next[1].requireData(from: .cache) == "a")
        time.advance(by: .seconds(11))
        await #expect(throws: StoreError.self) { try await next[1].requireData(from: .cache) }
    }

    @Test func `L5: a connection that is silent too long is lost, and LiveValue.current keeps it`() async throws {
        let bench = LiveBench(policy: StorePolicy(retry: .exponential(attempts: .max), idleTimeout: .seconds(30)))
        let observer = bench.observe()
        // A slow observer would skip this state.
        _ = try await observer.states(count: 1)
        try await bench.feed.send(.content("a", Validator("1")))
        try await observer.sees("completed(a)")
        for _ in 0..<10 {
            bench.time.advance(by: .seconds(29))
            try await bench.feed.send(.current)
        }
        #expect(observer.summary == "loading(nil) completed(a)")
        try await bench.time.advance(by: .seconds(30), sleepers: 1)
        try await bench.feed.cancelled(count: 1)
        try await observer.next { $0.error != nil && $0.content == "a" }
        try await bench.time.advance(by: .milliseconds(50), until: "the stream connects again") { bench.feed.connections.count == 2 }
        #expect(bench.feed.connections.last?.last == Validator("1"))
        try await bench.feed.send(.current, on: 2)
        try await observer.sees("completed(a)")
    }

    @Test func `L4, C12: a caller between two connections gets the expired content that a policy allows after an error`() async throws {
        let bench = LiveBench(
            expiry: .after(.seconds(1)), policy: StorePolicy(staleIfError: .seconds(600), retry: .exponential(attempts: .max)))
        let observer = try await bench.observe(sending: .content("a"))
        let lost = Lost(retryAfter: .seconds(60))
        try await bench.feed.end(throwing: lost)
        try await observer.sees("error(\(lost),a)")
        try await bench.time.advance(by: .seconds(2), sleepers: 1)
        #expect(try await bench.store[1].requireData() == "a")
        #expect(bench.feed.connections.count == 1)
    }
}
