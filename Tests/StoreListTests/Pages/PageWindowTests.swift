import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
import StoreResilience

@testable import StoreCore
@testable import StoreFiles

@Suite(.timeLimit(.minutes(hangMinutes)))
struct PageWindowTests {
    /// A row of a list; rows with one identity may differ in their edition.
    struct Row: Hashable, Identifiable, Sendable, Codable {
        var id: Int
        var edition = 0
    }

    /// A book of numbered pages with three rows each, from page 0 on. A list begins at its bookmark.
    final class Book: Sendable {
        let edition = Shared(0)
        /// The page that cannot be fetched.
        let missing = Shared<Int?>(nil)
        let fetcher: ScriptedPaginationFetcher<Int, Row>

        init(bookmark: Int = 0, pages: Int = 1_000, repeating: Int = 0, hasPrevKeys: Bool = true) {
            fetcher = ScriptedPaginationFetcher { [edition, missing] request in
                let page = request.pageKey.flatMap { Int($0) } ?? bookmark
                if page == missing.value { throw Offline() }
                let rows = (page * 3 - (page > 0 ? repeating : 0)..<page * 3 + 3).map { Row(id: $0, edition: edition.value) }
                return .page(rows, nextKey: page + 1 < pages ? "\(page + 1)" : nil, prevKey: page > 0 && hasPrevKeys ? "\(page - 1)" : nil)
            }
        }

        static func rows(_ pages: ClosedRange<Int>, edition: Int = 0) -> [Row] {
            (pages.lowerBound * 3..<pages.upperBound * 3 + 3).map { Row(id: $0, edition: edition) }
        }

        var requests: [String?] { fetcher.requests.map(\.pageKey) }
    }

    private func lists(
        _ fetcher: ScriptedPaginationFetcher<Int, Row>, pages: Int, cacher: some Cacher<Int, [Row]> = MemoryCacher<Int, [Row]>(),
        policy: StorePolicy = .default, time: ManualTime = ManualTime()
    ) -> PaginationStore<Int, Row> {
        PaginationStore(cacher: cacher, fetcher: fetcher, paging: PagingPolicy(maximumPages: pages), policy: policy, time: time)
    }

    private func page(_ list: PaginationStoreFlowable<Int, Row>, _ direction: PageDirection, times: Int = 1) async {
        for _ in 0..<times {
            #expect(await (direction == .next ? list.requestNextData() : list.requestPrevData()) == .loaded)
        }
    }

    /// Loads pages of a list and waits until they are saved.
    private func load(_ list: PaginationStoreFlowable<Int, Row>, next: Int, prev: Int = 0) async throws {
        _ = try await list.requireData()
        await page(list, .next, times: next)
        await page(list, .prev, times: prev)
        try await list.waitUntilSaved()
    }

    @Test func `C18: a full list drops a page at one end for each page added at the other, and can go back`() async throws {
        let book = Book()
        let list = lists(book.fetcher, pages: 3)[1]
        let observer = try await observeCompleted(list.publish())
        await page(list, .next, times: 5)
        #expect(try await list.requireData() == Book.rows(3...5))
        await page(list, .prev, times: 3)
        #expect(try await list.requireData() == Book.rows(0...2))
        #expect(await list.requestPrevData() == .noPage)
        await page(list, .next, times: 2)
        #expect(try await list.requireData() == Book.rows(2...4))
        #expect(book.requests == [nil, "1", "2", "3", "4", "5", "2", "1", "0", "3", "4"])
        #expect(observer.states.allSatisfy { ($0.content?.count ?? 0) <= 9 })
    }

    @Test(arguments: 1...4) func `C18: a walk in both directions never leaves a gap, and returns to every page`(_ window: Int) async throws
    {
        let book = Book(bookmark: 10, pages: 20)
        let list = lists(book.fetcher, pages: window)[1]
        let observer = try await observeCompleted(list.publish())
        var dice = SplitMix(seed: UInt64(window))
        var (first, last) = (10, 10)
        for _ in 0..<rounds(200, quick: 100) {
            if dice.below(10) == 0 {
                book.edition.value += 1
                await list.invalidate()
                let edition = book.edition.value
                try await observer.next { $0.isCompleted && $0.content?.first?.edition == edition && $0.content?.last?.edition == edition }
            } else if dice.below(2) == 0 {
                #expect(await list.requestNextData() == (last == 19 ? .noPage : .loaded))
                last = min(19, last + 1)
                first = max(first, last - window + 1)
            } else {
                #expect(await list.requestPrevData() == (first == 0 ? .noPage : .loaded))
                first = max(0, first - 1)
                last = min(last, first + window - 1)
            }
            #expect(try await list.requireData().map(\.id) == Book.rows(first...last).map(\.id))
        }
    }

    @Test(arguments: Backing.allCases)
    func `C13, C18: a refetch of a window begins with its first page's key and keeps its pages`(_ backing: Backing) async throws {
        let (book, cacher) = (Book(), GatedCacher<Int, [Row]>())
        let list =
            switch backing {
            case .memory: lists(book.fetcher, pages: 3)[1]
            case .tiered: lists(book.fetcher, pages: 3, cacher: TieredCacher(over: cacher))[1]
            case .plain: lists(book.fetcher, pages: 3, cacher: cacher)[1]
            }
        let observer = try await observeCompleted(list.publish())
        await page(list, .next, times: 4)
        book.edition.value = 1
        await list.invalidate()
        try await observer.next { $0.isCompleted && $0.content == Book.rows(2...4, edition: 1) }
        #expect(book.requests.suffix(3) == ["2", "3", "4"])
        #expect(book.fetcher.requests.suffix(3).map(\.direction) == [.next, .next, .next])
        await page(list, .prev, times: 2)
        book.edition.value = 2
        await list.invalidate()
        try await observer.next { $0.isCompleted && $0.content == Book.rows(0...2, edition: 2) }
        #expect(book.requests.suffix(3) == ["0", "1", "2"])
        #expect(book.fetcher.requests.suffix(3).map(\.direction) == [.prev, .next, .next])
        await page(list, .next)
        await list.refresh()
        #expect(try await list.requireData() == Book.rows(0...0, edition: 2))
        #expect(book.fetcher.requests.last?.pageKey == nil)
    }

    @Test func `C4, C18: a refetch of a window that fails keeps the window and its page keys`() async throws {
        let book = Book(pages: 5)
        let list = lists(book.fetcher, pages: 2)[1]
        let observer = try await observeCompleted(list.publish())
        await page(list, .next, times: 3)
        book.fetcher.hold()
        let refetch = Task { await list.invalidate() }
        try await book.fetcher.answerNext(with: .failure(Offline()))
        book.fetcher.release()
        await refetch.value
        #expect(try await observer.next { $0.error != nil }.content == Book.rows(2...3))
        await list.validate()
        try await observer.next { $0.isCompleted }
        await page(list, .prev)
        #expect(try await list.requireData() == Book.rows(1...2))
    }

    @Test func `C18: a saved window keeps its pages, their keys and their elements`() async throws {
        let book = Book()
        let directory = temporaryURL()
        do {
            let lists = lists(book.fetcher, pages: 3, cacher: FileCacher(directory: directory))
            try await load(lists[1], next: 4)
        }
        let cacher = FileCacher<Int, [Row]>(directory: directory)
        let pages = try await cacher.load(param: 1)?.pages ?? []
        #expect(pages.map(\.key) == ["2", "3", "4"] && pages.map(\.returnKey) == ["1", "2", "3"] && pages.map(\.count) == [3, 3, 3])
        let list = lists(book.fetcher, pages: 3, cacher: cacher)[1]
        #expect(try await list.requireData() == Book.rows(2...4))
        await page(list, .prev)
        #expect(try await list.requireData() == Book.rows(1...3))
        await page(list, .next)
        #expect(try await list.requireData() == Book.rows(2...4))
        #expect(book.requests.suffix(2) == ["1", "4"])
        await list.invalidate()
        #expect(try await list.requireData() == Book.rows(2...4))
        #expect(book.requests.suffix(3) == ["2", "3", "4"])
    }

    @Test func `C18: a saved list with more pages than the window is cut by the next page or refetch`() async throws {
        let (book, cacher, time) = (Book(), GatedCacher<Int, [Row]>(), ManualTime())
        let whole = PaginationStore(cacher: cacher, fetcher: book.fetcher, time: time)
        try await load(whole[1], next: 5)
        let list = lists(book.fetcher, pages: 3, cacher: cacher, time: time)[1]
        #expect(try await list.requireData() == Book.rows(0...5))
        await page(list, .next)
        #expect(try await list.requireData() == Book.rows(4...6))
        try await load(whole[2], next: 5)
        let second = lists(book.fetcher, pages: 3, cacher: cacher, time: time)[2]
        await second.invalidate()
        #expect(try await second.requireData() == Book.rows(0...2))
        await page(second, .next)
        #expect(try await second.requireData() == Book.rows(1...3))
    }

    @Test func `C18: a refetch keeps previous pages of a longer saved list only as far as the window reaches`() async throws {
        let (book, cacher, time) = (Book(bookmark: 5), GatedCacher<Int, [Row]>(), ManualTime())
        let whole = PaginationStore(cacher: cacher, fetcher: book.fetcher, time: time)
        try await load(whole[1], next: 1, prev: 4)
        let list = lists(book.fetcher, pages: 3, cacher: cacher, time: time)[1]
        await list.invalidate()
        #expect(try await list.requireData() == Book.rows(4...6))
    }

    @Test func `C18: a saved window opens in a store without a window`() async throws {
        let (book, cacher, time) = (Book(), GatedCacher<Int, [Row]>(), ManualTime())
        try await load(lists(book.fetcher, pages: 2, cacher: cacher, time: time)[1], next: 3)
        let list = PaginationStore(cacher: cacher, fetcher: book.fetcher, time: time)[1]
        await page(list, .next)
        await list.invalidate()
        #expect(try await list.requireData() == Book.rows(2...4))
        await page(list, .prev, times: 2)
        #expect(try await list.requireData() == Book.rows(0...4))
    }

    @Test(arguments: PageDirection.allCases)
    func `C13, C18: a one-way store fetches a saved window from the initial page on`(_ direction: PageDirection) async throws {
        let (book, cacher) = (Book(bookmark: 5), MemoryCacher<Int, [Row]>())
        let window = lists(book.fetcher, pages: 2, cacher: cacher)[1]
        _ = try await window.requireData()
        await page(window, direction, times: 2)
        let fetcher = PaginationClosureFetcher<Int, Row> { _, key in
            let page = key.flatMap { Int($0) } ?? 5
            return Page(Book.rows(page...page, edition: 1), nextKey: "\(page + 1)")
        }
        let list = PaginationStore(cacher: cacher, fetcher: fetcher)[1]
        #expect(try await list.requireData(from: .origin) == Book.rows(5...6, edition: 1))
    }

    @Test func `C18: an element that the new page repeats stays in the list, although its page is dropped`() async throws {
        let book = Book(repeating: 2)
        let list = lists(book.fetcher, pages: 1)[1]
        _ = try await list.requireData()
        await page(list, .next)
        #expect(try await list.requireData().map(\.id) == [1, 2, 3, 4, 5])
        let pages = lists(Book(repeating: 1).fetcher, pages: 2)[1]
        _ = try await pages.requireData()
        await page(pages, .next, times: 3)
        // Page 2 repeated row 5, which stayed with page 1 and left the list with it.
        #expect(try await pages.requireData().map(\.id) == [6, 7, 8, 9, 10, 11])
    }

    @Test func `C18: a page whose key the origin does not return is not dropped`() async throws {
        let book = Book(hasPrevKeys: false)
        let list = lists(book.fetcher, pages: 2)[1]
        _ = try await list.requireData()
        await page(list, .next, times: 3)
        #expect(try await list.requireData() == Book.rows(0...3))
    }

    @Test func `C18: both directions at once load both pages, one after the other`() async throws {
        let book = Book(bookmark: 5)
        let list = lists(book.fetcher, pages: 3)[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        await page(list, .next, times: 2)
        book.fetcher.hold()
        let next = Task { await list.requestNextData() }
        try await book.fetcher.started(count: 4)
        let prev = Task { await list.requestPrevData() }
        try await book.fetcher.started(count: 5)
        try await book.fetcher.release(next: 1)
        #expect(await next.value == .loaded)
        #expect(try await list.requireData() == Book.rows(6...8))
        try await book.fetcher.started(count: 6)
        book.fetcher.release()
        #expect(await prev.value == .loaded)
        #expect(try await list.requireData() == Book.rows(5...7))
        #expect(book.requests.suffix(3) == ["8", "4", "5"])
    }

    // MARK: Changes

    @Test(arguments: [true, false])
    func `C14, C18: a mutation of an element whose page is dropped does not bring the element back`(_ succeeds: Bool) async throws {
        let book = Book()
        let list = lists(book.fetcher, pages: 2, policy: StorePolicy(revalidatesAfterMutation: false))[1]
        let observer = try await observeCompleted(list.publish())
        let request = HeldRequest<Row>()
        let mutation = Task {
            try await list.mutate(element: 1) {
                $0.edition = 7
            } perform: {
                try await request.run()
            }
        }
        try await observer.next { $0.content?.contains(Row(id: 1, edition: 7)) == true }
        await page(list, .next, times: 2)
        #expect(try await list.requireData() == Book.rows(1...2))
        request.end(succeeds ? .success(Row(id: 1, edition: 8)) : .failure(Offline()))
        _ = await mutation.result
        #expect(try await list.requireData() == Book.rows(1...2))
        await page(list, .prev)
        #expect(try await list.requireData() == Book.rows(0...1))
    }

    @Test func `C14, C18: a pending change applies again to an element whose page returns`() async throws {
        let book = Book()
        let list = lists(book.fetcher, pages: 1, policy: StorePolicy(revalidatesAfterMutation: false))[1]
        let observer = try await observeCompleted(list.publish())
        let request = HeldRequest<Void>()
        let mutation = Task { try await list.mutate(element: 1, optimistically: { $0.edition = 7 }) { try await request.run() } }
        try await observer.next { $0.content?.contains(Row(id: 1, edition: 7)) == true }
        await page(list, .next)
        await page(list, .prev)
        #expect(try await list.requireData().map(\.edition) == [0, 7, 0])
        request.end(.success(()))
        try await mutation.value
    }

    @Test func `C18: an edited list drops whole pages, and a replaced one begins anew`() async throws {
        let book = Book()
        let list = lists(book.fetcher, pages: 2)[1]
        _ = try await list.requireData()
        await page(list, .next)
        await list.update { $0.removeAll { $0.id == 1 || $0.id == 4 } }
        await page(list, .next)
        #expect(try await list.requireData().map(\.id) == [3, 5, 6, 7, 8])
        await page(list, .prev)
        #expect(try await list.requireData().map(\.id) == [0, 1, 2, 3, 5])
        await list.update([Row(id: -1)], nextKey: "5", prevKey: nil)
        await page(list, .next)
        #expect(try await list.requireData().map(\.id) == [-1, 15, 16, 17])
        await page(list, .next)
        #expect(try await list.requireData() == Book.rows(5...6))
        await page(list, .prev)
        #expect(try await list.requireData() == Book.rows(4...5))
    }

    // MARK: Pages without elements

    /// A book; its pages from 5 to 8 are empty, or repeat the last row before them.
    private func gappedBook(repeating: Bool = false, isEndless: Bool = false) -> ScriptedPaginationFetcher<Int, Row> {
        ScriptedPaginationFetcher { request in
            let page = request.pageKey.flatMap { Int($0) } ?? 0
            let isEmpty = page >= 5 && (isEndless || page < 9)
            let rows = isEmpty ? (repeating ? [Row(id: 14)] : []) : Book.rows(page...page)
            return .page(rows, nextKey: "\(page + 1)", prevKey: page > 0 ? "\(page - 1)" : nil)
        }
    }

    @Test(arguments: 1...4) func `C18: empty pages take no room in the window`(_ window: Int) async throws {
        let fetcher = gappedBook()
        let list = lists(fetcher, pages: window)[1]
        let observer = try await observeCompleted(list.publish())
        await page(list, .next, times: 4)
        let full = Book.rows(max(0, 5 - window)...4)
        for _ in 5...8 {
            await page(list, .next)
            #expect(try await list.requireData() == full)
        }
        // A refetch loads the pages with rows, and the key after them.
        await list.invalidate()
        #expect(try await list.requireData() == full)
        #expect(fetcher.requests.last?.pageKey == "4")
        await page(list, .next, times: 5)
        let later = Array(full.dropFirst(3)) + Book.rows(9...9)
        #expect(try await list.requireData() == later)
        await list.invalidate()
        #expect(try await list.requireData() == later)
        // The way back leads over the empty pages to every page with rows.
        while await list.requestPrevData() != .noPage {}
        #expect(try await list.requireData() == Book.rows(0...window - 1))
        await page(list, .next, times: 9)
        #expect(try await list.requireData().suffix(3) == Book.rows(window + 8...window + 8))
        #expect(observer.states.allSatisfy { $0.content?.isEmpty != true })
    }

    @Test func `C13, C18: a refetch of a window with room ends at the last pages with rows, on both sides`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Row> { request in
            let page = request.pageKey.flatMap { Int($0) } ?? 10
            let isEmpty = page < 9 || (12...14).contains(page)
            return .page(isEmpty ? [] : Book.rows(page...page), nextKey: "\(page + 1)", prevKey: "\(page - 1)")
        }
        let list = lists(fetcher, pages: 8)[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        await page(list, .next, times: 2)
        await page(list, .prev, times: 2)
        #expect(fetcher.requests.map(\.pageKey) == [nil, "11", "12", "9", "8"])
        await list.invalidate()
        #expect(try await list.requireData() == Book.rows(9...11))
        // The empty pages 12 and 8 are not counted, so the refetch does not follow them to page 15.
        #expect(fetcher.requests.dropFirst(5).map(\.pageKey) == [nil, "11", "9"])
        await page(list, .next)
        #expect(fetcher.requests.last?.pageKey == "12")
    }

    @Test(arguments: [false, true])
    func `C18: pages without new elements hold no memory, however many they are`(_ repeating: Bool) async throws {
        let cacher = MemoryCacher<Int, [Row]>()
        let list = lists(gappedBook(repeating: repeating, isEndless: true), pages: 3, cacher: cacher)[1]
        _ = try await list.requireData()
        await page(list, .next, times: 100)
        #expect(try await list.requireData().suffix(6) == Book.rows(3...4))
        #expect(await cacher.load(param: 1)?.pages.count ?? 0 <= 4)
    }

    @Test func `C18, C25: a confirmed initial page before empty pages keeps its own key`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Row> { request in
            if request.validator != nil { return .notModified() }
            let page = request.pageKey.flatMap { Int($0) } ?? 0
            return .page(page == 0 ? [Row(id: 0)] : [], nextKey: "\(page + 1)", validator: page == 0 ? Validator(entityTag: "a") : nil)
        }
        let list = lists(fetcher, pages: 2)[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        await page(list, .next, times: 3)
        await list.refresh()
        #expect(fetcher.requests.last?.validator != nil)
        await page(list, .next)
        #expect(fetcher.requests.last?.pageKey == "1")
    }

    // MARK: Memory

    @Test func `C15, C18: 10 pages after thousands of pages hold the memory of 10`() async throws {
        let counter = LifeCounter()
        // A scripted fetcher would record its requests.
        let pages = TwoWayPages { key in
            let page = key.flatMap { Int($0) } ?? 0
            return Page((0..<10).map { _ in counter.make() }, nextKey: "\(page + 1)", prevKey: "\(page - 1)")
        }
        let cacher = MemoryCacher<Int, [LifeCounter.Life]>()
        let lists = PaginationStore(cacher: cacher, fetcher: pages, paging: PagingPolicy(maximumPages: 10))
        _ = try await lists[1].requireData()
        for _ in 0..<100 { await lists[1].requestNextData() }
        let settled = Memory.resident()
        for direction in PageDirection.allCases {
            for _ in 0..<rounds(10_000, quick: 400) {
                let outcome = await direction == .next ? lists[1].requestNextData() : lists[1].requestPrevData()
                #expect(outcome == .loaded)
            }
        }
        // The caller is resumed before the dropped page is released.
        try await until("only the window is alive") { counter.alive == 100 }
        #expect(await cacher.load(param: 1)?.pages.count == 10)
        #expect(Memory.resident() - settled < Memory.growthLimit)
        await lists[1].clear()
        try await counter.none()
    }

    @Test func `C18: a window of no pages is refused`() async {
        await #expect(processExitsWith: .failure) { _ = PagingPolicy(maximumPages: 0) }
        await #expect(processExitsWith: .failure) { _ = PagingPolicy(maximumPages: -1) }
    }

    @Test func `C18: a decorated two-way fetcher keeps its window`() async throws {
        let book = Book()
        let list = PaginationStore(
            cacher: MemoryCacher<Int, [Row]>(), fetcher: book.fetcher.rememberingFailures(for: .seconds(1)),
            paging: PagingPolicy(maximumPages: 2))[1]
        _ = try await list.requireData()
        await page(list, .next, times: 3)
        await page(list, .prev)
        #expect(try await list.requireData() == Book.rows(1...2))
    }
}

/// A two-way fetcher of pages from a closure.
private struct TwoWayPages<Element: Sendable>: TwoWayPaginationFetcher {
    let page: @Sendable (_ key: String?) -> Page<Element>

    func fetch(param: Int) async throws -> Page<Element> { page(nil) }
    func fetchNext(nextKey: String, param: Int) async throws -> Page<Element> { page(nextKey) }
    func fetchPrev(prevKey: String, param: Int) async throws -> Page<Element> { page(prevKey) }
}
