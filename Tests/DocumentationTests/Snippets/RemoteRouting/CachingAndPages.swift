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

//: CachingAndPages.md: struct Quoted

struct SearchResult: Decodable, Sendable {
    var items: [Product]
}

struct NumberedPage: Decodable, Sendable {
    var products: [Product]
    var page: Int
    var pages: Int
}

//: CachingAndPages.md: struct ProductFetcher

struct CachingAndPagesTests {
    @Test func `a route is a store's fetcher`() async throws {
        let shop = RemoteHost("shop.example.com", transport: shopTransport())
        //: CachingAndPages.md: let products
        #expect(fetched.name == "Lamp")
    }

    @Test func `linked pages are followed`() async throws {
        let transport = MemoryTransport { request in
            request.url.query()?.contains("page=1") == true
                ? .json(#"[{"id": "1", "name": "One"}]"#).adding("Link", #"</products?category=lamps&page=2>; rel="next""#)
                : .json(#"[{"id": "2", "name": "Two"}]"#)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: CachingAndPages.md: let catalog
        _ = try await catalog["lamps"].requireData()
        //: CachingAndPages.md: await catalog["lamps"]
        #expect(try await catalog["lamps"].requireData().map(\.name) == ["One", "Two"])
    }

    @Test func `cursors are followed`() async throws {
        let transport = MemoryTransport { request in
            request.url.query() == "after=c2"
                ? .json(#"{"messages": []}"#) : .json(#"{"messages": [], "older": "c2"}"#)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: CachingAndPages.md: let messages
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
        //: CachingAndPages.md: let lasting = Store
        _ = try await lasting["lamp"].requireData()
        #expect(try await lasting["lamp"].requireData().name == "Lamp")
        await #expect(throws: RemoteError.self) { try await lasting["lamp"].requireData() }
    }

    @Test func `pictures and bytes are kept as they are`() async throws {
        let png = Data([0x89, 0x50, 0x4E, 0x47])
        let shop = RemoteHost(
            "shop.example.com", transport: MemoryTransport { _ in .init(headers: [("Content-Type", "image/png")], body: png) })
        //: CachingAndPages.md: let pictures
        //: CachingAndPages.md: let files = Store
        #expect(try await pictures["lamp"].requireData().bytes == png)
        #expect(try await files["lamp"].requireData() == png)
    }

    @Test func `a rate limit is kept with the content`() async throws {
        let transport = MemoryTransport { _ in .json(Self.lamp).adding("X-RateLimit-Remaining", "41") }
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: CachingAndPages.md: let quoted = Store
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
        //: CachingAndPages.md: let hits = PaginationStore
        //: CachingAndPages.md: let numbered
        //: CachingAndPages.md: let counted = shop
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
        //: CachingAndPages.md: let lines = shop
        let page = try await lines.fetch(param: "sales")
        #expect(page.elements == ["one", "two"] && page.nextKey == "2")
    }
}
