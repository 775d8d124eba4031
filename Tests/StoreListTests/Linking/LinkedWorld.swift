import StoreCoreTesting
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
        articles articleCacher: any Cacher<Int, Article> = MemoryCacher(), feed feedCacher: any Cacher<String, [Article]> = MemoryCacher(),
        search searchCacher: any Cacher<String, [Finding]> = MemoryCacher()
    ) {
        articles = Self.articles(articleCacher, origin, time)
        feed = Self.feed(feedCacher, feedOrigin, articles, time)
        search = Self.search(searchCacher, searchOrigin, articles, time)
    }

    private static func articles(_ cacher: some Cacher<Int, Article>, _ origin: ScriptedFetcher<Int, Article>, _ time: ManualTime) -> Store<
        Int, Article
    > { Store(cacher: cacher, fetcher: origin, time: time) }

    private static func feed(
        _ cacher: some Cacher<String, [Article]>, _ origin: ScriptedPaginationFetcher<String, Article>, _ articles: Store<Int, Article>,
        _ time: ManualTime
    ) -> PaginationStore<String, Article> {
        PaginationStore(cacher: cacher, fetcher: origin, links: [.elements(of: articles)], time: time)
    }

    private static func search(
        _ cacher: some Cacher<String, [Finding]>, _ origin: ScriptedPaginationFetcher<String, Finding>, _ articles: Store<Int, Article>,
        _ time: ManualTime
    ) -> PaginationStore<String, Finding> {
        PaginationStore(
            cacher: cacher, fetcher: origin,
            links: [.elements(of: articles, id: \.articleID, fields: (\.title, \.title), (\.isLiked, \.isLiked))], time: time)
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
    func like(_ id: Int) -> (request: HeldRequest, task: Task<Void, any Error>) {
        let request = HeldRequest()
        let task = Task { [articles] in try await articles[id].mutate(optimistically: { $0.isLiked = true }) { try await request.run() } }
        return (request, task)
    }

    /// Likes a row of the feed, with a request that the test ends.
    func like(row id: Int) -> (request: HeldRequest, task: Task<Void, any Error>) {
        let request = HeldRequest()
        let task = Task { [feed] in
            try await feed["home"].mutate(element: id, optimistically: { $0.isLiked = true }) { try await request.run() }
        }
        return (request, task)
    }

    /// Makes a store of writers, and one of articles that are linked to it.
    func storesOfWriters() -> (writers: Store<String, Writer>, articles: Store<Int, Article>) {
        let writers = Store(cacher: MemoryCacher<String, Writer>(), time: time) { Writer(id: $0) }
        let articles = Store(cacher: MemoryCacher<Int, Article>(), fetcher: origin, links: [.value(at: \.author, of: writers)], time: time)
        return (writers, articles)
    }

    func liked() async throws -> [Int] { try await feed["home"].requireData().filter(\.isLiked).map(\.id) }
    func found() async throws -> [Int] { try await search["swift"].requireData().filter(\.isLiked).map(\.id) }
}

/// A request that ends when the test says so.
final class HeldRequest: Sendable {
    private let ending = WatchedState<Result<Void, Offline>?>(nil)
    private let began = WatchedState(false)

    func run() async throws {
        began.update { $0 = true }
        try await ending.wait { $0 }.get()
    }

    func hasBegun() async throws { try await began.wait { $0 ? () : nil } }
    func end(_ result: Result<Void, Offline>) { ending.update { $0 = result } }
}
