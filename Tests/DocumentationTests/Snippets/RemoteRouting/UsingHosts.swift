internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import StoreCore
internal import Testing

// What stands in the articles on authorizing, errors, caching, streams and testing.

struct ShopToken: BearerToken, Codable {
    var accessToken: String
    var refreshToken: String
}

struct MessagePage: Codable, Sendable {
    var messages: [Message]
    var older: String?
    var newer: String?
}

struct AuthorizingTests {
    @Test func `each kind of credentials is written as it should be`() async throws {
        let transport = shopTransport()
        let shop = RemoteHost("shop.example.com", transport: transport)
        let (password, token, key) = ("secret", "abc", "xyz")
        let basic = shop.authorized(by: .basic(user: "ada", password: password))
        let fixed = shop.authorized(by: .bearer(token))
        let keyed = shop.authorized(by: .custom { try $0.set("X-API-Key", key) })
        for host in [basic, fixed, keyed] { try await host.send("/products") }
        #expect(transport.requests.map { $0.fields["Authorization"] } == ["Basic YWRhOnNlY3JldA==", "Bearer abc", nil])
        #expect(transport.requests.last?.fields["X-API-Key"] == "xyz")
    }

    @Test func `a token is refreshed once`() async throws {
        let transport = MemoryTransport { request in
            if request.url.path == "/tokens" { return .json(#"{"accessToken": "new", "refreshToken": "next"}"#) }
            return request.fields["Authorization"] == "Bearer new" ? .json("[]") : .status(401)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let saved = ShopToken(accessToken: "old", refreshToken: "first")
        let signedIn = shop.authorized(
            by: .bearer(saved) { current, unauthenticated in
                try await unauthenticated.send(
                    "/tokens", method: .post,
                    parameters: ["refresh": current.refreshToken])
            })
        let products: [Product] = try await signedIn.send("/products")
        #expect(products.isEmpty)
        #expect(transport.requests.map(\.url.path) == ["/products", "/tokens", "/products"])
    }
}

/// Where an app keeps tokens.
final class Keychain: Sendable {
    let saved = Lock<[ShopToken]>([])

    func save(_ token: ShopToken) { saved.withLock { $0.append(token) } }
}

extension AuthorizingTests {
    @Test func `each new token is saved, and one that was got by signing in is used`() async throws {
        let transport = MemoryTransport { request in
            if request.url.path == "/tokens" { return .json(#"{"accessToken": "new", "refreshToken": "next"}"#) }
            return request.fields["Authorization"] == "Bearer old" ? .status(401) : .json("[]")
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let keychain = Keychain()
        let saved = ShopToken(accessToken: "old", refreshToken: "first")
        let tokens = RefreshingTokens(
            saved, onRefresh: { keychain.save($0) }
        ) { current, unauthenticated in
            try await unauthenticated.send(
                "/tokens", method: .post, parameters: ["refresh": current.refreshToken])
        }
        let signedIn = shop.authorized(by: .bearer(tokens))
        try await signedIn.send("/products")
        let fresh = ShopToken(accessToken: "fresh", refreshToken: "last")
        tokens.replace(by: fresh)
        try await signedIn.send("/products")
        #expect(keychain.saved.withLock { $0.map(\.accessToken) } == ["new"])
        #expect(
            transport.requests.map { $0.fields["Authorization"] } == ["Bearer old", nil, "Bearer new", "Bearer fresh"])
    }
}

final class ShopSession: Sendable {
    let host: RemoteHost
    let products: Store<String, Product>
    private let scope = CacheScope()

    init(_ token: ShopToken, at shop: RemoteHost) {
        host = shop.authorized(
            by: .bearer(token) { current, unauthenticated in
                try await unauthenticated.send(
                    "/tokens", method: .post,
                    parameters: ["refresh": current.refreshToken])
            })
        products = Store(
            cacher: MemoryCacher(),
            fetcher: host.fetcher { ShopRoute.product(id: $0) }, scope: scope)
    }

    static func signIn(
        user: String, password: String, at shop: RemoteHost
    ) async throws -> ShopSession {
        let token: ShopToken = try await shop.send(
            "/tokens", method: .post,
            parameters: ["user": user, "password": password])
        return ShopSession(token, at: shop)
    }

    /// Clears the data of this user; the next sign-in creates a new session.
    func signOut() async throws {
        try await scope.clear()
    }
}

extension AuthorizingTests {
    @Test func `a signed-in user gets private content, and signing out leaves nothing behind`() async throws {
        let transport = MemoryTransport { request in
            if request.url.path == "/tokens" { return .json(#"{"accessToken": "ada's", "refreshToken": "next"}"#) }
            return request.fields["Authorization"] == "Bearer ada's" ? .json(#"{"id": "lamp", "name": "Lamp"}"#) : .status(401)
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let session = try await ShopSession.signIn(user: "ada", password: "secret", at: shop)
        #expect(try await session.products["lamp"].requireData().name == "Lamp")
        try await session.signOut()
        await #expect(throws: StoreError.self) { try await session.products["lamp"].requireData(from: .cache) }
        #expect(transport.requests.map(\.url.path) == ["/tokens", "/products/lamp"])
    }
}

struct ErrorsAndRetriesTests {
    @Test func `a missing thing is an error that says so`() async throws {
        let printed = Printed()
        let shop = RemoteHost("shop.example.com", transport: MemoryTransport { _ in .status(404) })
        try await Printed.$page.withValue(printed) {
            do {
                let lamp: Product = try await shop.send(ShopRoute.product(id: "none"))
                print(lamp.name)
            } catch let error as RemoteError where error.status == 404 {
                print("there is no such lamp")
            } catch let error as RemoteError {
                print(error.problem?.title ?? error.message)
            }
        }
        #expect(printed.lines == ["there is no such lamp"])
    }

    @Test func `an idempotency key makes an order repeatable, and stays the same`() async throws {
        let transport = MemoryTransport { request in .status(503) }
        var shop = RemoteHost("shop.example.com", transport: transport)
        shop.retry = .exponential(attempts: 2, base: .milliseconds(1))
        let order = NewOrder(product: "lamp", count: 1)
        let once = Route(
            path: "/orders", method: .post, body: .json(order),
            options: RouteOptions(idempotencyKey: .unique))
        await #expect(throws: RemoteError.self) { try await shop.send(once) as Void }
        let keys = transport.requests.map { $0.fields["Idempotency-Key"] }
        #expect(keys.count == 2 && keys[0] != nil && keys[0] == keys[1])
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
        #expect(result == .modified(Product(id: "lamp", name: "Lamp"), .fresh(for: .seconds(60)), Validator(entityTag: "\"v1\"")))
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

struct PropertyListParser: ResponseParser {
    var mediaTypes: [MimeType] { [.propertyList] }

    func parse<Value: Decodable>(
        _ response: RemoteResponse<Data>, as type: Value.Type
    ) throws -> Value {
        try PropertyListDecoder().decode(type, from: response.value)
    }
}

struct Envelope<Value: Decodable>: Decodable {
    var data: Value
}

struct EnvelopeParser: ResponseParser {
    var mediaTypes: [MimeType] { [.json] }

    func parse<Value: Decodable>(
        _ response: RemoteResponse<Data>, as type: Value.Type
    ) throws -> Value {
        let decoder = JSONDecoder()
        return try decoder.decode(Envelope<Value>.self, from: response.value)
            .data
    }
}

struct ParsingResponsesTests {
    struct Settings: Codable {
        var theme: String
    }

    @Test func `property lists in the place of JSON`() async throws {
        let bodies = [
            "/products/lamp": try PropertyListEncoder().encode(Product(id: "lamp", name: "Lamp")),
            "/settings.plist": try PropertyListEncoder().encode(Settings(theme: "dark")),
        ]
        let transport = MemoryTransport { request in
            .init(headers: [("Content-Type", "application/x-plist")], body: bodies[request.url.path] ?? Data())
        }
        let shop = RemoteHost("shop.example.com", transport: transport).with {
            $0.parser = PropertyListParser()
        }
        let lamp: Product = try await shop.send(ShopRoute.product(id: "lamp"))
        #expect(lamp.name == "Lamp")
        #expect(transport.requests.map { $0.fields["Accept"] } == ["application/x-plist, */*;q=0.1"])
        try await settings(of: RemoteHost("shop.example.com", transport: transport))
    }

    private func settings(of shop: RemoteHost) async throws {
        let route = Route(
            path: "/settings.plist",
            options: RouteOptions(parser: PropertyListParser()))
        let settings: Settings = try await shop.send(route)
        #expect(settings.theme == "dark")
    }

    @Test func `an envelope is taken off`() async throws {
        let transport = MemoryTransport { _ in .json(#"{"data": {"id": "lamp", "name": "Lamp"}}"#) }
        let shop = RemoteHost("shop.example.com", transport: transport).with { $0.parser = EnvelopeParser() }
        #expect(try await shop.send("/products/lamp", as: Product.self).name == "Lamp")
    }
}

struct StreamsAndFilesTests {
    @Test func `lines come as they come`() async throws {
        let printed = Printed()
        let shop = RemoteHost(
            "shop.example.com", transport: MemoryTransport { _ in .init(body: Data("one\ntwo\n".utf8)) })
        try await Printed.$page.withValue(printed) {
            let export = try await shop.bytes(for: Route(path: "/export"))
            for try await line in export.lines() {
                print(line)
            }
        }
        #expect(printed.lines == ["one", "two"])
    }

    @Test func `a file appears whole`() async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/films/:film") { _ in .data(Data("abc".utf8)) }
        let shop = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)))
        let film = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).mp4")
        defer { try? FileManager.default.removeItem(at: film) }
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let printed = Printed()
        try await Printed.$page.withValue(printed) {
            try await shop.download(
                Route(path: "/films/1.mp4"), to: film, sha256: digest
            ) { progress in
                print(progress.fraction ?? 0)
            }
        }
        #expect(try Data(contentsOf: film) == Data("abc".utf8))
    }

    @Test func `events come until the server ends them`() async throws {
        let asked = Lock(0)
        let transport = MemoryTransport { _ in
            let isFirst = asked.withLock { asked in
                asked += 1
                return asked == 1
            }
            guard isFirst else { return .status(204) }
            return .init(headers: [("Content-Type", "text/event-stream")], body: Data("retry: 1\ndata: hello\n\n".utf8))
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let printed = Printed()
        try await Printed.$page.withValue(printed) {
            for try await event in shop.events(for: Route(path: "/changes")) {
                print(event.data)
            }
        }
        #expect(printed.lines == ["hello"])
    }
}

struct TestingWithoutANetworkTests {
    @Test func `a closure answers`() async throws {
        let transport = MemoryTransport { request in
            switch request.url.path {
            case "/products/lamp":
                .json(#"{"id": "lamp", "name": "Lamp"}"#).adding("ETag", #""1""#)
            default: .status(404)
            }
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let lamp: Product = try await shop.send(ShopRoute.product(id: "lamp"))
        #expect(lamp.name == "Lamp")
        #expect(transport.requests.map(\.url.path) == ["/products/lamp"])
    }

    @Test func `an answer may have any header and any bytes`() async throws {
        let bytes = Data([0x89, 0x50, 0x4E, 0x47])
        let picture = MemoryTransport.Response(
            headers: [("Content-Type", "image/png")], body: bytes)
        let shop = RemoteHost("shop.example.com", transport: MemoryTransport { _ in picture })
        let answer = try await shop.dataResponse(for: Route(path: "/lamp.png"))
        #expect(answer.value == bytes && answer.fields["Content-Type"] == "image/png")
    }

    @Test func `answers are given in turn, and then no more`() async throws {
        let transport = MemoryTransport(inTurn: .status(503), .json(#"{"id": 7}"#))
        let host = RemoteHost("api.example.com", transport: transport).with { $0.retry = .never }
        let first = await #expect(throws: RemoteError.self) { try await host.send("/users/7") }
        #expect(first?.status == 503)
        try await host.send("/users/7")
        let last = await #expect(throws: RemoteError.self) { try await host.send("/users/7") }
        #expect(last?.code == .unsupported && last?.description.contains("all 2 responses") == true)
    }
}
