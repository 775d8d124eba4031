internal import StoreCore
import StoreCoreTesting
internal import Testing

#if canImport(SwiftUI)
internal import SwiftUI
#endif

// The examples of the article "One entity in many places".

/// A row of a search, which has some of the fields of an article.
struct FoundArticle: Identifiable, Hashable, Sendable {
    var id: Article.ID
    var headline: String
    var isLiked = false
}

enum Topic: Hashable, Sendable { case swift }

//: OneEntityInManyPlaces.md: struct FeedRow

struct OneEntityInManyPlacesTests {
    struct Author: Identifiable, Hashable, Sendable {
        var id: Int
        var name: String
    }

    struct Story: Identifiable, Hashable, Sendable {
        var id: Int
        var author: Author
    }

    private struct FeedFetcher: PaginationFetcher {
        var api: NewsAPI

        func fetch(param: Topic) async throws -> Page<Article> { Page(try await api.articles(1...3), nextKey: "4") }
        func fetchNext(nextKey: String, param: Topic) async throws -> Page<Article> { Page(try await api.articles(4...7)) }
    }

    private struct SearchFetcher: PaginationFetcher {
        var api: NewsAPI

        func fetch(param: String) async throws -> Page<FoundArticle> {
            Page(try await api.articles(5...7).map { FoundArticle(id: $0.id, headline: $0.title) })
        }
        func fetchNext(nextKey: String, param: String) async throws -> Page<FoundArticle> { Page([]) }
    }

    private let api = NewsAPI()

    private func linked() -> (Store<Article.ID, Article>, PaginationStore<Topic, Article>) {
        //: OneEntityInManyPlaces.md: let articles
        return (articles, feed)
    }

    @Test func `E1: a like reaches the feed and the search, and a failure takes it back everywhere`() async throws {
        let (articles, feed) = linked()
        //: OneEntityInManyPlaces.md: let search = PaginationStore
        _ = try await feed[.swift].requireData()
        await feed[.swift].requestNextData()
        #expect(try await search["swift"].requireData().contains { $0.id == 7 && !$0.isLiked })
        func likes() async throws -> [Bool?] {
            [
                try await articles[7].requireData().isLiked,
                try await feed[.swift].requireData().first { $0.id == 7 }?.isLiked,
                try await search["swift"].requireData().first { $0.id == 7 }?.isLiked,
            ]
        }
        #expect(try await likes() == [false, false, false])

        //: OneEntityInManyPlaces.md: try await articles[7]

        #expect(try await likes() == [true, true, true])
        await #expect(throws: Offline.self) {
            try await articles[7].mutate {
                $0.isLiked = false
            } perform: {
                #expect(try await likes() == [false, false, false])
                throw Offline()
            }
        }
        #expect(try await likes() == [true, true, true])
    }

    @Test func `E5: a mutation of an element is a mutation of the entity`() async throws {
        let (articles, feed) = linked()
        _ = try await (feed[.swift].requireData(), articles[2].requireData())

        //: OneEntityInManyPlaces.md: try await feed[.swift]

        #expect(try await articles[2].requireData().isLiked)
        #expect(try await feed[.swift].requireData().map(\.isLiked) == [false, true, false])
    }

    @Test func `E7: a removed entity leaves the list`() async throws {
        let (articles, feed) = linked()
        _ = try await (feed[.swift].requireData(), articles[2].requireData())

        try await articles.remove(2) { try await api.delete(2) }

        #expect(try await feed[.swift].requireData().map(\.id) == [1, 3])
        let error = await #expect(throws: StoreError.self) { try await articles[2].requireData() }
        #expect(error?.code == .removed)
    }

    @Test func `E1: a value inside other content shows its entity`() async throws {
        let authors = Store(cacher: MemoryCacher<Author.ID, Author>()) { Author(id: $0, name: "Ada") }
        //: OneEntityInManyPlaces.md: let stories = Store
        #expect(try await stories[1].requireData().author.name == "A. L.")
        _ = try await authors[7].requireData()
        await authors[7].update { $0.name = "Ada Lovelace" }
        #expect(try await stories[1].requireData().author.name == "Ada Lovelace")
    }

    private struct StoryFetcher: Fetcher {
        var api: NewsAPI

        func fetch(param: Story.ID) async throws -> Story { Story(id: param, author: Author(id: 7, name: "A. L.")) }
    }
}

extension NewsAPI {
    func articles(_ ids: ClosedRange<Int>) async throws -> [Article] { ids.map { Article(id: $0, title: "Article \($0)") } }
    func delete(_ id: Article.ID) async throws {}
}
