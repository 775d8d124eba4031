import Foundation
import Testing
import Trials
@testable import PostgresCacher
@testable import StoreCore

/// Tests D5 with several cachers, each with connections of its own.
@Suite(.enabled(if: PostgresServer.obstacle == nil, needsPostgres))
struct PostgresLeaseTests {
    private let place: PostgresPlace

    init() async throws { place = try await PostgresPlace() }

    private func untilWaiting(_ cachers: PostgresCacher<Int, Int>...) async throws {
        try await until("the tasks wait") { cachers.allSatisfy { $0.table.leases.waiterCount > 0 } }
    }

    @Test func `D5: one cacher grants one lease of a key at a time, and leases of different keys together`() async throws {
        let a = try place.cacher()
        let first = try #require(granted(try await a.lease(1, for: .seconds(600))))
        let other = granted(try await a.lease(2, for: .seconds(600)))
        #expect(other != nil)
        let waiter = Task { granted(try await a.lease(1, for: .seconds(600))) }
        try await untilWaiting(a)
        first.end(.abandoned)
        #expect(try await waiter.value != nil)
    }

    @Test func `D5: a lease of any duration is granted`() async throws {
        #expect(granted(try await place.cacher().lease(1, for: .seconds(Int64.max))) != nil)
    }

    @Test func `D5: releasing a lease ends it, and no lock stays`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        var lease = granted(try await a.lease(1, for: .seconds(600)))
        #expect(lease != nil)
        lease = nil
        lease = granted(try await b.lease(1, for: .seconds(600)))
        #expect(lease != nil)
        lease = nil
        try await until("no lease is left") { try await place.query("SELECT count(*) FROM \"\(place.table)_leases\"") == [["0"]] }
    }

    @Test func `D5: expired leases that their holders left are removed when a cacher opens the table`() async throws {
        _ = try await place.cacher().load(param: 1)
        let leases = "\"\(place.table)_leases\""
        _ = try await place.query(
            "INSERT INTO \(leases) VALUES (sha256('a'), 1, 1, now() - interval '1 s'), (sha256('b'), 2, 2, now() + interval '1 h')")
        _ = try await place.cacher().load(param: 1)
        try await until("the expired lease is removed") { try await place.query("SELECT id FROM \(leases)") == [["2"]] }
    }

    @Test func `D5: a failure of the holder fails its waiters with its advice, and no later caller`() async throws {
        let failure = FetchFailedElsewhere(
            failureKind: .permanent, retryAfter: .seconds(7), allowsStale: false,
            message: "out of \"order\" 😀\n" + String(repeating: "é", count: 100))
        let holder = try place.cacher()
        let users = try (0..<3).map { _ in try place.cacher() }
        // Waiters that try by themselves meet the end at any moment.
        for key in 0..<(20 * rounds(1)) {
            let lease = try #require(granted(try await holder.lease(key, for: .seconds(600))))
            let waiters = users.map { user in Task { try await user.lease(key, for: .seconds(600)) } }
            for user in users { try await untilWaiting(user) }
            for user in users { user.table.leases.wakeAll() }
            lease.end(.failed(failure))
            for waiter in waiters { #expect(try await waiter.value.failure == failure) }
            #expect(granted(try await users[0].lease(key, for: .seconds(600))) != nil)
        }
    }

    @Test func `D5: after a result that cannot be stored, each waiter fetches for itself`() async throws {
        let (a, b, c) = (try place.cacher(), try place.cacher(), try place.cacher())
        let lease = try #require(granted(try await a.lease(1, for: .seconds(600))))
        let waiters = [b, c].map { user in Task { try await user.lease(1, for: .seconds(600)) } }
        try await untilWaiting(b, c)
        lease.end(.notStored)
        // No waiter waits for another one.
        for waiter in waiters { #expect(try await waiter.value.isNotNeeded) }
    }

    @Test func `D5: a lease blocks no longer than its duration, and its holder cannot end the next one`() async throws {
        let (a, b, c) = (try place.cacher(), try place.cacher(), try place.cacher())
        let start = ContinuousClock.now
        let stuck = try #require(granted(try await a.lease(1, for: .milliseconds(300))))
        let next = try #require(granted(try await b.lease(1, for: .seconds(600))))
        #expect(ContinuousClock.now - start >= .milliseconds(250))
        stuck.end(.saved)
        let waiter = Task { granted(try await c.lease(1, for: .seconds(600))) }
        try await untilWaiting(c)
        next.end(.saved)
        #expect(try await waiter.value != nil)
    }

    @Test(arguments: [nil, "200000 years", "-4000 years"])
    func `C24, D5: a waiter with a shorter duration takes over after it, with any time on the server`(age: String?) async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        let stuck = try #require(granted(try await a.lease(1, for: .seconds(600))))
        if let age { try await place.query("UPDATE \"\(place.table)_leases\" SET expires = clock_timestamp() + interval '\(age)'") }
        #expect(granted(try await b.lease(1, for: .milliseconds(200))) != nil)
        withExtendedLifetime(stuck) {}
    }

    @Test(arguments: [(1e300, 3_600.0), (86_400, 3_600), (7, 7), (-1, 0), (-1e300, 0)])
    func `C24: a delay in the notice of a failed fetch is bounded`(named: Double, bounded: Double) async throws {
        let (holder, user) = (try place.cacher(), try place.cacher())
        let lease = try #require(granted(try await holder.lease(1, for: .seconds(600))))
        let waiter = Task { try await user.lease(1, for: .seconds(600)) }
        try await untilWaiting(user)
        let id = try #require(try await place.query("SELECT id FROM \"\(place.table)_leases\"").first?.first ?? nil)
        let note = #"{"kind":"transient","retryAfter":\#(named),"allowsStale":true,"message":"later"}"#
        let payload = "l \(id) f" + note.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try await place.query("SELECT pg_notify('\(user.table.channel)', '\(payload)')")
        #expect(try await waiter.value.failure?.retryAfter == .seconds(bounded))
        withExtendedLifetime(lease) {}
    }

    @Test func `D5: a canceled wait returns at once and leaves nothing behind`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        let lease = granted(try await a.lease(1, for: .seconds(600)))
        let waiter = Task { try await b.lease(1, for: .seconds(600)) }
        try await untilWaiting(b)
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        #expect(b.table.leases.waiterCount == 0)
        withExtendedLifetime(lease) {}
    }

    @Test func `D5: when the holder's connection ends, a waiter takes over at once`() async throws {
        for _ in 0..<3 {
            let b = try place.cacher()
            var database: PostgresDatabase? = try place.database()
            var a: PostgresCacher<Int, Int>? = database.map { PostgresCacher($0, table: place.table) }
            let lease = granted(try await a?.lease(1, for: .seconds(100_000)) ?? .notNeeded)
            #expect(lease != nil)
            let waiter = Task { granted(try await b.lease(1, for: .seconds(100_000))) }
            try await untilWaiting(b)
            // The connections of a process that is killed end too.
            (a, database) = (nil, nil)
            let next = try #require(try await waiter.value)
            next.end(.saved)
            withExtendedLifetime(lease) {}
        }
    }

    @Test func `D4, D5: a lease is granted after a gap if the table has a change without a notice`() async throws {
        let user = try PostgresUser(place)
        try await user.attach()
        try await place.query("UPDATE \"\(place.table)_state\" SET head = head + 1000000")
        let lease = try #require(granted(try await user.cacher.lease(1, for: .seconds(600))))
        #expect(user.gaps == 1)
        #expect(lease.position == user.cacher.position)
        #expect(try await user.cacher.save(record(1), param: 1, over: lease.position).isSaved)
        lease.end(.saved)
    }

    @Test func `D5: a change made before the grant is delivered before it`() async throws {
        let (a, b) = (try PostgresUser(place), try PostgresUser(place))
        try await a.attach()
        try await b.attach()
        for key in 1...50 {
            let lease = try #require(granted(try await a.cacher.lease(key, for: .seconds(600))))
            #expect(try await a.cacher.save(record(key), param: key, over: lease.position).isSaved)
            lease.end(.saved)
            let next = try #require(granted(try await b.cacher.lease(key, for: .seconds(600))))
            #expect(b.keys.last == key)
            next.end(.abandoned)
        }
    }

    @Test func `D5: only one of several stores with many callers fetches a missing key`() async throws {
        let log = Lock(0)
        let machines = try (0..<4).map { _ in
            Store(cacher: TieredCacher(over: try place.cacher()), policy: StorePolicy(leaseDuration: hangLimit)) { key in
                log.withLock { $0 += 1 }
                await otherTasksRun()
                return key
            }
        }
        for key in 1...rounds(10) {
            await withTaskGroup { group in
                for store in machines { for _ in 0..<20 { group.addTask { #expect(await store[key].getData() == key) } } }
            }
            #expect(log.withLock { $0 } == key)
        }
    }
}
