import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore

/// The steps of the tour, each with its checks.
struct Chapters {
    let stage: Stage
    let bookshop: Bookshop
    let repository: BookRepository
    let directory: URL

    func run() async throws {
        try await loading()
        try await paging()
        try await expiring()
        try await sharing()
        try await thousandCallers()
        try await outage()
        try await restart()
        try await TextChapter(stage: stage, bookshop: bookshop, directory: directory).run()
        try await SyncChapter(stage: stage, bookshop: bookshop).run()
        try await LiveChapter(stage: stage, bookshop: bookshop).run()
        try await LinkChapter(stage: stage, bookshop: bookshop).run()
    }

    private func loading() async throws {
        stage.chapter("Loading, then completed")
        var observer = shelfObserver()
        let first = try await observer.follow { _ in true }
        stage.check("the first state is loading, without content", first.isLoading && first.content == nil)
        // Before, a slow observer would see the shelf at once.
        bookshop.open()
        let state = try await observer.follow { $0.isCompleted }
        stage.check("the next state has the first page of the shelf", state.content?.count == 5)
    }

    private func paging() async throws {
        stage.chapter("The next page, and the previous one")
        var observer = shelfObserver()
        _ = try await observer.follow { $0.isCompleted }
        stage.check("a second observer gets the content without a fetch", bookshop.requests(to: "/shelf") == 1)
        let shelf = repository.shelf.flowable
        async let next = shelf.requestNextData()
        _ = try await observer.follow { $0.content?.count == 10 }
        async let previous = shelf.requestPrevData()
        let state = try await observer.follow { $0.content?.count == 15 }
        let requests = await (next, previous)
        stage.check(
            "both pages were loaded, one at each end",
            state.content?.map(\.id) == Array(1...15) && requests.0.isLoaded && requests.1.isLoaded)
        let end = await shelf.requestNextData()
        stage.check("at the end of the shelf, no page is requested", end.isNoPage && bookshop.requests(to: "/shelf") == 3)
    }

    private func expiring() async throws {
        stage.chapter("Content expires, and the old copy stays visible during the refresh")
        var observer = bookObserver(1)
        _ = try await observer.follow { $0.isCompleted }
        stage.note("the cached book expires after 400 ms")
        // A slow observer may skip a refresh, and sees a later one.
        let stale = try await observer.follow { $0.isLoading }
        stage.check("while loading, the stale copy stays visible", stale.content?.inStock == 3)
        stage.note("the shop sells two copies")
        bookshop.setStock(of: 1, to: 1)
        let state = try await observer.follow { $0.isCompleted && $0.content?.inStock == 1 }
        stage.check("then the new copy replaces it", state.content?.inStock == 1)
        _ = try await observer.follow { $0.isLoading }
        _ = try await observer.follow { $0.isCompleted }
        stage.check("a refresh of unchanged content sends its entity tag and gets 304 without a body", bookshop.confirmations > 0)
    }

    private func sharing() async throws {
        stage.chapter("One update, two observers")
        let shelf = repository.shelf.flowable
        // Elements are found by their identity, because the list may have changed before the update runs.
        let stock: @Sendable ([Book]) -> String = { books in
            books.first { $0.id == 7 }.map { "\($0.title): \($0.inStock) in stock" } ?? "not on the shelf"
        }
        var left = shelfObserver("left ", describe: stock)
        var right = shelfObserver("right", describe: stock)
        _ = try await left.follow { $0.isCompleted }
        _ = try await right.follow { $0.isCompleted }
        stage.note("update the stock of book 7 to 99")
        await shelf.update { books in
            guard let place = books.firstIndex(where: { $0.id == 7 }) else { return }
            books[place].inStock = 99
        }
        let seen = try await (left.follow { $0.isCompleted }, right.follow { $0.isCompleted })
        stage.check("both observers see the update", [seen.0, seen.1].allSatisfy { $0.content?.first { $0.id == 7 }?.inStock == 99 })
    }

    private func thousandCallers() async throws {
        stage.chapter("1 000 callers, one fetch")
        let shop = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(bookshop.origin.port)))
        // The books of the repository may expire before the last caller has begun.
        let books = Store(cacher: MemoryCacher<Int, Book>(), fetcher: shop.fetcher { ShopRoute.book($0) })
        let before = bookshop.requests(to: "/books/7")
        let callers = (0..<1_000).map { _ in Task { try await books[7].requireData() } }
        var found: Set<Book> = []
        for caller in callers { found.insert(try await caller.value) }
        let requests = bookshop.requests(to: "/books/7") - before
        stage.check("1 000 callers shared \(requests) request", requests == 1 && found.count == 1)
    }

    private func outage() async throws {
        stage.chapter("The origin goes down, and comes back")
        var observer = shelfObserver()
        _ = try await observer.follow { $0.isCompleted }
        bookshop.origin.goDown()
        stage.note("down: connections are refused")
        await repository.shelf.flowable.refresh()
        let failed = try await observer.follow { $0.error != nil }
        stage.check("the error state keeps the last content", failed.content?.count == 15)
        let kept = try await repository.shelf.flowable.requireData()
        stage.check("valid content is still served", kept.count == 15)
        try bookshop.origin.comeBack()
        stage.note("up again")
        await repository.shelf.flowable.refresh()
        let fresh = try await observer.follow { $0.isCompleted }
        stage.check("the list is fresh again, from its first page", fresh.content?.map(\.id) == Array(6...10))
        let next = await repository.shelf.flowable.requestNextData()
        stage.check("the next page can be requested again", next.isLoaded)
    }

    private func restart() async throws {
        stage.chapter("A restart shows the saved content")
        let before = bookshop.requests(to: "/shelf")
        let status = try await AfterRestart.launch(directory: directory, origin: bookshop.origin.url, isPlain: !stage.isLive)
        let requests = bookshop.requests(to: "/shelf") - before
        stage.check("a new process shows the shelf at once, without a request", status == 0 && requests == 0)
    }

    // MARK: Observers

    private func shelfObserver(_ label: String = " ", describe: (@Sendable ([Book]) -> String)? = nil) -> ShownObserver<[Book]> {
        ShownObserver(repository.shelf.flowable.publish(), on: stage, label: label, describe: describe ?? Self.describe)
    }

    private func bookObserver(_ id: Int) -> ShownObserver<Book> {
        ShownObserver(repository.books[id].publish(), on: stage) { "\($0.title): \($0.inStock) in stock" }
    }

    static func describe(_ books: [Book]) -> String {
        guard let first = books.first, let last = books.last else { return "an empty shelf" }
        return "\(books.count) books, \(first.title) … \(last.title)"
    }
}

extension PageRequest {
    /// Whether no further page exists.
    var isNoPage: Bool { if case .noPage = self { true } else { false } }

    /// Whether the page has been loaded into the list.
    var isLoaded: Bool { if case .loaded = self { true } else { false } }
}
