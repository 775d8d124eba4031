import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Tests objects of the user that call their store in `deinit`: none may be released while the engine's lock is held.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ReleasingTests {
    /// Runs a closure when it is released, as an app's model may.
    private final class Guest: Error, Sendable {
        private let farewell: @Sendable () -> Void

        init(_ farewell: @escaping @Sendable () -> Void) { self.farewell = farewell }

        deinit { farewell() }
    }

    /// A clock that runs a closure at each reading; during an update, that is after the record was found in memory.
    private struct TrimmingTime: TimeSource {
        let happen: @Sendable () -> Void

        var now: MonotonicInstant {
            happen()
            return SystemTime().now
        }

        var date: Date { Date() }

        func sleep(until deadline: MonotonicInstant) async throws { try await SystemTime().sleep(until: deadline) }
    }

    /// Creates a guest that uses a store when it is released, and counts the releases.
    private static func guest<Content: Sendable>(of store: WatchedState<Store<Int, Content>?>, _ farewells: WatchedState<Int>) -> Guest {
        Guest {
            store.current?.prefetch([99])
            farewells.update { $0 += 1 }
        }
    }

    private struct Row: Identifiable, Sendable {
        let id: Int
        var guest: Guest?
    }

    /// An identity that retains an object of the element.
    private struct Name: Hashable, Sendable {
        let id: Int
        let guest: Guest?

        static func == (lhs: Name, rhs: Name) -> Bool { lhs.id == rhs.id }
        func hash(into hasher: inout Hasher) { hasher.combine(id) }
    }

    /// Lists of one row with a guest, and on each side a page that replaces the row.
    private struct Rows: TwoWayPaginationFetcher {
        let first: @Sendable () -> Guest

        func fetch(param: Int) async throws -> Page<Row> {
            param == 99 ? Page([]) : Page([Row(id: 1, guest: first())], nextKey: "n", prevKey: "p")
        }

        func fetchNext(nextKey: String, param: Int) async throws -> Page<Row> { Page([Row(id: 1), Row(id: 2)]) }
        func fetchPrev(prevKey: String, param: Int) async throws -> Page<Row> { Page([Row(id: 1), Row(id: 2)]) }
    }

    /// A store of lists that guests use when they are released.
    private final class Lists: Sendable {
        private let store = WatchedState<PaginationStore<Int, Row>?>(nil)
        /// The number of guests that used the store when they were released.
        let farewells = WatchedState(0)

        var lists: PaginationStore<Int, Row> { get throws { try #require(store.current) } }

        init(_ make: (Lists) -> PaginationStore<Int, Row>) {
            let made = make(self)
            store.update { $0 = made }
        }

        func guest() -> Guest {
            Guest { [store, farewells] in
                // Takes the engine's lock, so it would deadlock if the lock were held.
                store.current?.prefetch([99])
                farewells.update { $0 += 1 }
            }
        }

        func end() { store.update { $0 = nil } }
    }

    @Test(arguments: PageDirection.allCases, [false, true])
    func `C13: an element replaced by a page is released outside the lock`(_ direction: PageDirection, _ isNamed: Bool) async throws {
        let lists = Lists { lists in
            PaginationStore(
                cacher: MemoryCacher(), fetcher: Rows(first: { lists.guest() }),
                identity: isNamed ? .by { Name(id: $0.id, guest: $0.guest) } : .id)
        }
        _ = try await lists.lists[1].requireData()
        let outcome = try await (direction == .next ? lists.lists[1].requestNextData() : lists.lists[1].requestPrevData())
        #expect(outcome == .loaded)
        // Another task may hold the list for a moment.
        try await until("the element is released") { lists.farewells.current == 1 }
        #expect(Set(try await lists.lists[1].requireData().map(\.id)) == [1, 2])
        lists.end()
    }

    @Test func `C13: a list saved to memory without the store is released outside the lock`() async throws {
        let cacher = MemoryCacher<Int, [Row]>()
        let gate = WatchedState(false)
        let lists = Lists { _ in
            PaginationStore(
                cacher: cacher,
                fetcher: PaginationClosureFetcher { _, page in
                    if page != nil { try await gate.wait { $0 ? () : nil } }
                    return Page([Row(id: page == nil ? 1 : 2)], nextKey: "n")
                })
        }
        _ = try await lists.lists[1].requireData()
        let page = Task { try await lists.lists[1].requestNextData() }
        try await until("the request waits") { (try? lists.lists)?.waiting(1) == 1 }
        await cacher.save(CacheRecord(content: [Row(id: 7, guest: lists.guest())], fetchedAt: Date()), param: 1)
        gate.update { $0 = true }
        #expect(try await page.value == .loaded)
        try await until("the element is released") { lists.farewells.current == 1 }
        #expect(try await lists.lists[1].requireData().map(\.id) == [1, 2])
        lists.end()
    }

    @Test(arguments: [false, true], [false, true])
    func `C5: a record replaced by an update is released outside the lock, even if it was saved without the store`(
        _ isObserved: Bool, _ isForeign: Bool
    ) async throws {
        let cacher = MemoryCacher<Int, Row>()
        let box = WatchedState<Store<Int, Row>?>(nil)
        let farewells = WatchedState(0)
        let store = Store(cacher: cacher) { Row(id: $0) }
        box.update { $0 = store }
        @Sendable func row(_ id: Int) -> Row { Row(id: id, guest: Self.guest(of: box, farewells)) }
        await store[1].update(row(1))
        var iterator = store[1].publish().makeAsyncIterator()
        if isObserved { #expect(await iterator.next()?.content?.id == 1) }
        if isForeign { await cacher.save(CacheRecord(content: row(2), fetchedAt: Date()), param: 1) }
        await store[1].update(Row(id: 3))
        // The observer, the engine and its memory have released the older content.
        try await until("all guests are released") { farewells.current == (isForeign ? 2 : 1) }
        #expect(try await store[1].requireData().id == 3)
        box.update { $0 = nil }
    }

    /// A key that is an object, compared by its identifier.
    private final class Tag: Hashable, Sendable {
        let id: Int
        private let guest: Guest?

        init(_ id: Int, _ guest: Guest?) { (self.id, self.guest) = (id, guest) }

        static func == (lhs: Tag, rhs: Tag) -> Bool { lhs.id == rhs.id }
        func hash(into hasher: inout Hasher) { hasher.combine(id) }
    }

    /// The ways to release a key.
    enum KeyEnd: CaseIterable { case cleared, unobserved, removed, outranked }

    @Test(arguments: KeyEnd.allCases)
    func `C15: a key that is an object is released outside the locks`(_ end: KeyEnd) async throws {
        let box = WatchedState<PaginationStore<Tag, Int>?>(nil)
        let farewells = WatchedState(0)
        // Memory without room for content keeps no key either, so only the engine retains it.
        let cacher = MemoryCacher<Tag, [Int]>(limit: end == .unobserved ? 0 : 100)
        let store = PaginationStore<Tag, Int>(
            cacher: cacher, fetcher: PaginationClosureFetcher { _, _ in Page([1], nextKey: "n") }, identity: .by { $0 })
        box.update { $0 = store }
        @Sendable func key(_ id: Int) -> Tag {
            Tag(
                id,
                Guest {
                    box.current?.prefetch([Tag(99, nil)])
                    farewells.update { $0 += 1 }
                })
        }
        var made = 2
        switch end {
        case .cleared:
            await store[key(1)].update([1])
            await store[key(1)].clear()
        case .unobserved:
            var first: LoadingStateSequence<[Int]>.Iterator? = store[key(1)].publish().makeAsyncIterator()
            var second: LoadingStateSequence<[Int]>.Iterator? = store[key(1)].publish().makeAsyncIterator()
            while await first?.next()?.isLoading == true {}
            while await second?.next()?.isLoading == true {}
            first = nil
            second = nil
        case .removed:
            await cacher.save(CacheRecord(content: [1], fetchedAt: Date()), param: key(1))
            await cacher.remove(param: key(1))
        case .outranked:
            made = 24
            for id in 0..<12 {
                _ = try await store[key(id)].requireData()
                _ = await store[key(id)].requestNextData()
                // The index of the idle list is the last to retain its key.
                cacher.trim(to: 0)
            }
            try await store.clear()
        }
        try await until("all guests are released") { farewells.current >= made }
        #expect(farewells.current == made)
        box.update { $0 = nil }
    }

    @Test func `C6: a record evicted from memory during an update of its list is released outside the lock`() async throws {
        let cacher = MemoryCacher<Int, [Row]>()
        // Updating an idle list reads its record for the page keys. The clock trims the memory in between.
        let time = TrimmingTime { cacher.trim(to: 0) }
        let lists = Lists { _ in
            PaginationStore(cacher: cacher, fetcher: PaginationClosureFetcher<Int, Row> { _, _ in Page([]) }, time: time)
        }
        await cacher.save(CacheRecord(content: [Row(id: 1, guest: lists.guest())], fetchedAt: Date(), nextKey: "n"), param: 1)
        try await lists.lists[1].update([Row(id: 2)])
        try await until("the guest is released") { lists.farewells.current == 1 }
        #expect(try await lists.lists[1].requireData().map(\.id) == [2])
        lists.end()
    }

    @Test(arguments: Backing.allCases)
    func `C6: content dropped by clear() is released outside the lock`(_ backing: Backing) async throws {
        let gated = GatedCacher<Int, Row>(recordsCalls: false)
        let box = WatchedState<Store<Int, Row>?>(nil)
        let farewells = WatchedState(0)
        let store = Store(backing, over: gated, fetcher: ClosureFetcher<Int, Row> { Row(id: $0) })
        box.update { $0 = store }
        @Sendable func row(_ id: Int) -> Row { Row(id: id, guest: Self.guest(of: box, farewells)) }
        await store[1].update(row(1))
        // During clear() one save waits, and a newer record waits behind it.
        gated.hold(.removeAll)
        let first = Task { try await store.clear() }
        if backing != .memory { try await until("the cacher is being cleared") { gated.heldNumbers.count == 1 } }
        for id in [2, 3] {
            let update = Task { await store[2].update(row(id)) }
            if backing != .memory { try await until("the update waits") { store.waiting(2) == 1 } }
            // The caller leaves, so only the store retains the row.
            if backing != .memory { update.cancel() }
            await update.value
        }
        let second = Task { try await store.clear() }
        if backing != .memory { try await until("the second clear waits") { store.engine.state.withLock { $0.nextClearing != nil } } }
        gated.release()
        for clear in [first, second] { try await clear.value }
        try await until("all guests are released") { farewells.current == 3 }
        box.update { $0 = nil }
    }

    @Test(arguments: [false, true])
    func `C4: an error that is no longer needed is released outside the lock`(_ isObserved: Bool) async throws {
        let box = WatchedState<Store<Int, Int>?>(nil)
        let farewells = WatchedState(0)
        let store = Store<Int, Int>(cacher: MemoryCacher()) { id in
            guard id == 1 else { return id }
            throw Self.guest(of: box, farewells)
        }
        box.update { $0 = store }
        var iterator = isObserved ? store[1].publish().makeAsyncIterator() : nil
        while iterator != nil, await iterator?.next()?.error == nil {}
        for _ in 0..<3 { await store[1].refresh() }
        await store[1].update(5)
        try await until("all guests are released") { farewells.current == (isObserved ? 4 : 3) }
        iterator = nil
        box.update { $0 = nil }
    }

    @Test func `C13: the error of a page that is no longer needed is released outside the lock`() async throws {
        let lists = Lists { lists in
            PaginationStore(
                cacher: MemoryCacher(),
                fetcher: PaginationClosureFetcher { _, page in
                    if page != nil { throw lists.guest() }
                    return Page([Row(id: 1)], nextKey: "n")
                })
        }
        let sequence = try lists.lists[1].publish()
        var iterator = sequence.makeAsyncIterator()
        while let state = await iterator.next(), !state.isCompleted {}
        for _ in 0..<3 { _ = try await lists.lists[1].requestNextData() }
        try await lists.lists[1].update([])
        try await until("all errors are released") { lists.farewells.current == 3 }
        lists.end()
    }

    /// A clock with sleeps that run a closure when they are canceled.
    private struct Interrupted: TimeSource {
        let time: ManualTime
        let onCancel: @Sendable () -> Void

        var now: MonotonicInstant { time.now }
        var date: Date { time.date }

        func sleep(until deadline: MonotonicInstant) async throws {
            try await withTaskCancellationHandler {
                try await time.sleep(until: deadline)
            } onCancel: {
                onCancel()
            }
        }
    }

    @Test func `C10: an outdated timer is canceled outside the lock`() async throws {
        let (time, box, calls) = (ManualTime(), WatchedState<Store<Int, Int>?>(nil), WatchedState(0))
        let interrupted = Interrupted(time: time) {
            box.current?.prefetch([99])
            calls.update { $0 += 1 }
        }
        let fetcher = ScriptedFetcher<Int, Int>.counting()
        let policy = StorePolicy(revalidatesOnExpiry: true, unwantedFetch: .cancel(after: .seconds(1)))
        let store = Store(cacher: MemoryCacher(expiry: .after(.seconds(1_000))), fetcher: fetcher, policy: policy, time: interrupted)
        box.update { $0 = store }
        var iterator: LoadingStateSequence<Int>.Iterator? = store[1].publish().makeAsyncIterator()
        while await iterator?.next()?.isCompleted == false {}
        try await time.sleepers(atLeast: 1)
        // The grace period of the unwanted fetch ends long before the content expires.
        fetcher.hold()
        let caller = Task { try await store[1].requireData(from: .origin) }
        try await fetcher.started(count: 2)
        iterator = nil
        await caller.cancelAndWait()
        try await until("the old timer is canceled") { calls.current == 1 }
        box.update { $0 = nil }
        fetcher.release()
    }

    // MARK: In place

    @Test func `C13: an idle list grows in place`() async throws {
        let fetcher = PaginationClosureFetcher<Int, Int> { _, page in
            let number = page.flatMap { Int($0) } ?? 0
            return Page([number], nextKey: "\(number + 1)")
        }
        let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher)
        func place() async throws -> UInt { try await lists[1].requireData().withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
        _ = try await lists[1].requireData()
        var (last, moves) = (try await place(), 0)
        for _ in 0..<200 {
            #expect(await lists[1].requestNextData() == .loaded)
            let now = try await place()
            if now != last { moves += 1 }
            last = now
        }
        #expect(try await lists[1].requireData() == Array(0...200))
        #expect(moves < 20, "the array was copied for each page")
    }

    @Test func `equal arrays with separate storage are not the same bit for bit`() {
        let list = (0..<10).map { $0 }
        let same = list
        #expect(isSameBitForBit(list, same) && !isSameBitForBit(list, (0..<10).map { $0 }))
        #expect(isSameBitForBit(7, 7) && !isSameBitForBit(7, 8))
    }
}
