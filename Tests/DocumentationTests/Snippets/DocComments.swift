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
    //: Fetcher.swift: struct UserFetcher

    //: PaginationFetcher.swift

    // MARK: Compiled examples

    private func prefetching(_ users: Store<User.ID, User>, _ ids: [User.ID]) {
        //: Store.swift: let prefetching
    }

    private func store() async throws {
        //: Store.swift: let users = Store

        show(user)
    }

    private func paginationStore() async throws {
        //: PaginationStore.swift
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
        //: EntityLink.swift: let feed = PaginationStore
        //: EntityLink.swift: let links
        let threads = Store(cacher: MemoryCacher<Int, Discussion>(), links: links) { _ in Discussion() }
        return [feed, threads]
    }

    private func removal(_ articles: Store<Int, Article>) async throws {
        //: OneEntityInManyPlaces.md: try await articles.remove
    }

    private func sequence(_ users: Store<User.ID, User>) async {
        //: LoadingStateSequence.swift
    }

    private func combination(
        _ users: Store<User.ID, User>, _ posts: Store<Post.ID, Post>, _ settings: StoreFlowable<UnitParam, String>
    ) async {
        //: CombineState.swift: for await state
    }

    private func transformedCombination(_ users: Store<User.ID, User>, _ settings: StoreFlowable<UnitParam, String>) async {
        //: CombineState.swift: let greetings
        for await state in greetings { render(state) }
    }

    @Test func `the footer of a list`() {
        let next = AdditionalLoadingState.fixed(canRequestAdditionalData: true)
        //: AdditionalLoadingState.swift
        #expect(footer == "Load more")
    }

    @Test func `an event recorder`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
        //: EventRecorder.swift
        #expect(try await first == second)
    }

    private func mapping(_ users: Store<User.ID, User>) async {
        //: LoadingStateSequence+Combinators.swift
    }

    private func contents(_ users: Store<User.ID, User>) async {
        //: LoadingStateSequence+Contents.swift
    }

    private func state(_ state: LoadingState<User>) {
        //: LoadingState.swift
    }

    // MARK: Run examples

    @Test func `a memory cacher`() async throws {
        //: MemoryCacher.swift
        #expect(try await users[1].requireData().name == "Ada")
    }

    @Test func `a closure as a fetcher`() async throws {
        //: ClosureFetcher.swift
        #expect(try await users[1].requireData() == "user 1")
    }

    @Test func `a scope`() async throws {
        let cachesDirectory = FileManager.default.temporaryDirectory
        let userID = UUID().uuidString

        //: CacheScope.swift: let scope = CacheScope

        _ = try await users[1].requireData()
        try await users.clear()
        _ = try await users[1].requireData()

        try await scope.close(clearing: true)

        await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        try FileManager.default.removeItem(at: scope.directory)
    }

    @Test func `files`() async throws {
        let directory = temporaryURL()

        //: FileCacherFault.swift

        #expect(try await cacher.load(param: 1) == nil)
    }

    @Test func `memory over files`() async throws {
        let directory = temporaryURL()

        //: TieredCacher.swift

        #expect(try await cacher.load(param: 1) == nil)
    }

    // Not run, because it would write to the caches directory.
    private func filesAmongCaches(_ cachesDirectory: URL) async throws {
        //: FileCacher.swift

        _ = record
    }

    @Test func `a mutation`() async throws {
        let posts = Store(cacher: MemoryCacher<Post.ID, Post>()) { id in Post(id: id) }
        _ = try await posts[id].requireData()

        //: StoreFlowable+Mutating.swift: try await posts[id]

        #expect(try await posts[id].requireData().isLiked)
    }

    @Test func `a mutation of one element`() async throws {
        let posts = Store(cacher: MemoryCacher<String, [Post]>()) { _ in (1...50).map { Post(id: $0) } }
        _ = try await posts["swift"].requireData()

        //: ChangingData.md: try await posts["swift"]

        #expect(try await posts["swift"].requireData().filter(\.isLiked).map(\.id) == [44])
    }

    @Test func `the pages of a record`() async throws {
        let cacher: any Cacher<String, [Repo]> = MemoryCacher<String, [Repo]>()

        //: LoadedPages.swift

        #expect(sizes == nil)
    }

    @Test func `manual time`() async throws {
        //: ManualTime.swift
    }

    @Test func `a recorder`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)

        //: RecordingObserver.swift
    }

    @Test func `a summary`() async throws {
        let states = ManualStates<Int>(.loading(content: nil))
        let recorder = RecordingObserver(states.sequence)
        try await states.taken(by: 1)
        states.send(.completed(1))
        try await states.taken(by: 1)

        //: StateSummary.swift
    }

    @Test func `a scripted fetcher`() async throws {
        //: ScriptedFetcher.swift: let fetcher = ScriptedFetcher
    }

    @Test func `a held fetch`() async throws {
        let fetcher = ScriptedFetcher<Int, String>(.success("Ada"))
        let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
        _ = try await users[1].requireData()

        //: ScriptedFetcher.swift: fetcher.hold

        #expect(try await user == "Grace")
    }

    @Test func `a scripted fetcher of pages`() async throws {
        //: ScriptedFetcher.swift: let fetcher = ScriptedPaginationFetcher
    }

    @Test func `states by hand`() async throws {
        let ada = User(id: 1, name: "Ada")

        //: ManualStates.swift

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
    func watched() {
        //: StoreEvent.swift
        print(users)
    }
    func patient() {
        //: StorePolicy.swift
        print(users)
    }
    //: PaginationStoreFlowable.swift
    watched()
    patient()
}

private func joined(_ request: JointRequest, _ keys: [Int], send: @escaping @Sendable ([Int]) async -> Void) throws {
    //: JointRequest.swift
    print(task)
}

private struct PassiveBanner {
    var isHidden = true
}

private func decorated(api: UserAPI) async {
    func remembering() {
        //: FailureMemory.swift
        print(users)
    }
    func both() {
        //: DecoratedOrigin.swift
        print(prices)
    }
    func shared() async {
        var banner = PassiveBanner()
        //: CircuitBreaker.swift: let breaker = CircuitBreaker
        //: CircuitBreaker.swift: for await state
        print(users, prices, banner)
    }
    func batching(api: BatchAPI) {
        //: BatchFetcher.swift
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
