internal import Foundation
internal import RemoteRouting
internal import Testing
import RemoteRoutingTesting

// The examples of the article on connections and of the doc comments beside it.

struct ConnectionSnippets {
    private struct User: Decodable {
        var id: Int
    }

    @Test func `metrics are read, proxies are named, and HTTP 2 is turned off`() async throws {
        let api = RemoteHost("api.example.com", transport: MemoryTransport { _ in .json(#"{"id": 7}"#) })
        let response: RemoteResponse<User> = try await api.response(
            for: Route(path: "/user"))
        if let metrics = response.metrics {
            // From the request to the first byte of the response.
            let wait = metrics.firstByte ?? .zero
            // As it was on the wire.
            let size = metrics.receivedBodyBytes ?? 0
            print("\(metrics.version?.rawValue ?? "HTTP"), \(wait), \(size) bytes")
        }
        #expect(response.metrics?.decodedBodyBytes == 9)

        let secret = "secret"
        let password = ProxyOptions.Credentials(user: "ada", password: secret)
        let inside = api.with {
            $0.proxy = .http("proxy.example.com", port: 3128, credentials: password)
        }
        let hidden = api.with { $0.proxy = .socks5("127.0.0.1", port: 9050) }
        let direct = api.with { $0.proxy = .none }
        let plain = api.with { $0.allowsHTTP2 = false }
        #expect([inside, hidden, direct, plain].map(\.allowsHTTP2) == [true, true, true, false])
        #expect(
            "\(inside.proxy), \(hidden.proxy)" == "HTTP proxy at port 3128 of proxy.example.com, SOCKS 5 proxy at port 9050 of 127.0.0.1")
        #expect(direct.proxy == .none && plain.proxy == .system)
    }

    @Test func `metrics describe themselves, and a proxy needs no credentials`() async throws {
        let api = RemoteHost("api.example.com", transport: MemoryTransport { _ in .json(#"{"id": 7}"#) })
        let response: RemoteResponse<User> = try await api.response(
            for: Route(path: "/user"))
        // Prints “HTTP/2, reused connection, first byte after 11 ms, 12 ms”.
        if let metrics = response.metrics { print(metrics) }
        #expect(response.value.id == 7)

        let inside = api.with { $0.proxy = .http("proxy.example.com", port: 3128) }
        let direct = api.with { $0.proxy = .none }
        #expect(inside.proxy != direct.proxy)
    }
}
