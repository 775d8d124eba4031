import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// The decision as a table, and redirects over the wire.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RedirectTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var status = 302
        var method: HTTPMethod = .get
        var from = "https://a.example/dir/page?q=1"
        var location: String
        var expected: String

        var testDescription: String { "\(status) \(method.rawValue) \(location)" }
    }

    private static let table: [Row] = [
        // Methods.
        Row(status: 301, method: .post, location: "/x", expected: "GET https://a.example/x"),
        Row(method: .post, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 303, method: .post, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 303, method: .put, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 303, method: .head, location: "/x", expected: "HEAD https://a.example/x"),
        Row(status: 301, method: .put, location: "/x", expected: "PUT https://a.example/x +body"),
        Row(method: .delete, location: "/x", expected: "DELETE https://a.example/x +body"),
        Row(status: 307, method: .post, location: "/x", expected: "POST https://a.example/x +body"),
        Row(status: 308, method: .patch, location: "/x", expected: "PATCH https://a.example/x +body"),
        // Statuses that are not redirects.
        Row(status: 300, location: "/x", expected: "stay"), Row(status: 304, location: "/x", expected: "stay"),
        Row(status: 305, location: "/x", expected: "stay"), Row(status: 200, location: "/x", expected: "stay"),
        // References.
        Row(location: "other", expected: "GET https://a.example/dir/other"), Row(location: "../up", expected: "GET https://a.example/up"),
        Row(location: "?p=2", expected: "GET https://a.example/dir/page?p=2"),
        Row(location: "//b.example/x", expected: "GET https://b.example/x"), Row(location: "/x#token", expected: "GET https://a.example/x"),
        Row(location: "https://a.example", expected: "GET https://a.example/"),
        Row(location: "HTTPS://A.example/X", expected: "GET https://A.example/X"),
        Row(from: "http://a.example/", location: "https://a.example/x", expected: "GET https://a.example/x"),
        // Characters that an address cannot contain are escaped, and escapes stay.
        Row(location: "/a b", expected: "GET https://a.example/a%20b"),
        Row(location: "/caf%C3%A9/\u{E9}", expected: "GET https://a.example/caf%C3%A9/%C3%A9"),
        Row(location: "/%zz/%C3%A9?%&a=%20|", expected: "GET https://a.example/%25zz/%C3%A9?%25&a=%20%7C"),
        Row(
            location: "/a\"<>^`{|}[]?q=\"<>^`{|}[]\\",
            expected:
                "GET https://a.example/a%22%3C%3E%5E%60%7B%7C%7D%5B%5D?q=%22%3C%3E%5E%60%7B%7C%7D%5B%5D%5C"),
        Row(location: "/x#a b", expected: "GET https://a.example/x"),
        Row(location: "//b\u{FC}cher.example/x", expected: "GET https://xn--bcher-kva.example/x"),
        Row(location: "/k\u{E4}se", expected: "GET https://a.example/k%C3%A4se"),
        Row(location: "/a?\u{301}q=1", expected: "GET https://a.example/a?%CC%81q=1"),
        Row(location: "/\u{338}x", expected: "GET https://a.example/%CC%B8x"),
        Row(location: "//a.example/\u{301}/../y", expected: "GET https://a.example/y"),
        Row(location: "https://[::1]:8443/x", expected: "GET https://[::1]:8443/x"),
        Row(location: "/a%2F..%2Fb", expected: "GET https://a.example/a%2F..%2Fb"),
    ]

    /// Locations that are never followed.
    private static let refused = [
        "http://a.example/x", "file:///etc/passwd", "ftp://a.example/", "javascript:alert(1)", "data:,x", "https://user:pw@a.example/",
        "https:///x", "https://a.example:99999/", "https://a.example:99999999999999999999/", "/a\tb", "\\\\evil.example\\x",
        "https://u:p@a.example/", "https://u@a.example/", "https://@a.example/", "https://a.example@evil.example/",
        "https://a.example:443@evil.example/", "https://:@a.example/", "https://a.example:0/", "https://[::1/", "https://[fe80::1%25eth0]/",
        "https://a.example:-1/", "https://a%2Eexample/", "HTTPS:///a.example", "https:evil.example",
    ]

    private static func request(_ method: HTTPMethod, _ url: String) throws -> HTTPRequest {
        let fields = try fields([
            "Accept": "application/json", "Authorization": "Bearer secret", "Cookie": "a=b", "X-Api-Key": "secret",
            "User-Agent": "test", "Content-Type": "text/plain", "Content-Language": "en", "Content-Encoding": "gzip",
        ])
        let hasBody = method != .get && method != .head
        return HTTPRequest(
            method: method, url: try #require(URL(string: url)), fields: fields, body: hasBody ? .data(Data("abc".utf8)) : .none)
    }

    private static func head(_ status: Int, _ location: String, _ url: URL) throws -> HTTPResponse {
        HTTPResponse(status: status, fields: try fields(["Location": location]), url: url)
    }

    @Test(arguments: table + refused.map { Row(location: $0, expected: "redirectRefused") })
    func `H4: redirects follow this table`(_ row: Row) throws {
        let request = try RedirectTests.request(row.method, row.from)
        let decision = RedirectPolicy(limit: 20).decide(
            try RedirectTests.head(row.status, row.location, request.url), to: request, after: 0)
        switch decision {
        case .stay: #expect(row.expected == "stay")
        case .refuse(let code, let message): #expect(row.expected == code.rawValue && !message.contains("@"))
        case .follow(let next):
            let body = if case .none = next.body { "" } else { " +body" }
            #expect("\(next.method.rawValue) \(next.url.absoluteString)\(body)" == row.expected)
            for name in ["Content-Type", "Content-Encoding"] { #expect((next.fields[name] != nil) == (next.method == row.method)) }
            let isSame = WebOrigin(of: next.url) == WebOrigin(of: request.url)
            #expect((next.fields["Authorization"] != nil) == isSame && (next.fields["Cookie"] != nil) == isSame)
            #expect((next.fields["X-Api-Key"] != nil) == isSame && next.fields["Accept"] == "application/json")
            #expect(next.fields["User-Agent"] == "test")
        }
    }

    @Test func `H4: a body that is not replayable is not redirected`() throws {
        var request = try RedirectTests.request(.post, "https://a.example/")
        request.body = .stream(HTTPBodyStream(length: nil, isReplayable: false) { { _ in nil } })
        // A GET needs no body.
        for (status, decision) in [(307, "stay"), (303, "follow")] {
            let head = try RedirectTests.head(status, "/x", request.url)
            #expect("\(RedirectPolicy(limit: 20).decide(head, to: request, after: 0))".hasPrefix(decision))
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H4: a redirect is followed with method and body`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "POST", "/a") { _ in .redirect(to: "b?x=1", status: 307) }
        bench.on("POST", "/b") { asked in .data(asked.body) }
        let response = try await bench.host().dataResponse(for: Route(path: "/a", method: .post, body: .data(Data("abc".utf8))))
        #expect(response.value == Data("abc".utf8) && response.url.path() == "/b")
        #expect(bench.asked.map(\.query) == ["", "x=1"])
    }

    @Test(arguments: TransportKind.allCases)
    func `H4: twenty redirects are followed and the next one is refused`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        for number in 0..<21 { bench.on("GET", "/\(number)") { _ in .redirect(to: "/\(number + 1)") } }
        bench.on("GET", "/21") { _ in .text("end") }
        let host = bench.host()
        #expect(try await host.data(for: Route(path: "/1")) == Data("end".utf8))
        let error = try await remoteError { _ = try await host.data(for: Route(path: "/0")) }
        #expect(error.code == .tooManyRedirects && !error.isRetryable && bench.asked("/21").count == 1, "\(error)")
    }
}

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

    @Test(arguments: [[HTTPMethod.post], [.post, .get]])
    func `H7: a request that an interceptor makes unsafe is not sent twice, nor behind a redirect`(_ methods: [HTTPMethod]) async throws {
        let memory = MemoryTransport { request in
            request.method == .post && methods.count > 1 ? .status(303).adding("Location", "/y") : .status(503)
        }
        let host = RemoteHost("a.example", transport: memory).with { $0.random = { 0 } }
            .intercepting(requests: Changing { $0.method = .post })
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.status == 503 && error.mayHaveArrived && !error.isRetryable)
        #expect(memory.requests.map(\.method) == methods)
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

    @Test(
        arguments: RealTransport.available,
        [
            ("HTTP://127.0.0.1:PORT/target", true), ("hTTp://127.0.0.1:PORT/target", true), ("target", true),
            // Without an authority it is not an http address (RFC 9110 §4.2.1).
            ("http:/target", false), ("file:///etc/passwd", false), ("ftp://127.0.0.1/x", false), ("//", false), ("http://", false),
        ])
    func `H4: a Location is followed regardless of the case of its scheme, and one of another scheme is refused as a redirect`(
        _ transport: RealTransport, _ way: (location: String, isFollowed: Bool)
    ) async throws {
        let origin = try origin { port in
            "HTTP/1.1 302 Found\nContent-Length: 4\nLocation: \(way.location.replacing("PORT", with: "\(port)"))\n\nmore"
        }
        let host = try transport.host(origin.port) { $0.retry = .never }
        if way.isFollowed {
            #expect(try await host.data(for: Route(path: "/x")) == Data("target".utf8))
        } else {
            let error = try await remoteError { try await host.send("/x") }
            #expect(error.code == .redirectRefused && error.status == 302, "\(error)")
        }
    }

    @Test(arguments: RealTransport.available)
    func `H4: the body of an unfollowed redirect reaches the caller`(_ transport: RealTransport) async throws {
        let origin = try origin { _ in "HTTP/1.1 307 Temporary Redirect\nContent-Length: 5\nLocation: /target\n\nhello" }
        let host = try transport.host(origin.port) { $0.retry = .never }
        let body = RouteBody.stream(HTTPBodyStream(chunks: [Data("abc".utf8)], length: 3, isReplayable: false))
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
