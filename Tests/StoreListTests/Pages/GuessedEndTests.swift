import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles

@Suite(.timeLimit(.minutes(hangMinutes)))
struct GuessedEndTests {
    typealias Fetcher = ScriptedPaginationFetcher<Int, Int>

    private func rooms(_ fetcher: Fetcher, paging: PagingPolicy? = nil, policy: StorePolicy = .default) -> PaginationStore<Int, Int> {
        let cacher = MemoryCacher<Int, [Int]>()
        guard let paging else { return PaginationStore(cacher: cacher, fetcher: fetcher, identity: .none, policy: policy) }
        return PaginationStore(cacher: cacher, fetcher: fetcher, paging: paging, identity: .none, policy: policy)
    }

    @Test(arguments: [GuessedEnd.emptyPage, .shortPage, .repeatedPage, .repeatedKey, GuessedEnd(rawValue: "ours"), nil])
    func `C25: a guessed end is shown with its reason, and an end that the origin states or a page with a next key is no guess`(
        _ reason: GuessedEnd?
    ) async throws {
        let list = rooms(Fetcher(.page(Page([1], nextKey: "2", guessedEnd: .shortPage)), .page(Page([2], guessedEnd: reason))))[1]
        #expect(list.guessedEnd == nil, "nothing is loaded yet")
        _ = try await list.requireData()
        #expect(list.guessedEnd == nil, "there is a next page")
        #expect(await list.requestNextData() == .loaded)
        #expect(list.guessedEnd == reason)
        #expect(await list.requestNextData() == .noPage)
    }

    @Test func `C25: a guess stays while the list keeps its end`() async throws {
        let fetcher = Fetcher(.page(Page([1], prevKey: "0", guessedEnd: .emptyPage)), .page([0]), .page([7]))
        let list = rooms(fetcher)[1]
        let observer = RecordingObserver(list.publish())
        try await observer.next { $0.isCompleted }
        #expect(await list.requestPrevData() == .loaded)
        #expect(list.guessedEnd == .emptyPage, "a page before the list changes nothing at its end")
        await list.update { $0.append(9) }
        #expect(list.guessedEnd == .emptyPage)
        await list.update([1], nextKey: nil, prevKey: nil)
        #expect(list.guessedEnd == nil, "the app has stated the end")
        await list.refresh()
        #expect(list.guessedEnd == nil)
    }

    @Test func `C18, C25: a list whose window has dropped its end has a next page and no guess`() async throws {
        let fetcher = Fetcher(
            .page([5], nextKey: "6", prevKey: "4"), .page(Page([6], prevKey: "5", guessedEnd: .shortPage)), .page([4], nextKey: "5"))
        let list = rooms(fetcher, paging: PagingPolicy(maximumPages: 2))[1]
        _ = try await list.requireData()
        #expect(await list.requestNextData() == .loaded)
        #expect(list.guessedEnd == .shortPage)
        #expect(await list.requestPrevData() == .loaded)
        #expect(try await list.requireData() == [4, 5])
        #expect(list.guessedEnd == nil)
    }

    @Test func `C25: a record keeps the guessed end across launches`() async throws {
        let directory = try TemporaryDirectory()
        let cacher = { FileCacher<Int, [Int]>(directory: directory.url, version: 1) }
        let fetcher = Fetcher(.page(Page([1], guessedEnd: .emptyPage)))
        let first = PaginationStore(cacher: cacher(), fetcher: fetcher)
        _ = try await first[1].requireData()
        try await first[1].waitUntilSaved()
        let second = PaginationStore(cacher: cacher(), fetcher: Fetcher())
        let observer = RecordingObserver(second[1].publish())
        try await observer.next { $0.isCompleted }
        #expect(second[1].guessedEnd == .emptyPage)
    }
}
