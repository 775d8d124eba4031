import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// An article as its store has it, and as a feed shows it.
struct Article: Hashable, Identifiable, Codable, Sendable {
    var id: Int
    var title = "title"
    var text = "text"
    var isLiked = false
    var author = Writer(id: "ada")
}

struct Writer: Hashable, Identifiable, Codable, Sendable {
    var id: String
    var name = "Ada"
}

/// A row of search results: a part of an article.
struct Finding: Hashable, Identifiable, Codable, Sendable {
    var id: Int { articleID }
    var articleID: Int
    var title = "title"
    var isLiked = false
    var rank = 0
}

/// A store of articles, a feed of whole articles, and search results of fragments.
final class LinkedWorld: Sendable {
    let time = ManualTime()
    let origin = ScriptedFetcher<Int, Article>()
    let feedOrigin = ScriptedPaginationFetcher<String, Article>()
    let searchOrigin = ScriptedPaginationFetcher<String, Finding>()
    let articles: Store<Int, Article>
    let feed: PaginationStore<String, Article>
    let search: PaginationStore<String, Finding>

    init(
        articles articleCacher: some Cacher<Int, Article> = MemoryCacher<Int, Article>(),
        feed feedCacher: some Cacher<String, [Article]> = MemoryCacher<String, [Article]>(),
        search searchCacher: some Cacher<String, [Finding]> = MemoryCacher<String, [Finding]>(),
        scope: CacheScope? = nil, onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = nil
    ) {
        articles = Store(cacher: articleCacher, fetcher: origin, time: time, scope: scope, onEvent: onEvent)
        feed = PaginationStore(cacher: feedCacher, fetcher: feedOrigin, links: [.elements(of: articles)], time: time, scope: scope)
        search = PaginationStore(
            cacher: searchCacher, fetcher: searchOrigin,
            links: [.elements(of: articles, id: \.articleID, fields: (\.title, \.title), (\.isLiked, \.isLiked))], time: time,
            scope: scope)
    }

    /// Loads a feed with these articles.
    func loadFeed(_ rows: [Article], nextKey: String? = nil) async throws {
        feedOrigin.enqueue(.page(rows, nextKey: nextKey))
        #expect(try await feed["home"].requireData().map(\.id) == rows.map(\.id))
    }

    func loadSearch(_ rows: [Finding]) async throws {
        searchOrigin.enqueue(.page(rows))
        #expect(try await search["swift"].requireData().map(\.id) == rows.map(\.id))
    }

    /// Likes an article, with a request that the test ends.
    func like(_ id: Int) -> (request: HeldRequest<Void>, task: Task<Void, any Error>) {
        let request = HeldRequest<Void>()
        let task = Task { [articles] in try await articles[id].mutate(optimistically: { $0.isLiked = true }) { try await request.run() } }
        return (request, task)
    }

    /// Likes a row of the feed, with a request that the test ends.
    func like(row id: Int) -> (request: HeldRequest<Void>, task: Task<Void, any Error>) {
        let request = HeldRequest<Void>()
        let task = Task { [feed] in
            try await feed["home"].mutate(element: id, optimistically: { $0.isLiked = true }) { try await request.run() }
        }
        return (request, task)
    }

    /// Begins to refresh an article, with a fetch that the test ends.
    func beginRefresh(of id: Int) async throws -> Task<Void, Never> {
        let count = origin.startedCount + 1
        origin.hold()
        let refresh = Task { [articles] in await articles[id].refresh() }
        try await origin.started(count: count)
        return refresh
    }

    /// Ends the fetch of a refresh.
    func end(_ refresh: Task<Void, Never>, with article: Article) async {
        origin.enqueue(.success(article))
        origin.release()
        await refresh.value
    }

    /// Begins a request of a feed, with a fetch that the test ends.
    func beginFeed<Result: Sendable>(
        _ key: String = "home", _ request: @escaping @Sendable (PaginationStoreFlowable<String, Article>) async -> Result
    ) async throws -> Task<Result, Never> {
        let count = feedOrigin.startedCount + 1
        feedOrigin.hold()
        let task = Task { [feed] in await request(feed[key]) }
        try await feedOrigin.started(count: count)
        return task
    }

    /// Ends a request of a feed.
    func end<Result: Sendable>(_ request: Task<Result, Never>, with rows: [Article], nextKey: String? = nil) async -> Result {
        feedOrigin.enqueue(.page(rows, nextKey: nextKey))
        feedOrigin.release()
        return await request.value
    }

    /// Waits until the contents of all stores are saved.
    func waitUntilSaved() async throws {
        try await articles.waitUntilSaved()
        try await feed.waitUntilSaved()
        try await search.waitUntilSaved()
    }

    /// Makes a store of writers, one of articles that are linked to it, and one of lists that are linked to these articles.
    func storesOfWriters(
        _ memory: MemoryCacher<String, Writer> = MemoryCacher()
    ) -> (writers: Store<String, Writer>, articles: Store<Int, Article>, feed: PaginationStore<String, Article>) {
        let writers = Store(cacher: memory, time: time) { Writer(id: $0) }
        let articles = Store(cacher: MemoryCacher<Int, Article>(), fetcher: origin, links: [.value(at: \.author, of: writers)], time: time)
        let feed = PaginationStore(
            cacher: MemoryCacher<String, [Article]>(), fetcher: feedOrigin, links: [.elements(of: articles)], time: time)
        return (writers, articles, feed)
    }

    func liked() async throws -> [Int] { try await feed["home"].requireData().filter(\.isLiked).map(\.id) }
    func found() async throws -> [Int] { try await search["swift"].requireData().filter(\.isLiked).map(\.id) }
}

extension HeldRequest<Void> {
    /// Fails the request, and waits until its change has ended with the error.
    func fail(_ change: Task<Void, any Error>) async {
        end(.failure(Offline()))
        await #expect(throws: Offline.self) { try await change.value }
    }
}

/// The cachers behind three stores, over which a new world is a new launch.
final class Disks: Sendable {
    typealias Memory = (
        articles: TieredCacher<GatedCacher<Int, Article>>, feed: TieredCacher<GatedCacher<String, [Article]>>,
        search: TieredCacher<GatedCacher<String, [Finding]>>
    )

    let articles: GatedCacher<Int, Article>
    let feed: GatedCacher<String, [Article]>
    let search: GatedCacher<String, [Finding]>
    /// The memory of the newest world.
    let memory = Shared<Memory?>(nil)

    init(recordsCalls: Bool = true) {
        articles = GatedCacher(recordsCalls: recordsCalls)
        feed = GatedCacher(recordsCalls: recordsCalls)
        search = GatedCacher(recordsCalls: recordsCalls)
    }

    func world(onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = nil) -> LinkedWorld {
        let memory: Memory = (TieredCacher(over: articles), TieredCacher(over: feed), TieredCacher(over: search))
        self.memory.value = memory
        return LinkedWorld(articles: memory.articles, feed: memory.feed, search: memory.search, onEvent: onEvent)
    }
}
