import Foundation
import StoreCore
internal import StoreFiles
import Trials

/// An article. Its numbers only grow at the origin, and a reader can tell from its text whether it is complete.
private struct Article: Codable, Hashable, Identifiable, Sendable {
    let id: Int
    var title: Int
    var likes: Int
    var text: String

    init(id: Int, serial: Int) {
        self.id = id
        title = serial
        likes = serial
        text = Self.text(serial)
    }

    var finding: Finding { Finding(id: id, title: title, likes: likes) }

    static func text(_ serial: Int) -> String { "\(serial) " + String(repeating: "x", count: serial &* 7919 % 3000) }

    /// The number of the text; −1 for a torn one.
    var textNumber: Int {
        guard let number = text.split(separator: " ").first.flatMap({ Int($0) }), number >= 0 else { return -1 }
        return text == Self.text(number) ? number : -1
    }
}

/// A row of search results, which has a part of an article.
private struct Finding: Codable, Hashable, Identifiable, Sendable {
    let id: Int
    var title: Int
    var likes: Int
}

/// The articles of an origin, which is in this process; an origin without articles is out of reach.
private final class ArticleOrigin: Sendable {
    static let ids = 0..<6
    private let articles: Lock<[Int: Article]>

    init(_ articles: [Article] = []) {
        self.articles = Lock(Dictionary(uniqueKeysWithValues: articles.map { ($0.id, $0) }))
    }

    func has(_ id: Int) -> Bool { articles.withLock { $0[id] != nil } }
    func add(_ article: Article) { articles.withLock { $0[article.id] = article } }
    func remove(_ id: Int) { articles.withLock { $0[id] = nil } }
    func like(_ id: Int, _ serial: Int) { articles.withLock { articles -> Void in articles[id]?.likes = serial } }

    func rename(_ id: Int, _ serial: Int) {
        articles.withLock { articles in
            articles[id]?.title = serial
            articles[id]?.text = Article.text(serial)
        }
    }

    func article(_ id: Int) throws -> Article {
        guard let article = articles.withLock({ $0[id] }) else { throw Offline() }
        return article
    }

    func all() throws -> [Article] {
        let all = articles.withLock { $0.values.sorted { $0.id < $1.id } }
        guard !all.isEmpty else { throw Offline() }
        return all
    }

    /// The list `home` has two pages, and any other list one.
    func page(_ list: String, _ key: String?) throws -> Page<Article> {
        let articles = try all()
        guard list == "home" else { return Page(articles.filter { $0.id % 2 == 0 }) }
        return key == nil ? Page(articles.filter { $0.id < 4 }, nextKey: "2") : Page(articles.filter { $0.id >= 4 })
    }
}

/// Articles, lists of whole articles, and search results of fragments, linked and over files.
private final class Library: Sendable {
    let files: FileCacher<Int, Article>
    let articles: Store<Int, Article>
    let lists: PaginationStore<String, Article>
    let search: PaginationStore<String, Finding>

    init(_ directory: URL, _ origin: ArticleOrigin, sharing: FileSharing = .none) {
        files = FileCacher(directory: directory.appending(path: "articles"), sharing: sharing)
        let listFiles = FileCacher<String, [Article]>(directory: directory.appending(path: "lists"), sharing: sharing)
        let searchFiles = FileCacher<String, [Finding]>(directory: directory.appending(path: "search"), sharing: sharing)
        let pages = PaginationClosureFetcher<String, Article> { list, key in try origin.page(list, key) }
        let findings = PaginationClosureFetcher<String, Finding> { _, _ in
            try Page(origin.all().map { $0.finding })
        }
        articles = Store(cacher: TieredCacher(over: files), fetcher: ClosureFetcher<Int, Article> { id in try origin.article(id) })
        lists = PaginationStore(cacher: TieredCacher(over: listFiles), fetcher: pages, links: [.elements(of: articles)])
        search = PaginationStore(
            cacher: TieredCacher(over: searchFiles), fetcher: findings,
            links: [.elements(of: articles, id: \.id, fields: (\.title, \.title), (\.likes, \.likes))])
    }

    /// Loads all lists.
    func load() async throws {
        for list in ["home", "top"] { _ = try await lists[list].requireData() }
        _ = try await search["all"].requireData()
    }

    /// Observes all lists until the process ends, so that each change of an article is saved with them.
    func observe() {
        for list in ["home", "top"] { CrashWriter.observe(lists[list].publish()) }
        CrashWriter.observe(search["all"].publish())
    }

    func waitUntilSaved() async throws {
        try await articles.waitUntilSaved()
        try await lists.waitUntilSaved()
        try await search.waitUntilSaved()
    }

    /// What all places show: for each article that any of them shows ` id:detail:title:likes:text`.
    ///
    /// `detail` is 1 if the article has a record, and a fragment alone has no text. Instead of that, ` id!places` if places differ.
    func shown() async -> String {
        // The first reads load articles, with which lists agree at their next read.
        _ = await read()
        let places = await read()
        let words = ArticleOrigin.ids.map { id -> String in
            let rows = places.rows.filter { $0.id == id }
            let findings = places.findings.filter { $0.id == id }
            guard let finding = findings.first ?? rows.first?.finding else { return "" }
            guard Set(rows).count <= 1, Set(findings + rows.map(\.finding)).count <= 1 else {
                let all = rows.map { "\($0.title):\($0.likes):\($0.textNumber)" } + findings.map { "\($0.title):\($0.likes)" }
                return " \(id)!\(all.joined(separator: ","))"
            }
            let text = rows.first.map { ":\($0.textNumber)" } ?? ""
            return " \(id):\(places.details.contains(id) ? 1 : 0):\(finding.title):\(finding.likes)\(text)"
        }
        return words.joined()
    }

    /// The keys of articles with a record, all whole articles of all places, and all fragments.
    private func read() async -> (details: Set<Int>, rows: [Article], findings: [Finding]) {
        var details: Set<Int> = [], rows: [Article] = []
        for id in ArticleOrigin.ids {
            guard let article = await kept({ try await self.articles[id].requireData(from: .cache) }) else { continue }
            details.insert(id)
            rows.append(article)
        }
        for list in ["home", "top"] { rows += await kept({ try await self.lists[list].requireData(from: .cache) }) ?? [] }
        let findings = await kept({ try await self.search["all"].requireData(from: .cache) })
        return (details, rows, findings ?? [])
    }

    /// Returns content from the cache, even if it is out of date.
    private func kept<Content: Sendable>(_ read: () async throws -> Content) async -> Content? {
        do { return try await read() } catch { return (error as? StoreError)?.staleContent as? Content }
    }
}

/// A program with linked stores.
enum LinkedLife {
    static func run(_ mode: String, _ directory: URL, _ arguments: [String]) async throws {
        let number = arguments.first.flatMap { Int($0) } ?? 0
        switch mode {
        case "live": try await live(directory, from: number)
        case "read": say("found\(await Library(directory, ArticleOrigin()).shown())")
        case "follow": try await follow(directory, observing: arguments.first == "detail")
        case "like", "rename":
            let library = Library(directory, ArticleOrigin(), sharing: .processes)
            let isChanged = await library.articles[3].update { article in
                if mode == "like" { article.likes = number } else { article.title = number }
            }
            try await library.articles.waitUntilSaved()
            say(isChanged ? "changed" : "missing")
        default: say("unknown mode \(mode)")
        }
    }

    // MARK: A process that is killed

    /// Changes articles, lists and search results until the process is killed, and prints what they show after it was saved.
    private static func live(_ directory: URL, from first: Int) async throws {
        let origin = ArticleOrigin(ArticleOrigin.ids.map { Article(id: $0, serial: first) })
        let library = Library(directory, origin)
        try await library.load()
        library.observe()
        // What the last process has not saved of its lists is saved before a removal can make it the only copy.
        _ = await library.shown()
        try await library.waitUntilSaved()
        say("started")
        for serial in (first + 1)... {
            try await change(library, origin, serial)
            guard serial % 3 == 0 else { continue }
            let shown = await library.shown()
            try await library.waitUntilSaved()
            say("saved \(serial)\(shown)")
        }
    }

    private static func change(_ library: Library, _ origin: ArticleOrigin, _ serial: Int) async throws {
        let id = Int.random(in: ArticleOrigin.ids)
        // An article that was removed appears at the origin again.
        guard origin.has(id) else { return origin.add(Article(id: id, serial: serial)) }
        let choice = Int.random(in: 0..<11)
        if choice < 6 { origin.rename(id, serial) }
        switch choice {
        case 0, 1: await library.articles[id].refresh()
        case 2: await library.lists["home"].refresh()
        case 3: await library.lists["home"].requestNextData()
        case 4: await library.lists["top"].refresh()
        case 5: await library.search["all"].refresh()
        case 6: try await library.articles[id].mutate(optimistically: { $0.likes = serial }) { origin.like(id, serial) }
        case 7:
            try await library.lists["home"].mutate(element: id, optimistically: { $0.likes = serial }) { origin.like(id, serial) }
        case 8:
            // No later process may show this number.
            try? await library.articles[id].mutate(optimistically: { $0.likes = .max }) { throw Offline() }
        case 9:
            origin.like(id, serial)
            await library.search["all"].update { rows in
                for row in rows.indices where rows[row].id == id { rows[row].likes = serial }
            }
        default:
            say("removing \(id) \(serial)")
            try await library.articles.remove(id) { origin.remove(id) }
        }
    }

    // MARK: Processes that share a directory

    /// Prints what a list and the search show of article 3, and each gap in the changes of others.
    private static func follow(_ directory: URL, observing observesDetail: Bool) async throws {
        let library = Library(directory, ArticleOrigin(ArticleOrigin.ids.map { Article(id: $0, serial: 1) }), sharing: .processes)
        _ = try await library.articles[3].requireData()
        try await library.load()
        try await library.waitUntilSaved()
        let observation = library.files.observeChanges { change in if case .gap = change { say("gap") } }
        if observesDetail { CrashWriter.observe(library.articles[3].publish()) }
        let found = library.search["all"].publish()
        Task {
            for await state in found {
                if let row = state.content?.first(where: { $0.id == 3 }) { say("search \(row.title) \(row.likes)") }
            }
        }
        for await state in library.lists["home"].publish() {
            if let row = state.content?.first(where: { $0.id == 3 }) { say("list \(row.title) \(row.likes)") }
        }
        withExtendedLifetime(observation) {}
    }
}
