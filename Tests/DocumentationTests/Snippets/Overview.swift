internal import StoreCore
import StoreCoreTesting
internal import Testing

/// The printed output of StoreCore.md.
@Sendable
func landingPage() async throws -> [[String]] {
    let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
    fetcher.hold()
    return try await tell { printed in
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
        let screen = Task {
            //: StoreCore.md: for await state
        }
        try await printed.lines(atLeast: 1)
        fetcher.release()
        let lines = try await printed.next(2)
        screen.cancel()
        return [lines]
    }
}

struct OverviewTests {
    @Test func `the store of the landing page fetches its content`() async throws {
        let api = UserAPI()

        //: StoreCore.md: let users = Store

        #expect(try await users[1].requireData() == "Ada")
    }

    @Test func `ten thousand callers cause one fetch`() async throws {
        let fetcher = ScriptedFetcher<Int, String>()
        fetcher.hold()
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
        let callers = (1...10_000).map { _ in Task { try await users[1].requireData() } }
        try await fetcher.answerNext(with: .success("Ada"))
        for caller in callers { #expect(try await caller.value == "Ada") }
        #expect(fetcher.startedCount == 1)
    }
}
