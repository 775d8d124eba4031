import Foundation
import RemoteRouting
import StoreCore
import StoreFiles

/// The code of an app: routes, two cachers, two stores.
struct BookRepository: Sendable {
    /// The books, in memory; each copy expires after less than half a second, so that expiry can be watched.
    let books: Store<Int, Book>

    /// The shelf, page by page, in memory and on disk.
    let shelf: PaginationStore<UnitParam, Book>

    init(origin: URL, directory: URL) {
        let shop = RemoteHost(HostConfiguration(origin.host() ?? "", scheme: .http, port: origin.port)).with { host in
            // The tour shows the outage itself, without retries.
            host.retry = .never
        }
        var policy = StorePolicy()
        policy.revalidatesOnExpiry = true
        policy.minimumInterval = .milliseconds(100)
        books = Store(
            cacher: MemoryCacher(expiry: .after(.milliseconds(400))), fetcher: shop.fetcher { ShopRoute.book($0) }, policy: policy)
        shelf = PaginationStore(
            cacher: Self.shelfCacher(directory),
            fetcher: shop.pages(in: ShelfPage.self, elements: \.books, next: \.next, prev: \.prev) { ShopRoute.shelf(page: $1?.value) })
    }

    static func shelfCacher(_ directory: URL) -> TieredCacher<FileCacher<UnitParam, [Book]>> {
        TieredCacher(over: FileCacher(directory: directory.appending(path: "shelf")))
    }
}

/// The shop's routes.
enum ShopRoute: Routable {
    case book(Int)
    case shelf(page: String?)

    var path: RoutePath {
        switch self {
        case .book(let id): "/books/\(id)"
        case .shelf: "/shelf"
        }
    }

    var query: Parameters {
        if case .shelf(let page) = self { ["page": page] } else { [:] }
    }
}
