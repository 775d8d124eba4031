import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

/// The fields that another origin never receives.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ForeignOriginTests {
    enum Writer: CaseIterable { case defaults, route, interceptor, authorization }

    @Test(arguments: Writer.allCases, RealTransport.available.flatMap { kind in ["X-API-Key", "X-Session", "Cookie"].map { (kind, $0) } })
    func `H4: no field of the caller reaches another port of the same host`(
        _ writer: Writer, _ way: (kind: RealTransport, name: String)
    ) async throws {
        let name = way.name
        let other = try LoopbackOrigin { _ in .redirect(to: "/again") }
        other.on(.get, "/again") { _ in .text("end") }
        let bench = try Bench(way.kind.kind)
        let place = other.url.absoluteString + "/there"
        bench.on("GET", "/a") { _ in .redirect(to: place) }
        var host = bench.host()
        var route = Route(path: "/a")
        switch writer {
        case .defaults: host.defaults.append(name, "secret")
        case .route: route.headers.append(name, "secret")
        case .interceptor: host = host.intercepting(requests: Changing { try $0.fields.set(name, "secret") })
        case .authorization: host = host.authorized(by: .custom { try $0.set(name, "secret") })
        }
        #expect(try await host.data(for: route) == Data("end".utf8))
        #expect(bench.asked("/a").first?[name] == "secret" && other.requests.count == 2)
        #expect(other.requests.allSatisfy { $0.headers[name] == nil })
    }

    @Test(arguments: [
        "https://u:p@a.example/", "https://u@a.example/", "https://@a.example/", "https://a.example@evil.example/",
        "https://a.example:443@evil.example/", "https://:@a.example/", "https://a.example:0/", "https://[::1/", "https://[fe80::1%25eth0]/",
        "https://a.example:-1/", "https://a%2Eexample/", "https://a.example\u{0}.evil/", "HTTPS:///a.example", "https:evil.example",
    ])
    func `H4: a redirect to an invalid address is refused`(_ location: String) throws {
        let request = HTTPRequest(url: try #require(URL(string: "https://a.example/x")))
        var head = HTTPResponse(status: 302, url: request.url)
        // Values that are not valid in a field never arrive.
        guard (try? head.fields.append("Location", location)) != nil else { return }
        switch RedirectPolicy(limit: 20).decide(head, to: request, after: 0) {
        case .refuse(let code, let message): #expect(code == .redirectRefused && !message.contains("p@"))
        case .stay: Issue.record("stayed")
        case .follow(let next): Issue.record("followed to \(next.url)")
        }
    }

    @Test(arguments: [
        ("/k\u{E4}se", "https://a.example/k%C3%A4se"), ("/a?\u{301}q=1", "https://a.example/a?%CC%81q=1"),
        ("/\u{338}x", "https://a.example/%CC%B8x"), ("//a.example/\u{301}/../y", "https://a.example/y"),
        ("https://[::1]:8443/x", "https://[::1]:8443/x"), ("/a%2F..%2Fb", "https://a.example/a%2F..%2Fb"),
    ])
    func `H4: a redirect with unescaped letters is resolved by its bytes`(_ location: String, _ expected: String) throws {
        let request = HTTPRequest(url: try #require(URL(string: "https://a.example/x")))
        var head = HTTPResponse(status: 302, url: request.url)
        try head.fields.append("Location", location)
        guard case .follow(let next) = RedirectPolicy(limit: 20).decide(head, to: request, after: 0) else {
            Issue.record("not followed")
            return
        }
        #expect(next.url.absoluteString == expected)
    }

    @Test func `H7: a request that an interceptor makes unsafe is not sent twice`() async throws {
        let memory = MemoryTransport { _ in .status(503) }
        let host = RemoteHost("a.example", transport: memory).with { $0.random = { 0 } }
            .intercepting(requests: Changing { $0.method = .post })
        #expect(try await remoteError { try await host.send("/x") }.status == 503)
        #expect(memory.requests.count == 1)
    }

    @Test func `H7: a request that an interceptor makes unsafe is not sent twice behind a redirect either`() async throws {
        let memory = MemoryTransport { request in request.method == .post ? .status(303).adding("Location", "/y") : .status(503) }
        let host = RemoteHost("a.example", transport: memory).with { $0.random = { 0 } }
            .intercepting(requests: Changing { $0.method = .post })
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.status == 503 && error.mayHaveArrived && !error.isRetryable)
        #expect(memory.requests.map(\.method) == [.post, .get])
    }

    @Test(arguments: [(307, true), (308, true), (303, false)])
    func `H4, H7: a change that is replayed to another origin keeps its idempotency key, so that no attempt repeats it`(
        _ status: Int, _ isReplayed: Bool
    ) async throws {
        let memory = MemoryTransport { request in
            if request.url.host() == "a.example" { return .status(status).adding("Location", "https://b.example/x") }
            throw TransportFailure(.connectionLost, "lost")
        }
        let host = RemoteHost("a.example", transport: memory).with { $0.random = { 0 } }
        let route = Route(path: "/x", method: .post, headers: ["X-Session": "s"], options: RouteOptions(idempotencyKey: .key("k")))
        let error = try await remoteError { try await host.send(route) }
        #expect(error.code == .connectionLost && error.mayHaveArrived && error.attempts == 3)
        let changes = memory.requests.filter { $0.url.host() == "b.example" }
        #expect(changes.count == 3)
        #expect(changes.allSatisfy { $0.fields["Idempotency-Key"] == (isReplayed ? "\"k\"" : nil) && $0.fields["X-Session"] == nil })
    }

    @Test func `H12: an invalid host is not shown, because it may contain a password`() async throws {
        let host = RemoteHost("user:hush@a.example", transport: MemoryTransport { _ in .status(204) })
        let error = try await remoteError { try await host.send("/x") }
        #expect((error.underlyingError as? RouteFault)?.code == .invalidOrigin)
        #expect(!"\(error)".contains("hush"))
        let keyed = host.pages(of: Int.self) { (_: Int) in Route(path: "/x") }
        let fault = try await remoteError { _ = try await keyed.fetchNext(nextKey: "//evil", param: 1) }
        #expect(!"\(fault)".contains("hush"))
    }
}
