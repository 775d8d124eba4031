import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform

/// A book, in the shop's JSON and in the repository.
struct Book: Codable, Hashable, Identifiable, Sendable {
    var id: Int
    var title: String
    var inStock: Int
}

/// The origin: a bookshop with one shelf, a stock that changes, and a server that can go down.
final class Bookshop: Sendable {
    let origin: LoopbackOrigin

    private let shelf: Lock<[Book]>
    private let confirmed = Lock(0)
    private let isOpen = WatchedState(false)
    private let sendsPrices = WatchedState(false)
    private let sendsTerms = WatchedState(true)
    private static let pageSize = 5

    /// Makes the shop; its shelf waits for ``open()``.
    ///
    /// - Parameter pace: The delay of each response, so that loading is visible.
    init(pace: Duration) throws {
        let titles = [
            "Moby-Dick", "Treasure Island", "The Sea-Wolf", "Kidnapped", "Typhoon", "Lord Jim", "The Shadow-Line", "White-Jacket",
            "Captains Courageous", "Two Years Before the Mast", "Robinson Crusoe", "The Odyssey", "Persuasion", "Omoo", "Typee",
        ]
        shelf = Lock(titles.enumerated().map { Book(id: $0.offset + 1, title: $0.element, inStock: 3) })
        origin = try LoopbackOrigin()
        origin.on(.get, "/shelf") { [unowned self, isOpen] request in
            // Canceled when the client leaves, which gets no response then.
            try? await isOpen.wait { $0 ? () : nil }
            return page(request).misbehaving(.delayHead(by: pace))
        }
        origin.on(.get, "/books/:id") { [unowned self] request in book(request).misbehaving(.delayHead(by: pace)) }
    }

    /// Responds to the requests for the shelf that wait, and to later ones.
    func open() { isOpen.update { $0 = true } }

    /// Sets the number of copies of a book.
    func setStock(of id: Int, to count: Int) {
        shelf.withLock { shelf in
            for place in shelf.indices where shelf[place].id == id { shelf[place].inStock = count }
        }
    }

    /// Publishes terms of version 1.1.0, with their digest.
    ///
    /// - Parameter waits: Whether the responses wait for ``sendTerms()``.
    func publishTerms(waits: Bool = false) {
        sendsTerms.update { $0 = !waits }
        let terms = "A book is yours for three weeks."
        let digest = SHA256.digest(of: Array(terms.utf8)).hex
        let manifest = #"{ "texts": { "terms": { "version": "1.1.0", "url": "terms.txt", "sha256": "\#(digest)" } } }"#
        origin.on(.get, "/texts/versions.json") { [sendsTerms] request in
            // Canceled when the client leaves, which gets no response then.
            try? await sendsTerms.wait { $0 ? () : nil }
            return .json(literal: manifest).tagged().revalidated(by: request).misbehaving(.delayHead(by: .milliseconds(80)))
        }
        origin.on(.get, "/texts/terms.txt") { .text(terms).tagged().revalidated(by: $0) }
    }

    /// Sends the terms that wait.
    func sendTerms() { sendsTerms.update { $0 = true } }

    /// Publishes the price of a book as server-sent events; the connection is cut after the third one.
    ///
    /// The rest waits for ``sendPrices()``.
    func publishPrices(_ cents: [Int], every pace: Duration) {
        // Events of equal length, so that each drop of the response is one event.
        let events = cents.enumerated().map { number, price in Data("id: \(number + 1)\ndata: {\"cents\":\(price)}\n\n".utf8) }
        let length = events.first?.count ?? 1
        origin.on(.get, "/books/1/price") { [sendsPrices] request in
            let last = request.headers["Last-Event-ID"].flatMap { Int($0) } ?? 0
            let rest = events.dropFirst(last)
            let response = LoopbackOrigin.Response.data(rest.reduce(Data(), +) + Data(":\n\n".utf8), type: "text/event-stream")
            let end: LoopbackOrigin.Misbehavior =
                last == 0 ? .truncate(afterBodyBytes: 3 * length) : .stall(afterBodyBytes: rest.count * length)
            // Without a connection, the observer sees the error, and an update comes before the next events.
            if last > 0, !sendsPrices.current { return .status(503) }
            return response.misbehaving(.drip(bytes: length, every: pace), end)
        }
    }

    /// Accepts connections for the rest of the prices.
    func sendPrices() { sendsPrices.update { $0 = true } }

    /// Publishes covers; the first request for the seventh fails.
    func publishCovers(count: Int) {
        let hasFailed = Lock(false)
        origin.on(.get, "/covers") { _ in .json((0..<count).map { Cover(id: $0, revision: 1) }) }
        origin.on(.get, "/covers/:id") { request in
            let fails =
                request.parameter("id") == "7"
                && hasFailed.withLock { hasFailed in
                    defer { hasFailed = true }
                    return !hasFailed
                }
            let response: LoopbackOrigin.Response = fails ? .status(503) : .data(Data(repeating: 7, count: 2_000))
            return response.misbehaving(.delayHead(by: .milliseconds(30)))
        }
    }

    /// The number of 304 responses.
    var confirmations: Int { confirmed.withLock { $0 } }

    /// Returns the number of requests for a path.
    func requests(to path: String) -> Int { origin.requests(to: path).count }

    // MARK: Responses

    /// Returns a page of the shelf; without a number, the middle page, so that pages exist on both sides.
    private func page(_ request: LoopbackOrigin.Request) -> LoopbackOrigin.Response {
        let books = shelf.withLock { $0 }
        let last = (books.count - 1) / Self.pageSize
        let number = request.query("page").flatMap(Int.init) ?? last / 2
        guard (0...last).contains(number) else { return .notFound(for: request) }
        let page = ShelfPage(
            books: Array(books.dropFirst(number * Self.pageSize).prefix(Self.pageSize)),
            next: number < last ? "\(number + 1)" : nil, prev: number > 0 ? "\(number - 1)" : nil)
        return .json(page)
    }

    /// Returns a book with an entity tag, or 304 to a matching conditional request.
    private func book(_ request: LoopbackOrigin.Request) -> LoopbackOrigin.Response {
        let book = shelf.withLock { shelf in shelf.first { "\($0.id)" == request.parameter("id") } }
        guard let book else { return .notFound(for: request) }
        let response = LoopbackOrigin.Response.json(book).tagged().revalidated(by: request)
        if response.status == 304 { confirmed.withLock { $0 += 1 } }
        return response
    }
}

/// A page of the shelf on the wire.
struct ShelfPage: Codable, Sendable {
    var books: [Book]
    var next: String?
    var prev: String?
}
