#if os(Linux)
import Foundation
import Glibc
import LoopbackOrigin
import RemoteHTTP
import StoreCore
import Testing
import Trials

/// Connections with one local port, which Linux gives to several connections with different destinations.
@Suite(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct LocalPortTests {
    /// The end of an exchange.
    private final class Outcome: WireReceiver {
        let end = WatchedState<Result<Data, WireFailure>?>(nil)
        private let body = Lock(Data())

        func sent(_ total: Int64) {}
        func failed(_ failure: WireFailure) { end.update { $0 = .failure(failure) } }
        func received(_ head: WireHead?, _ piece: Data, isComplete: Bool) -> WireFlow {
            let body = body.withLock { body in
                body += piece
                return body
            }
            if isComplete { end.update { $0 = .success(body) } }
            return .goesOn
        }
    }

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
            var request = WireRequest(url: "https://127.0.0.1:\(bench.front.port)/x", method: "GET", mayRepeat: true)
            var tls = WireTLS()
            tls.authorities = try Data(contentsOf: bench.certificates.authority)
            request.tls = tls
            request.proxy = .server(
                WireProxy.Server(url: "http://127.0.0.\(proxy === proxies[0] ? 1 : 2):\(proxy.port)", user: user, password: "secret"))
            request.localPort = Int32(port)
            let outcome = Outcome()
            _ = engine.start(request, outcome)
            #expect(try await outcome.end.wait { $0 }.get() == Data("GET /x 0".utf8))
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
