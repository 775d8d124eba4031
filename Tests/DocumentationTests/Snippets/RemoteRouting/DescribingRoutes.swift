internal import Foundation
internal import RemoteRouting
internal import Testing
internal import Trials
import RemoteRoutingTesting

struct NewOrder: Codable, Sendable {
    var product: String
    var count: Int
}

struct Product: Codable, Hashable, Sendable {
    var id: String
    var name: String
}

enum ShopRoute: Routable {
    case products(category: String, page: Int)
    case product(id: String)
    case order(NewOrder)

    var path: RoutePath {
        switch self {
        case .products: "/products"
        case .product(let id): "/products/\(id)"
        case .order: "/orders"
        }
    }

    var method: HTTPMethod {
        switch self {
        case .products, .product: .get
        case .order: .post
        }
    }

    var query: Parameters {
        guard case .products(let category, let page) = self else { return [:] }
        return ["category": category, "page": page]
    }

    var body: RouteBody {
        guard case .order(let order) = self else { return .none }
        return .json(order)
    }
}

extension HostConfiguration {
    static let shop: HostConfiguration = "shop.example.com"
    static let shopPreview: HostConfiguration =
        "https://preview.example.com:8443/v2"
    static let localShop = HostConfiguration(
        "localhost", scheme: .http, port: 8080, basePath: "/v2")
}

extension Routable where Self == Route {
    static func product(_ id: String) -> Route {
        Route(path: "/products/\(id)")
    }
    static func newest(_ count: Int) -> Route {
        Route(path: "/products", query: ["sort": "newest", "per_page": count])
    }
}

/// A shop that has every product, and twice.
func shopTransport() -> MemoryTransport {
    MemoryTransport { request in
        let product = #"{"id": "lamp", "name": "Lamp"}"#
        return request.url.path.hasSuffix("products") && request.method == .get ? .json("[\(product)]") : .json(product)
    }
}

struct DescribingRoutesTests {
    private let transport = shopTransport()

    @Test func `an identifier cannot leave its segment`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let lamp: Product = try await shop.send(ShopRoute.product(id: "lamp/1"))
        #expect(lamp.name == "Lamp")
        #expect(transport.requests.map { $0.url.absoluteString } == ["https://shop.example.com/products/lamp%2F1"])
    }

    @Test func `parameters go where the method wants them`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let lamps: [Product] = try await shop.send(
            "/products", parameters: ["category": "lamps", "page": 1])
        let created: Product = try await shop.send(
            "/products", method: .post, parameters: ["name": "Lamp", "watts": 12.5])
        #expect(lamps == [created])
        #expect(transport.requests.first?.url.query() == "category=lamps&page=1")
        guard case .data(let body)? = transport.requests.last?.body else {
            Issue.record("the parameters of a POST are not in its body")
            return
        }
        #expect(String(decoding: body, as: UTF8.self) == #"{"name":"Lamp","watts":12.5}"#)
    }

    @Test func `what is nil is left out`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let price: Int? = nil
        let filters: Parameters = [
            "tag": ["new", "bright"], "max_price": price, "in_stock": true,
        ]
        let lamps: [Product] = try await shop.send("/products", parameters: filters)
        #expect(lamps.count == 1)
        #expect(transport.requests.first?.url.query() == "tag=new&tag=bright&in_stock=true")
    }

    @Test func `a form brings a file`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let photo = temporaryURL("png")
        try Data([1, 2, 3]).write(to: photo)
        let form: MultipartForm = [
            .text("title", "Sunrise"),
            .file("photo", at: photo),
        ]
        try await shop.send(
            Route(path: "/photos", method: .post, body: .multipart(form)))
        #expect(transport.requests.first?.fields["Content-Type"]?.hasPrefix("multipart/form-data; boundary=") == true)
    }

    @Test func `a route without a type of its own has a name`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let lamp: Product = try await shop.send(.product("lamp"))
        let newest: [Product] = try await shop.send(.newest(10))
        #expect(newest == [lamp])
        #expect(transport.requests.last?.url.absoluteString == "https://shop.example.com/products?sort=newest&per_page=10")
    }

    @Test func `a list is written as the route says`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let style = RouteOptions(
            parameterStyle: ParameterStyle(lists: .commas, dates: .iso8601))
        // The query is tag=new%2Cbright.
        let tagged = Route(
            path: "/products", query: ["tag": ["new", "bright"]], options: style)
        try await shop.send(tagged)
        #expect(transport.requests.first?.url.query(percentEncoded: true) == "tag=new%2Cbright")
    }

    @Test func `an address is a configuration`() async throws {
        let address = try #require(URL(string: "https://preview.example.com:8443/v2"))
        let configuration = try HostConfiguration(url: address)
        let custom = RemoteHost(configuration, transport: transport)
        try await custom.send("/products")
        #expect(transport.requests.first?.url.absoluteString == "https://preview.example.com:8443/v2/products")
        #expect(configuration == .shopPreview)
    }

    @Test func `an environment is one of several`() async throws {
        let local = RemoteHost(.localShop, transport: transport)
        let lamp: Product = try await local.send(ShopRoute.product(id: "lamp"))
        #expect(lamp.id == "lamp")
        #expect(transport.requests.map { $0.url.absoluteString } == ["http://localhost:8080/v2/products/lamp"])
        #expect(HostConfiguration.shop.scheme == .https)
    }
}
