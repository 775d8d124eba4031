import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// Redirects as each transport reports them, byte by byte.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RedirectResponseTests {
    private func origin(_ text: @escaping @Sendable (UInt16) -> String) throws -> LoopbackOrigin {
        let port = Lock<UInt16>(0)
        let origin = try LoopbackOrigin { request in
            if request.path == "/target" { return .text("target") }
            return .verbatim(text(port.withLock(\.self)).replacing("\n", with: "\r\n"))
        }
        port.withLock { $0 = origin.port }
        return origin
    }

    @Test(arguments: RealTransport.available, [300, 301, 302, 303, 304, 305, 307, 308])
    func `H4: a 3xx without a Location keeps its status, fields and body`(_ transport: RealTransport, _ status: Int) async throws {
        let content = status == 304 ? "" : "hello"
        let origin = try origin { _ in "HTTP/1.1 \(status) X\nContent-Length: \(content.utf8.count)\nX-Mark: m\n\n\(content)" }
        for method in [HTTPMethod.get, .post] {
            // A host of its own, because a POST fails on a connection that the origin closes at that moment.
            let host = try transport.host(origin.port) { $0.retry = .never }
            let error = try await remoteError { try await host.send(Route(path: "/x", method: method)) }
            #expect(error.code == .badStatus && error.status == status && error.fields["X-Mark"] == "m", "\(error)")
            // FoundationNetworking drops the body of a redirect without a location.
            if transport == .curl { #expect(error.body == Data(content.utf8)) }
        }
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: RealTransport.available, ["HTTP://127.0.0.1:PORT/target", "hTTp://127.0.0.1:PORT/target", "http:/target", "target"])
    func `H4: a Location is followed regardless of the case of its scheme`(_ transport: RealTransport, _ location: String) async throws {
        let origin = try origin { port in
            "HTTP/1.1 302 Found\nContent-Length: 4\nLocation: \(location.replacing("PORT", with: "\(port)"))\n\nmore"
        }
        let host = try transport.host(origin.port) { $0.retry = .never }
        if location == "http:/target" {
            // Without an authority it is not an http address (RFC 9110 §4.2.1).
            #expect(try await remoteError { try await host.send("/x") }.code == .redirectRefused)
        } else {
            #expect(try await host.data(for: Route(path: "/x")) == Data("target".utf8))
        }
    }

    @Test(arguments: RealTransport.available, ["file:///etc/passwd", "ftp://127.0.0.1/x", "//", "http://"])
    func `H4: a Location of another scheme is refused as a redirect`(_ transport: RealTransport, _ location: String) async throws {
        let origin = try origin { _ in "HTTP/1.1 302 Found\nContent-Length: 4\nLocation: \(location)\n\nmore" }
        let host = try transport.host(origin.port) { $0.retry = .never }
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .redirectRefused && error.status == 302, "\(error)")
    }

    @Test(arguments: RealTransport.available)
    func `H4: the body of an unfollowed redirect reaches the caller`(_ transport: RealTransport) async throws {
        let origin = try origin { _ in "HTTP/1.1 307 Temporary Redirect\nContent-Length: 5\nLocation: /target\n\nhello" }
        let host = try transport.host(origin.port) { $0.retry = .never }
        let body = RouteBody.stream(
            HTTPBodyStream(length: 3, isReplayable: false) {
                let parts = Parts([Data("abc".utf8)])
                return { _ in parts.next() }
            })
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post, body: body)) }
        #expect(error.status == 307 && error.body == Data("hello".utf8), "\(error)")
    }

    @Test(arguments: RealTransport.available, [HTTPMethod.get, .head])
    func `W6: a GET or HEAD with a body is sent as the transport allows`(_ transport: RealTransport, _ method: HTTPMethod) async throws {
        let origin = try LoopbackOrigin { .data($0.body) }
        let host = try transport.host(origin.port) { $0.retry = .never }
        let route = Route(path: "/search", method: method, body: .json(fields: ["q": "lamp"]))
        if method == .get, transport == .curl {
            #expect(try await host.data(for: route) == Data(#"{"q":"lamp"}"#.utf8))
            let seen = try #require(origin.requests.first)
            #expect(seen.method == .get && seen.headers["Content-Length"] == "12" && seen.headers["Content-Type"] == "application/json")
        } else {
            let error = try await remoteError { _ = try await host.data(for: route) }
            #expect(error.stage == .build)
            #expect(error.code == (method == .get ? .unsupported : .invalidRoute))
            #expect(!error.mayHaveArrived && origin.requests.isEmpty, "\(error)")
        }
    }
}
