import LoopbackOrigin
import RemoteRouting
import StoreCore

/// One book on a shelf and on a page of its own: linked stores show one truth.
struct LinkChapter {
    let stage: Stage
    let bookshop: Bookshop

    /// The shop refuses a reservation.
    struct Refused: Error, CustomStringConvertible {
        var description: String { "the shop refuses" }
    }

    func run() async throws {
        stage.chapter("One book in two places: the shelf and its own page")
        bookshop.setStock(of: 7, to: 3)
        let shop = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(bookshop.origin.port)))
        let books = Store(cacher: MemoryCacher<Int, Book>(), fetcher: shop.fetcher { ShopRoute.book($0) })
        let shelf = PaginationStore(
            cacher: MemoryCacher<UnitParam, [Book]>(),
            fetcher: shop.pages(in: ShelfPage.self, elements: \.books, next: \.next, prev: \.prev) { ShopRoute.shelf(page: $1?.value) },
            links: [.elements(of: books)])
        let stock: @Sendable (Book) -> String = { "\($0.title): \($0.inStock) in stock" }
        var row = ShownObserver(shelf.flowable.publish(element: 7), on: stage, label: "shelf", describe: stock)
        var page = ShownObserver(books[7].publish(), on: stage, label: "page ", describe: stock)
        _ = try await (row.follow { $0.isCompleted }, page.follow { $0.isCompleted })

        stage.note("reserve a copy on its page")
        try await books[7].mutate {
            $0.inStock -= 1
        } perform: {
            bookshop.setStock(of: 7, to: 2)
        }
        let reserved = try await (row.follow { $0.content?.inStock == 2 }, page.follow { $0.content?.inStock == 2 })
        stage.check("the row and the page show the change", reserved.0.content == reserved.1.content)

        stage.note("reserve a copy on the shelf; the shop refuses")
        do {
            try await shelf.flowable.mutate(element: 7) {
                $0.inStock -= 1
            } perform: {
                _ = try await (row.follow { $0.content?.inStock == 1 }, page.follow { $0.content?.inStock == 1 })
                throw Refused()
            }
        } catch is Refused {
            let restored = try await (row.follow { $0.content?.inStock == 2 }, page.follow { $0.content?.inStock == 2 })
            stage.check("both take it back", restored.0.content == restored.1.content)
        }
    }
}
