internal import Foundation
internal import StoreCore
import StoreFiles
import StoreCoreTesting
import StoreResilience
internal import Testing
internal import Trials

// The examples of the source comments. Examples that end are run; examples that observe forever are only compiled.

private let api = BlogAPI()
private let id = 1

private struct BlogAPI: Sendable {
    func user(_ id: Int) async throws -> User { User(id: id, name: "Ada") }
    func like(_ id: Int) async throws {}
    func delete(_ id: Int) async throws {}
    func repos(of org: String, page: String) async throws -> Page<Repo> {
        Page([Repo(id: page == "1" ? 1 : 2)], nextKey: page == "1" ? "2" : nil)
    }
}

struct Repo: Identifiable, Hashable, Codable, Sendable {
    let id: Int
}

struct Post: Identifiable, Hashable, Codable, Sendable {
    let id: Int
    var isLiked = false
}

private func render<Content>(_ state: LoadingState<Content>) {}

private func show(_ user: User?, spinner: Bool = false, banner: (any Error)? = nil) {}

private func show(_ user: User, _ post: Post, _ settings: String) {}

struct DocCommentTests {
    // Fetcher
    struct UserFetcher: Fetcher {
        func fetch(param id: User.ID) async throws -> User {
            try await api.user(id)
        }
    }

    // PaginationFetcher
    struct RepoFetcher: PaginationFetcher {
        func fetch(param org: String) async throws -> Page<Repo> {
            try await api.repos(of: org, page: "1")
        }
        func fetchNext(
            nextKey: String, param org: String
        ) async throws -> Page<Repo> {
            try await api.repos(of: org, page: nextKey)
        }
    }

    // MARK: Compiled examples

    private func prefetching(_ users: Store<User.ID, User>, _ ids: [User.ID]) {
        let prefetching = users.prefetch(ids)
        prefetching.cancel()  // keys that still wait are not fetched
    }

    private func store() async throws {
        let users = Store(
            cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60))),
            fetcher: UserFetcher())

        for await state in users[id].publish() { render(state) }  // observe
        let user = try await users[id].requireData()  // one shot
        await users[id].update { $0.name = "Ada" }  // observers see it

        show(user)
    }

    private func paginationStore() async throws {
        let repos = PaginationStore(
            cacher: MemoryCacher<String, [Repo]>(), fetcher: RepoFetcher())

        for await state in repos["apple"].publish() { render(state) }
        await repos["apple"].requestNextData()
    }

    // EntityLink
    private struct Article: Identifiable, Sendable {
        let id: Int
    }
    private struct Reply: Sendable {
        var author: User
    }
    private struct Discussion: Sendable {
        var author: User?
        var replies: [Reply] = []
    }
    private struct FeedFetcher: PaginationFetcher {
        func fetch(param: String) async throws -> Page<Article> { Page([Article(id: 7)]) }
        func fetchNext(nextKey: String, param: String) async throws -> Page<Article> { Page([]) }
    }

    private func links(_ articles: Store<Int, Article>, _ users: Store<User.ID, User>) -> [Any] {
        let feed = PaginationStore(
            cacher: MemoryCacher<String, [Article]>(), fetcher: FeedFetcher(),
            links: [.elements(of: articles)])
        let threads = Store(
            cacher: MemoryCacher<Int, Discussion>(),
            // swift-format-ignore
            links: [
                .entities(of: users, id: \.id) { thread, visit in
                    if var author = thread.author {
                        visit(&author)
                        thread.author = author
                    }
                    for row in thread.replies.indices {
                        visit(&thread.replies[row].author)
                    }
                }
            ]
        ) { _ in Discussion() }
        return [feed, threads]
    }

    private func removal(_ articles: Store<Int, Article>) async throws {
        try await articles.remove(7) { try await api.delete(7) }
    }

    private func sequence(_ users: Store<User.ID, User>) async {
        for await state in users[id].publish() {
            render(state)
        }
    }

    private func combination(
        _ users: Store<User.ID, User>, _ posts: Store<Post.ID, Post>, _ settings: StoreFlowable<UnitParam, String>
    ) async {
        for await state in users[id].publish().combineState(
            posts[id].publish(), settings.publish())
        {
            if let (user, posts, settings) = state.content {
                show(user, posts, settings)
            }
        }
    }

    private func transformedCombination(_ users: Store<User.ID, User>, _ settings: StoreFlowable<UnitParam, String>) async {
        let greetings = users[id].publish().combineState(
            settings.publish()
        ) { user, salutation in
            "\(salutation) \(user.name)"
        }
        for await state in greetings { render(state) }
    }

    @Test func `the footer of a list`() {
        let next = AdditionalLoadingState.fixed(canRequestAdditionalData: true)
        let footer = next.doAction(
            onFixed: { $0 ? "Load more" : "" },
            onLoading: { "Loading more" },
            onError: { "Failed: \($0)" })
        #expect(footer == "Load more")
    }

    @Test func `an event recorder`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
        let events = EventRecorder<Int>()
        let users = Store(
            cacher: MemoryCacher<Int, String>(), fetcher: fetcher,
            onEvent: events.record)
        fetcher.hold()
        async let first = users[1].requireData()
        async let second = users[1].requireData()
        try await events.joined(count: 1)
        fetcher.release()
        #expect(try await first == second)
    }

    private func mapping(_ users: Store<User.ID, User>) async {
        for await state in users[id].publish().mapContent(\.name) { render(state) }
    }

    private func contents(_ users: Store<User.ID, User>) async {
        for await user in users[id].publish().contents() { show(user) }
    }

    private func state(_ state: LoadingState<User>) {
        switch state {
        case .loading(let stale): show(stale, spinner: true)
        case .completed(let user, next: _, prev: _): show(user)
        case .error(let error, let stale): show(stale, banner: error)
        }
    }

    // MARK: Run examples

    @Test func `a memory cacher`() async throws {
        let users = Store(
            cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60))),
            fetcher: UserFetcher())
        #expect(try await users[1].requireData().name == "Ada")
    }

    @Test func `a closure as a fetcher`() async throws {
        let users = Store(cacher: MemoryCacher<Int, String>()) { id in "user \(id)" }
        #expect(try await users[1].requireData() == "user 1")
    }

    @Test func `a scope`() async throws {
        let cachesDirectory = FileManager.default.temporaryDirectory
        let userID = UUID().uuidString

        let scope = CacheScope(directory: cachesDirectory.appending(path: userID))
        let files = FileCacher<User.ID, User>(
            directory: scope.directory(named: "users"))
        let users = Store(
            cacher: TieredCacher(over: files), fetcher: UserFetcher(), scope: scope)

        _ = try await users[1].requireData()
        try await users.clear()
        _ = try await users[1].requireData()

        try await scope.close(clearing: true)

        await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        try FileManager.default.removeItem(at: scope.directory)
    }

    @Test func `files`() async throws {
        let directory = temporaryURL()

        let cacher = FileCacher<Int, String>(directory: directory) { fault in
            print("cache file \(fault.file.lastPathComponent): \(fault.error)")
        }

        #expect(try await cacher.load(param: 1) == nil)
    }

    @Test func `memory over files`() async throws {
        let directory = temporaryURL()

        let cacher = TieredCacher(over: FileCacher<User.ID, User>(directory: directory))

        #expect(try await cacher.load(param: 1) == nil)
    }

    // Not run, because it would write to the caches directory.
    private func filesAmongCaches(_ cachesDirectory: URL) async throws {
        let users = FileCacher<Int, String>(
            directory: cachesDirectory.appending(path: "users"),
            expiry: .after(.seconds(3600)))
        try await users.save(CacheRecord(content: "Ada", fetchedAt: Date()), param: 1)
        let record = try await users.load(param: 1)  // Ada, also after a restart

        _ = record
    }

    @Test func `a mutation`() async throws {
        let posts = Store(cacher: MemoryCacher<Post.ID, Post>()) { id in Post(id: id) }
        _ = try await posts[id].requireData()

        try await posts[id].mutate {
            $0.isLiked = true
        } perform: {
            try await api.like(id)
        }

        #expect(try await posts[id].requireData().isLiked)
    }

    @Test func `a mutation of one element`() async throws {
        let posts = Store(cacher: MemoryCacher<String, [Post]>()) { _ in (1...50).map { Post(id: $0) } }
        _ = try await posts["swift"].requireData()

        try await posts["swift"].mutate(element: 44) {
            $0.isLiked = true
        } perform: {
            try await api.like(44)
        }

        #expect(try await posts["swift"].requireData().filter(\.isLiked).map(\.id) == [44])
    }

    @Test func `the pages of a record`() async throws {
        let cacher: any Cacher<String, [Repo]> = MemoryCacher<String, [Repo]>()

        let record = try await cacher.load(param: "swift")
        let sizes = record?.pages.map(\.count)  // [50, 50, 12]

        #expect(sizes == nil)
    }

    @Test func `manual time`() async throws {
        let time = ManualTime()
        let napper = Task {
            try await time.sleep(until: time.now.advanced(by: .seconds(60)))
        }
        try await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(60))
        try await napper.value
    }

    @Test func `a recorder`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)

        fetcher.hold()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isLoading }
        fetcher.release()
        try await recorder.next { $0.isCompleted }
        #expect(recorder.summary == "loading(nil) completed(Ada)")
    }

    @Test func `a summary`() async throws {
        let states = ManualStates<Int>(.loading(content: nil))
        let recorder = RecordingObserver(states.sequence)
        try await states.taken(by: 1)
        states.send(.completed(1))
        try await states.taken(by: 1)

        #expect(recorder.states.map(\.summary) == ["loading(nil)", "completed(1)"])
    }

    @Test func `a scripted fetcher`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(
            .success("Ada"), .failure(URLError(.timedOut)))
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
        #expect(try await users[1].requireData() == "Ada")
        #expect(fetcher.requests.map(\.param) == [1])
    }

    @Test func `a held fetch`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
        _ = try await users[1].requireData()

        fetcher.hold()
        async let user = users[2].requireData()
        try await fetcher.started(count: 2)
        fetcher.enqueue(.success("Grace"))
        fetcher.release()

        #expect(try await user == "Grace")
    }

    @Test func `a scripted fetcher of pages`() async throws {
        let fetcher = ScriptedPaginationFetcher<String, Int>(
            .page([1, 2], nextKey: "b"), .page([3]))
        let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher)
        _ = try await lists["numbers"].requireData()
        await lists["numbers"].requestNextData()
        #expect(fetcher.requests.last?.pageKey == "b")
    }

    @Test func `states by hand`() async throws {
        let ada = User(id: 1, name: "Ada")

        let states = ManualStates<User>(.loading(content: nil))
        let model = UserModel(following: states.sequence)
        try await states.taken(by: 1)
        states.send(.completed(ada))

        try await states.taken(by: 1)
        #expect(model.shown == [nil, "Ada"])
    }
}

/// A model that takes a sequence instead of a store.
final class UserModel: Sendable {
    private let recorder: RecordingObserver<User>

    init(following states: LoadingStateSequence<User>) {
        recorder = RecordingObserver(states)
    }

    var shown: [String?] { recorder.states.map { $0.content?.name } }
}

private func newerDocComments(api: UserAPI, repos: PaginationStore<String, Repo>, log: Printed) async {
    struct UserFetcher: Fetcher {
        let api: UserAPI
        func fetch(param: Int) async throws -> User { try await api.user(param) }
    }
    func watched() {
        let users = Store(
            cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
            onEvent: { event in log.add("\(event)") })
        print(users)
    }
    func patient() {
        let users = Store(
            cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
            policy: StorePolicy(staleWhileRevalidate: .seconds(30)))
        print(users)
    }
    while await repos["apple"].requestNextData() == .loaded {}
    watched()
    patient()
}

private func joined(_ request: JointRequest, _ keys: [Int], send: @escaping @Sendable ([Int]) async -> Void) throws {
    // In the fetch of each key.
    let member = try request.join()
    defer { member.leave() }

    // In the fetch that completes the batch.
    let task = request.start { await send(keys) }
    print(task)
}

private struct PassiveBanner {
    var isHidden = true
}

private func decorated(api: UserAPI) async {
    struct UserFetcher: Fetcher {
        let api: UserAPI
        func fetch(param: Int) async throws -> User { try await api.user(param) }
    }
    func remembering() {
        let users = Store(
            cacher: MemoryCacher(),
            fetcher: UserFetcher(api: api).rememberingFailures(for: .seconds(1)))
        print(users)
    }
    func both() {
        let breaker = CircuitBreaker()
        let prices = Store(
            cacher: MemoryCacher(),
            fetcher: PriceFetcher().rememberingFailures(for: .seconds(1))
                .guarded(by: breaker))
        print(prices)
    }
    func shared() async {
        var banner = PassiveBanner()
        let breaker = CircuitBreaker(
            opensAfter: 5, within: .seconds(10), holdsFor: .seconds(30))
        let users = Store(
            cacher: MemoryCacher(), fetcher: UserFetcher(api: api).guarded(by: breaker))
        let prices = Store(
            cacher: MemoryCacher(), fetcher: PriceFetcher().guarded(by: breaker))
        for await state in breaker.states { banner.isHidden = state == .closed }
        print(users, prices, banner)
    }
    func batching(api: BatchAPI) {
        let users = Store(
            cacher: MemoryCacher(),
            fetcher: BatchFetcher<User.ID, User>(limit: 100) { ids in
                try await api.users(ids)
            })
        print(users)
    }
    remembering()
    both()
    await shared()
    batching(api: BatchAPI())
}

private struct BatchAPI: Sendable {
    func users(_ ids: [User.ID]) async throws -> [User.ID: User] { [:] }
}
