#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP

/// Connections that were made with secrets, which not every libcurl compares before it uses a connection again.
@Suite(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct OwnedConnectionTests {
    private static let get = Route(path: "/x")
    private static let right = "Basic " + Data("ada:right".utf8).base64EncodedString()

    @Test(arguments: [TLSFront.Settings.Version.tls12, .tls13])
    func `W8: a connection with a client certificate is not reused without its key`(_ version: TLSFront.Settings.Version) async throws {
        let bench = try TrustBench.demanding(version)
        let transport = try RealTransport.curl.make()
        func host(key: URL, password: String? = nil) throws -> RemoteHost {
            try bench.host(bench.client(key: key, password: password), over: transport)
        }
        let encrypted = bench.certificates.encryptedKey
        let owner = try host(key: encrypted, password: "geheim")
        let others = [try host(key: bench.certificates.key(.good)), try host(key: encrypted, password: "wrong")]
        for round in 1...3 {
            #expect(try await owner.data(for: Self.get) == Data("GET /x 0".utf8))
            for other in others {
                #expect(try await remoteError { try await other.send("/secret") }.code == .invalidTLSOptions, "round \(round)")
            }
        }
        #expect(bench.origin.requests(to: "/secret").isEmpty)
    }

    @Test func `W8: a pin that differs in the case of a letter is a different pin`() async throws {
        let bench = try TrustBench()
        let transport = try RealTransport.curl.make()
        let pin = try bench.certificates.pin(.good)
        var letters = Array("\(pin)".dropFirst("sha256/".count))
        // Not the last characters, because some of their bits are in no byte.
        let index = try #require(letters.prefix(40).firstIndex { $0.isLetter })
        letters[index] = Character(letters[index].isUppercase ? letters[index].lowercased() : letters[index].uppercased())
        let wrong = try TLSOptions.Pin(String(letters))
        #expect(wrong != pin)
        let pinned = try bench.host(bench.options { $0.pins = [pin] }, over: transport)
        let mistaken = try bench.host(bench.options { $0.pins = [wrong] }, over: transport)
        for round in 1...3 {
            #expect(try await pinned.data(for: Self.get) == Data("GET /x 0".utf8))
            #expect(try await remoteError { try await mistaken.send("/secret") }.code == .pinMismatch, "round \(round)")
        }
        #expect(bench.origin.requests(to: "/secret").isEmpty)
    }

    @Test func `W11: a tunnel of one proxy user is not reused for another user`() async throws {
        let bench = try TrustBench()
        let proxy = try LoopbackProxy()
        let direct = try bench.host()
        for _ in 0..<2 {
            for user in ["ada:one", "ada:two", "bob:one", nil] {
                let parts = user?.split(separator: ":").map(String.init)
                let credentials = parts.map { ProxyOptions.Credentials(user: $0[0], password: $0[1]) }
                let host = direct.with { $0.proxy = .http("127.0.0.1", port: proxy.port, credentials: credentials) }
                let before = proxy.requests.count
                #expect(try await host.data(for: Self.get) == Data("GET /x 0".utf8))
                // A tunnel of its own, or one that was made for it.
                for head in proxy.requests.dropFirst(before) {
                    let field = user.map { "Proxy-Authorization: Basic \(Data($0.utf8).base64EncodedString())\r\n" }
                    #expect(field.map { head.contains($0) } ?? !head.contains("Proxy-Authorization"))
                }
            }
        }
        #expect(Set(proxy.requests.flatMap { $0.split(separator: "\r\n").filter { $0.hasPrefix("Proxy-Authorization") } }).count == 3)
        #expect(proxy.requests.contains { !$0.contains("Proxy-Authorization") })
    }

    @Test func `W9, W11: wrong credentials reach the proxy and are refused, even if a tunnel with the right ones is open`() async throws {
        let bench = try TrustBench()
        let proxy = try LoopbackProxy(wanting: OwnedConnectionTests.right)
        let direct = try bench.host()
        @Sendable func host(_ password: String) -> RemoteHost { direct.with { $0.proxy = proxy.options(password) } }
        for round in 1...3 {
            #expect(try await host("right").data(for: Self.get) == Data("GET /x 0".utf8))
            let error = try await remoteError { try await host("wrong").send("/secret") }
            #expect(error.code == .proxyUnauthorized && !error.mayHaveArrived, "round \(round)")
        }
        // The same holds for concurrent exchanges.
        let codes: [RemoteError.Code?] = try await atOnce(60) { number in
            if number % 2 == 1 { return try await remoteError { try await host("wrong").send("/secret") }.code }
            _ = try await host("right").data(for: Self.get)
            return nil
        }
        #expect(codes.count { $0 == nil } == 30 && codes.count { $0 == .proxyUnauthorized } == 30, "\(codes)")
        #expect(bench.origin.requests(to: "/secret").isEmpty)
    }

    @Test(.enabled(if: NginxServer.problem == nil, "\(NginxServer.problem ?? "")"))
    func `W9, W11: streams of one proxy user do not go through the tunnel of another user`() async throws {
        let server = try await NginxServer()
        let proxy = try LoopbackProxy(wanting: OwnedConnectionTests.right)
        let direct = try secureHost(server.port) { $0.retry = .never }
        @Sendable func host(_ password: String) -> RemoteHost { direct.with { $0.proxy = proxy.options(password) } }
        var connections: Set<Data> = []
        for _ in 0..<3 {
            for _ in 0..<10 { connections.insert(try await host("right").data(for: Self.get)) }
            let codes = try await atOnce(10) { _ in try await remoteError { try await host("wrong").send("/secret") }.code }
            #expect(codes == Array(repeating: .proxyUnauthorized, count: 10))
        }
        // The one tunnel carries on.
        #expect(connections.count == 1)
    }

    @Test func `W11: SOCKS users share no connection`() async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let proxy = try LoopbackProxy(wanting: "ada:right")
        let direct = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for _ in 0..<3 {
            let right = direct.with {
                $0.proxy = .socks5("127.0.0.1", port: proxy.port, credentials: .init(user: "ada", password: "right"))
            }
            #expect(try await right.data(for: Self.get) == Data("/x".utf8))
            for wrong in [ProxyOptions.Credentials(user: "ada", password: "Right"), .init(user: "ADA", password: "right"), nil] {
                let other = direct.with { $0.proxy = .socks5("127.0.0.1", port: proxy.port, credentials: wrong) }
                #expect(try await remoteError { try await other.send("/secret") }.code == .proxyUnauthorized)
            }
        }
        #expect(origin.requests(to: "/secret").isEmpty && proxy.requests.count == 1)
    }
}

extension LoopbackProxy {
    fileprivate func options(_ password: String) -> ProxyOptions {
        .http("127.0.0.1", port: port, credentials: .init(user: "ada", password: password))
    }
}

/// Connections with one local port, which Linux gives to several connections with different destinations.
@Suite(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct LocalPortTests {
    private let bench: TrustBench
    /// Two proxies, of which only the address differs.
    private let proxies: [LoopbackProxy]
    private let engine: WireEngine

    init() throws {
        bench = try TrustBench()
        let first = try LoopbackProxy()
        proxies = [first, try LoopbackProxy(host: 2, port: UInt16(first.port))]
        engine = try WireEngine(
            try WireLibrary(path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]), width: 16, connections: 16)
    }

    private func send(_ user: String, through index: Int, from port: UInt16 = 0) async throws {
        var connection = ConnectionOptions()
        connection.tls.authorities = try TLSOptions.Authorities(contentsOf: bench.certificates.authority)
        connection.proxy = .http(
            "127.0.0.\(index + 1)", port: proxies[index].port, credentials: ProxyOptions.Credentials(user: user, password: "secret"))
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil), source: .wire)
        let url = try #require(URL(string: "https://127.0.0.1:\(bench.front.port)/x"))
        try engine.start(url, over: connection, from: port, exchange)
        #expect(try await exchange.collect() == Data("GET /x 0".utf8))
    }

    private func tunnels(of user: String, through index: Int) -> Int {
        let field = "Proxy-Authorization: Basic \(Data("\(user):secret".utf8).base64EncodedString())\r\n"
        return proxies[index].requests.count { $0.contains(field) }
    }

    /// Returns a free port that the system gives to no other connection.
    private func freePort() throws -> UInt16 {
        for _ in 0..<1000 {
            let made = RawConnection.makeSocket()
            defer { close(made) }
            let (isFree, port) = withLoopbackAddress(port: .random(in: 20_000..<32_000)) { bind(made, $0, $1) == 0 }
            if isFree { return port }
        }
        throw POSIXError(.EADDRNOTAVAIL)
    }

    @Test func `W11: a tunnel stays with its user although a later connection has the same local port`() async throws {
        let port = try freePort()
        try await send("ada", through: 0, from: port)
        try await send("bob", through: 1, from: port)
        for _ in 0..<3 {
            try await send("ada", through: 0)
            try await send("bob", through: 1)
        }
        #expect(proxies.map(\.requests.count) == [1, 1])
        // The user of the other connection cannot use it.
        try await send("bob", through: 0)
        #expect(tunnels(of: "bob", through: 0) == 1)
        try await send("ada", through: 1)
        #expect(tunnels(of: "ada", through: 1) == 1)
    }
}
#endif
