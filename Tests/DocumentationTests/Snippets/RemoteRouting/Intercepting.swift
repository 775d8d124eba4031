internal import Foundation
internal import RemoteRouting
internal import StoreCore
import RemoteRoutingTesting
internal import Testing

// The examples of the article on interceptors, tags and logs, and of the doc comments beside them.

enum ScreenName: LoggedRouteTagKey { typealias Value = String }
enum Experiment: RouteTagKey { typealias Value = Int }

struct PreviewHeader: RequestInterceptor {
    func intercept(_ request: inout HTTPRequest) async throws {
        guard request.route?.options.cachePolicy != .neverStore else { return }
        try request.fields.set("X-Preview", "1")
    }
}

struct ScreenField: RequestInterceptor {
    func intercept(_ request: inout HTTPRequest) async throws {
        if let screen = request.tags[ScreenName.self] {
            try request.fields.set("X-ScreenName", screen)
        }
    }
}

final class Counts: Sendable {
    let all = Lock<[String: [Int]]>([:])

    func add(_ status: Int, to name: String) { all.withLock { $0[name, default: []].append(status) } }
}

struct CountingByScreen: ResponseInterceptor {
    let counts: Counts

    func intercept(
        _ response: inout HTTPResponse, to request: HTTPRequest
    ) async throws {
        counts.add(
            response.status, to: request.tags[ScreenName.self] ?? "other")
    }
}

struct InterceptingTests {
    private let transport = shopTransport()

    @Test func `an interceptor sees the route`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let preview = shop.intercepting(requests: PreviewHeader())
        try await preview.send("/products")
        try await preview.send(Route(path: "/products", options: RouteOptions(cachePolicy: .neverStore)))
        #expect(transport.requests.map { $0.fields["X-Preview"] } == ["1", nil])
    }

    @Test func `a field is sent with every request`() async throws {
        let shop = RemoteHost("shop.example.com", transport: transport)
        let versioned = shop.with { $0.defaults.append("X-API-Version", "2") }
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
        var options = RouteOptions()
        options.tags[ScreenName.self] = "list"
        let list = Route(path: "/products", options: options)
        let products: [Product] = try await shop.send(list)
        let lamp: Product = try await shop.send(
            .product("lamp").tagged(ScreenName.self, "detail")
                .tagged(Experiment.self, 2))
        #expect(products == [lamp])
        #expect(
            transport.requests.map { $0.tags[ScreenName.self] } == ["list", "detail"])
        #expect(transport.requests.map { $0.fields["X-ScreenName"] } == ["list", "detail"])
        #expect(counts.all.withLock { $0 } == ["list": [200], "detail": [200]])
        let sent = log.lines.filter { $0.hasPrefix("→") }.compactMap { $0.split(separator: "\n").first }
        #expect(sent.last == "→ GET https://shop.example.com/products/lamp [ScreenName: detail]")
    }
}
