internal import StoreCore
import StoreCoreTesting
internal import Testing

struct User: Identifiable, Hashable, Codable, Sendable {
    let id: Int
    var name: String
}

struct UserFetcher: Fetcher {
    let api: UserAPI

    func fetch(param id: User.ID) async throws -> User {
        try await api.user(id)
    }
}

final class UserRepository: Sendable {
    private let users: Store<User.ID, User>

    init(api: UserAPI) {
        users = Store(
            cacher: MemoryCacher(expiry: .after(.seconds(30 * 60))),
            fetcher: UserFetcher(api: api))
    }

    func user(_ id: User.ID) -> StoreFlowable<User.ID, User> { users[id] }

    func signOut() async throws { try await users.close(clearing: true) }
}

/// The printed output of GettingStarted.md.
@Sendable
func gettingStarted() async throws -> [[String]] {
    try await tell { printed in
        let settings = Store(cacher: MemoryCacher<UnitParam, String>()) { _ in "dark" }
        print(try await settings.flowable.requireData())
        return [try await printed.next(1)]
    }
}

struct GettingStartedTests {
    @MainActor
    private func observe(_ repository: UserRepository, on screen: Screen) async {
        for await state in repository.user(1).publish() {
            switch state {
            case .loading(let stale): screen.show(stale, isLoading: true)
            case .completed(let user, next: _, prev: _): screen.show(user)
            case .error(let error, let stale): screen.show(stale, error: error)
            }
        }
    }

    @MainActor
    @Test func `a screen shows the content of the repository`() async throws {
        let screen = Screen()
        let repository = UserRepository(api: UserAPI())
        let observing = Task { await observe(repository, on: screen) }

        let user = try await repository.user(1).requireData()

        #expect(user.name == "Ada")
        try await screen.shown.lines(atLeast: 1)

        await repository.user(1).update { $0.name = "Ada Lovelace" }

        while try await screen.shown.next(1) != ["Ada Lovelace"] {}
        observing.cancel()
        await observing.value
        try await repository.signOut()
    }

    @Test func `a listener can log every event`() async throws {
        let api = UserAPI()
        let log = Printed()

        let users = Store(
            cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
            onEvent: { event in log.add("\(event.number): \(event.kind)") })

        _ = try await users[1].requireData()
        #expect(try await log.next(1) == ["1: miss"])
    }

    @Test func `many keys are prefetched, invalidated and cleared together`() async throws {
        let api = UserAPI()
        let users = Store(cacher: MemoryCacher(), fetcher: UserFetcher(api: api))

        users.prefetch([1, 2, 3])
        try await api.script.started(count: 3)
        _ = try await users[1].requireData()
        try await users.invalidate { id in id > 2 }
        try await users.clear()

        #expect(api.script.startedCount == 3)
    }
}
