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
        //: ChoosingConnections.md: let response
        #expect(response.metrics?.decodedBodyBytes == 9)

        let secret = "secret"
        //: ChoosingConnections.md: let password
        //: ChoosingConnections.md: let plain = api
        #expect([inside, hidden, direct, plain].map(\.allowsHTTP2) == [true, true, true, false])
        #expect(
            "\(inside.proxy), \(hidden.proxy)" == "HTTP proxy at port 3128 of proxy.example.com, SOCKS 5 proxy at port 9050 of 127.0.0.1")
        #expect(direct.proxy == .none && plain.proxy == .system)
    }

    @Test func `metrics describe themselves, and a proxy needs no credentials`() async throws {
        let api = RemoteHost("api.example.com", transport: MemoryTransport { _ in .json(#"{"id": 7}"#) })
        //: ExchangeMetrics.swift
        #expect(response.value.id == 7)

        //: ProxyOptions.swift
        #expect(inside.proxy != direct.proxy)
    }

    @Test func `a Unix domain socket replaces TCP`() {
        //: RemoteHost.swift: let docker
        #expect(docker.unixSocketPath == "/var/run/docker.sock" && docker.configuration.scheme == .http)
    }
}
