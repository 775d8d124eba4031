import StoreCore
import StoreCoreTesting
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ScriptedPaginationFetcherTests {
    let tag = Validator(entityTag: "\"1\"")

    @Test func `pages are returned with their keys, and requests record direction and page key`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Int>(
            .page([1, 2], nextKey: "n", prevKey: "p", freshness: .fresh(for: .seconds(1)), validator: tag), .page(Page([3])), .page([0]))
        let first = try await fetcher.fetch(param: "list")
        #expect(first == Page([1, 2], nextKey: "n", prevKey: "p", freshness: .fresh(for: .seconds(1)), validator: tag))
        #expect(try await fetcher.fetchNext(nextKey: "n", param: "list").elements == [3])
        #expect(try await fetcher.fetchPrev(prevKey: "p", param: "list").elements == [0])
        #expect(fetcher.requests.map(\.direction) == [nil, .next, .prev])
        #expect(fetcher.requests.map(\.pageKey) == [nil, "n", "p"])
        #expect(fetcher.requests.map(\.param) == ["list", "list", "list"])
    }

    @Test func `the request of a store records its validator and may get a not-modified response`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Int>(.notModified(), .page([1], prevKey: "p"))
        let origin: any Origin<String, [Int]> = fetcher
        #expect(try await origin.respond(to: .content("list", revalidating: tag)).result == .notModified())
        let page = try await origin.respond(to: .page(.prev, key: "p", "list"))
        #expect(page.result == .modified([1]) && page.prevKey == "p")
        #expect(fetcher.requests.map(\.validator) == [tag, nil])
    }

    @Test func `a not-modified response for a page without validator is an error`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Int>(.notModified())
        let error = await #expect(throws: StoreError.self) { try await fetcher.fetch(param: "list") }
        #expect(error?.code == .nothingToConfirm)
    }

    @Test func `fetches in both directions are held and completed separately`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Int> { _ in .failure(Offline()) }
        fetcher.hold()
        let next = Task { try await fetcher.fetchNext(nextKey: "n", param: "list") }
        try await fetcher.started(count: 1)
        let prev = Task { try await fetcher.fetchPrev(prevKey: "p", param: "list") }
        try await fetcher.started(count: 2)
        try await fetcher.answer(2, with: .page([0]))
        #expect(try await prev.value.elements == [0])
        fetcher.release()
        await #expect(throws: Offline.self) { try await next.value }
    }
}
