import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore

/// A price that the origin pushes: the connection is cut and made again, with an update in between.
struct LiveChapter {
    let stage: Stage
    let bookshop: Bookshop

    /// The price of a book, in the shop's JSON and in the store.
    struct Price: Codable, Hashable, Sendable {
        var cents: Int
    }

    func run() async throws {
        stage.chapter("A price that the origin pushes, over a connection that is cut")
        bookshop.publishPrices([1900, 1850, 1800, 1750, 1700], every: .milliseconds(60))
        // The store connects again, so the host need not.
        let shop = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(bookshop.origin.port))).with { $0.retry = .never }
        let prices = Store(
            cacher: MemoryCacher<Int, Price>(),
            fetcher: shop.liveFetcher(of: Price.self) { id in Route(path: "/books/\(id)/price") },
            policy: StorePolicy(retry: .exponential(attempts: .max)))

        var observer = ShownObserver(prices[1].publish(), on: stage) { String(format: "%.2f", Double($0.cents) / 100) }
        let cut = try await observer.follow { $0.error != nil }
        stage.check("the cut connection is an error, and the last price stays visible", cut.content == Price(cents: 1800))
        await prices[1].update(Price(cents: 1000))
        stage.note("an update sets the price to 10.00 while the origin is away")
        let update = try await observer.follow { $0.content == Price(cents: 1000) }
        stage.check("the update is shown at once", update.content == Price(cents: 1000))
        bookshop.sendPrices()
        let last = try await observer.follow { $0.content == Price(cents: 1700) }
        let ids = bookshop.origin.requests(to: "/books/1/price").map { $0.request.headers["Last-Event-ID"] }
        stage.check(
            "the next connection continues after the last event, and its prices replace the update",
            last.isCompleted && ids[0] == nil && Set(ids.dropFirst()) == ["3"])
    }
}
