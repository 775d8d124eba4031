import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

private struct Row: Identifiable, Hashable { let id: Int }

@MainActor
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ObservedListTests {
    private let script = ScriptedPaginationFetcher<String, Row>(.page((1...10).map(Row.init), nextKey: "n", prevKey: "p"))

    private func followed(_ policy: StorePolicy = .default) async throws -> (ObservedList<Row>, Task<Void, Never>) {
        let lists = PaginationStore(cacher: MemoryCacher<String, [Row]>(), fetcher: script, policy: policy, time: ManualTime())
        let list = ObservedList<Row>()
        let task = Task { await list.follow(lists["a"]) }
        try await until("the list is shown") { list.content?.count == 10 }
        return (list, task)
    }

    @Test func `V3: a list loads its pages in both directions and shows that they are loading`() async throws {
        let (list, task) = try await followed()
        #expect(list.next.canRequestAdditionalData && list.previous.canRequestAdditionalData)
        script.hold()
        let next = Task { await list.loadNext() }
        try await until("the next page is loading") { list.isLoadingNext }
        #expect(!list.isLoadingPrevious && !list.isLoading && list.state(for: "a").content?.count == 10)
        let previous = Task { await list.loadPrevious() }
        try await until("both pages are loading") { list.isLoadingPrevious }
        for request in script.requests.dropFirst() {
            try await script.answer(request.number, with: .page([Row(id: request.direction == .next ? 11 : 0)]))
        }
        #expect(await next.value == .loaded)
        #expect(await previous.value == .loaded)
        try await until("both pages are shown") { list.content?.map(\.id) == Array(0...11) }
        #expect(!list.next.canRequestAdditionalData && !list.isLoadingNext && !list.isLoadingPrevious)
        #expect(await list.loadNext() == .noPage)
        await task.cancelAndWait()
        #expect(await list.loadNext() == .notLoadedYet)
    }

    @Test func `V3: an element near the end asks for the next page, unless that is loading, failed or missing`() async throws {
        let (list, task) = try await followed()
        func asking(_ direction: PageDirection, within distance: Int = 5) -> [Int] {
            (0...11).filter {
                direction == .next
                    ? list.shouldLoadNext(at: Row(id: $0), within: distance) : list.shouldLoadPrevious(at: Row(id: $0), within: distance)
            }
        }
        #expect(asking(.next) == [6, 7, 8, 9, 10] && asking(.prev) == [1, 2, 3, 4, 5])
        #expect(asking(.next, within: 1) == [10] && asking(.next, within: -1) == [10] && asking(.next, within: .max) == Array(1...10))
        script.hold()
        let failing = Task { await list.loadNext() }
        try await until("the page is loading") { list.isLoadingNext }
        #expect(asking(.next) == [])
        try await script.answerNext(with: .failure(Offline()))
        #expect(await failing.value == .failed(Offline()))
        try await until("the page has failed") { list.next.error != nil }
        #expect(asking(.next) == [])
        // A button that tries again.
        script.release()
        script.enqueue(.page([Row(id: 11)]))
        #expect(await list.loadNext() == .loaded)
        try await until("the page is shown") { list.content?.count == 11 }
        #expect(asking(.next) == [] && asking(.prev) == [1, 2, 3, 4, 5])
        await task.cancelAndWait()
    }

    @Test func `C9, V3: a row that disappears while its page loads does not stop the page`() async throws {
        let (list, task) = try await followed()
        script.hold()
        let row = Task { await list.loadNext() }
        try await until("the page is loading") { list.isLoadingNext }
        row.cancel()
        #expect(await row.value == .failed(CancellationError()))
        try await script.answerNext(with: .page([Row(id: 11)]))
        try await until("the page is shown") { list.content?.count == 11 }
        #expect(script.cancelledCount == 0)
        await task.cancelAndWait()
    }

    @Test func `V2, V3: a list in memory is shown at once with its pages`() async throws {
        let lists = PaginationStore(cacher: MemoryCacher<String, [Row]>(), fetcher: script, time: ManualTime())
        _ = try await lists["a"].requireData()
        let state = ObservedList<Row>().state(for: lists["a"])
        #expect(
            state
                == .completed(
                    content: (1...10).map(Row.init), next: .fixed(canRequestAdditionalData: true),
                    prev: .fixed(canRequestAdditionalData: true))
        )
    }

    @Test func `V2: a one-way list in memory has no page before it, even if its record has the key of one`() async throws {
        let lists = PaginationStore(
            cacher: MemoryCacher<String, [Row]>(), fetcher: PaginationClosureFetcher { _, _ in Page([Row(id: 1)]) }, time: ManualTime())
        await lists["a"].update([Row(id: 1)], nextKey: "n", prevKey: "p")
        #expect(
            ObservedList<Row>().state(for: lists["a"])
                == .completed(content: [Row(id: 1)], next: .fixed(canRequestAdditionalData: true), prev: .none))
    }

    @Test func `V3: a list that is followed as a sequence has no pages to load`() async throws {
        let states = ManualStates<[Row]>(.completed([Row(id: 1)]))
        let list = ObservedList<Row>()
        #expect(await list.loadNext() == .notLoadedYet)
        let task = Task { await list.follow(states.sequence, as: "a") }
        try await states.taken(by: 1)
        #expect(await list.loadNext() == .noPage)
        await task.cancelAndWait()
    }

    /// A list with empty pages before a number, in one direction.
    private func empty(before number: Int, _ direction: PageDirection = .next) -> ScriptedPaginationFetcher<String, Row> {
        ScriptedPaginationFetcher { request in
            let page = request.pageKey.flatMap { Int($0) } ?? 0
            let rows = page < number ? [] : [Row(id: page)]
            let key = page < 100 ? "\(page + 1)" : nil
            return direction == .next ? .page(rows, nextKey: key) : .page(rows, prevKey: key)
        }
    }

    private func follow(_ fetcher: ScriptedPaginationFetcher<String, Row>) -> (ObservedList<Row>, Task<Void, Never>) {
        let lists = PaginationStore(cacher: MemoryCacher<String, [Row]>(), fetcher: fetcher, time: ManualTime())
        let list = ObservedList<Row>()
        return (list, Task { await list.follow(lists["a"]) })
    }

    @Test(arguments: [1, 5], PageDirection.allCases)
    func `V3: an empty list loads its pages until one has a row`(_ number: Int, _ direction: PageDirection) async throws {
        let fetcher = empty(before: number, direction)
        let (list, task) = follow(fetcher)
        try await until("a row is shown") { list.content?.map(\.id) == [number] }
        #expect((direction == .next ? list.next : list.previous).canRequestAdditionalData)
        #expect(fetcher.startedCount == number + 1)
        await task.cancelAndWait()
    }

    @Test func `V3: a list that has lost all of its rows loads its pages again`() async throws {
        let lists = PaginationStore(cacher: MemoryCacher<String, [Row]>(), fetcher: empty(before: 1), time: ManualTime())
        let list = ObservedList<Row>()
        let task = Task { await list.follow(lists["a"]) }
        for id in 1...3 {
            try await until("row \(id) is shown") { list.content?.map(\.id) == [id] }
            await lists["a"].update { $0 = [] }
        }
        await task.cancelAndWait()
    }

    @Test func `V3: an empty list requests no previous page as long as there are next pages`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Row> { request in
            let page = request.pageKey.flatMap { Int($0) } ?? 0
            return .page(page < 18 ? [] : [Row(id: page)], nextKey: "\(page + 1)", prevKey: page == 0 ? "p" : nil)
        }
        let (list, task) = follow(fetcher)
        try await until("a row is shown") { list.content?.map(\.id) == [18] }
        #expect(fetcher.requests.count { $0.direction == .prev } == 0)
        await task.cancelAndWait()
    }

    @Test func `V3: an empty list requests at most twenty pages, and again after a refresh`() async throws {
        let fetcher = empty(before: .max)
        let lists = PaginationStore(cacher: MemoryCacher<String, [Row]>(), fetcher: fetcher, time: ManualTime())
        let list = ObservedList<Row>()
        let task = Task { await list.follow(lists["a"]) }
        try await until("the bound is reached") { fetcher.startedCount == 21 && list.next.canRequestAdditionalData }
        #expect(await list.loadNext() == .loaded)
        #expect(fetcher.startedCount == 41)
        fetcher.hold()
        let refresh = Task { await lists["a"].refresh() }
        try await until("the list is loading") { list.isLoading }
        fetcher.release()
        await refresh.value
        try await until("the bound is reached again") { fetcher.startedCount == 62 && list.next.canRequestAdditionalData }
        await task.cancelAndWait()
    }

    @Test func `V3: an empty list does not repeat a page that has failed`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Row> { $0.pageKey == nil ? .page([], nextKey: "1") : .failure(Offline()) }
        let (list, task) = follow(fetcher)
        try await until("the page has failed") { list.next.error != nil }
        #expect(fetcher.startedCount == 2 && list.content == [])
        await task.cancelAndWait()
    }

    @Test func `V4: the state of a page invalidates only the views that read it`() async throws {
        let more = AdditionalLoadingState.fixed(canRequestAdditionalData: true)
        let states = ManualStates<[Row]>(.completed(content: [Row(id: 1)], next: more, prev: more))
        let list = ObservedList<Row>()
        let task = Task { await list.follow(states.sequence, as: 1) }
        try await until("the list has joined") { states.joinedCount == 1 }
        try await states.taken(by: 1)
        let readers: [(name: String, read: @MainActor () -> Void)] = [
            ("next", { _ = list.next }), ("previous", { _ = list.previous }), ("isLoadingNext", { _ = list.isLoadingNext }),
            ("isLoadingPrevious", { _ = list.isLoadingPrevious }), ("content", { _ = list.content }),
        ]
        let steps: [(next: AdditionalLoadingState, prev: AdditionalLoadingState, changed: Set<String>)] = [
            (.loading, more, ["next", "isLoadingNext"]), (.none, more, ["next", "isLoadingNext"]),
            (.none, .loading, ["previous", "isLoadingPrevious"]),
            (.none, .error(rawError: Offline()), ["previous", "isLoadingPrevious"]), (.none, more, ["previous"]),
        ]
        for (next, prev, changed) in steps {
            let views = readers.map { ReadingView($0.read) }
            states.send(.completed(content: [Row(id: 1)], next: next, prev: prev))
            try await states.taken(by: 1)
            #expect(list.next == next && list.previous == prev)
            for (reader, view) in zip(readers, views) {
                #expect(view.invalidations == (changed.contains(reader.name) ? 1 : 0), "\(reader.name) at \(next), \(prev)")
            }
        }
        await task.cancelAndWait()
    }

    @Test(arguments: PageDirection.allCases)
    func `V3: loading continues until a page adds a row`(_ direction: PageDirection) async throws {
        let (list, task) = try await followed()
        func page(_ ids: ClosedRange<Int>?, _ key: String?) -> ScriptedAnswer<[Row]> {
            .page(ids.map { $0.map(Row.init) } ?? [], nextKey: direction == .next ? key : nil, prevKey: direction == .prev ? key : nil)
        }
        let new = direction == .next ? 11...20 : -9...0
        script.enqueue(page(nil, "a"), page(1...10, "b"), page(new, "c"), page(nil, nil))
        let load = { await direction == .next ? list.loadNext() : list.loadPrevious() }
        #expect(await load() == .loaded)
        try await until("the new rows are shown") { list.content?.count == 20 }
        #expect(script.requests.map(\.pageKey) == [nil, direction == .next ? "n" : "p", "a", "b"])
        #expect(await load() == .noPage, "the last page is empty, and there is none after it")
        #expect(script.startedCount == 5)
        await task.cancelAndWait()
    }

    @Test(arguments: [nil, 1, 3])
    func `V3: loading ends after twenty pages without a row`(_ window: Int?) async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int> { $0.pageKey == nil ? .page([1], nextKey: "n") : .page([], nextKey: "more") }
        let cacher = MemoryCacher<Int, [Int]>()
        let lists =
            window.map { PaginationStore(cacher: cacher, fetcher: fetcher, paging: PagingPolicy(maximumPages: $0)) }
            ?? PaginationStore(cacher: cacher, fetcher: fetcher)
        let list = ObservedList<Int>()
        let task = Task { await list.follow(lists[1]) }
        try await until("the list is shown") { list.content == [1] }
        #expect(await list.loadNext() == .loaded)
        #expect(fetcher.startedCount == 21)
        #expect(await list.loadNext() == .loaded, "the next call continues")
        #expect(fetcher.startedCount == 41)
        await task.cancelAndWait()
    }

    @Test func `V3: loading ends at a page that fails`() async throws {
        let (list, task) = try await followed()
        script.enqueue(.page([], nextKey: "a"), .failure(Offline()))
        #expect(await list.loadNext() == .failed(Offline()))
        #expect(script.startedCount == 3)
        await task.cancelAndWait()
    }

    @Test func `V3: a list of plain keys loads at its end, and contains each key once`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int>(.page([1, 2, 3], nextKey: "n", prevKey: "p"), .page([3, 4], nextKey: nil))
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)
        let list = ObservedList<Int>()
        let task = Task { await list.follow(lists[1]) }
        try await until("the list is shown") { list.content == [1, 2, 3] }
        #expect(!list.shouldLoadNext(at: 1, within: 2) && list.shouldLoadNext(at: 2, within: 2))
        #expect(list.shouldLoadPrevious(at: 1, within: 1) && !list.shouldLoadPrevious(at: 2, within: 1))
        #expect(await list.loadNext() == .loaded)
        try await until("the page is added") { list.content == [1, 2, 3, 4] }
        #expect(!list.shouldLoadNext(at: 4))
        await task.cancelAndWait()
    }

    @Test func `C18, V3: a list with a window loads its pages in both directions`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int> { request in
            let page = request.pageKey.flatMap { Int($0) } ?? 0
            return .page([page], nextKey: "\(page + 1)", prevKey: page > 0 ? "\(page - 1)" : nil)
        }
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher, paging: PagingPolicy(maximumPages: 2))
        let list = ObservedList<Int>()
        let task = Task { await list.follow(lists[1]) }
        try await until("the list is shown") { list.content == [0] }
        for _ in 0..<3 { #expect(await list.loadNext() == .loaded) }
        try await until("the window has moved") { list.content == [2, 3] && list.previous == .fixed(canRequestAdditionalData: true) }
        for _ in 0..<2 { #expect(await list.loadPrevious() == .loaded) }
        try await until("the window is back") { list.content == [0, 1] && list.previous == .fixed(canRequestAdditionalData: false) }
        await task.cancelAndWait()
    }
}
