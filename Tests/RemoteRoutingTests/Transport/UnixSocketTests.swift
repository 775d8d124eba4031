#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct UnixSocketTests {
    /// A short path, because the system's temporary directory may have a long one.
    private static func freePath() -> String { "/tmp/storehouse-\(UUID().uuidString.prefix(8)).sock" }

    private func host(_ path: String?, _ change: (inout RemoteHost) -> Void = { _ in }) throws -> RemoteHost {
        RemoteHost("http://engine/v1", transport: try RealTransport.curl.make()).with {
            $0.unixSocketPath = path
            $0.timeouts = .untilHang
            $0.retry = .never
            change(&$0)
        }
    }

    private func text(_ host: RemoteHost, _ route: Route) async throws -> String {
        String(decoding: try await host.data(for: route), as: UTF8.self)
    }

    @Test func `H26: requests go through a socket, with the host's name, and safe ones share a connection`() async throws {
        let server = try UnixServer(UnixSocketTests.freePath())
        defer { unlink(server.path) }
        // Not even credentials leave this machine.
        let host = try host(server.path) { $0 = $0.authorized(by: .basic(user: "ada", password: "secret")) }
        for _ in 0..<3 { #expect(try await text(host, Route(path: "/info")) == "GET /v1/info HTTP/1.1|Host: engine|") }
        #expect(server.acceptedConnections == 1)
        let post = Route(path: "/make", method: .post, body: .data(Data("body".utf8)))
        #expect(try await text(host, post) == "POST /v1/make HTTP/1.1|Host: engine|body")
    }

    @Test func `H26: hosts with other paths, and hosts without one, share no connection`() async throws {
        let (one, other) = (try UnixServer(UnixSocketTests.freePath()), try UnixServer(UnixSocketTests.freePath()))
        defer { for server in [one, other] { unlink(server.path) } }
        let origin = try LoopbackOrigin { .text($0.path) }
        let local = try host(one.path) {
            $0.configuration = HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port))
        }
        for _ in 0..<3 {
            for path in [one.path, other.path, nil] {
                let host = local.with { $0.unixSocketPath = path }
                #expect(try await text(host, Route(path: "/x")).hasPrefix(path == nil ? "/x" : "GET /x HTTP/1.1|"))
            }
        }
        #expect(one.acceptedConnections == 1 && other.acceptedConnections == 1 && origin.acceptedConnections == 1)
    }

    @Test func `H26: a redirect to another origin leaves the socket`() async throws {
        let server = try UnixServer(UnixSocketTests.freePath())
        defer { unlink(server.path) }
        let origin = try LoopbackOrigin { _ in .text("over TCP") }
        let host = try host(server.path) { $0.configuration.basePath = "" }
        #expect(try await text(host, Route(path: "/away/\(Int(origin.port))")) == "over TCP")
        #expect(server.acceptedConnections == 1)
    }

    @Test(arguments: ["", "/tmp/\(String(repeating: "x", count: 103))", "/tmp/a\u{0}b"])
    func `H26: a path that the system cannot take is refused`(_ path: String) async throws {
        let error = try await remoteError { try await host(path).send("/x") }
        #expect(error.code == .invalidSocketPath && error.stage == .build && !error.mayHaveArrived)
        #expect(error.message.contains("\(path.utf8.count) bytes"))
    }

    @Test func `H26: a missing server is a refused connection that names the socket`() async throws {
        // The longest path of the system.
        let path = "/tmp/" + String(repeating: "x", count: 102)
        for scheme in [HTTPScheme.http, .https] {
            let error = try await remoteError { try await host(path) { $0.configuration.scheme = scheme }.send("/x") }
            #expect(error.code == .connectionRefused && error.message.contains("Unix domain socket") && !error.mayHaveArrived)
        }
    }

    @Test func `H14, H26: what cannot reach a socket is refused before anything is sent`() async throws {
        let session = try host("/tmp/a") { $0.transport = URLSessionTransport() }
        #expect(try await remoteError { try await session.send("/x") }.code == .unsupported)
        let proxy = try host("/tmp/a") { $0.proxy = .http("127.0.0.1", port: 1) }
        #expect(try await remoteError { try await proxy.send("/x") }.code == .unsupported)
    }
}
#endif
