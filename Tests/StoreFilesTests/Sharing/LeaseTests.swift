import Foundation
import StoreTrials
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

struct LeaseTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func cacher() -> FileCacher<Int, Int> { FileCacher(directory: place.url, sharing: .processes) }

    /// A directory with permits of its own: other tests may take those of the process for longer than a short lease.
    private func directory(_ kind: LeaseKind) -> SharedDirectory {
        SharedDirectory(place.directory, leaseKind: kind, leasePermits: Permits(64))
    }

    private let key = SHA256.digest(of: [1])

    @Test(arguments: [LeaseKind.locked, .dated])
    func `D5: one of two users gets the lease, and the other gets it when the lease ends`(kind: LeaseKind) async throws {
        let (a, b) = (directory(kind), directory(kind))
        let first = try #require(try await granted { try await a.lease(key, for: .seconds(600)) })
        let waiter = Task { [key] in try await granted { try await b.lease(key, for: .seconds(600)) } }
        try await until { b.leaseEvents.current.waited.count == 1 }
        first.end(.saved)
        let second = try #require(try await waiter.value())
        #expect(b.leaseEvents.current.watch == nil)
        second.end(.saved)
        #expect(try await granted { try await a.lease(key, for: .seconds(600)) } != nil)
    }

    @Test func `D5: leases of different keys are independent, and releasing one ends it`() async throws {
        let (a, b) = (cacher(), cacher())
        var first = try await granted { try await a.lease(1, for: .seconds(600)) }
        let second = try await granted { try await b.lease(2, for: .seconds(600)) }
        #expect(first != nil && second != nil)
        first = nil
        #expect(try await granted { try await b.lease(1, for: .seconds(600)) } != nil)
    }

    @Test(arguments: [LeaseKind.locked, .dated], [1, 1_000])
    func `D5: a failure of the holder fails its waiters with its advice, and no later caller`(kind: LeaseKind, lines: Int) async throws {
        var failure = FetchFailedElsewhere(
            failureKind: .permanent, retryAfter: .seconds(7), allowsStale: false,
            message: String(repeating: "out of \"order\"\u{1}\n", count: lines))
        let holder = directory(kind)
        let users = (0..<3).map { _ in directory(kind) }
        let lease = try #require(try await granted { try await holder.lease(key, for: .seconds(600)) })
        let waiters = users.map { user in Task { [key] in try await user.lease(key, for: .seconds(600)) } }
        try await until { users.allSatisfy { $0.leaseEvents.current.waited.count == 1 } }
        lease.end(.failed(failure))
        failure.message = String(failure.message.prefix(2_000))
        for waiter in waiters { #expect(try await waiter.value().failure == failure) }
        #expect(try await granted { try await users[0].lease(key, for: .seconds(600)) } != nil)
    }

    @Test func `D5: after a result that cannot be stored, each waiter fetches for itself`() async throws {
        let (a, b, c) = (cacher(), cacher(), cacher())
        let lease = try #require(try await granted { try await a.lease(1, for: .seconds(600)) })
        let waiters = [b, c].map { user in Task { try await user.lease(1, for: .seconds(600)) } }
        try await until { [b, c].allSatisfy { $0.shared?.leaseEvents.current.waited.count == 1 } }
        lease.end(.notStored)
        // No waiter waits for another one.
        for waiter in waiters { #expect(try await waiter.value().isNotNeeded) }
    }

    @Test(arguments: [LeaseKind.locked, .dated])
    func `D5: a lease blocks no longer than its duration, and its holder cannot end the next one`(kind: LeaseKind) async throws {
        let (a, b, c) = (directory(kind), directory(kind), directory(kind))
        let start = ContinuousClock.now
        let stuck = try #require(try await granted { try await a.lease(key, for: .milliseconds(300)) })
        let next = try #require(try await granted { try await b.lease(key, for: .seconds(600)) })
        #expect(ContinuousClock.now - start >= .milliseconds(250))
        stuck.end(.saved)
        let waiter = Task { [key] in try await granted { try await c.lease(key, for: .seconds(600)) } }
        try await until { c.leaseEvents.current.waited.count == 1 }
        next.end(.saved)
        #expect(try await waiter.value() != nil)
    }

    @Test func `D5: a canceled wait returns at once and leaves nothing behind`() async throws {
        let (a, b) = (cacher(), cacher())
        let lease = try await granted { try await a.lease(1, for: .seconds(600)) }
        let waiter = Task { try await b.lease(1, for: .seconds(600)) }
        try await until { b.shared?.leaseEvents.current.waited.count == 1 }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
        #expect(b.shared?.leaseEvents.current.waited.isEmpty == true)
        #expect(b.shared?.leaseEvents.current.watch == nil)
        withExtendedLifetime(lease) {}
    }

    @Test(arguments: ["", "garbage", #"{"holder":77,"expires":99999999999}"#])
    func `D5: a lease file left behind by a process that ended does not block`(content: String) async throws {
        try await cacher().save(record(1), param: 1)
        try place.write(Array(content.utf8), ".sharing/\(FileKey(1).digest.hex).lease")
        let lease = try await granted { try await cacher().lease(1, for: .seconds(600)) }
        #expect(lease != nil)
    }

    @Test func `D5: a dated lease with a distant date ends after the waiter's duration`() async throws {
        try await cacher().save(record(1), param: 1)
        try place.write(Array(#"{"holder":77,"expires":99999999999}"#.utf8), ".sharing/\(key.hex).lease")
        let lease = try await granted { try await directory(.dated).lease(key, for: .milliseconds(200)) }
        #expect(lease != nil)
    }

    @Test func `D5: a change made before the grant is delivered before it`() async throws {
        let (a, b) = (SharedUser(place.url), SharedUser(place.url))
        try await a.attach()
        try await b.attach()
        for key in 1...50 {
            let lease = try #require(try await granted { try await a.cacher.lease(key, for: .seconds(600)) })
            try await a.save(key, key, over: lease.position)
            lease.end(.saved)
            let next = try #require(try await granted { try await b.cacher.lease(key, for: .seconds(600)) })
            #expect(b.keys.last == key)
            #expect(next.position >= a.cacher.position)
        }
    }

    // MARK: Old files

    private var leaseFiles: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: place.file(".sharing").path).filter { $0.hasSuffix(".lease") } }
    }

    @Test(arguments: [LeaseKind.locked, .dated])
    func `D5: the file of a failed lease is removed after the time for its waiters to read it`(kind: LeaseKind) async throws {
        let user = SharedDirectory(place.directory, leaseKind: kind, endingTime: .zero)
        for number in 0..<20 as Range<UInt8> {
            let lease = try #require(try await granted { try await user.lease(SHA256.digest(of: [number]), for: .seconds(600)) })
            lease.end(number.isMultiple(of: 2) ? .notStored : .failed(FetchFailedElsewhere(CancellationError())))
        }
        let last = try await granted { try await user.lease(key, for: .seconds(600)) }
        #expect(try leaseFiles == [key.hex + ".lease"])
        withExtendedLifetime(last) {}
    }

    @Test func `D5: neither a prolongation nor the end of a lease makes a removed directory again`() async throws {
        let user = directory(.locked)
        guard case .granted(let lease) = try await user.hold("a.lease", for: .seconds(600)) else {
            Issue.record("the lease was not granted")
            return
        }
        try FileManager.default.removeItem(at: place.url)
        let isHeld = try await user.perform { try user.prolong(lease, for: .seconds(600)) }
        #expect(!isHeld)
        user.end(lease, .saved)
        try await user.perform {}
        #expect(!FileManager.default.fileExists(atPath: place.url.path))
    }

    @Test(arguments: [LeaseKind.locked, .dated])
    func `D5: old files of ended leases are removed, and those of held leases stay`(kind: LeaseKind) async throws {
        let user = directory(kind)
        let held = try #require(try await granted { try await user.lease(key, for: .seconds(100_000)) })
        for (name, content) in [("dead", #"{"holder":7,"expires":5}"#), ("failed", #"{"ended":{"holder":7},"expires":0}"#), ("empty", "")] {
            try place.write(Array(content.utf8), ".sharing/\(name).lease")
        }
        try place.write([], ".sharing/young.lease")
        try FileManager.default.createDirectory(at: place.file(".sharing/odd.lease"), withIntermediateDirectories: false)
        for name in try leaseFiles where name != "young.lease" { try place.age(".sharing/" + name, by: .seconds(7200)) }
        try await user.perform { try user.removeOldLeases(age: .seconds(3600)) }
        #expect(try leaseFiles.sorted() == [key.hex + ".lease", "odd.lease", "young.lease"].sorted())
        // A scan does the same.
        try place.age(".sharing/young.lease", by: .seconds(7200))
        let cacher = cacher()
        try await cacher.save(record(1), param: 1)
        await cacher.settle()
        #expect(try leaseFiles.contains("young.lease") == false)
        withExtendedLifetime(held) {}
    }

    @Test func `D5: without sharing a lease is not needed`() async throws {
        #expect(try await FileCacher<Int, Int>(directory: place.url).lease(1, for: .seconds(1)).isNotNeeded)
        #expect(try place.names.isEmpty)
    }
}
