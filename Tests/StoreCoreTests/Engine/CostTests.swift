import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

/// Tests costs, limits and sizes at the limits of their range.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CostTests {
    private static func record(_ content: Int) -> CacheRecord<Int> {
        CacheRecord(content: content, fetchedAt: Date(timeIntervalSince1970: 0))
    }

    @Test func `C15: costs of Int.max do not trap and evict nothing without a limit`() async {
        let cacher = MemoryCacher<Int, Int>(cost: { _ in .max })
        for key in 1...3 { await cacher.save(Self.record(key), param: key) }
        #expect(cacher.count == 3 && cacher.totalCost == .max)
        await cacher.save(Self.record(4), param: 3)
        await cacher.remove(param: 1)
        #expect(cacher.count == 2 && cacher.totalCost == .max)
        await cacher.remove(param: 2)
        #expect(cacher.count == 1 && cacher.totalCost == .max)
        cacher.trim(to: 10, cost: .max)
        #expect(cacher.count == 1)
        cacher.trim(to: .max, cost: .max - 1)
        #expect(cacher.count == 0 && cacher.totalCost == 0)
    }

    @Test(arguments: [Int.max - 1, 1 << 62, 10])
    func `C15: records at the cost limit replace each other`(_ limit: Int) async {
        let cacher = MemoryCacher<Int, Int>(costLimit: limit, cost: { _ in limit })
        for key in 1...3 {
            await cacher.save(Self.record(key), param: key)
            #expect(cacher.totalCost == limit)
        }
        #expect(await cacher.keys() == [3])
    }

    @Test(arguments: [-1, Int.min])
    func `C15: a negative cost counts as zero`(_ cost: Int) async {
        let cacher = MemoryCacher<Int, Int>(costLimit: 5, cost: { $0 == 0 ? cost : 5 })
        await cacher.save(Self.record(0), param: 0)
        await cacher.save(Self.record(1), param: 1)
        #expect(cacher.count == 2 && cacher.totalCost == 5)
        await cacher.save(Self.record(1), param: 2)
        #expect(cacher.count == 1 && cacher.totalCost == 5)
    }

    @Test(arguments: [(Int.min, 0), (-1, 0), (0, 0), (1, 1), (Int.max, 3)])
    func `C15: a count limit at the end of its range does not trap and is respected`(_ limit: Int, _ kept: Int) async {
        let cacher = MemoryCacher<Int, Int>(limit: limit)
        for key in 1...3 { await cacher.save(Self.record(key), param: key) }
        #expect(cacher.count == kept)
        cacher.trim(to: .max)
        #expect(cacher.count == kept)
        cacher.trim(to: .min, cost: .min)
        #expect(cacher.count == 0)
    }

    @Test func `C15: trimming memory to nothing releases the storage of its entries`() async {
        let cacher = MemoryCacher<Int, Int>()
        for key in 1...1_000 { await cacher.save(Self.record(key), param: key) }
        cacher.trim(to: 1)
        #expect(cacher.count == 1)
        cacher.trim(to: 0)
        #expect(cacher.table.entries.withLock { $0.entries.capacity } == 0)
        await cacher.save(Self.record(1), param: 1)
        #expect(await cacher.load(param: 1) == Self.record(1))
    }

    /// Creates a store in memory with a cost limit of ten, in which the cost of a number is the number.
    private func store(_ events: EventLog, over backing: GatedCacher<Int, Int>? = nil) -> (Store<Int, Int>, () -> [Int]) {
        let fetch: @Sendable (Int) async throws -> Int = { _ in 1 }
        if let backing {
            let cacher = TieredCacher(over: backing, costLimit: 10, cost: { $0 })
            return (Store(cacher: cacher, onEvent: events.append, fetch: fetch), { [] })
        }
        let cacher = MemoryCacher<Int, Int>(costLimit: 10, cost: { $0 })
        return (Store(cacher: cacher, onEvent: events.append, fetch: fetch), { [cacher.count, cacher.totalCost] })
    }

    @Test func `C17: a record above the cost limit evicts no other record and is reported`() async throws {
        let events = EventLog()
        let (store, size) = store(events)
        await store[1].update(3)
        await store[2].update(3)
        await store[3].update(11)
        #expect(size() == [2, 6])
        for key in 1...2 { #expect(await store[key].getData(from: .cache) == 3) }
        #expect(await store[3].getData(from: .cache) == nil)
        let refusals = events.all.filter { "\($0.kind)".hasPrefix("not kept") }
        #expect(refusals.map(\.param) == [3] && events.names.contains("evicted") == false)
        #expect(refusals.first.map { "\($0.kind)" } == "not kept in memory: its cost of 11 is above the limit of 10")
    }

    @Test func `C6: a record above the cost limit removes the older record of its key`() async throws {
        let events = EventLog()
        let (store, size) = store(events)
        await store[1].update(3)
        await store[2].update(2)
        await store[2].update(11)
        #expect(size() == [1, 3])
        #expect(await store[2].getData(from: .cache) == nil)
        #expect(try await store[2].requireData() == 1)
    }

    @Test func `C6: an observed key keeps content that memory does not`() async throws {
        let (store, size) = store(EventLog())
        let observer = try await observeCompleted(store[1].publish())
        await store[1].update(11)
        try await observer.next { $0.content == 11 }
        #expect(size() == [0, 0])
        #expect(try await store[1].requireData(from: .cache) == 11)
        try await observer.stopAndLeave()
        try await until("the key is idle") { store.engineIsIdle }
        #expect(try await store[1].requireData() == 1)
    }

    @Test func `C6: the cacher behind memory keeps a record above the cost limit`() async throws {
        let backing = GatedCacher<Int, Int>(expiry: .never, listsKeys: true)
        let (store, _) = store(EventLog(), over: backing)
        await store[1].update(3)
        await store[1].update(11)
        try await until("the key is idle") { store.engineIsIdle }
        #expect(try await store[1].requireData(from: .cache) == 11)
    }

    // MARK: Other sizes, counts and durations

    @Test(arguments: [Int.min, -1, 0, 10, Int.max])
    func `C15: a ledger of files with the largest possible sizes does not trap and never goes below zero`(_ limit: Int) {
        let names = (0..<3).map { SHA256.digest(of: [UInt8($0)]) }
        var ledger = FileLedger(limit: limit)
        for name in names {
            ledger.changeBegan(name)
            _ = ledger.changeEnded(name, from: 0, to: .max)
        }
        #expect(ledger.total(found: names.map { (name: $0, size: Int.max) }) == .max)
        _ = ledger.scanEnded(found: names.map { (name: $0, size: Int.max) }, freed: false)
        #expect(ledger.bytes == .max)
        for name in names {
            ledger.changeBegan(name)
            _ = ledger.changeEnded(name, from: .max, to: 0)
        }
        #expect(ledger.bytes == 0)
        var failing = FileLedger(limit: limit)
        for name in names {
            failing.changeBegan(name)
            _ = failing.changeEnded(name, from: 0, to: .max)
        }
        failing.scanFailed()
        #expect(failing.bytes == .max && failing.target >= 0)
    }

    @Test(arguments: [Duration(attoseconds: .max), Duration(attoseconds: .min), .seconds(Int64.max), .zero])
    func `C11: a duration at the end of its range does not trap and keeps its sign`(_ duration: Duration) {
        #expect((duration.timeInterval > 0) == (duration > .zero))
        let retry = RetryPolicy(attempts: 3, base: duration, cap: duration)
        for unit in [0, 0.5, 1] { #expect(retry.delay(after: Offline(), attempt: 2, unit: unit) != nil) }
        for age in [0, 1, -1, 1e300, .infinity, .nan] as [Double] {
            let record = CacheRecord(content: 1, fetchedAt: Date(timeIntervalSinceReferenceDate: 0))
            let remaining = record.remainingLifetime(expiry: .after(duration), now: Date(timeIntervalSinceReferenceDate: age))
            #expect((remaining > .zero) == (duration > .zero && age >= 0 && .seconds(1) < duration && (age < 1e9 || duration > .forever)))
        }
        let instant = MonotonicInstant(nanoseconds: 5).advanced(by: duration)
        #expect(duration > .zero ? instant == .distantFuture : instant <= MonotonicInstant(nanoseconds: 5))
    }

    @Test(arguments: [Int.min, -1, 0, 1, Int.max])
    func `C13: a list whose pages have invalid sizes can be extended, changed and refreshed`(_ size: Int) async throws {
        let backing = GatedCacher<Int, [Int]>(expiry: .never, listsKeys: true)
        var record = CacheRecord(content: [1], fetchedAt: Date(), nextKey: "n")
        record.pages = [
            LoadedPage(direction: .prev, key: "p", count: size), LoadedPage(count: size),
            LoadedPage(direction: .next, key: "o", returnKey: "p", count: size),
        ]
        backing.put(record, param: 1)
        let store = PaginationStore<Int, Int>(
            cacher: backing, fetcher: PaginationClosureFetcher { _, key in Page([key == nil ? 1 : 2], nextKey: key == nil ? "n" : nil) },
            policy: StorePolicy(refreshScope: .loadedPages))
        #expect(await store[1].requestNextData().word == "loaded")
        #expect(await store[1].getData() == [1, 2])
        #expect(await store[1].update { $0.append(3) })
        await store[1].refresh()
        #expect(await store[1].getData() == [1, 2])
    }

    @Test func `a tiered cacher that is used without a store loads each record once`() async throws {
        let backing = GatedCacher<Int, Int>()
        backing.put(CacheRecord(content: 7, fetchedAt: Date(timeIntervalSince1970: 0)), param: 1)
        let tiered = TieredCacher(over: backing)
        for _ in 1...2 { #expect(try await tiered.load(param: 1)?.content == 7) }
        #expect(backing.calls(.load).count == 1)
        #expect(try await tiered.load(param: 2) == nil)
    }
}
