import Foundation
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

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

    /// An interceptor that records the routes and tags of requests.
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
        let entries = Lock<[ExchangeLog.Entry]>([])
        let transport = MemoryTransport(inTurn: .status(503), .json("{}"))
        var host = RemoteHost("api.example.com", transport: transport).logging(
            to: ExchangeLog { entry in entries.withLock { $0.append(entry) } })
        host.retry = .exponential(attempts: 2, base: .milliseconds(1))
        let route = Route(path: "/x").tagged(Person.self, "Ada").tagged(Screen.self, "li\u{1B}st").tagged(Depth.self, 3)
        try await host.send(route)
        let found = entries.withLock { $0 }
        #expect(found.count == 7)
        for entry in found {
            let line = try #require("\(entry)".split(separator: "\n").first)
            #expect(line.hasSuffix(#" [Screen: li\u{1B}st, Depth: Optional(3)]"#), "\(line)")
            #expect(entry.tags[Screen.self] == "li\u{1B}st" && entry.tags[Person.self] == nil)
            var dumped = ""
            dump(entry, to: &dumped)
            #expect(!dumped.contains("Ada"))
        }
    }

    @Test func `H12: a log line without tags has no brackets`() async throws {
        let entries = Lock<[String]>([])
        let host = RemoteHost("api.example.com", transport: MemoryTransport { _ in .status(204) })
            .logging(to: ExchangeLog { entry in entries.withLock { $0.append("\(entry)") } })
        try await host.send(Route(path: "/x").tagged(Person.self, "Ada"))
        #expect(entries.withLock { $0.count } == 3)
        #expect(entries.withLock { !$0.contains { $0.contains("[") || $0.contains("Ada") } })
    }

    @Test func `H12: neither the text nor a dump of tags shows private values`() {
        let route = Route(path: "/x").tagged(Person.self, "Ada").tagged(Screen.self, "list")
        var dumped = ""
        dump(route, to: &dumped)
        #expect("\(route.options.tags)" == "Screen: list" && !dumped.contains("Ada") && dumped.contains("Screen: list"))
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
