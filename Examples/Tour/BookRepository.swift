import Foundation
import StoreCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What an app would write: two fetchers, two cachers, two stores.
struct BookRepository: Sendable {
    /// Each book, in memory; a copy is good for less than half a second here, so that expiry can be watched.
    let books: Store<Int, Book>

    /// The shelf, page by page, in memory and on disk.
    let shelf: PaginationStore<UnitParam, Book>

    init(origin: URL, directory: URL) {
        let client = ShopClient(origin: origin)
        var policy = StorePolicy()
        policy.revalidatesOnExpiry = true
        policy.minimumInterval = .milliseconds(100)
        books = Store(
            cacher: MemoryCacher(expiry: .after(.milliseconds(400))), fetcher: BookFetcher(client: client), policy: policy)
        shelf = PaginationStore(cacher: Self.shelfCacher(directory), fetcher: ShelfFetcher(client: client))
    }

    static func shelfCacher(_ directory: URL) -> TieredCacher<FileCacher<UnitParam, [Book]>> {
        TieredCacher(over: FileCacher(directory: directory.appending(path: "shelf")))
    }
}

/// Gets a book, or learns that the one that is here is still right.
struct BookFetcher: RevalidatingFetcher {
    let client: ShopClient

    func fetch(param id: Int, revalidating validator: Validator?) async throws -> FetchResult<Book> {
        let (body, response) = try await client.get("books/\(id)", ifNoneMatch: validator?.entityTag)
        if response.statusCode == 304 { return .notModified() }
        let tag = response.value(forHTTPHeaderField: "ETag")
        return .modified(try JSONDecoder().decode(Book.self, from: body), .unspecified, tag.map { Validator(entityTag: $0) })
    }
}

/// Gets the shelf page by page, in both directions.
struct ShelfFetcher: TwoWayPaginationFetcher {
    let client: ShopClient

    func fetch(param: UnitParam) async throws -> Page<Book> { try await page("shelf") }

    func fetchNext(nextKey: String, param: UnitParam) async throws -> Page<Book> { try await page("shelf?page=\(nextKey)") }

    func fetchPrev(prevKey: String, param: UnitParam) async throws -> Page<Book> { try await page("shelf?page=\(prevKey)") }

    private func page(_ path: String) async throws -> Page<Book> {
        let (body, _) = try await client.get(path)
        let page = try JSONDecoder().decode(ShelfPage.self, from: body)
        return Page(page.books, nextKey: page.next, prevKey: page.prev)
    }
}

/// The few lines of HTTP that this tour needs.
struct ShopClient: Sendable {
    let origin: URL

    private let session: URLSession = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.timeoutIntervalForRequest = 10
        return URLSession(configuration: configuration)
    }()

    init(origin: URL) {
        self.origin = origin
    }

    func get(_ path: String, ifNoneMatch tag: String? = nil) async throws -> (Data, HTTPURLResponse) {
        guard let url = URL(string: path, relativeTo: origin) else { throw ShopError(what: "no such path: \(path)") }
        var request = URLRequest(url: url)
        if let tag { request.setValue(tag, forHTTPHeaderField: "If-None-Match") }
        // A completion handler, because cancelling the async convenience can deadlock on Linux; the store times this task out of use.
        let (data, response, error) = await withCheckedContinuation { continuation in
            session.dataTask(with: request) { continuation.resume(returning: ($0, $1, $2)) }.resume()
        }
        guard let response = response as? HTTPURLResponse else {
            throw ShopError(what: (error as? URLError)?.code == .timedOut ? "the shop does not answer" : "the shop cannot be reached")
        }
        guard (200..<300).contains(response.statusCode) || response.statusCode == 304 else {
            throw ShopError(what: "the shop answered \(response.statusCode)")
        }
        return (data ?? Data(), response)
    }
}

/// Why the shop has not answered.
struct ShopError: Error, CustomStringConvertible {
    var what: String

    var description: String { what }
}
