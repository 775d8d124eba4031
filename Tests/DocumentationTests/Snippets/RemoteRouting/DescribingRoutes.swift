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

//: DescribingRoutes.md: enum ShopRoute

//: DescribingRoutes.md: extension HostConfiguration

//: DescribingRoutes.md: extension Routable

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
        //: DescribingRoutes.md: let shop = RemoteHost
        #expect(lamp.name == "Lamp")
        #expect(transport.requests.map { $0.url.absoluteString } == ["https://shop.example.com/products/lamp%2F1"])
    }

    @Test func `parameters go where the method wants them`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: DescribingRoutes.md: let lamps: [Product]
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
        //: DescribingRoutes.md: let filters: Parameters
        let lamps: [Product] = try await shop.send("/products", parameters: filters)
        #expect(lamps.count == 1)
        #expect(transport.requests.first?.url.query() == "tag=new&tag=bright&in_stock=true")
    }

    @Test func `a form brings a file`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let photo = temporaryURL("png")
        try Data([1, 2, 3]).write(to: photo)
        //: DescribingRoutes.md: let form: MultipartForm
        #expect(transport.requests.first?.fields["Content-Type"]?.hasPrefix("multipart/form-data; boundary=") == true)
    }

    @Test func `a route without a type of its own has a name`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: DescribingRoutes.md: let lamp: Product
        #expect(newest == [lamp])
        #expect(transport.requests.last?.url.absoluteString == "https://shop.example.com/products?sort=newest&per_page=10")
    }

    @Test func `a list is written as the route says`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: DescribingRoutes.md: let style = RouteOptions
        try await shop.send(tagged)
        #expect(transport.requests.first?.url.query(percentEncoded: true) == "tag=new%2Cbright")
    }

    @Test func `an address is a configuration`() async throws {
        let address = try #require(URL(string: "https://preview.example.com:8443/v2"))
        //: DescribingRoutes.md: let configuration
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
