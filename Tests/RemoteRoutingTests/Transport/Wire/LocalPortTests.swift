#if os(Linux)
import Foundation
import Glibc
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP

/// Connections with one local port, which Linux gives to several connections with different destinations.
@Suite(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct LocalPortTests {
    /// Two proxies with a tunnel each, of different users and from the same local port.
    private struct Tunnels {
        let bench: TrustBench
        let proxies: [LoopbackProxy]
        private let engine: WireEngine

        init() async throws {
            bench = try TrustBench()
            let first = try LoopbackProxy()
            // Only the address differs.
            proxies = [first, try LoopbackProxy(host: 2, port: UInt16(first.port))]
            engine = try WireEngine(
                try WireLibrary(path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]), width: 16, connections: 16)
            let port = try Tunnels.freePort()
            try await send("ada", through: proxies[0], from: port)
            try await send("bob", through: proxies[1], from: port)
        }

        func send(_ user: String, through proxy: LoopbackProxy, from port: UInt16 = 0) async throws {
            var connection = ConnectionOptions()
            connection.tls.authorities = try TLSOptions.Authorities(contentsOf: bench.certificates.authority)
            connection.proxy = .http(
                "127.0.0.\(proxy === proxies[0] ? 1 : 2)", port: Int(proxy.port),
                credentials: ProxyOptions.Credentials(user: user, password: "secret"))
            let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil), source: .wire)
            let url = try #require(URL(string: "https://127.0.0.1:\(bench.front.port)/x"))
            try engine.start(url, over: connection, from: port, exchange)
            #expect(try await exchange.collect() == Data("GET /x 0".utf8))
        }

        /// Returns the number of tunnels of a user.
        func tunnels(of user: String, through proxy: LoopbackProxy) -> Int {
            let field = "Proxy-Authorization: Basic \(Data("\(user):secret".utf8).base64EncodedString())\r\n"
            return proxy.requests.count { $0.contains(field) }
        }

        /// Returns a free port that the system gives to no other connection.
        private static func freePort() throws -> UInt16 {
            for _ in 0..<1000 {
                let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
                defer { close(made) }
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                let port = UInt16.random(in: 20_000..<32_000)
                address.sin_port = port.bigEndian
                let isFree = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        bind(made, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                    }
                }
                if isFree { return port }
            }
            throw POSIXError(.EADDRNOTAVAIL)
        }
    }

    @Test func `W11: a tunnel is of no use to the user of a later connection with the same local port`() async throws {
        let tunnels = try await Tunnels()
        try await tunnels.send("bob", through: tunnels.proxies[0])
        #expect(tunnels.tunnels(of: "bob", through: tunnels.proxies[0]) == 1)
        try await tunnels.send("ada", through: tunnels.proxies[1])
        #expect(tunnels.tunnels(of: "ada", through: tunnels.proxies[1]) == 1)
    }

    @Test func `W11: a tunnel stays with its user although a later connection has the same local port`() async throws {
        let tunnels = try await Tunnels()
        for _ in 0..<3 {
            try await tunnels.send("ada", through: tunnels.proxies[0])
            try await tunnels.send("bob", through: tunnels.proxies[1])
        }
        #expect(tunnels.proxies.map(\.requests.count) == [1, 1])
    }
}
#endif
