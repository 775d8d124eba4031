import Synchronization
import Testing
import Trials
import StoreTrials

@testable import StoreCore
@testable import StoreCoreTesting

/// Tests what a response to one page of a list says about the others.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ConfirmedPagesTests {
    typealias Fetcher = ScriptedPaginationFetcher<Int, Int>

    /// An origin of pages around page 0, each with one row; it confirms the initial page while that is unchanged.
    final class Shelf: Sendable {
        private let editions = Mutex<[Int: Int]>([:])
        /// Whether pages other than the initial one have validators too.
        let tagsAll: Bool
        let fetcher: Fetcher

        init(tagsAll: Bool = false) {
            self.tagsAll = tagsAll
            let shelf = Shared<Shelf?>(nil)
            fetcher = Fetcher { request in shelf.value?.answer(request) ?? .failure(Offline()) }
            shelf.value = self
        }

        private func answer(_ request: ScriptedRequest<Int>) -> ScriptedAnswer<[Int]> {
            let number = Int(request.pageKey ?? "0") ?? 0
            let edition = editions.withLock { $0[number, default: 0] }
            let validator = Validator(entityTag: "\"\(edition)\"")
            if let sent = request.validator, sent == validator { return .notModified() }
            return .page(
                [number * 100 + edition], nextKey: "\(number + 1)", prevKey: "\(number - 1)",
                validator: number == 0 || tagsAll ? validator : nil)
        }

        func change(_ number: Int) { editions.withLock { $0[number, default: 0] += 1 } }
    }

    private func lists(
        _ shelf: Shelf, window: Int? = nil, scope: StorePolicy.RefreshScope = .firstPage, expiry: Expiry = .never,
        time: ManualTime = ManualTime()
    ) -> PaginationStore<Int, Int> {
        PaginationStore(
            of: MemoryCacher<Int, [Int]>(expiry: expiry), shelf.fetcher, paging: window.map { PagingPolicy(maximumPages: $0) }, links: [],
            identity: .none, policy: StorePolicy(refreshScope: scope), time: time, scope: nil, name: "", onEvent: nil)
    }

    @Test func `C25: a refresh of the first page makes the list that page although the origin confirms it`() async throws {
        let shelf = Shelf()
        let list = lists(shelf)[1]
        let observer = try await observeCompleted(list.publish())
        for _ in 0..<2 { #expect(await list.requestNextData() == .loaded) }
        #expect(try await list.requireData() == [0, 100, 200])
        shelf.change(1)
        await list.refresh()
        #expect(shelf.fetcher.requests.last?.validator == Validator(entityTag: "\"0\""))
        #expect(try await list.requireData() == [0], "the confirmation says nothing about the other pages")
        try await observer.next { $0.content == [0] && $0.isCompleted }
        #expect(await list.requestNextData() == .loaded)
        #expect(shelf.fetcher.requests.last?.pageKey == "1", "the list has the key of its initial page again")
        #expect(try await list.requireData() == [0, 101])
    }

    @Test func `C25: a confirmed initial page keeps its keys in both directions`() async throws {
        let shelf = Shelf()
        let list = lists(shelf)[1]
        _ = try await list.requireData()
        for _ in 0..<2 { #expect(await list.requestPrevData() == .loaded) }
        #expect(await list.requestNextData() == .loaded)
        #expect(try await list.requireData() == [-200, -100, 0, 100])
        await list.refresh()
        #expect(try await list.requireData() == [0])
        #expect(await list.requestPrevData() == .loaded)
        #expect(shelf.fetcher.requests.last?.pageKey == "-1")
        #expect(await list.requestNextData() == .loaded)
        #expect(shelf.fetcher.requests.last?.pageKey == "1")
        #expect(try await list.requireData() == [-100, 0, 100])
    }

    @Test(arguments: [(nil, "1"), ("", "1"), ("7", "7")], [0, 1])
    func `C25: a confirmation without a page key keeps the key, and one with a key replaces it`(
        _ keys: (stated: String?, expected: String), _ furtherPages: Int
    ) async throws {
        let fetcher = Fetcher { request in
            if let key = request.pageKey { return .page([Int(key) ?? -1], nextKey: "2") }
            if request.validator == nil { return .page([0], nextKey: "1", validator: Validator(entityTag: "1")) }
            return ScriptedAnswer(result: .success(OriginResponse(.notModified(), nextKey: keys.stated)))
        }
        let list = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)[1]
        #expect(try await list.requireData() == [0])
        for _ in 0..<furtherPages { #expect(await list.requestNextData() == .loaded) }
        await list.refresh()
        #expect(try await list.requireData() == [0])
        #expect(await list.requestNextData() == .loaded)
        #expect(try await list.requireData() == [0, Int(keys.expected)])
    }

    @Test(arguments: [false, true])
    func `C25: a refresh forgets the failure of a page, whether the first page is confirmed or new`(_ confirms: Bool) async throws {
        let fetcher = Fetcher { request in
            if request.pageKey != nil { return .failure(Offline()) }
            return confirms && request.validator != nil ? .notModified() : .page([1], nextKey: "n", validator: Validator(entityTag: "a"))
        }
        let list = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)[1]
        let observer = try await observeCompleted(list.publish())
        #expect(await list.requestNextData() == .failed(Offline()))
        try await observer.next { if case .completed(content: _, next: .error, prev: _) = $0 { true } else { false } }
        await list.refresh()
        try await observer.next { $0 == .completed(content: [1], next: .fixed(canRequestAdditionalData: true), prev: .none) }
    }

    @Test func `C25: a confirmed list of one page stays, and is dated anew`() async throws {
        let (shelf, time) = (Shelf(), ManualTime())
        let list = lists(shelf, expiry: .after(.seconds(60)), time: time)[1]
        _ = try await list.requireData()
        time.advance(by: .seconds(50))
        await list.refresh()
        time.advance(by: .seconds(50))
        #expect(try await list.requireData(from: .cache) == [0])
        #expect(shelf.fetcher.startedCount == 2)
    }

    @Test func `C25: a refresh of all loaded pages asks for none of them to be confirmed`() async throws {
        let shelf = Shelf(tagsAll: true)
        let list = lists(shelf, scope: .loadedPages)[1]
        _ = try await list.requireData()
        for _ in 0..<2 { #expect(await list.requestNextData() == .loaded) }
        shelf.change(2)
        await list.refresh()
        #expect(try await list.requireData() == [0, 100, 201])
        #expect(shelf.fetcher.requests.suffix(3).map(\.pageKey) == [nil, "1", "2"])
        #expect(shelf.fetcher.requests.suffix(3).allSatisfy { $0.validator == nil })
    }

    @Test(arguments: [(1, false), (2, false), (1, true)])
    func `C18, C25: a list without its initial page is not confirmed by that page, even after a refetch of its window`(
        _ window: Int, _ isRefetched: Bool
    ) async throws {
        let shelf = Shelf(tagsAll: true)
        let list = lists(shelf, window: window)[1]
        _ = try await list.requireData()
        for _ in 0..<2 { #expect(await list.requestNextData() == .loaded) }
        if isRefetched {
            _ = try await list.requireData(from: .origin)
            #expect(shelf.fetcher.requests.last?.pageKey == "2", "an automatic fetch keeps the window where it is")
        }
        await list.refresh()
        #expect(shelf.fetcher.requests.last.map { [$0.pageKey, $0.validator?.entityTag] } == [nil, nil])
        #expect(try await list.requireData() == [0])
    }

    @Test func `C18, C25: a window that still has its initial page is reduced to it`() async throws {
        let shelf = Shelf()
        let list = lists(shelf, window: 2)[1]
        _ = try await list.requireData()
        #expect(await list.requestNextData() == .loaded)
        #expect(await list.requestPrevData() == .loaded)
        #expect(try await list.requireData() == [-100, 0])
        await list.refresh()
        #expect(shelf.fetcher.requests.last?.validator != nil)
        #expect(try await list.requireData() == [0])
        #expect(await list.requestNextData() == .loaded)
        #expect(shelf.fetcher.requests.last?.pageKey == "1")
    }

    @Test(arguments: [StorePolicy.RefreshScope.firstPage, .loadedPages])
    func `C25: a list whose first page was changed by a later one is fetched anew`(_ scope: StorePolicy.RefreshScope) async throws {
        // Both pages contain the same element modulo 100, and the newer one replaces the older one in place.
        let fetcher = Fetcher { request in
            if request.validator != nil { return .notModified() }
            return request.pageKey == nil
                ? .page([1, 2], nextKey: "b", validator: Validator(entityTag: "\"1\"")) : .page([102, 3])
        }
        let policy = StorePolicy(refreshScope: scope)
        let list = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher, identity: .by { $0 % 100 }, policy: policy)[1]
        _ = try await list.requireData()
        #expect(await list.requestNextData() == .loaded)
        #expect(try await list.requireData() == [1, 102, 3])
        await list.refresh()
        // The row of the first page is not what the origin would confirm.
        #expect(fetcher.requests.allSatisfy { $0.validator == nil })
        #expect(try await list.requireData() == (scope == .firstPage ? [1, 2] : [1, 102, 3]))
    }

    @Test func `C25: a store without pages asks for no confirmation of a list with several pages`() async throws {
        let (shelf, cacher) = (Shelf(), MemoryCacher<Int, [Int]>())
        let list = PaginationStore(cacher: cacher, fetcher: shelf.fetcher, identity: .none)[1]
        _ = try await list.requireData()
        #expect(await list.requestNextData() == .loaded)
        let store = Store(
            cacher: cacher, fetcher: ScriptedFetcher<Int, [Int]> { $0.validator == nil ? .success([7]) : .notModified() })
        #expect(try await store[1].requireData(from: .origin) == [7])
    }

    @Test func `C25: a list with damaged page sizes is fetched anew`() async throws {
        let shelf = Shelf()
        let cacher = MemoryCacher<Int, [Int]>()
        var record = CacheRecord(content: [0, 100], fetchedAt: ManualTime().date, validator: Validator(entityTag: "\"0\""), nextKey: "2")
        record.pages = [LoadedPage(count: 7), LoadedPage(direction: .next, key: "1", count: 9)]
        await cacher.save(record, param: 1)
        let list = PaginationStore(cacher: cacher, fetcher: shelf.fetcher, identity: .none, time: ManualTime())[1]
        await list.refresh()
        #expect(shelf.fetcher.requests.map(\.validator) == [nil])
        #expect(try await list.requireData() == [0])
    }

    @Test func `C25: a list of several pages is as old as the page that arrived first`() async throws {
        let (shelf, time) = (Shelf(), ManualTime())
        let cacher = MemoryCacher<Int, [Int]>(expiry: .after(.seconds(60)))
        let policy = StorePolicy(refreshScope: .loadedPages)
        let list = PaginationStore(cacher: cacher, fetcher: shelf.fetcher, identity: .none, policy: policy, time: time)[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        #expect(await list.requestNextData() == .loaded)
        shelf.fetcher.hold()
        let refresh = Task { await list.refresh() }
        try await shelf.fetcher.started(count: 3)
        let arrival = time.date
        try await shelf.fetcher.release(next: 1)
        try await shelf.fetcher.started(count: 4)
        time.advance(by: .seconds(40))
        shelf.fetcher.release()
        await refresh.value
        #expect(await cacher.load(param: 1)?.fetchedAt == arrival)
        time.advance(by: .seconds(19))
        #expect(try await list.requireData(from: .cache) == [0, 100])
        time.advance(by: .seconds(2))
        await #expect(throws: StoreError.self) { try await list.requireData(from: .cache) }
    }

    // MARK: Pages that must not be stored

    /// An origin of pages around page 0, each with one row; the pages in `forbidden` must not be stored.
    private func secretive(_ forbidden: Set<Int>, confirmedAs freshness: Freshness = .unspecified) -> Fetcher {
        Fetcher { request in
            let number = Int(request.pageKey ?? "0") ?? 0
            if request.validator != nil { return .notModified(freshness) }
            return .page(
                [number], nextKey: "\(number + 1)", prevKey: "\(number - 1)",
                freshness: forbidden.contains(number) ? Freshness(storage: .forbidden) : .unspecified,
                validator: number == 0 ? Validator(entityTag: "a") : nil)
        }
    }

    @Test(arguments: [Backing.tiered, .plain])
    func `C25: a list is saved again after its initial page is confirmed without the page that must not be stored`(
        _ backing: Backing
    ) async throws {
        let saved = GatedCacher<Int, [Int]>()
        let lists =
            switch backing {
            case .plain: PaginationStore(cacher: saved, fetcher: secretive([1]), time: ManualTime())
            default: PaginationStore(cacher: TieredCacher(over: saved), fetcher: secretive([1]), time: ManualTime())
            }
        let list = lists[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        #expect(await list.requestNextData() == .loaded)
        try await list.waitUntilSaved()
        #expect(try await saved.load(param: 1) == nil)
        await list.refresh()
        try await list.waitUntilSaved()
        #expect(try await list.requireData() == [0])
        #expect(try await saved.load(param: 1)?.content == [0])
        #expect(await list.requestPrevData() == .loaded)
        try await list.waitUntilSaved()
        #expect(try await saved.load(param: 1)?.content == [-1, 0])
    }

    @Test(arguments: [false, true])
    func `C25: an initial page must not be stored after its confirmation if it, or the confirmation, forbids that`(
        _ confirmationForbids: Bool
    ) async throws {
        let saved = GatedCacher<Int, [Int]>()
        let fetcher = confirmationForbids ? secretive([], confirmedAs: Freshness(storage: .forbidden)) : secretive([0])
        let list = PaginationStore(cacher: saved, fetcher: fetcher, time: ManualTime())[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        #expect(await list.requestNextData() == .loaded)
        await list.refresh()
        try await list.waitUntilSaved()
        if !confirmationForbids { #expect(try await list.requireData() == [0]) }
        #expect(try await saved.load(param: 1) == nil)
    }

    @Test(arguments: [0, 1])
    func `C18, C25: a list is saved again when its window has dropped the page that must not be stored`(_ page: Int) async throws {
        let saved = GatedCacher<Int, [Int]>()
        let list = PaginationStore(
            cacher: saved, fetcher: secretive([page]), paging: PagingPolicy(maximumPages: 2), time: ManualTime())[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        for _ in 0...page { #expect(await list.requestNextData() == .loaded) }
        try await list.waitUntilSaved()
        #expect(try await saved.load(param: 1) == nil)
        #expect(await list.requestNextData() == .loaded)
        try await list.waitUntilSaved()
        #expect(try await saved.load(param: 1)?.content == [page + 1, page + 2])
    }

    @Test func `C18, C25: an element of a page that must not be stored is not saved with another page`() async throws {
        let saved = GatedCacher<Int, [Int]>()
        // Page 1 replaces the element of page 0, which has the same identity.
        let fetcher = Fetcher { request in
            let number = Int(request.pageKey ?? "0") ?? 0
            return .page(
                number == 1 ? [100, 1] : [number], nextKey: "\(number + 1)", prevKey: "\(number - 1)",
                freshness: number == 1 ? Freshness(storage: .forbidden) : .unspecified)
        }
        let list = PaginationStore(
            cacher: saved, fetcher: fetcher, paging: PagingPolicy(maximumPages: 2), identity: .by { $0 % 100 }, time: ManualTime())[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        #expect(await list.requestNextData() == .loaded)
        #expect(await list.requestPrevData() == .loaded)
        try await list.waitUntilSaved()
        #expect(try await list.requireData() == [-1, 100])
        #expect(try await saved.load(param: 1) == nil)
    }
}
