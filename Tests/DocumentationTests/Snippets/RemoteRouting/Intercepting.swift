internal import Foundation
internal import RemoteRouting
internal import StoreCore
import RemoteRoutingTesting
internal import Testing

// The examples of the article on interceptors, tags and logs, and of the doc comments beside them.

//: Intercepting.md: enum ScreenName

//: Intercepting.md: struct PreviewHeader

//: Interceptors.swift: struct ScreenField

final class Counts: Sendable {
    let all = Lock<[String: [Int]]>([:])

    func add(_ status: Int, to name: String) { all.withLock { $0[name, default: []].append(status) } }
}

//: Intercepting.md: struct CountingByScreen

struct InterceptingTests {
    private let transport = shopTransport()

    @Test func `an interceptor sees the route`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: Intercepting.md: let preview = shop
        try await preview.send("/products")
        try await preview.send(Route(path: "/products", options: RouteOptions(cachePolicy: .neverStore)))
        #expect(transport.requests.map { $0.fields["X-Preview"] } == ["1", nil])
    }

    @Test func `a field is sent with every request`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        //: Intercepting.md: let versioned
        try await versioned.send("/products")
        #expect(transport.requests.map { $0.fields["X-API-Version"] } == ["2"])
        #expect(transport.requests.map { $0.fields["User-Agent"] } == ["Storehouse"])
    }

    @Test func `tags tell calls apart`() async throws {
        let counts = Counts()
        let log = Printed()
        let shop = RemoteHost("shop.example.com", transport: transport)
            .intercepting(requests: ScreenField()).intercepting(responses: CountingByScreen(counts: counts))
            .logging(to: ExchangeLog { log.add("\($0)") })
        //: Intercepting.md: var options = RouteOptions
        #expect(products == [lamp])
        //: Intercepting.md: #expect(
        #expect(transport.requests.map { $0.fields["X-ScreenName"] } == ["list", "detail"])
        #expect(counts.all.withLock { $0 } == ["list": [200], "detail": [200]])
        let sent = log.lines.filter { $0.hasPrefix("→") }.compactMap { $0.split(separator: "\n").first }
        #expect(sent.last == "→ GET https://shop.example.com/products/lamp [ScreenName: detail]")
    }
}
