import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Laws where two features meet: stores and redirects, events and deadlines, credentials and streamed bodies.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CombinationTests {
    private struct User: Codable, Equatable, Sendable { var name: String }

    private let time = ManualTime(date: Date())

    private func users(_ bench: Bench, method: HTTPMethod = .get) -> Store<Int, User> {
        let host = bench.host(time: time) { $0.timeouts = .init() }
        return Store(
            cacher: MemoryCacher<Int, User>(),
            fetcher: host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)", method: method) }, time: time)
    }

    @Test(arguments: [
        (302, nil, 2), (302, "no-store", 2), (302, "max-age=5", 2), (302, "max-age=60", 1), (307, nil, 2), (301, nil, 1), (308, nil, 1),
        (308, "max-age=5", 2),
    ])
    func `H9: content behind a redirect is fresh no longer than the redirect`(_ status: Int, _ control: String?, _ count: Int) async throws
    {
        let bench = try Bench(.memory, on: "GET", "/users/7") { _ in
            let redirect = Bench.Response.redirect(to: "/v1", status: status)
            return control.map { redirect.setting("Cache-Control", to: $0) } ?? redirect
        }
        bench.on("GET", "/v1") { _ in .json(User(name: "Ada")).setting("Cache-Control", to: "max-age=3600") }
        let users = users(bench)
        _ = try await users[7].requireData()
        time.advance(by: .seconds(10))
        _ = try await users[7].requireData()
        #expect(bench.asked("/users/7").count == count)
    }

    @Test func `H9: a redirect to another address is not confirmed by the validator of the former`() async throws {
        let bench = try Bench(.memory)
        let version = Lock(1)
        bench.on("GET", "/users/7") { _ in .redirect(to: "/v\(version.withLock(\.self))") }
        for number in 1...2 {
            // Entity tags are unique within one resource only (RFC 9110 §8.8.3).
            bench.on("GET", "/v\(number)") { asked in
                asked["If-None-Match"] == nil
                    ? .json(User(name: "\(number)")).tagged("same").setting("Cache-Control", to: "no-cache") : .notModified
            }
        }
        let users = users(bench)
        #expect(try await users[7].requireData().name == "1")
        version.withLock { $0 = 2 }
        #expect(try await users[7].requireData().name == "2")
    }

    @Test(arguments: [("Last-Modified", "If-Modified-Since"), ("ETag", "If-None-Match")])
    func `H9: the validator of a redirect's target does not confirm it once the route has its own content again`(
        _ name: String, _ condition: String
    ) async throws {
        let bench = try Bench(.memory)
        let isAway = Lock(true)
        // The page is newer than the content of the route, and has the same entity tag by coincidence (RFC 9110 §8.8.3).
        let validator = name == "ETag" ? "\"1\"" : HTTPDate.format(time.date)
        bench.on("GET", "/users/7") { asked in
            if isAway.withLock(\.self) { return .redirect(to: "/maintenance") }
            return asked[condition] == nil ? .json(User(name: "Ada")) : .notModified
        }
        bench.on("GET", "/maintenance") { _ in
            .json(User(name: "away")).setting(name, to: validator).setting("Cache-Control", to: "no-cache")
        }
        let users = users(bench)
        #expect(try await users[7].requireData().name == "away")
        isAway.withLock { $0 = false }
        #expect(try await users[7].requireData().name == "Ada")
    }

    @Test func `H9: the time until the target of a redirect responds ages the redirect`() async throws {
        let bench = try Bench(.memory, on: "GET", "/users/7") { _ in
            .redirect(to: "/v1").setting("Cache-Control", to: "max-age=60")
        }
        bench.on("GET", "/v1") { [time] _ in
            time.advance(by: .seconds(50))
            return .json(User(name: "Ada")).setting("Cache-Control", to: "max-age=3600")
        }
        let users = users(bench)
        for count in [1, 1, 2] {
            _ = try await users[7].requireData()
            #expect(bench.asked("/users/7").count == count)
            time.advance(by: .seconds(6))
        }
    }

    @Test func `H9: the delay between attempts does not age a response`() async throws {
        let bench = try Bench(.memory)
        bench.on(
            "GET", "/users/7", inTurn: .status(503).setting("Retry-After", to: "60"),
            .json(User(name: "Ada")).setting("Cache-Control", to: "max-age=60"))
        let users = users(bench)
        let task = Task { try await users[7].requireData() }
        try await time.advance(by: .seconds(60), sleepers: 1)
        _ = try await task.value
        time.advance(by: .seconds(50))
        _ = try await users[7].requireData()
        #expect(bench.asked.count == 2)
    }

    @Test(arguments: [(HTTPMethod.get, 2), (.post, 1)])
    func `H7, H9: a 304 without stored content repeats a safe request once, and is an error then`(
        _ method: HTTPMethod, _ count: Int
    ) async throws {
        let bench = try Bench(.memory, on: method.rawValue, "/users/7") { _ in .notModified }
        let error = await #expect(throws: RemoteError.self) { try await users(bench, method: method)[7].requireData() }
        #expect(error?.status == 304 && bench.asked.count == count)
    }

    @Test(arguments: [302, 404, 503])
    func `H6: a body that a stream of events does not wait for has a deadline`(_ status: Int) async throws {
        let memory = MemoryTransport { request in
            guard request.url.path == "/x" else { return .status(204) }
            return .status(status).adding("Location", "/there").adding("Content-Length", "9").stalling
        }
        let (host, entries) = RemoteHost("a.example", transport: memory, time: time).with {
            $0.timeouts = .init(head: .seconds(30))
            // Events reconnect after a 503 otherwise.
            $0.retry.shouldRetry = { _ in false }
        }.logged()
        let hasEnded = WatchedState(false)
        let task = Task {
            defer { hasEnded.update { $0 = true } }
            for try await _ in host.events(for: Route(path: "/x")) {}
        }
        try await entries.wait { $0.contains { if case .received = $0.event { true } else { false } } ? () : nil }
        // In steps that are shorter than the time for the head of the next request.
        try await until("the deadline of the body passes") {
            if hasEnded.current || memory.requests.count > 1 { return true }
            time.advance(by: .seconds(1))
            return false
        }
        if status == 302 {
            try await task.value
        } else {
            #expect(try await remoteError { try await task.value }.status == status)
        }
    }

    @Test func `H6, W3: a redirect whose body trickles is followed after the time for a head`() async throws {
        let redirect = WatchedState<Exchange?>(nil)
        let transport = CustomTransport { request, limits in
            let exchange = Exchange(limits: limits)
            if request.url.path == "/x" {
                let fields = try fields(["Location": "/there", "Content-Length": "9"])
                exchange.receive(HTTPResponse(status: 302, fields: fields, url: request.url))
                redirect.update { $0 = exchange }
            } else {
                exchange.receive(HTTPResponse(status: 204, url: request.url))
                exchange.finish()
            }
            return try await exchange.response()
        }
        let host = RemoteHost("a.example", transport: transport, time: time).with {
            $0.timeouts = .init(head: .seconds(30), idle: .seconds(30))
        }
        let task = Task { try await host.send("/x") }
        // The idle time, and the time for the body.
        try await time.advance(by: .seconds(20), sleepers: 2)
        redirect.current?.receive(Data("x".utf8))
        time.advance(by: .seconds(11))
        try await task.value
    }

    @Test func `H20: a sequence of events that has ended does not connect again`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        var iterator = RemoteHost("a.example", transport: memory).events(for: Route(path: "/x")).makeAsyncIterator()
        for _ in 1...2 { #expect(try await iterator.next() == nil) }
        #expect(memory.requests.count == 1)
    }

    @Test func `H5: events continue after a refresh that failed transiently`() async throws {
        let bench = try Bench(.memory, on: "GET", "/x") { asked in
            asked["Authorization"] == "Bearer new" ? .events("data: a\n\n") : .status(401)
        }
        bench.on("POST", "/refresh", inTurn: .status(503), .json(Token(accessToken: "new")))
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init() }.refreshing()
        let task = Task {
            var iterator = host.events(for: Route(path: "/x")).makeAsyncIterator()
            return try await iterator.next()?.data
        }
        try await time.advance(by: .seconds(3), sleepers: 1)
        #expect(try await task.value == "a")
    }

    @Test func `H5, H6: a refresh that a stream of events begins has the deadlines of the host`() async throws {
        let memory = MemoryTransport { request in
            request.url.path == "/refresh" ? .json("{").adding("Content-Length", "9").stalling : .status(401)
        }
        let host = RemoteHost("a.example", transport: memory, time: time).with {
            $0.timeouts = .init(idle: .seconds(30))
            $0.retry.shouldRetry = { _ in false }
        }.refreshing()
        let hasEnded = WatchedState(false)
        let task = Task {
            defer { hasEnded.update { $0 = true } }
            for try await _ in host.events(for: Route(path: "/x")) {}
        }
        try await until("the deadline of the refresh passes") {
            time.advance(by: .seconds(1))
            return hasEnded.current
        }
        let error = try await remoteError { try await task.value }
        #expect((error.underlyingError as? RemoteError)?.code == .idleTimedOut)
    }

    @Test(arguments: TransportKind.allCases)
    func `H5: a 401 of a one-shot body refreshes the credentials for the next request`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.guarded("POST")
        bench.refreshes()
        let host = bench.host().refreshing()
        func upload() async throws -> [Int] {
            let body = HTTPBodyStream(chunks: [Data("abc".utf8)], length: 3, isReplayable: false)
            return try await host.send(Route(path: "/x", method: .post, body: .stream(body)))
        }
        let error = try await remoteError { _ = try await upload() }
        #expect(error.status == 401 && error.code == .badStatus && !error.mayHaveArrived)
        #expect(bench.asked("/x").count == 1)
        #expect(try await upload() == [1])
        #expect(bench.asked("/refresh").count == 1)
    }

    @Test(arguments: [(301, false), (302, false), (303, false), (307, true), (308, true)])
    func `W2: a POST is sent again after a 401 behind its redirect only if the redirect refused it`(
        _ status: Int, _ isRefusal: Bool
    ) async throws {
        let bench = try Bench(.memory, on: "POST", "/orders") { _ in .status(status).setting("Location", to: "/orders/7") }
        for method in ["GET", "POST"] { bench.guarded(method, "/orders/7") }
        bench.refreshes()
        let host = bench.host().refreshing()
        let order = Route(path: "/orders", method: .post, body: .json([7]))
        if isRefusal {
            #expect(try await host.send(order, as: [Int].self) == [1])
        } else {
            let error = try await remoteError { try await host.send(order) }
            #expect(error.status == 401 && error.mayHaveArrived && !error.isRetryable)
            // The next call has the new credentials.
            #expect(try await host.send("/orders/7", as: [Int].self) == [1])
        }
        #expect(bench.asked("/orders").count == (isRefusal ? 2 : 1))
        #expect(bench.asked("/refresh").count == 1)
    }

    @Test func `H5: a 401 after a redirect there and back starts no refresh`() async throws {
        let bench = try Bench(.memory, on: "GET", "/a") { asked in
            asked["host"] == "a.example" ? .redirect(to: "https://b.example/a") : .redirect(to: "https://a.example/end")
        }
        bench.on("GET", "/end") { asked in asked["Authorization"] == nil ? .status(401) : .json([1]) }
        bench.refreshes()
        let host = RemoteHost("a.example", transport: bench.transport).with { $0.timeouts = .untilHang }.refreshing()
        #expect(try await remoteError { try await host.send("/a") }.status == 401)
        #expect(bench.asked("/refresh").isEmpty && bench.asked("/end").count == 1)
    }

    @Test(
        arguments: [
            (ProxyOptions.system, [:], false), (.system, ["http_proxy": "http://proxy.example:3128"], true),
            (.system, ["http_proxy": "user:secret@proxy.example:3128"], true),
            (.system, ["ALL_PROXY": "socks5h://proxy.example:1080"], true), (.system, ["http_proxy": "http://127.0.0.1:3128"], false),
            (.system, ["http_proxy": "proxy.example:1", "no_proxy": "a, localhost"], false),
            (.system, ["http_proxy": "proxy.example:1", "NO_PROXY": "*"], false), (.http("proxy.example", port: 3128), [:], true),
            (.system, ["http_proxy": "proxy.example:1", "no_proxy": "a,*"], true),
            (.http("127.0.0.1", port: 3128), [:], false), (.none, ["http_proxy": "http://proxy.example:3128"], false),
        ] as [(ProxyOptions, [String: String], Bool)])
    func `H5: a proxy on another machine leads away from the loopback interface`(
        _ proxy: ProxyOptions, _ environment: [String: String], _ expected: Bool
    ) {
        #expect(proxy.leadsAway(from: "localhost") { environment[$0] } == expected)
    }

    #if os(Linux)
    @Test(arguments: [
        ("10.0.0.0/8", "127.0.0.1", true), ("128.0.0.0/1", "127.0.0.1", true), ("127.0.0.0/33", "127.0.0.1", true),
        ("0.1", "127.0.0.1", true), ("a/8", "127.0.0.1", true), ("127.0.0.1", "127.0.0.1", false),
        ("127.0.0.0/8", "127.0.0.2", !ProxyOptions.knowsRanges), ("127.0.0.2/32", "127.0.0.2", !ProxyOptions.knowsRanges),
        ("::1", "[::1]", false), ("127.0.0.0/8", "[::1]", true),
        ("LOCALHOST", "localhost", false), (".localhost", "a.localhost", false), ("10.0.0.0/8", "localhost", true),
    ])
    func `H5: only an exception for the address itself keeps requests to it from a proxy on another machine`(
        _ list: String, _ host: String, _ expected: Bool
    ) {
        let environment = ["http_proxy": "http://proxy.example:3128", "no_proxy": list]
        #expect(ProxyOptions.system.leadsAway(from: host) { environment[$0] } == expected)
    }
    #endif

    @Test func `H5: credentials for the loopback interface are not sent to a proxy on another machine`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost(HostConfiguration("localhost", scheme: .http), transport: memory).authorized(by: .bearer("t"))
        let error = try await remoteError { try await host.with { $0.proxy = .http("proxy.example", port: 3128) }.send("/x") }
        #expect(error.code == .insecureCredentials && memory.requests.isEmpty, "\(error)")
    }
}
