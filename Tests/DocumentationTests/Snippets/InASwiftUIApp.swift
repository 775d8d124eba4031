internal import Foundation
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

/// The data of the app; make one, and keep it as long as the app runs.
struct Library: Sendable {
    let news: PaginationStoreFlowable<UnitParam, Article>
    let articles: Store<Article.ID, Article>
    let api: NewsAPI
}

struct FeedScreen: View {
    let library: Library
    @State private var feed: ObservedList<Article>

    init(library: Library, feed: ObservedList<Article> = ObservedList()) {
        self.library = library
        _feed = State(initialValue: feed)
    }

    var body: some View {
        let state = feed.state(for: library.news)
        List {
            ForEach(state.content ?? []) { article in
                NavigationLink(article.title, value: article.id)
                    .task {
                        if feed.shouldLoadNext(at: article) {
                            await feed.loadNext()
                        }
                    }
            }
            PageFooter(page: feed.next) { await feed.loadNext() }
        }
        .overlay { if state.isLoading, state.content == nil { ProgressView() } }
        .safeAreaInset(edge: .bottom) {
            ErrorBanner(error: state.error) { await library.news.validate() }
        }
        .refreshable { await library.news.refresh() }
        .task { await feed.follow(library.news) }
    }
}

/// Ends all work for the user before the screens change.
struct SignOutButton: View {
    let session: Session
    let showSignIn: @MainActor () -> Void

    var body: some View {
        Button("Sign out") {
            Task {
                try await session.signOut()
                showSignIn()
            }
        }
    }
}

/// The end of the list: a spinner while the next page loads, and a button
/// after it has failed.
struct PageFooter: View {
    let page: AdditionalLoadingState
    let load: @MainActor () async -> Void

    var body: some View {
        switch page {
        case .fixed: EmptyView()
        case .loading: ProgressView()
        case .error: Button("Load more") { Task { await load() } }
        }
    }
}

struct ErrorBanner: View {
    let error: (any Error)?
    let retry: @MainActor () async -> Void

    var body: some View {
        if let error {
            HStack {
                Text(error.localizedDescription)
                Button("Try again") { Task { await retry() } }
            }
        }
    }
}

struct ArticleScreen: View {
    let library: Library
    let id: Article.ID
    @State private var article = Observed<Article>()
    @State private var likeError: (any Error)?

    var body: some View {
        let state = article.state(for: library.articles[id])
        VStack {
            if let content = state.content {
                Text(content.title)
                Button(content.isLiked ? "Unlike" : "Like") {
                    Task { await like(!content.isLiked) }
                }
            } else if state.isLoading {
                ProgressView()
            }
        }
        .safeAreaInset(edge: .bottom) {
            ErrorBanner(error: likeError ?? state.error) {
                likeError = nil
                await library.articles[id].validate()
            }
        }
        .refreshable { await library.articles[id].refresh() }
        .task(id: id) { await article.follow(library.articles[id]) }
    }

    /// Shows the like at once, and takes it back if the request fails.
    private func like(_ isLiked: Bool) async {
        do {
            likeError = nil
            try await library.articles[id].mutate {
                $0.isLiked = isLiked
            } perform: {
                try await library.api.setLiked(isLiked, id)
            }
        } catch {
            likeError = error
        }
    }
}

struct FeedPreviews: PreviewProvider {
    static var previews: some View {
        let articles = [
            Article(id: 1, title: "Stores"), Article(id: 2, title: "Screens"),
        ]
        FeedScreen(
            library: .preview,
            feed: ObservedList(preview: .loading(content: nil)))
        FeedScreen(
            library: .preview,
            feed: ObservedList(
                preview: .completed(
                    content: articles, next: .loading, prev: .none)))
        FeedScreen(
            library: .preview,
            feed: ObservedList(
                preview: .error(
                    rawError: URLError(.timedOut), content: articles)))
    }
}

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
        let articles = Store(cacher: MemoryCacher<Article.ID, Article>()) { id in
            try await api.article(id)
        }
        let news = PaginationStore(
            cacher: MemoryCacher(), fetcher: feed,
            links: [.elements(of: articles)])
        self.init(news: news.flowable, articles: articles, api: api)
    }
}

// MARK: Further examples

struct UserScreen: View {
    let users: Store<User.ID, User>
    let id: User.ID
    @State private var user = Observed<User>()

    var body: some View {
        UserContent(state: user.state(for: users[id]))
            .task(id: id) { await user.follow(users[id]) }
    }
}

struct UserContent: View {
    let state: LoadingState<User>

    var body: some View { Text(state.content?.name ?? "") }
}

struct FadingUserScreen: View {
    let users: Store<User.ID, User>
    let id: User.ID
    @State private var user = Observed<User>(whenSwitching: .keepingContent)

    var body: some View {
        UserContent(state: user.state(for: id))
            .opacity(user.isContent(of: id) ? 1 : 0.5)
            .task(id: id) { await user.follow(users[id]) }
    }
}

struct RepoList: View {
    let repos: PaginationStore<String, Repo>
    @State private var list = ObservedList<Repo>()

    var body: some View {
        List {
            ForEach(list.content ?? []) { repo in
                RepoRow(repo: repo)
                    .task {
                        if list.shouldLoadNext(at: repo) {
                            await list.loadNext()
                        }
                    }
            }
        }
        .task { await list.follow(repos["apple"]) }
    }
}

struct RepoRow: View {
    let repo: Repo

    var body: some View { Text("\(repo.id)") }
}

@MainActor
struct InASwiftUIAppTests {
    @Test func `V5: an example's preview shows what it is given`() async throws {
        let failed = Observed(
            preview: .error(rawError: Offline(), content: User(id: 1, name: "Ada")))
        #expect(failed.state(for: 1).content?.name == "Ada" && failed.error is Offline)
    }

    @Test func `V6: no module imports a user interface`() {
        for path in Documentation.files(under: "Sources", ending: ".swift") {
            #expect(!Documentation.text(of: path).contains(/import (SwiftUI|UIKit|AppKit|Combine)\b/), "\(path)")
        }
    }

    #if !canImport(SwiftUI)
    @Test func `the bodies of the app's views can be evaluated before anything is loaded, and afterwards`() async throws {
        let library = Library()
        _ = FeedPreviews.previews
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
