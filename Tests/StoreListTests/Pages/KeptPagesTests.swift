import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct KeptPagesTests {
    typealias Row = PageWindowTests.Row
    typealias Book = PageWindowTests.Book

    private func observedList(
        _ book: Book, expiry: Expiry = .never, policy: StorePolicy = .default, time: ManualTime = ManualTime()
    ) async throws -> (PaginationStore<Int, Row>, RecordingObserver<[Row]>) {
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Row]>(expiry: expiry), fetcher: book.fetcher, policy: policy, time: time)
        let observer = try await observeCompleted(lists[1].publish())
        for _ in 1...2 { #expect(await lists[1].requestNextData() == .loaded) }
        try await observer.next { $0.content == Book.rows(0...2) && $0.isCompleted }
        return (lists, observer)
    }

    enum Cause: CaseIterable, Sendable {
        case mutation, failedMutation, trigger, expiry, invalidation, origin, validation, retryByObserver, callerAfterExpiry
    }

    @Test(arguments: Cause.allCases)
    func `C13: an implicit refetch keeps the loaded pages of an observed list`(_ cause: Cause) async throws {
        let (book, time) = (Book(), ManualTime())
        let policy = StorePolicy(revalidatesOnExpiry: cause == .expiry, minimumInterval: .zero)
        let hasExpiry = [.expiry, .validation, .callerAfterExpiry].contains(cause)
        let (lists, observer) = try await observedList(
            book, expiry: hasExpiry ? .after(.seconds(60)) : .never, policy: policy, time: time)
        let list = lists[1]
        let before = observer.states.count
        if cause == .retryByObserver {
            book.missing.value = 0
            await list.refresh()
            try await observer.next { $0.error != nil }
            book.missing.value = nil
        }
        book.edition.value = 1
        if hasExpiry { time.advance(by: .seconds(61)) }
        var second: RecordingObserver<[Row]>?
        switch cause {
        case .mutation: try await list.mutate(optimistically: { $0.append(Row(id: -1)) }) {}
        case .failedMutation: _ = try? await list.mutate(optimistically: { $0.append(Row(id: -1)) }) { throw Offline() }
        case .trigger:
            let bell = Bell()
            lists.revalidate(on: bell)
            try await bell.ring()
        case .expiry: break
        case .invalidation: await list.invalidate()
        case .origin: _ = try await list.requireData(from: .origin)
        case .validation: await list.validate()
        case .retryByObserver: second = RecordingObserver(list.publish())
        case .callerAfterExpiry: _ = try await list.requireData()
        }
        try await observer.next { $0.isCompleted && $0.content?.first?.edition == 1 }
        #expect(observer.states.last?.content == Book.rows(0...2, edition: 1))
        #expect(observer.states.dropFirst(before).allSatisfy { ($0.content?.count ?? 0) >= 9 })
        #expect(await list.requestNextData() == .loaded)
        #expect(book.fetcher.requests.last?.pageKey == "3")
        withExtendedLifetime(second) {}
    }

    @Test(arguments: 0...2, [false, true])
    func `C4, C13: a refetch of several pages that fails at one keeps the list and its page keys`(
        _ page: Int, _ isRefresh: Bool
    ) async throws {
        let book = Book()
        let (lists, observer) = try await observedList(book, policy: StorePolicy(refreshScope: .loadedPages))
        book.edition.value = 1
        book.missing.value = page
        if isRefresh { await lists[1].refresh() } else { await lists[1].invalidate() }
        let state = try await observer.next { $0.error != nil }
        #expect(state.content == Book.rows(0...2))
        book.missing.value = nil
        await lists[1].validate()
        try await observer.next { $0.isCompleted && $0.content == Book.rows(0...2, edition: 1) }
        #expect(await lists[1].requestNextData() == .loaded)
        #expect(book.fetcher.requests.last?.pageKey == "3")
    }

    @Test func `C9, C13: a canceled refetch of several pages requests no further page`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int>(.page([0], nextKey: "1"), .page([1], nextKey: "2"), cancellation: .ignored)
        let list = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)[1]
        let observer = try await observeCompleted(list.publish())
        #expect(await list.requestNextData() == .loaded)
        fetcher.hold()
        let refetch = Task { await list.invalidate() }
        try await fetcher.started(count: 3)
        await refetch.value
        await list.update([7], nextKey: nil, prevKey: nil)
        try await fetcher.answer(3, with: .page([-1], nextKey: "late"))
        try await fetcher.ended(count: 3)
        let marker = Task { await list.refresh() }
        try await fetcher.started(count: 4)
        #expect(fetcher.requests.last?.pageKey == nil)
        fetcher.enqueue(.page([8]))
        fetcher.release()
        await marker.value
        try await observer.next { $0.summary == "completed([8])" }
        #expect(fetcher.startedCount == 4)
    }

    @Test(arguments: [true, false])
    func `C13: a page request that waits for saved page keys continues when update or clear() replaces them`(_ updates: Bool)
        async throws
    {
        let cacher = GatedCacher<Int, [Int]>()
        cacher.hold(.load)
        let lists = PaginationStore(cacher: cacher, fetcher: ScriptedPaginationFetcher<Int, Int>(.page([2])))
        let first = Task { await lists[1].update([1]) }
        try await until("the record is being read") { cacher.heldNumbers.count == 1 }
        let page = Task { await lists[1].requestNextData() }
        try await until("the page request waits") { lists.waiting(1) == 2 }
        let change = Task { if updates { await lists[1].update([7], nextKey: nil, prevKey: nil) } else { await lists[1].clear() } }
        #expect(await page.value == (updates ? .noPage : .notLoadedYet))
        cacher.release()
        await first.value
        await change.value
    }

    @Test func `C13: rows that the origin no longer returns leave the list, which may become shorter`() async throws {
        let rows = Shared(3)
        let fetcher = ScriptedPaginationFetcher<Int, Int> { request in
            let page = Int(request.pageKey ?? "0") ?? 0
            return .page([page], nextKey: page + 1 < rows.value ? "\(page + 1)" : nil)
        }
        let list = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)[1]
        let observer = try await observeCompleted(list.publish())
        for _ in 0..<2 { await list.requestNextData() }
        rows.value = 2
        await list.invalidate()
        try await observer.next { $0.summary == "completed([0, 1])" }
        #expect(await list.requestNextData() == .noPage)
    }

    enum Interruption: CaseIterable, Sendable { case mutation, failedMutation, changeInPlace, replacement, trigger, invalidation }

    @Test(arguments: Interruption.allCases)
    func `C13: a change or a refetch during a page request does not lose the page`(_ interruption: Interruption) async throws {
        let book = Book()
        let (lists, observer) = try await observedList(book, policy: StorePolicy(minimumInterval: .zero))
        let list = lists[1]
        book.fetcher.hold()
        let begun = book.fetcher.startedCount
        let page = Task { await list.requestNextData() }
        try await book.fetcher.started(count: begun + 1)
        let change = Task {
            switch interruption {
            case .mutation: try await list.mutate(optimistically: { $0.append(Row(id: -1)) }) {}
            case .failedMutation: try await list.mutate(optimistically: { $0.append(Row(id: -1)) }) { throw Offline() }
            case .changeInPlace: await list.update { $0.append(Row(id: -1)) }
            case .replacement: await list.update([Row(id: -1)])
            case .trigger:
                let bell = Bell()
                lists.revalidate(on: bell)
                try await bell.ring()
            case .invalidation: await list.invalidate()
            }
        }
        try await book.fetcher.started(count: begun + 2)
        book.fetcher.release()
        _ = await change.result
        #expect(await page.value == .loaded)
        let last = Book.rows(3...3)
        try await observer.next { $0.isCompleted && $0.content?.suffix(3) == last[...] }
        try await until("no fetch runs") { lists.lists.runningFetches == 0 }
        #expect(observer.states.last?.content?.suffix(3) == last[...])
    }

    @Test func `C13: a list with a one-way fetcher has no previous page, even with a key for it`() async throws {
        let list = PaginationStore(
            cacher: MemoryCacher<Int, [Int]>(), fetcher: PaginationClosureFetcher { _, _ in Page([1], prevKey: "p") })[1]
        let observer = try await observeCompleted(list.publish())
        #expect(await list.requestPrevData() == .noPage)
        await list.update([1, 2], nextKey: nil, prevKey: "p")
        try await observer.next { $0.summary == "completed([1, 2])" }
        #expect(await list.requestPrevData() == .noPage)
    }

    @Test func `V2: a list that grows stays in memory for its readers`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int> { request in
            let page = Int(request.pageKey ?? "0") ?? 0
            return .page(Array(page * 10_000..<(page + 1) * 10_000), nextKey: "\(page + 1)")
        }
        let store = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)
        let list = store[1]
        _ = try await list.requireData()
        let reader = Task {
            var misses = 0
            while !Task.isCancelled {
                if list.list.stateInMemory == nil || store.snapshot(of: 1) == nil { misses += 1 }
                if try await list.engine.knownKeys()?.count != 1 { misses += 1 }
                await Task.yield()
            }
            return misses
        }
        for _ in 0..<40 { await list.requestNextData() }
        reader.cancel()
        #expect(try await reader.value == 0)
    }
}

/// A value that a test shares with a closure.
final class Shared<Value: Sendable>: Sendable {
    private let stored: Lock<Value>

    init(_ value: Value) { stored = Lock(value) }

    var value: Value {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}
