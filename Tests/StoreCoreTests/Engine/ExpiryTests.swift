import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ExpiryTests {
    private static let revalidating = StorePolicy(revalidatesOnExpiry: true)

    @Test(arguments: Backing.allCases)
    func `C10: an observed key is fetched again when it expires`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)), policy: Self.revalidating)
        let observer = RecordingObserver(bench.store[1].publish())
        for number in 1...3 {
            try await observer.next { $0.summary == "completed(\(number))" }
            try await until("the timer is set") { bench.time.nextDeadline == bench.time.now.advanced(by: .seconds(10)) }
            bench.time.advance(by: .seconds(10))
        }
        try await observer.next { $0.summary == "completed(4)" }
    }

    @Test func `C10: a fetch at expiry waits for the minimum interval after the last fetch`() async throws {
        let bench = Bench(expiry: .after(.milliseconds(300)), policy: Self.revalidating)
        let observer = try await observeCompleted(bench.store[1].publish())
        try await until("the timer is set") { bench.time.nextDeadline == bench.time.now.advanced(by: .seconds(1)) }
        bench.time.advance(by: .milliseconds(999))
        #expect(bench.fetcher.startedCount == 1)
        bench.time.advance(by: .milliseconds(1))
        try await observer.next { $0.summary == "completed(2)" }
    }

    @Test func `C10: a delayed trigger does not replace the fetch at expiry`() async throws {
        let bench = Bench(
            expiry: .after(.seconds(10)), policy: Self.revalidating, fetcher: ScriptedFetcher(.success(1), .failure(Offline()), .success(3))
        )
        let observer = try await observeCompleted(bench.store[1].publish())
        let bell = Bell()
        bench.store.revalidate(on: bell)
        try await bell.ring()
        bench.time.advance(by: .seconds(1))
        try await observer.next { $0.error != nil }
        bench.time.advance(by: .seconds(9))
        try await observer.next { $0.summary == "completed(3)" }
        bell.end()
    }

    @Test(arguments: Backing.allCases)
    func `C10: no fetch runs at expiry without an observer or with the policy off`(_ backing: Backing) async throws {
        let unobserved = Bench(backing, expiry: .after(.seconds(10)), policy: Self.revalidating)
        _ = try await unobserved.store[1].requireData()
        try await unobserved.idle()
        let off = Bench(backing, expiry: .after(.seconds(10)))
        let observer = RecordingObserver(off.store[1].publish())
        try await observer.next { $0.isCompleted }
        #expect(unobserved.time.sleeperCount == 0 && off.time.sleeperCount == 0)
    }

    @Test(arguments: [Freshness.fresh(for: .zero), .fresh(for: .seconds(-5))])
    func `C10: a record that arrives expired arms no timer`(_ freshness: Freshness) async throws {
        let fetcher = ScriptedFetcher<Int, Int> { .success($0.number, freshness: freshness) }
        let bench = Bench(policy: Self.revalidating, fetcher: fetcher)
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.isCompleted }
        #expect(bench.time.sleeperCount == 0)
        bench.time.advance(by: .seconds(3_600))
        #expect(fetcher.startedCount == 1)
    }

    @Test(arguments: Backing.allCases, [Duration.zero, .seconds(-1), .seconds(Int64.min)])
    func `C11: zero expiry is valid for the callers of its fetch`(_ backing: Backing, _ lifetime: Duration) async throws {
        let bench = Bench(backing, expiry: .after(lifetime))
        bench.fetcher.hold()
        let callers = (0..<10).map { _ in Task { [handle = bench.store[1]] in try await handle.requireData() } }
        try await bench.callers(10)
        bench.fetcher.release()
        for caller in callers { #expect(try await caller.value == 1) }
        await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
        #expect(try await bench.store[1].requireData() == 2)
        await bench.store[1].validate()
        #expect(bench.fetcher.startedCount == 3)
    }

    @Test(arguments: Backing.allCases, [Expiry.never, .after(.seconds(Int64.max)), .after(.nanoseconds(Int64.max))])
    func `C11: content with an endless lifetime never expires`(_ backing: Backing, _ expiry: Expiry) async throws {
        let bench = Bench(backing, expiry: expiry, policy: Self.revalidating)
        let observer = try await observeCompleted(bench.store[1].publish())
        bench.time.advance(by: .seconds(200 * 365 * 86_400))
        #expect(try await bench.store[1].requireData(from: .cache) == 1)
        try await observer.stopAndLeave()
        try await bench.idle()
        #expect(try await bench.store[1].requireData(from: .cache) == 1)
    }

    @Test(arguments: Backing.withCacher)
    func `C11: a record from the future is stale`(_ backing: Backing) async throws {
        for expiry in [Expiry.never, .after(.seconds(1_000))] {
            let bench = Bench(backing, expiry: expiry)
            bench.cacher.put(bench.record(fetchedAgo: .seconds(-5), 3), param: 1)
            let error = await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
            #expect(error?.staleContent as? Int == 3)
            #expect(try await bench.store[1].requireData() == 1)
        }
    }

    @Test(arguments: Backing.withCacher)
    func `C11: a persisted age is wall time and becomes a deadline on load`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)))
        bench.cacher.put(bench.record(fetchedAgo: .seconds(6), 3), param: 1)
        let observer = RecordingObserver(bench.store[1].publish())
        _ = try await observer.states(count: 1)
        // Setting the clock does not affect deadlines in the process.
        bench.time.shiftDate(by: .seconds(3_600))
        bench.time.advance(by: .milliseconds(3_999))
        #expect(try await bench.store[1].requireData(from: .cache) == 3)
        bench.time.advance(by: .milliseconds(2))
        await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
    }

    @Test(arguments: Backing.allCases)
    func `C11: an age in the process is monotonic`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)))
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.isCompleted }
        bench.time.shiftDate(by: .seconds(-3_600))
        #expect(try await bench.store[1].requireData(from: .cache) == 1)
        bench.time.advance(by: .seconds(10))
        await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
    }

    @Test(arguments: Backing.allCases)
    func `a lifetime given by the origin overrides the cacher's`(_ backing: Backing) async throws {
        let bench = Bench(
            backing, expiry: .after(.seconds(10)),
            fetcher: ScriptedFetcher(
                .success(1, freshness: .fresh(for: .seconds(20)), validator: Validator(entityTag: "a")),
                .notModified(.fresh(for: .seconds(5))), .success(3)))
        _ = try await bench.store[1].requireData()
        bench.time.advance(by: .seconds(19))
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(1))
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(5))
        #expect(try await bench.store[1].requireData() == 3)
    }
}
