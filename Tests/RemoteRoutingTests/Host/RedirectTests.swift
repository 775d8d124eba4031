import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// The decision as a table, and redirects over the wire.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RedirectTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var status: Int
        var method: HTTPMethod = .get
        var from = "https://a.example/dir/page?q=1"
        var location: String
        var expected: String

        var testDescription: String { "\(status) \(method.rawValue) \(location)" }
    }

    private static let table: [Row] = [
        // Methods.
        Row(status: 301, method: .post, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 302, method: .post, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 303, method: .post, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 303, method: .put, location: "/x", expected: "GET https://a.example/x"),
        Row(status: 303, method: .head, location: "/x", expected: "HEAD https://a.example/x"),
        Row(status: 301, method: .put, location: "/x", expected: "PUT https://a.example/x +body"),
        Row(status: 302, method: .delete, location: "/x", expected: "DELETE https://a.example/x +body"),
        Row(status: 307, method: .post, location: "/x", expected: "POST https://a.example/x +body"),
        Row(status: 308, method: .patch, location: "/x", expected: "PATCH https://a.example/x +body"),
        // Statuses that are not redirects.
        Row(status: 300, location: "/x", expected: "stay"), Row(status: 304, location: "/x", expected: "stay"),
        Row(status: 305, location: "/x", expected: "stay"), Row(status: 200, location: "/x", expected: "stay"),
        // References.
        Row(status: 302, location: "other", expected: "GET https://a.example/dir/other"),
        Row(status: 302, location: "../up", expected: "GET https://a.example/up"),
        Row(status: 302, location: "?p=2", expected: "GET https://a.example/dir/page?p=2"),
        Row(status: 302, location: "//b.example/x", expected: "GET https://b.example/x"),
        Row(status: 302, location: "/x#token", expected: "GET https://a.example/x"),
        Row(status: 302, location: "https://a.example", expected: "GET https://a.example/"),
        Row(status: 302, location: "HTTPS://A.example/X", expected: "GET https://A.example/X"),
        Row(status: 302, from: "http://a.example/", location: "https://a.example/x", expected: "GET https://a.example/x"),
        // Characters that an address cannot contain are escaped, and escapes stay.
        Row(status: 302, location: "/a b", expected: "GET https://a.example/a%20b"),
        Row(status: 302, location: "/caf%C3%A9/\u{E9}", expected: "GET https://a.example/caf%C3%A9/%C3%A9"),
        Row(status: 302, location: "/%zz/%C3%A9?%&a=%20|", expected: "GET https://a.example/%25zz/%C3%A9?%25&a=%20%7C"),
        Row(
            status: 302, location: "/a\"<>^`{|}[]?q=\"<>^`{|}[]\\",
            expected:
                "GET https://a.example/a%22%3C%3E%5E%60%7B%7C%7D%5B%5D?q=%22%3C%3E%5E%60%7B%7C%7D%5B%5D%5C"),
        Row(status: 302, location: "/x#a b", expected: "GET https://a.example/x"),
        Row(status: 302, location: "//b\u{FC}cher.example/x", expected: "GET https://xn--bcher-kva.example/x"),
        // Redirects that are never followed.
        Row(status: 302, location: "http://a.example/x", expected: "redirectRefused"),
        Row(status: 302, location: "file:///etc/passwd", expected: "redirectRefused"),
        Row(status: 302, location: "ftp://a.example/", expected: "redirectRefused"),
        Row(status: 302, location: "javascript:alert(1)", expected: "redirectRefused"),
        Row(status: 302, location: "data:,x", expected: "redirectRefused"),
        Row(status: 302, location: "https://user:pw@a.example/", expected: "redirectRefused"),
        Row(status: 302, location: "https:///x", expected: "redirectRefused"),
        Row(status: 302, location: "https://a.example:99999/", expected: "redirectRefused"),
        Row(status: 302, location: "https://a.example:99999999999999999999/", expected: "redirectRefused"),
        Row(status: 302, location: "/a\tb", expected: "redirectRefused"),
        Row(status: 302, location: "\\\\evil.example\\x", expected: "redirectRefused"),
    ]

    private static func request(_ method: HTTPMethod, _ url: String) throws -> HTTPRequest {
        var fields = HTTPFields()
        for (name, value) in [
            ("Accept", "application/json"), ("Authorization", "Bearer secret"), ("Cookie", "a=b"), ("X-Api-Key", "secret"),
            ("User-Agent", "test"), ("Content-Type", "text/plain"), ("Content-Language", "en"),
        ] {
            try fields.append(name, value)
        }
        let hasBody = method != .get && method != .head
        return HTTPRequest(
            method: method, url: try #require(URL(string: url)), fields: fields, body: hasBody ? .data(Data("abc".utf8)) : .none)
    }

    private static func head(_ status: Int, _ location: String?, _ url: URL) throws -> HTTPResponse {
        var head = HTTPResponse(status: status, url: url)
        if let location { try head.fields.append("Location", location) }
        return head
    }

    @Test(arguments: table)
    func `H4: redirects follow this table`(_ row: Row) throws {
        let request = try RedirectTests.request(row.method, row.from)
        let decision = RedirectPolicy(limit: 20).decide(
            try RedirectTests.head(row.status, row.location, request.url), to: request, after: 0)
        switch decision {
        case .stay: #expect(row.expected == "stay")
        case .refuse(let code, _): #expect(row.expected == code.rawValue)
        case .follow(let next):
            let body = if case .none = next.body { "" } else { " +body" }
            #expect("\(next.method.rawValue) \(next.url.absoluteString)\(body)" == row.expected)
            #expect((next.fields["Content-Type"] != nil) == (next.method == row.method))
            let isSame = WebOrigin(of: next.url) == WebOrigin(of: request.url)
            #expect((next.fields["Authorization"] != nil) == isSame && (next.fields["Cookie"] != nil) == isSame)
            #expect((next.fields["X-Api-Key"] != nil) == isSame && next.fields["Accept"] == "application/json")
            #expect(next.fields["User-Agent"] == "test")
        }
    }

    @Test func `H4: a redirect without a location is returned as the response`() throws {
        let request = try RedirectTests.request(.get, "https://a.example/")
        guard case .stay = RedirectPolicy(limit: 20).decide(try RedirectTests.head(302, nil, request.url), to: request, after: 0) else {
            Issue.record("followed")
            return
        }
    }

    @Test func `H4: a body that is not replayable is not redirected`() throws {
        var request = try RedirectTests.request(.post, "https://a.example/")
        request.body = .stream(HTTPBodyStream(length: nil, isReplayable: false) { { _ in nil } })
        let policy = RedirectPolicy(limit: 20)
        guard case .stay = policy.decide(try RedirectTests.head(307, "/x", request.url), to: request, after: 0) else {
            Issue.record("sent on")
            return
        }
        guard case .follow = policy.decide(try RedirectTests.head(303, "/x", request.url), to: request, after: 0) else {
            Issue.record("a GET needs no body")
            return
        }
    }

    // MARK: Over the wire

    @Test(arguments: TransportKind.allCases)
    func `H4: a redirect is followed with method and body`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("POST", "/a") { _ in .redirect(to: "b?x=1", status: 307) }
        bench.on("POST", "/b") { asked in .data(asked.body) }
        let response = try await bench.host().dataResponse(for: Route(path: "/a", method: .post, body: .data(Data("abc".utf8))))
        #expect(response.value == Data("abc".utf8) && response.url.path() == "/b")
        #expect(bench.asked.map(\.query) == ["", "x=1"])
    }

    @Test(arguments: RealTransport.available)
    func `H4: credentials do not follow a redirect to another origin`(_ transport: RealTransport) async throws {
        let other = try LoopbackOrigin { .text("\($0.headers["Authorization"] ?? "none") \($0.headers["X-Api-Key"] ?? "none")") }
        let bench = try Bench(transport.kind)
        let place = other.url.absoluteString + "/there"
        bench.on("GET", "/a") { _ in .redirect(to: place) }
        bench.on("GET", "/same") { _ in .redirect(to: "/end") }
        bench.on("GET", "/end") { asked in .text("\(asked["Authorization"] ?? "none") \(asked["X-Api-Key"] ?? "none")") }
        let host = bench.host().authorized(by: .bearer("secret"))
        let route = { (path: RoutePath) in Route(path: path, headers: ["X-Api-Key": "key"]) }
        #expect(try await host.data(for: route("/a")) == Data("none none".utf8))
        #expect(bench.asked("/a").first?["Authorization"] == "Bearer secret" && other.requests.first?.headers["Authorization"] == nil)
        #expect(try await host.data(for: route("/same")) == Data("Bearer secret key".utf8))
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

    @Test(arguments: TransportKind.allCases, ["/loop", "file:///etc/passwd"])
    func `H4: redirect loops and file addresses are refused`(_ kind: TransportKind, _ place: String) async throws {
        let bench = try Bench(kind)
        bench.on("GET", "/loop") { _ in .redirect(to: place) }
        let error = try await remoteError { _ = try await bench.host().data(for: Route(path: "/loop")) }
        #expect(error.code == (place == "/loop" ? .tooManyRedirects : .redirectRefused))
        #expect(bench.asked.count == (place == "/loop" ? 21 : 1))
    }
}
