internal import StoreCore
import StoreCoreTesting
internal import Testing

//: StoreCore.docc/GettingStarted.md: struct User: Identifiable

//: StoreCore.docc/GettingStarted.md: final class UserRepository

/// The printed output of GettingStarted.md.
@Sendable
func gettingStarted() async throws -> [[String]] {
    try await tell { printed in
        //: StoreCore.docc/GettingStarted.md: let settings
        return [try await printed.next(1)]
    }
}

struct GettingStartedTests {
    @MainActor
    private func observe(_ repository: UserRepository, on screen: Screen) async {
        //: StoreCore.docc/GettingStarted.md: for await state
    }

    @MainActor
    @Test func `a screen shows the content of the repository`() async throws {
        let screen = Screen()
        let repository = UserRepository(api: UserAPI())
        let observing = Task { await observe(repository, on: screen) }

        //: StoreCore.docc/GettingStarted.md: let user = try

        #expect(user.name == "Ada")
        try await screen.shown.lines(atLeast: 1)

        //: StoreCore.docc/GettingStarted.md: await repository

        while try await screen.shown.next(1) != ["Ada Lovelace"] {}
        observing.cancel()
        await observing.value
        try await repository.signOut()
    }

    @Test func `a listener can log every event`() async throws {
        let api = UserAPI()
        let log = Printed()

        //: StoreCore.docc/GettingStarted.md: let users = Store

        _ = try await users[1].requireData()
        #expect(try await log.next(1) == ["1: miss"])
    }

    @Test func `many keys are prefetched, invalidated and cleared together`() async throws {
        let api = UserAPI()
        let users = Store(cacher: MemoryCacher(), fetcher: UserFetcher(api: api))

        //: StoreCore.docc/GettingStarted.md: users.prefetch
        try await api.script.started(count: 3)
        //: StoreCore.docc/GettingStarted.md: try await users

        #expect(api.script.startedCount == 3)
    }

    @Test func `several keys are required and observed in one call`() async throws {
        let users = Store(cacher: MemoryCacher(), fetcher: UserFetcher(api: UserAPI()))
        //: StoreCore.docc/GettingStarted.md: let several
        #expect(several.count == 3)
    }
}
