import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct PaginationTests {
    typealias Fetcher = ScriptedPaginationFetcher<Int, Int>

    func store(
        _ fetcher: Fetcher, identity: ElementIdentity<Int> = .none, policy: StorePolicy = .default, time: ManualTime = ManualTime()
    ) -> PaginationStore<Int, Int> {
        PaginationStore(cacher: MemoryCacher(), fetcher: fetcher, identity: identity, policy: policy, time: time)
    }

    func request(_ list: PaginationStoreFlowable<Int, Int>, _ direction: PageDirection) -> Task<String, Never> {
        Task { await (direction == .next ? list.requestNextData() : list.requestPrevData()).word }
    }

    @Test(arguments: PageDirection.allCases)
    func `C13: a page is added on its side of the list, and its states are published`(_ direction: PageDirection) async throws {
        let fetcher = Fetcher(.page([5], nextKey: "n", prevKey: "p"), .page([6], nextKey: "", prevKey: ""))
        let list = store(fetcher)[1]
        // A slow observer would skip the first state.
        fetcher.hold()
        let observer = try await observeFirst(list.publish())
        fetcher.release()
        _ = try await observer.states(count: 2)
        fetcher.hold()
        let page = request(list, direction)
        try await fetcher.started(count: 2)
        _ = try await observer.states(count: 3)
        fetcher.release()
        #expect(await page.value == "loaded")
        _ = try await observer.states(count: 4)
        let (loading, loaded) =
            direction == .next
            ? ("completed([5],next:loading,prev:more)", "completed([5, 6],prev:more)")
            : ("completed([5],next:more,prev:loading)", "completed([6, 5],next:more)")
        #expect(observer.summary == "loading(nil) completed([5],next:more,prev:more) \(loading) \(loaded)")
        #expect(fetcher.requests.last?.pageKey == (direction == .next ? "n" : "p"))
    }

    @Test(arguments: PageDirection.allCases)
    func `C13: a missing or empty key means that there is no page`(_ direction: PageDirection) async throws {
        for page in [Page([1]), Page([1], nextKey: "", prevKey: "")] {
            let fetcher = Fetcher(.page(page))
            let list = store(fetcher)[1]
            _ = try await list.requireData()
            #expect(await request(list, direction).value == "noPage")
            #expect(fetcher.startedCount == 1)
        }
    }

    @Test(arguments: [Expiry.after(.zero), .after(.seconds(-1))], Backing.allCases)
    func `C11, C13: a list that is never valid loads all its pages without an observer`(_ expiry: Expiry, _ backing: Backing)
        async throws
    {
        let fetcher = Fetcher(.page([1], nextKey: "2"), .page([2], nextKey: "3"), .page([3]))
        let cacher = GatedCacher<Int, [Int]>(expiry: expiry)
        let list =
            switch backing {
            case .memory: PaginationStore(cacher: MemoryCacher(expiry: expiry), fetcher: fetcher)[1]
            case .tiered: PaginationStore(cacher: TieredCacher(over: cacher), fetcher: fetcher)[1]
            case .plain: PaginationStore(cacher: cacher, fetcher: fetcher)[1]
            }
        var results: [PageRequest] = []
        for _ in 0..<4 { results.append(await list.requestNextData()) }
        #expect(results == [.notLoadedYet, .loaded, .loaded, .noPage])
        #expect(fetcher.startedCount == 3)
    }

    @Test func `C15: clearing a store drops the merge indexes of its lists`() async throws {
        let lists = store(Fetcher(.page([1], nextKey: "2"), .page([2], nextKey: "3")), identity: .by { $0 })
        _ = try await lists[1].requireData()
        #expect(await lists[1].requestNextData() == .loaded)
        #expect(lists.idleIndexes == 1)
        try await lists.clear()
        #expect(lists.idleIndexes == 0)
    }

    @Test func `C13: page requests are equal if their kinds and errors are equal`() {
        let all: [PageRequest] = [.loaded, .joined, .noPage, .notLoadedYet, .superseded, .failed(Offline()), .failed(CancellationError())]
        for (left, one) in all.enumerated() { for (right, other) in all.enumerated() { #expect((one == other) == (left == right)) } }
    }

    @Test(arguments: PageDirection.allCases)
    func `C13: concurrent requests for a page fetch it once`(_ direction: PageDirection) async throws {
        let fetcher = Fetcher(.page([1], nextKey: "n", prevKey: "p"), .page([2]))
        let lists = store(fetcher)
        let observer = RecordingObserver(lists[1].publish())
        try await observer.next { $0.isCompleted }
        fetcher.hold()
        let requests = (0..<50).map { _ in request(lists[1], direction) }
        try await until("all wait") { lists.waiting(1) == 50 }
        fetcher.release()
        var words: [String: Int] = [:]
        for request in requests { words[await request.value, default: 0] += 1 }
        #expect(words == ["loaded": 1, "joined": 49])
        #expect(fetcher.startedCount == 2)
    }

    @Test func `C13: refreshing all loaded pages fetches them in order with fresh keys and publishes once`() async throws {
        let fetcher = Fetcher(.page([5], nextKey: "n1", prevKey: "p1"), .page([6], nextKey: "n2"), .page([4]))
        let list = store(fetcher, policy: StorePolicy(refreshScope: .loadedPages))[1]
        let observer = try await observeCompleted(list.publish())
        await list.requestNextData()
        await list.requestPrevData()
        try await observer.next { $0.content == [4, 5, 6] }
        let before = observer.states.count
        fetcher.enqueue(.page([50], nextKey: "m1", prevKey: "q1"), .page([60], nextKey: "m2"), .page([40], prevKey: "q2"))
        await list.refresh()
        try await observer.next { $0.content == [40, 50, 60] && $0.isCompleted }
        // An observer may skip the loading state, but never sees a mix of the old and the new list.
        #expect(observer.states.dropFirst(before).allSatisfy { $0.content == [4, 5, 6] || $0.content == [40, 50, 60] })
        #expect(fetcher.requests.suffix(3).map(\.pageKey) == [nil, "m1", "q1"])
        #expect(observer.states.last?.summary == "completed([40, 50, 60],next:more,prev:more)")
    }

    @Test func `C13: an update keeps or replaces the page keys`() async throws {
        let fetcher = Fetcher(.page([5], nextKey: "n1"), .page([6]), .page([8]))
        let list = store(fetcher)[1]
        _ = try await list.requireData()
        await list.update { $0.append(55) }
        await list.update([1])
        await list.requestNextData()
        #expect(fetcher.requests.last?.pageKey == "n1")
        await list.update([7], nextKey: "m", prevKey: "")
        #expect(await list.requestPrevData().word == "noPage")
        await list.requestNextData()
        #expect(fetcher.requests.last?.pageKey == "m")
        #expect(try await list.requireData() == [7, 8])
    }

    @Test func `C13: a canceled page request returns, and the page is loaded for the other requests`() async throws {
        let fetcher = Fetcher(.page([1], nextKey: "n"), .page([2]))
        let lists = store(fetcher)
        _ = try await lists[1].requireData()
        fetcher.hold()
        let first = request(lists[1], .next)
        try await until("the request waits") { lists.waiting(1) == 1 }
        let second = request(lists[1], .next)
        try await until("both wait") { lists.waiting(1) == 2 }
        first.cancel()
        #expect(await first.value == "failed")
        fetcher.release()
        #expect(await second.value == "joined")
        #expect(try await lists[1].requireData() == [1, 2])
    }
}
