import Foundation
import Inspector
import LoopbackOrigin
import RemoteRouting
import StoreCore
import StoreFiles
import StoreOutbox
import SyncEngine
import TextStore

/// `tour --inspect`: an app that works until it is interrupted, for the page of the inspector.
struct InspectedShop {
    let bookshop: Bookshop
    let directory: URL

    /// A reservation, which the outbox delivers.
    private struct Reservation: Command {
        static let name = "reserve"
        var book: Int
    }

    func run(on stage: Stage) async throws {
        let inspector = try await Inspector.start()
        let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(bookshop.origin.port))).with { $0.retry = .never }
        let shop = inspector.attach(host, name: "bookshop")
        var policy = StorePolicy()
        policy.revalidatesOnExpiry = true
        let books = Store(
            cacher: TieredCacher(over: FileCacher<Int, Book>(directory: directory.appending(path: "books"), expiry: .after(.seconds(5)))),
            fetcher: shop.fetcher { ShopRoute.book($0) }, policy: policy, name: "books")
        let shelf = PaginationStore(
            cacher: MemoryCacher<UnitParam, [Book]>(expiry: .after(.seconds(12))),
            fetcher: shop.pages(in: ShelfPage.self, elements: \.books, next: \.next, prev: \.prev) { ShopRoute.shelf(page: $1?.value) },
            links: [.elements(of: books)], policy: policy, name: "shelf")
        let catalog = Store(cacher: MemoryCacher<String, Book>(limit: 20_000), name: "catalog") { title in
            Book(id: 0, title: title, inStock: 1)
        }
        inspector.attach(books)
        inspector.attach(shelf)
        inspector.attach(catalog)

        bookshop.open()
        bookshop.publishTerms()
        let chapter = TextChapter(stage: stage, bookshop: bookshop, directory: directory)
        let texts = try chapter.makeStore(try chapter.makeBundle())
        try await texts.register(chapter.terms)
        await texts.setVersionSource(chapter.versions)
        inspector.attach(texts, name: "legal")

        let album = Album()
        let synchronizer = SyncChapter(stage: stage, bookshop: bookshop).synchronizer(of: album)
        inspector.attach(synchronizer, name: "covers")

        let outbox = try Outbox(directory: directory.appending(path: "outbox"))
        await outbox.register(Reservation.self, lane: { "book \($0.book)" }) { reservation, delivery in
            try await Task.sleep(for: .seconds(2))
            if reservation.book.isMultiple(of: 4), delivery.attempt < 3 { throw CocoaError(.fileReadUnknown) }
        }
        outbox.start()
        inspector.attach(outbox, name: "reservations")

        for number in 1...10_000 { await catalog["book \(number)"].update(Book(id: number, title: "Book \(number)", inStock: number % 7)) }
        print("The inspector's page: \(inspector.url)\nPress Control-C to end.")
        // The output may be a pipe, which is written in blocks.
        fflush(nil)
        // One after the other, so that their fetches are spread over the timeline.
        let observers = (1...6).map { id in
            Task {
                try await Task.sleep(for: .milliseconds(700 * id))
                for await _ in books[id].publish() {}
            }
        }
        let reader = Task { for await _ in shelf.flowable.publish() {} }
        defer {
            for observer in observers { observer.cancel() }
            reader.cancel()
        }
        try await work(books: books, shelf: shelf, synchronizer: synchronizer, outbox: outbox)
    }

    /// Reads, changes, reserves and synchronizes, until the process ends.
    private func work(
        books: Store<Int, Book>, shelf: PaginationStore<UnitParam, Book>, synchronizer: OneWaySynchronizer<CoverProcessor>, outbox: Outbox
    ) async throws {
        for round in 1... {
            let id = Int.random(in: 1...15)
            bookshop.setStock(of: id, to: Int.random(in: 0...9))
            Task {
                // A failure is visible on the page.
                _ = await books[id].getData()
            }
            if round % 5 == 0 { _ = await shelf.flowable.requestNextData() }
            if round % 7 == 0 { try await outbox.submit(Reservation(book: id)) }
            if round % 16 == 1 {
                bookshop.publishCovers(count: Int.random(in: 30...60))
                Task {
                    // A failed pass is visible on the page.
                    _ = try? await synchronizer.sync()
                }
            }
            try await Task.sleep(for: .milliseconds(700))
        }
    }
}
