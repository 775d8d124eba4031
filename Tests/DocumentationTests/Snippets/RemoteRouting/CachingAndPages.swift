internal import Foundation
internal import RemoteRouting
internal import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
internal import Testing

// What stands in the article on caching and pages.

struct MessagePage: Codable, Sendable {
    var messages: [Message]
    var older: String?
    var newer: String?
}

struct Picture: Sendable {
    struct NoPicture: Error {}

    var bytes: Data

    init(png: Data) throws {
        guard png.starts(with: [0x89, 0x50, 0x4E, 0x47]) else { throw NoPicture() }
        bytes = png
    }
}

struct Quoted: Sendable {
    var product: Product
    var remaining: Int?
}

struct SearchResult: Decodable, Sendable {
    var items: [Product]
}

struct NumberedPage: Decodable, Sendable {
    var products: [Product]
    var page: Int
    var pages: Int
}

struct ProductFetcher: RevalidatingFetcher {
    let shop: RemoteHost

    func fetch(
        param id: String, revalidating validator: Validator?
    ) async throws -> FetchResult<Product> {
        let response = try await shop.response(
            for: ShopRoute.product(id: id), as: Product.self)
        return .modified(
            response.value, Freshness(of: response), Validator(of: response))
    }

    // Saved content that another value of a field in Vary selected is a miss.
    func accepts(_ validator: Validator, param id: String) async -> Bool {
        await shop.accepts(validator, for: ShopRoute.product(id: id))
    }
}

struct CachingAndPagesTests {
    @Test func `a route is a store's fetcher`() async throws {
        let shop = RemoteHost("shop.example.com", transport: shopTransport())
        let products = Store(
            cacher: MemoryCacher<String, Product>(expiry: .after(.seconds(60))),
            fetcher: shop.fetcher { ShopRoute.product(id: $0) })

        let fetched = try await products["lamp"].requireData()
        #expect(fetched.name == "Lamp")
    }

    @Test func `linked pages are followed`() async throws {
        let transport = MemoryTransport { request in
            request.url.query()?.contains("page=1") == true
                ? .json(#"[{"id": "1", "name": "One"}]"#).adding("Link", #"</products?category=lamps&page=2>; rel="next""#)
                : .json(#"[{"id": "2", "name": "Two"}]"#)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let catalogue = PaginationStore(
            cacher: MemoryCacher<String, [Product]>(),
            fetcher: shop.pages { ShopRoute.products(category: $0, page: 1) })
        _ = try await catalogue["lamps"].requireData()
        await catalogue["lamps"].requestNextData()
        #expect(try await catalogue["lamps"].requireData().map(\.name) == ["One", "Two"])
    }

    @Test func `cursors are followed`() async throws {
        let transport = MemoryTransport { request in
            request.url.query() == "after=c2"
                ? .json(#"{"messages": []}"#) : .json(#"{"messages": [], "older": "c2"}"#)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let messages = PaginationStore(
            cacher: MemoryCacher<String, [Message]>(),
            fetcher: shop.pages(
                in: MessagePage.self, elements: { $0.messages }, next: { $0.older },
                prev: { $0.newer }
            ) { room, cursor in
                Route(
                    path: "/rooms/\(room)/messages",
                    query: ["after": cursor?.next, "before": cursor?.prev])
            })
        _ = try await messages["hall"].requireData()
        await messages["hall"].requestNextData()
        #expect(transport.requests.map { $0.url.query() } == [nil, "after=c2"])
    }
}

extension CachingAndPagesTests {
    private static let lamp = #"{"id": "lamp", "name": "Lamp"}"#

    @Test func `stale content hides an outage and nothing else`() async throws {
        let transport = MemoryTransport(
            inTurn: .json(Self.lamp).adding("Cache-Control", "max-age=0"), .status(500), .status(403))
        let shop = RemoteHost("shop.example.com", transport: transport)
        let lasting = Store(
            cacher: MemoryCacher<String, Product>(),
            fetcher: shop.fetcher { ShopRoute.product(id: $0) },
            policy: StorePolicy(staleIfError: .seconds(24 * 60 * 60)))
        _ = try await lasting["lamp"].requireData()
        #expect(try await lasting["lamp"].requireData().name == "Lamp")
        await #expect(throws: RemoteError.self) { try await lasting["lamp"].requireData() }
    }

    @Test func `pictures and bytes are kept as they are`() async throws {
        let png = Data([0x89, 0x50, 0x4E, 0x47])
        let shop = RemoteHost(
            "shop.example.com", transport: MemoryTransport { _ in .init(headers: [("Content-Type", "image/png")], body: png) })
        let pictures = Store(
            cacher: MemoryCacher<String, Picture>(),
            fetcher: shop.fetcher(parsing: { try Picture(png: $0.value) }) { name in
                Route(
                    path: "/pictures/\(name)",
                    options: RouteOptions(accept: "image/png"))
            })
        let files = Store(
            cacher: MemoryCacher<String, Data>(),
            fetcher: shop.fetcher { Route(path: "/files/\($0)") })
        #expect(try await pictures["lamp"].requireData().bytes == png)
        #expect(try await files["lamp"].requireData() == png)
    }

    @Test func `a rate limit is kept with the content`() async throws {
        let transport = MemoryTransport { _ in .json(Self.lamp).adding("X-RateLimit-Remaining", "41") }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let quoted = Store(
            cacher: MemoryCacher<String, Quoted>(),
            fetcher: shop.fetcher(parsing: { response in
                Quoted(
                    product: try JSONDecoder().decode(
                        Product.self, from: response.value),
                    remaining: response.fields["X-RateLimit-Remaining"]
                        .flatMap { Int($0) })
            }) { ShopRoute.product(id: $0) })
        #expect(try await quoted["lamp"].requireData().remaining == 41)
    }

    @Test func `a fetcher of one's own has lifetimes and validators`() async throws {
        let transport = MemoryTransport { _ in .json(Self.lamp).adding("Cache-Control", "max-age=60").adding("ETag", "\"v1\"") }
        // The time that a response takes counts as its age.
        let fetcher = ProductFetcher(shop: RemoteHost("shop.example.com", transport: transport, time: ManualTime()))
        let result = try await fetcher.fetch(param: "lamp", revalidating: nil)
        guard case .modified(let product, let freshness, let validator) = result else {
            Issue.record("the fetcher has no content")
            return
        }
        #expect(product == Product(id: "lamp", name: "Lamp") && freshness == .fresh(for: .seconds(60)))
        #expect(validator?.entityTag == "\"v1\"")
    }

    @Test func `lists in an object, and pages with numbers`() async throws {
        let transport = MemoryTransport { request in
            let query = request.url.query() ?? ""
            if query.hasPrefix("q=") { return .json("{\"items\": [\(Self.lamp)]}") }
            if !query.contains("per_page") { return .json("{\"products\": [\(Self.lamp)], \"page\": 2, \"pages\": 2}") }
            return .json(query.contains("page=1&") ? "[\(Self.lamp)]" : "[]")
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let hits = PaginationStore(
            cacher: MemoryCacher<String, [Product]>(),
            fetcher: shop.pages(
                in: SearchResult.self, elements: { $0.items }
            ) { words in
                Route(path: "/search", query: ["q": words])
            })
        let numbered = PaginationStore(
            cacher: MemoryCacher<String, [Product]>(),
            fetcher: shop.pages(
                of: Product.self, numberedFrom: 1, size: 50
            ) { category, number in
                Route(
                    path: "/products",
                    query: ["category": category, "page": number, "per_page": 50])
            })
        let counted = shop.pages(
            in: NumberedPage.self, elements: { $0.products },
            next: { $0.page < $0.pages ? "\($0.page + 1)" : nil }
        ) { (category: String, cursor: PageCursor?) in
            Route(
                path: "/products", query: ["category": category, "page": cursor?.next])
        }
        #expect(try await hits["lamp"].requireData().count == 1)
        #expect(try await numbered["lamps"].requireData().count == 1)
        #expect(await numbered["lamps"].requestNextData() == .noPage)
        #expect(try await counted.fetch(param: "lamps").nextKey == nil)
    }

    @Test func `pages of another format`() async throws {
        let transport = MemoryTransport { _ in
            .init(headers: [("Content-Type", "text/plain"), ("X-Next", "2")], body: Data("one\ntwo".utf8))
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let lines = shop.pages(parsing: { response in
            let text = String(decoding: response.value, as: UTF8.self)
            return Page(
                text.split(separator: "\n").map(String.init),
                nextKey: response.fields["X-Next"])
        }) { (log: String, cursor: PageCursor?) in
            Route(
                path: "/logs/\(log)", query: ["from": cursor?.next],
                options: RouteOptions(accept: .plainText))
        }
        let page = try await lines.fetch(param: "sales")
        #expect(page.elements == ["one", "two"] && page.nextKey == "2")
    }
}
