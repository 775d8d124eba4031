import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// The order of interceptors, and the secrets that logs omit.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct InterceptorTests {
    private struct Marking: RequestInterceptor, ResponseInterceptor {
        var name: String
        var log: WatchedState<[String]>

        func intercept(_ request: inout HTTPRequest) async throws {
            log.update { $0.append("→\(name)") }
            try request.fields.append("X-Mark", name)
        }

        func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws {
            log.update { $0.append("←\(name) \(request.fields["X-Mark"] ?? "")") }
            response.body = HTTPResponse.Body((response.body.data ?? Data()) + Data(name.utf8))
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H16: request interceptors run in order, response interceptors in reverse`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { asked in .text(asked["X-Mark"] ?? "") }
        let log = WatchedState<[String]>([])
        var host = bench.host()
        for name in ["a", "b"] {
            let marking = Marking(name: name, log: log)
            host = host.intercepting(requests: marking).intercepting(responses: marking)
        }
        #expect(try await host.data(for: Route(path: "/x")) == Data("a, bba".utf8))
        #expect(log.current == ["→a", "→b", "←b a, b", "←a a, b"])
    }

    @Test(arguments: TransportKind.allCases)
    func `interceptors run before a streamed body arrives, and may replace it`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/kept") { _ in .text("kept") }
        bench.on("GET", "/x") { _ in .text("x").setting("X-Replace", to: "yes") }
        let seen = WatchedState<[Bool]>([])
        // One permit: replacing a stream releases it.
        let host = bench.host { $0.limits.concurrentStreams = 1 }.intercepting(
            responses: Reading { response, _ in
                let isStream = response.body.data == nil
                seen.update { $0.append(isStream) }
                if response.fields["X-Replace"] != nil { response.body = HTTPResponse.Body(Data("replaced".utf8)) }
            })
        for (path, expected) in [("/kept", "kept"), ("/x", "replaced"), ("/kept", "kept")] as [(RoutePath, String)] {
            #expect(try await host.bytes(for: Route(path: path)).whole() == Data(expected.utf8))
        }
        #expect(try await host.data(for: Route(path: "/kept")) == Data("kept".utf8))
        #expect(seen.current == [true, true, true, false])
    }

    @Test(arguments: [nil, "Host", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Authorization"] as [String?])
    func `H2, H3: an interceptor can neither send a request to another origin nor write reserved fields`(_ name: String?) async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost("a.example", transport: memory).intercepting(
            requests: Changing { request in
                if let name { try request.fields.set(name, "5") } else { request.url = URL(string: "https://b.example/") ?? request.url }
            })
        let error = try await remoteError { try await host.send("/x") }
        #expect((error.underlyingError as? RouteFault)?.code == (name == nil ? .foreignOrigin : .reservedField))
        #expect(memory.requests.isEmpty)
    }

    private static let refusals: [any Error] = [TestError(), CancellationError(), TransportFailure(.connectionLost, "another one failed")]

    @Test(arguments: refusals.indices)
    func `an interceptor's failure prevents sending`(_ index: Int) async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost("a.example", transport: memory)
            .intercepting(requests: Changing { _ in throw InterceptorTests.refusals[index] })
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .interceptorFailed && !error.mayHaveArrived, "\(error)")
        #expect(error.underlyingError.map { type(of: $0) == type(of: InterceptorTests.refusals[index]) } == true)
        #expect(memory.requests.isEmpty)
    }

    @Test func `H22: a status of another request, which a request interceptor has made, is no value of the call`() async throws {
        var missing = RemoteError(.status, .badStatus, operation: "GET b.example/token", "the token is missing")
        missing.status = 404
        let memory = MemoryTransport { _ in .status(404) }
        let plain = RemoteHost("a.example", transport: memory)
        let host = plain.intercepting(requests: Changing { [missing] _ in throw missing })
        let error = try await remoteError { _ = try await host.send(Route(path: "/x"), as: [Int].self, nilFor: [404]) }
        #expect(error.status == 404 && memory.requests.isEmpty)
        #expect(try await plain.send(Route(path: "/x"), as: [Int].self, nilFor: [404]) == nil)
    }

    @Test func `H7: a call does not repeat what a call of its interceptor has retried`() async throws {
        let memory = MemoryTransport { $0.url.path == "/token" ? .status(503) : .status(204) }
        let plain = RemoteHost("a.example", transport: memory).with { $0.random = { 0 } }
        let once = plain.with { $0.retry = .never }
        for inner in [plain, once] {
            let before = memory.requests.count
            let host = plain.intercepting(requests: Changing { _ in try await inner.send("/token") })
            let error = try await remoteError { try await host.send("/x") }
            #expect(error.status == 503 && error.attempts == 3)
            #expect(memory.requests.count - before == 3 && memory.requests.allSatisfy { $0.url.path == "/token" })
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H7: a failed request of an interceptor repeats no request that must not be repeated`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("POST", "/orders") { _ in .status(204) }
        bench.on("GET", "/token") { _ in .status(503) }
        let plain = bench.host { $0.retry = .never }
        let host = bench.host { $0.random = { 0 } }.intercepting(responses: Reading { _, _ in try await plain.send("/token") })
        let error = try await remoteError { try await host.send("/orders", method: .post) }
        #expect(error.status == 503 && !error.mayRepeat && error.mayHaveArrived)
        #expect(bench.asked("/orders").count == 1)
        bench.on("POST", "/token") { _ in .status(409) }
        let keyed = plain.intercepting(
            responses: Reading { _, _ in try await plain.send(Route(path: "/token", method: .post), idempotencyKey: UUID()) })
        #expect(try await remoteError { try await keyed.send("/orders", method: .post) }.failureKind == .permanent)
    }

    @Test(arguments: TransportKind.allCases)
    func `H12: no secret reaches the log or an error`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "POST", "/x") { _ in
            .json(literal: #"{"password":"hush"}"#, status: 403).setting("Set-Cookie", to: "sid=hush")
                .setting("Location", to: "https://u:hush@h/?token=hush#hush").setting("X-Session", to: "hush")
        }
        let lines = WatchedState<[String]>([])
        let log = ExchangeLog(redactedFields: ["x-session"], redactedQueryNames: ["pin"]) { entry in lines.update { $0.append("\(entry)") }
        }
        let host = bench.host().authorized(by: .bearer("hush")).logging(to: log)
        let route = Route(
            path: "/x", method: .post, query: ["access_token": "hush", "PIN": "hush", "page": 2],
            headers: ["X-Session": "hush", "Cookie": "hush"],
            body: .json(fields: ["password": "hush"]))
        let error = try await remoteError { try await host.send(route) }
        let text = lines.current.joined(separator: "\n")
        #expect(!text.contains("hush") && text.contains("Authorization: <redacted>") && text.contains("page=2"))
        #expect(text.contains("← 403") && !error.description.contains("hush") && error.description.contains("POST http://127.0.0.1"))
        #expect(error.body == Data(#"{"password":"hush"}"#.utf8))
    }

    @Test func `H12: bodies are logged only on request`() async throws {
        let memory = MemoryTransport { _ in .json(#"{"a":1}"#) }
        let (host, entries) = RemoteHost("a.example", transport: memory).logged(bodyBytes: 3)
        try await host.send(Route(path: "/x", method: .post, body: .data(Data("secret".utf8))))
        #expect(entries.current.map(\.body) == [Data("sec".utf8), Data(), Data(#"{"a"#.utf8)])
        let (other, bodiless) = RemoteHost("a.example", transport: memory).logged(bodyBytes: -1)
        try await other.send("/x")
        #expect(bodiless.current.map(\.body) == [Data(), Data(), Data()])
    }

    @Test func `H12: the text of an entry neither acts on a terminal nor looks like another entry`() async throws {
        let memory = MemoryTransport { _ in .json("a\n← 200\u{1B}[2J").adding("X-A", "b\u{9B}2J") }
        let (host, entries) = RemoteHost("a.example", transport: memory).logged(bodyBytes: 100)
        try await host.send("/x")
        for text in entries.current.map(\.description) {
            let lines = text.split(separator: "\n")
            #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("  ") })
            #expect(!lines.joined().unicodeScalars.contains { $0.actsOnDisplay })
        }
    }

    @Test func `H8, H13: the number of concurrent exchanges is limited`() async throws {
        let running = WatchedState((now: 0, most: 0, open: false))
        let memory = MemoryTransport { _ in
            running.update {
                $0.now += 1; $0.most = max($0.most, $0.now)
            }
            try await running.wait { $0.open ? () : nil }
            running.update { $0.now -= 1 }
            return .status(204)
        }
        // Without deadlines, because a retry on a busy machine would change the result.
        let host = RemoteHost("a.example", transport: memory, limits: HostLimits(concurrentExchanges: 3)).with { $0.timeouts = .init() }
        let tasks = (0..<20).map { _ in Task { try await host.send("/x") } }
        try await running.wait { $0.now == 3 ? () : nil }
        for _ in 0..<200 { await Task.yield() }
        running.update { $0.open = true }
        for task in tasks { try await task.value }
        #expect(running.current.most == 3 && memory.requests.count == 20)
    }
}

struct RouteTagTests {
    private enum Screen: LoggedRouteTagKey { typealias Value = String }

    private enum Person: RouteTagKey { typealias Value = String }

    private enum Depth: LoggedRouteTagKey { typealias Value = Int? }

    private enum Search: Routable {
        case text(String)
        var path: RoutePath { "/search" }
        var query: Parameters {
            switch self {
            case .text(let text): ["q": text]
            }
        }
        var options: RouteOptions {
            var options = RouteOptions()
            options.tags[Screen.self] = "search"
            return options
        }
    }

    private final class Watching: RequestInterceptor, ResponseInterceptor {
        let seen = Lock<[String]>([])

        func intercept(_ request: inout HTTPRequest) async throws {
            note("→", request)
            // A new request without the route.
            request = HTTPRequest(method: request.method, url: request.url, fields: request.fields, body: request.body)
        }

        func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws { note("←", request) }

        private func note(_ direction: String, _ request: HTTPRequest) {
            let path = request.route.map { "\($0.path)" } ?? "none"
            seen.withLock { $0.append("\(direction) \(path) \(request.tags[Screen.self] ?? "none")") }
        }
    }

    @Test func `a tag is read under its key alone`() {
        var tags = RouteTags()
        #expect(tags.isEmpty && tags[Screen.self] == nil)
        tags[Screen.self] = "list"
        tags[Person.self] = "Ada"
        tags[Depth.self] = .some(nil)
        tags[Screen.self] = "detail"
        #expect(tags[Screen.self] == "detail" && tags[Person.self] == "Ada" && tags[Depth.self] == .some(.none))
        tags[Person.self] = nil
        #expect(tags[Person.self] == nil && !tags.isEmpty)
    }

    @Test func `H16: interceptors, transports and further attempts see the route and its tags`() async throws {
        let transport = MemoryTransport(inTurn: .status(503), .status(302).adding("Location", "/elsewhere"), .json("{}"), .json("{}"))
        let watching = Watching()
        var host = RemoteHost("api.example.com", transport: transport)
            .intercepting(requests: watching).intercepting(requests: watching).intercepting(responses: watching)
        host.retry = .exponential(attempts: 2, base: .milliseconds(1))
        try await host.send(Search.text("swift"))
        try await host.send(Route(path: "/plain"))
        #expect(
            watching.seen.withLock { $0 } == [
                "→ /search search", "→ /search search", "← /search search", "→ /search search", "→ /search search", "← /search search",
                "→ /plain none", "→ /plain none", "← /plain none",
            ])
        #expect(transport.requests.map { $0.tags[Screen.self] } == ["search", "search", "search", nil])
        #expect(transport.requests.first?.route?.query == ["q": "swift"])
    }

    @Test func `H16: a tag of one call replaces that of the route, and is not sent`() async throws {
        let transport = MemoryTransport { _ in .json("{}") }
        let host = RemoteHost("api.example.com", transport: transport)
        try await host.send(Search.text("swift").tagged(Screen.self, "start").tagged(Person.self, "Ada"))
        let request = try #require(transport.requests.first)
        #expect(request.tags[Screen.self] == "start" && request.tags[Person.self] == "Ada")
        #expect(request.url.absoluteString == "https://api.example.com/search?q=swift")
        #expect(!request.fields.fields.contains { $0.value.contains("Ada") || $0.value.contains("start") })
    }

    @Test func `H16: a store's requests have the tags of its route`() async throws {
        let transport = MemoryTransport { _ in .json(#""found""#).adding("ETag", #""1""#) }
        let host = RemoteHost("api.example.com", transport: transport)
        let store = Store(cacher: MemoryCacher<String, String>(), fetcher: host.fetcher { Search.text($0) })
        _ = try await store["swift"].requireData()
        #expect(transport.requests.map { $0.tags[Screen.self] } == ["search"])
    }

    @Test func `H12, H16: logs show only the tags of logged keys`() async throws {
        let transport = MemoryTransport(inTurn: .status(503), .json("{}"))
        let (host, entries) = RemoteHost("api.example.com", transport: transport).with {
            $0.retry = .exponential(attempts: 2, base: .milliseconds(1))
        }.logged()
        let route = Route(path: "/x").tagged(Person.self, "Ada").tagged(Screen.self, "li\u{1B}st").tagged(Depth.self, 3)
        try await host.send(route)
        #expect(entries.current.count == 7)
        for entry in entries.current {
            let line = try #require("\(entry)".split(separator: "\n").first)
            #expect(line.hasSuffix(#" [Screen: li\u{1B}st, Depth: Optional(3)]"#), "\(line)")
            #expect(entry.tags[Screen.self] == "li\u{1B}st" && entry.tags[Person.self] == nil)
            #expect(!dumped(entry).contains("Ada"))
        }
    }

    @Test func `H12: a log line without tags has no brackets`() async throws {
        let (host, entries) = RemoteHost("api.example.com", transport: MemoryTransport { _ in .status(204) }).logged()
        try await host.send(Route(path: "/x").tagged(Person.self, "Ada"))
        #expect(entries.current.count == 3)
        #expect(!entries.current.contains { "\($0)".contains("[") || "\($0)".contains("Ada") })
    }

    @Test func `H12: neither the text nor a dump of tags shows private values`() {
        let route = Route(path: "/x").tagged(Person.self, "Ada").tagged(Screen.self, "list")
        let dump = dumped(route)
        #expect("\(route.options.tags)" == "Screen: list" && !dump.contains("Ada") && dump.contains("Screen: list"))
        #expect(!"\(route)".contains("Ada"))
    }

    /// A route with a different value at each access.
    private final class Counting: Routable {
        let count = Lock(0)
        var path: RoutePath { "/x" }
        var query: Parameters {
            count.withLock { count in
                count += 1
                return ["n": count]
            }
        }
    }

    @Test func `H16: the route that interceptors see is the one that was sent`() async throws {
        let transport = MemoryTransport { _ in .json("{}") }
        try await RemoteHost("api.example.com", transport: transport).send(Counting())
        #expect(transport.requests.first?.url.query() == "n=1" && transport.requests.first?.route?.query == ["n": 1])
    }

    @Test(.enabled(if: SwiftCompiler.found != nil, "swiftc or the built module is not found, so there is nothing to compile with"))
    func `H16: a tag of the wrong type does not compile`() async throws {
        let compiler = try #require(SwiftCompiler.found)
        let found = try await compiler.diagnostics(
            of: """
                import RemoteRouting
                enum Screen: RouteTagKey { typealias Value = String }
                final class Box { var value = 0 }
                func right(_ options: inout RouteOptions) { options.tags[Screen.self] = "list" }
                func right(_ route: Route) -> Route { route.tagged(Screen.self, "list") }
                func wrong(_ options: inout RouteOptions) { options.tags[Screen.self] = 3 }
                func wrong(_ route: Route) -> Route { route.tagged(Screen.self, 3) }
                func wrong(_ options: RouteOptions) -> Int? { options.tags[Screen.self] }
                enum Unsafe: RouteTagKey { typealias Value = Box }
                enum Without: RouteTagKey {}
                """)
        #expect(Set(found.map(\.line)) == [6, 7, 8, 9, 10])
    }
}

struct RedactionTests {
    private let redaction = Redaction(fields: ["x-session"], queryNames: ["token", "password"])

    @Test(arguments: [
        "https://h/x?token=hush", "https://h/x?user[password]=hush", "https://h/x?user%5Bpassword%5D=hush", "https://h/x?token[]=hush",
        "https://h/x?token%5B0%5D=hush", "https://h/x?a=1&TOKEN=hush", "https://h/x?%74oken=hush", "https://u:hush@h/", "/x#hush",
        "?token=hush&a=1", "https://h/x?token=\u{301}hush", "https://h/x?a=1&\u{301}b=2&token=hush", "https://u:hush@\u{301}h/",
        "https://h/x?user[password]\u{301}=hush",
    ])
    func `H12: the secrets of an address are redacted`(address: String) {
        #expect(!redaction.text(of: address).contains("hush"))
    }

    @Test(arguments: [
        "<https://h/x?page=2>; rel=\"next\", <https://h/x?token=hush&page=1>; rel=\"prev\"", "<https://u:hush@h/>; rel=next",
        "</x>; rel=a, </y?token=hush>; rel=b", "</x?a=1>, <https://u:hush@h/>", "</x?a=1>, </y#hush>",
        "</x>, <\u{301}/y?token=hush>\u{301}",
    ])
    func `H12: the secrets of each link are redacted`(field: String) {
        let text = redaction.value(of: HTTPFields.Field(name: "Link", value: field))
        #expect(!text.contains("hush"))
        #expect(text.filter { $0 == "<" || $0 == ">" }.count >= field.filter { $0 == "<" || $0 == ">" }.count)
    }

    @Test(arguments: [
        ("Refresh", "5; url=https://h/x?token=hush"), ("Refresh", "0;URL='/x?a=1&token=hush'"), ("Refresh", "1; url=/x#hush"),
        ("Destination", "https://u:hush@h/x"), ("Content-Location", "/x?token=hush"), ("Referer", "https://h/?token=hush"),
    ])
    func `H12: the secrets of other fields with addresses are redacted`(name: String, value: String) {
        #expect(!redaction.value(of: HTTPFields.Field(name: name, value: value)).contains("hush"))
        #expect(redaction.value(of: HTTPFields.Field(name: "Refresh", value: "5; url=/x?a=1")) == "5; url=/x?a=1")
    }

    @Test(arguments: ["accessToken", "refresh_token", "api_key", "X-Amz-Signature", "X-Goog-Signature", "X-Goog-Credential"])
    func `H12: a log redacts the usual names of secret query values`(name: String) {
        #expect(!ExchangeLog { _ in }.redacted("https://h/x?a=1&\(name)=hush").contains("hush"))
    }

    @Test func `H12: other values stay unchanged`() {
        let field = HTTPFields.Field(name: "Link", value: "<https://h/x?page=2>; rel=\"next\", </y>; rel=\"prev\"")
        #expect(redaction.value(of: field) == field.value)
        #expect(redaction.text(of: "https://h/x?user[name]=a&page=2") == "https://h/x?user[name]=a&page=2")
    }
}
