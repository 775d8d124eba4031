import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// The rules for proxies that need no network.
@Suite
struct ProxyOptionTests {
    private static let credentials = ProxyOptions.Credentials(user: "ada", password: "secret")

    @Test func `W11: descriptions, mirrors and dumps contain no credentials`() {
        for options in [
            ProxyOptions.http("proxy.example", port: 3128, credentials: ProxyOptionTests.credentials),
            .socks5("proxy.example", port: 1080, credentials: ProxyOptionTests.credentials),
            .http("ada:secret@proxy.example", port: 1, credentials: ProxyOptionTests.credentials),
        ] {
            let host = RemoteHost("a.example").with { $0.proxy = options }
            let dumps = dumped(host) + dumped(ProxyOptionTests.credentials)
            let text = "\(options) \(String(reflecting: options)) \(String(reflecting: host)) \(dumps)"
            #expect(!text.contains("secret") && !text.contains("ada"), "\(text)")
        }
        #expect("\(ProxyOptions.http("[::1]", port: 3128))" == "HTTP proxy at port 3128 of [::1]")
        #expect("\(ProxyOptions.socks5("proxy.example", port: 1080))" == "SOCKS 5 proxy at port 1080 of proxy.example")
        #expect("\(ProxyOptions.system), \(ProxyOptions.none)" == "the system's proxy, no proxy")
    }

    @Test func `H14, W9, W11: a transport refuses a proxy or a version of HTTP that it cannot use before it sends`() async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let host = try RealTransport.urlSession.host(origin.port)
        let proxies = [ProxyOptions.none, .http("127.0.0.1", port: 1), .socks5("127.0.0.1", port: 1)]
        for changed in proxies.map({ proxy in host.with { $0.proxy = proxy } }) + [host.with { $0.allowsHTTP2 = false }] {
            let error = try await remoteError { try await changed.send("/x") }
            #expect(error.code == .unsupported && !error.mayHaveArrived)
            #expect(changed.allowsHTTP2 || error.message.contains("leave allowsHTTP2 at true"))
        }
        #expect(origin.acceptedConnections == 0)
        #expect(try await host.with { $0.proxy = .system }.data(for: Route(path: "/x")) == Data("/x".utf8))
    }
}

#if os(Linux)
/// Requests through proxies that the app names.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct ProxyTests {
    private let origin: LoopbackOrigin
    private static let credentials = ProxyOptions.Credentials(user: "ada", password: "se:cr et\u{E9}")
    private static let basic = "Basic " + Data("ada:se:cr et\u{E9}".utf8).base64EncodedString()

    init() throws { origin = try LoopbackOrigin { .text("\($0.method.rawValue) \($0.path) \($0.body.count)") } }

    private func host(_ proxy: ProxyOptions) throws -> RemoteHost {
        try RealTransport.curl.host(origin.port) {
            $0.proxy = proxy
            $0.retry = .never
            $0.timeouts = .init(overall: hangLimit)
        }
    }

    private func code(_ proxy: ProxyOptions) async throws -> RemoteError.Code {
        let error = try await remoteError { try await host(proxy).send("/x") }
        #expect(!"\(error) \(String(describing: error.underlyingError)) \(String(reflecting: error))".contains("cr et"))
        return error.code
    }

    @Test(arguments: [false, true])
    func `W11: requests go through an HTTP proxy, with credentials only for the proxy`(_ isAuthorized: Bool) async throws {
        let proxy = try LoopbackProxy(wanting: isAuthorized ? ProxyTests.basic : nil)
        let host = try host(.http("127.0.0.1", port: proxy.port, credentials: isAuthorized ? ProxyTests.credentials : nil))
        #expect(try await host.data(for: Route(path: "/x")) == Data("GET /x 0".utf8))
        let post = Route(path: "/y", method: .post, body: .data(Data(count: 100_000)))
        #expect(try await host.data(for: post) == Data("POST /y 100000".utf8))
        #expect(proxy.requests.first?.hasPrefix("GET http://127.0.0.1:\(origin.port)/x HTTP/1.1\r\n") == true)
        #expect(proxy.requests.first?.contains("Proxy-Authorization") == isAuthorized)
        // The proxy of the test forwards later requests unchanged.
        #expect(origin.requests.first?.headers["Proxy-Authorization"] == nil)
    }

    @Test(arguments: [false, true])
    func `W11: requests go through a SOCKS proxy, which receives the host's name`(_ isAuthorized: Bool) async throws {
        let proxy = try LoopbackProxy(wanting: isAuthorized ? "ada:se:cr et\u{E9}" : nil)
        let host = try host(.socks5("127.0.0.1", port: proxy.port, credentials: isAuthorized ? ProxyTests.credentials : nil)).with {
            // Only the proxy could resolve this name.
            $0.configuration.host = "nowhere.invalid"
        }
        #expect(try await host.data(for: Route(path: "/x")) == Data("GET /x 0".utf8))
        #expect(proxy.requests == ["nowhere.invalid:\(origin.port)"])
    }

    @Test func `W11: hosts with different proxies share no connection`() async throws {
        let (one, other) = (try LoopbackProxy(), try LoopbackProxy())
        let direct = try host(.none)
        for _ in 0..<3 {
            for options in [ProxyOptions.none, .http("127.0.0.1", port: one.port), .http("127.0.0.1", port: other.port)] {
                let host = direct.with { $0.proxy = options }
                #expect(try await host.data(for: Route(path: "/x")) == Data("GET /x 0".utf8))
            }
        }
        #expect(one.requests.count == 1 && other.requests.count == 1)
        #expect(origin.acceptedConnections == 3)
    }

    @Test func `W11: an unreachable proxy is distinguished from an unreachable host`() async throws {
        let port = try ClosedPort()
        defer { withExtendedLifetime(port) {} }
        let closed = port.number
        #expect(try await code(.http("127.0.0.1", port: closed)) == .proxyUnreachable)
        #expect(try await code(.socks5("127.0.0.1", port: closed)) == .proxyUnreachable)
        #expect(try await code(.http("nowhere.invalid", port: 3128)) == .proxyUnreachable)
        let proxy = try LoopbackProxy()
        let unreachable = try RealTransport.curl.host(UInt16(closed)) { $0.retry = .never }
        #expect(try await remoteError { try await unreachable.send("/x") }.code == .connectionRefused)
        let socks = unreachable.with { $0.proxy = .socks5("127.0.0.1", port: proxy.port) }
        #expect(try await remoteError { try await socks.send("/x") }.code == .connectionRefused)
        // An HTTP proxy responds to an unencrypted request itself.
        let plain = unreachable.with { $0.proxy = .http("127.0.0.1", port: proxy.port) }
        #expect(try await remoteError { try await plain.send("/x") }.status == 502)
        let tunneled = plain.with { $0.configuration.scheme = .https }
        let unreached = try await remoteError { try await tunneled.send("/x") }
        #expect(unreached.code == .unreachable && unreached.isRetryable && !unreached.mayHaveArrived)
    }

    @Test(arguments: ["http", "https", "socks"], [nil, ProxyOptions.Credentials(user: "ada", password: "cr et wrong")])
    func `W11: a proxy that requires credentials has its own code`(_ way: String, _ credentials: ProxyOptions.Credentials?) async throws {
        let proxy = try LoopbackProxy(wanting: way == "socks" ? "ada:right" : "Basic right")
        let options: ProxyOptions =
            way == "socks"
            ? .socks5("127.0.0.1", port: proxy.port, credentials: credentials)
            : .http("127.0.0.1", port: proxy.port, credentials: credentials)
        let host = try host(options).with { if way == "https" { $0.configuration.scheme = .https } }
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .proxyUnauthorized && !error.isRetryable)
        #expect(error.status == (way == "http" ? 407 : nil))
        #expect(!"\(error) \(String(reflecting: error))".contains("cr et"))
        #expect(origin.acceptedConnections == 0)
    }

    @Test(arguments: [
        ("garbage\r\n\r\n", [RemoteError.Code.protocolViolation]), ("SSH-2.0-OpenSSH\r\n", [.protocolViolation, .proxyUnreachable]),
        ("", [.proxyUnreachable]), ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", [.proxyRefused]),
        ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", [.unreachable]),
        ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", [.proxyRefused]),
        ("HTTP/1.1 200 OK\r\n\r\nnot TLS\r\n", [.tlsFailed, .connectionLost]),
    ])
    func `W11: a refused tunnel is a typed error, and nothing has arrived`(_ text: String, _ codes: [RemoteError.Code]) async throws {
        let server = try RawServer(sending: text) { $0.endSending() }
        let host = try host(.http("127.0.0.1", port: Int(server.port))).with { $0.configuration.scheme = .https }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(codes.contains(error.code), "\(error)")
        #expect(!error.mayHaveArrived)
    }

    @Test(arguments: ["garbage\r\n\r\n", "\u{5}\u{7F}", "", "\u{4}\u{5A}aaaaaaaa"])
    func `W11: a malformed SOCKS response is a typed error`(_ text: String) async throws {
        let server = try RawServer { connection in
            _ = connection.readBytes(3)
            connection.send(text)
            connection.endSending()
        }
        let error = try await remoteError { try await host(.socks5("127.0.0.1", port: Int(server.port))).send("/x") }
        #expect([.protocolViolation, .proxyUnreachable, .proxyUnauthorized].contains(error.code), "\(error)")
        #expect(!error.mayHaveArrived)
    }

    @Test(arguments: [
        ProxyOptions.http("", port: 1), .http("a b", port: 1), .http("http://a.example", port: 1), .http("a.example", port: 0),
        .http("a.example", port: 65_536), .socks5("a.example/x", port: 1), .http("u:p@a.example", port: 1),
        .http("a.example", port: 1, credentials: .init(user: "a:b", password: "x")),
        .http("a.example", port: 1, credentials: .init(user: "a:\u{301}b", password: "x")),
        .http("a.example", port: 1, credentials: .init(user: "", password: "x")),
        .http("a.example", port: 1, credentials: .init(user: "a\r\nX: y", password: "x")),
        .http("a.example", port: 1, credentials: .init(user: "a", password: "x\u{0}")),
        .socks5("a.example", port: 1, credentials: .init(user: "a", password: String(repeating: "x", count: 256))),
    ])
    func `W11: an invalid proxy is refused before anything is sent`(_ options: ProxyOptions) async throws {
        #expect(try await code(options) == .invalidProxyOptions)
        #expect(origin.acceptedConnections == 0)
    }

    @Test(.enabled(if: NginxServer.problem == nil, "nginx or OpenSSL is missing"))
    func `W10, W11: a tunnel carries TLS, and the proxy sees no request`() async throws {
        let server = try await NginxServer()
        let proxy = try LoopbackProxy(wanting: ProxyTests.basic)
        let host = try secureHost(server.port) { $0.proxy = .http("127.0.0.1", port: proxy.port, credentials: ProxyTests.credentials) }
        for version in [ExchangeMetrics.Version.http2, .http1_1] {
            let response = try await host.with { $0.allowsHTTP2 = version == .http2 }.dataResponse(for: Route(path: "/hidden"))
            #expect(response.metrics?.version == version && response.metrics?.secure != nil)
            // The bytes of the tunnel are not those of the request.
            let direct = try await host.with {
                $0.allowsHTTP2 = version == .http2
                $0.proxy = .none
            }.dataResponse(for: Route(path: "/hidden"))
            #expect(direct.metrics?.sentHeadBytes == response.metrics?.sentHeadBytes)
            #expect(direct.metrics?.receivedHeadBytes == response.metrics?.receivedHeadBytes)
        }
        #expect(proxy.requests.count == 2)
        #expect(proxy.requests.allSatisfy { $0.hasPrefix("CONNECT 127.0.0.1:\(server.port) HTTP/1.1\r\n") && !$0.contains("hidden") })
        #expect(proxy.requests.allSatisfy { !$0.contains("User-Agent: Storehouse") && !$0.contains("Accept:") })
    }

    @Test(.enabled(if: SquidProxy.problem == nil, "squid is missing"))
    func `W11: squid serves requests, refuses tunnels, and requires credentials`() async throws {
        let squid = try await SquidProxy(allowing: [Int(origin.port)])
        let host = try host(.http("127.0.0.1", port: squid.port, credentials: .init(user: "ada", password: "right")))
        #expect(try await host.data(for: Route(path: "/x")) == Data("GET /x 0".utf8))
        #expect(try await code(.http("127.0.0.1", port: squid.port)) == .proxyUnauthorized)
        let secured = host.with { $0.configuration.scheme = .https }
        #expect(try await remoteError { try await secured.send("/x") }.code == .proxyRefused)
        let anonymous = secured.with { $0.proxy = .http("127.0.0.1", port: squid.port) }
        #expect(try await remoteError { try await anonymous.send("/x") }.code == .proxyUnauthorized)
    }
}

/// squid with required credentials and without tunnels.
final class SquidProxy {
    /// The port, which stays reserved until the proxy is released.
    private let reserved: ClosedPort
    private let process: ChildProcess
    private let folder: URL

    var port: Int { reserved.number }

    static let problem: String? = FileManager.default.isExecutableFile(atPath: "/usr/sbin/squid") ? nil : "squid is not installed"

    init(allowing ports: [Int]) async throws {
        reserved = try ClosedPort()
        let port = reserved.number
        folder = temporaryURL()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let place = folder.path(percentEncoded: false)
        let helper = folder.appending(path: "users.sh")
        let words = "#!/bin/sh\nwhile read -r user password; do [ \"$user $password\" = 'ada right' ] && echo OK || echo ERR; done\n"
        try Data(words.utf8).write(to: helper)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: helper.path())
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path())
        let text = """
            http_port 127.0.0.1:\(port)
            pid_filename none
            cache deny all
            access_log none
            cache_log \(place)/log
            coredump_dir \(place)
            auth_param basic program \(helper.path())
            auth_param basic children 1
            acl users proxy_auth REQUIRED
            acl tunnel method CONNECT
            acl ports port \(ports.map(String.init).joined(separator: " "))
            http_access deny !users
            http_access deny tunnel
            http_access allow ports
            http_access deny all
            shutdown_lifetime 0 seconds
            """
        let file = folder.appending(path: "squid.conf")
        try Data(text.utf8).write(to: file)
        process = try ChildProcess("/usr/sbin/squid", ["-N", "-f", file.path()])
        try await until("squid listens") { isListening(port) }
    }

    deinit { process.kill() }
}
#endif
