internal import Foundation
internal import RemoteRouting
internal import StoreCore
internal import Testing

#if canImport(SwiftUI)
internal import SwiftUI
#endif

// The app of the article "In a SwiftUI app".

struct Article: Identifiable, Hashable, Codable, Sendable {
    let id: Int
    var title: String
    var isLiked = false
}

//: InASwiftUIApp.md: /// The data of the app

//: InASwiftUIApp.md: struct NewsApp

//: InASwiftUIApp.md: struct FeedScreen

//: InASwiftUIApp.md: struct SearchScreen

//: InASwiftUIApp.md: struct SignOutButton

//: InASwiftUIApp.md: /// The end of the list

//: InASwiftUIApp.md: struct ArticleScreen

//: InASwiftUIApp.md: struct FeedPreviews

struct NewsAPI: Sendable {
    func article(_ id: Article.ID) async throws -> Article { Article(id: id, title: "Article \(id)") }

    func setLiked(_ isLiked: Bool, _ id: Article.ID) async throws -> Article {
        Article(id: id, title: "Article \(id)", isLiked: isLiked)
    }
}

extension Library {
    static let preview = Library()

    init() {
        let api = NewsAPI()
        let feed = PaginationClosureFetcher<UnitParam, Article> { _, key in
            let page = key.flatMap { Int($0) } ?? 0
            return Page((1...10).map { Article(id: 10 * page + $0, title: "Article") }, nextKey: page < 9 ? "\(page + 1)" : nil)
        }
        //: InASwiftUIApp.md: let articles
        self.init(news: news.flowable, articles: articles, api: api)
    }
}

//: Observed.swift: struct UserScreen

struct UserContent: View {
    let state: LoadingState<User>

    var body: some View { Text(state.content?.name ?? "") }
}

//: InASwiftUIApp.md: struct FadingUserScreen

//: ObservedList.swift

struct RepoRow: View {
    let repo: Repo

    var body: some View { Text("\(repo.id)") }
}

@MainActor
struct InASwiftUIAppTests {
    @Test func `V5: an example's preview shows what it is given`() async throws {
        //: Observed.swift: let failed = Observed
        #expect(failed.state(for: 1).content?.name == "Ada" && failed.error is Offline)
    }

    @Test func `V6: no module imports a user interface`() {
        for path in Documentation.files(under: "Sources", ending: ".swift") {
            #expect(!Documentation.text(of: path).contains(/import (SwiftUI|UIKit|AppKit|Combine)\b/), "\(path)")
        }
    }

    #if !canImport(SwiftUI)
    @Test func `the bodies of the app's views can be evaluated before anything is loaded, and afterward`() async throws {
        let library = Library()
        _ = FeedPreviews.previews
        _ = NewsApp().body
        for _ in 1...2 {
            _ = FeedScreen(library: library).body
            _ = ArticleScreen(library: library, id: 1).body
            for page in [AdditionalLoadingState.none, .loading, .error(rawError: Offline())] { _ = PageFooter(page: page) {}.body }
            _ = try await library.news.requireData()
            _ = try await library.articles[1].requireData()
        }
    }
    #endif

    @Test func `the app's list grows to its end as its rows appear`() async throws {
        let library = Library()
        let feed = ObservedList<Article>()
        let following = Task { await feed.follow(library.news) }
        var appeared = 0
        while appeared < 100 {
            await Task.yield()
            guard let articles = feed.content, articles.count > appeared else { continue }
            for article in articles[appeared...] where feed.shouldLoadNext(at: article) {
                #expect(await feed.loadNext() == .loaded)
                break
            }
            appeared = articles.count
        }
        #expect(feed.content?.count == 100 && !feed.next.canRequestAdditionalData)
        following.cancel()
        await following.value
    }
}
