import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import StoreFiles
import Testing
import Trials

@testable import RemoteRouting

/// The failures after which a store may serve expired content (RFC 5861 §4), with a real origin.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct StaleIfErrorTests {
    private static let fresh = Bench.Response.json(User(id: 1, name: "fresh")).setting("Cache-Control", to: "max-age=1")

    private let time = ManualTime(date: Date())

    private func policy(_ change: (inout StorePolicy) -> Void = { _ in }) -> StorePolicy {
        var policy = StorePolicy(staleIfError: .seconds(3600))
        change(&policy)
        return policy
    }

    private func patient(_ host: inout RemoteHost) {
        host.retry = .never
        host.timeouts = .untilHang
    }

    private func store(
        _ host: RemoteHost, _ policy: StorePolicy, options: @escaping @Sendable () -> RouteOptions = { RouteOptions() }
    ) -> Store<Int, User> {
        let fetcher = host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)", options: options()) }
        return Store(cacher: MemoryCacher(), fetcher: fetcher, policy: policy, time: time)
    }

    /// Returns a store in which the content of key 1 has expired; its origin responds with `response` from now on.
    private func expired(
        _ bench: Bench, first: Bench.Response = fresh, then response: Bench.Response,
        options: @escaping @Sendable () -> RouteOptions = { RouteOptions() }, on host: RemoteHost? = nil
    ) async throws -> Store<Int, User> {
        serve(bench, first: first, then: response)
        let users = store(host ?? bench.host(patient), policy(), options: options)
        _ = try await users[1].requireData()
        time.advance(by: .seconds(5))
        return users
    }

    /// Serves `first` for the first request, and `response` for each later one.
    private func serve(_ bench: Bench, _ id: Int = 1, first: Bench.Response = fresh, then response: Bench.Response) {
        bench.on("GET", "/users/\(id)", inTurn: first, response)
    }

    @Test(arguments: RealTransport.available)
    func `H9: stale content is served only for the statuses 500, 502, 503 and 504`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        let users = store(bench.host(patient), policy())
        // A whole run tries every status.
        let statuses = Set(part(of: 300...599, each: 40) + Array(495...510)).sorted()
        // Here, 304 confirms no content, 401 has no challenge, and redirects have no location to follow.
        for status in statuses {
            serve(bench, status, then: .status(status))
            _ = try await users[status].requireData()
        }
        time.advance(by: .seconds(5))
        var served: [Int] = []
        for status in statuses {
            do {
                #expect(try await users[status].requireData().name == "fresh")
                served.append(status)
            } catch {
                #expect((error as? RemoteError)?.status == status)
            }
        }
        #expect(served == [500, 502, 503, 504])
    }

    /// Responses, and the codes of their errors; those without a code allow stale content.
    private static let broken: [(name: String, response: Bench.Response, code: RemoteError.Code?)] = [
        ("a login page", .html("<form>Sign in</form>"), .unexpectedType), ("broken JSON", .json(literal: "{\"id\":"), .undecodable),
        ("another model", .json(["problem": "none"]), .undecodable), ("no content", .status(204), .emptyBody),
        ("an empty body", .data(Data(), type: "application/json"), .emptyBody),
        ("a body without end", .repeating(Data(repeating: 65, count: 1000), times: 100), .bodyTooLarge),
        ("a redirect without end", .redirect(to: "/users/1"), .tooManyRedirects),
        ("a redirect to nowhere", .redirect(to: "ftp://a.example/x"), .redirectRefused),
        ("a reset before the head", cut.misbehaving(.resetBeforeHead), nil),
        ("a body that is cut", cut.misbehaving(.truncate(afterBodyBytes: 3)), nil),
        ("a body that is reset", cut.misbehaving(.reset(afterBodyBytes: 3)), nil),
        ("a broken chunk", cut.misbehaving(.breakChunk(afterBodyBytes: 3)), nil),
        ("lengths that differ", cut.misbehaving(.declareLengths([3, 5])), nil),
        ("a protocol other than HTTP", .verbatim("SSH-2.0-OpenSSH_9.2\r\n\r\n"), nil),
    ]
    private static let cut = Bench.Response.json(User(id: 2, name: "cut"))

    @Test(arguments: RealTransport.available, broken)
    func `H9: an unusable response is an error, without stale content, which is served only if no complete response arrives`(
        _ transport: RealTransport, _ example: (name: String, response: Bench.Response, code: RemoteError.Code?)
    ) async throws {
        let bench = try Bench(transport.kind)
        let users = try await expired(bench, then: example.response, options: { RouteOptions(responseLimit: 10_000) })
        if let code = example.code {
            let error = try await remoteError { _ = try await users[1].requireData() }
            #expect(error.code == code && !error.allowsStale, "\(error)")
        } else {
            #expect(try await users[1].requireData().name == "fresh")
            #expect(try await remoteError { _ = try await users[1].requireData(from: .origin) }.stage == .transport)
        }
    }

    @Test(
        arguments: RealTransport.available,
        [
            RouteOptions.Timeouts(head: .milliseconds(50)), .init(attempt: .milliseconds(50)), .init(overall: .milliseconds(50)),
            .init(idle: .milliseconds(50)),
        ])
    func `H9: stale content is served after a deadline passes, and if a body stalls`(
        _ transport: RealTransport, _ timeouts: RouteOptions.Timeouts
    ) async throws {
        let bench = try Bench(transport.kind)
        let late = Bench.Response.json([1, 2, 3]).misbehaving(timeouts.idle == nil ? .neverAnswer : .stall(afterBodyBytes: 2))
        let current = Lock(RouteOptions.Timeouts())
        let users = try await expired(bench, then: late, options: { RouteOptions(timeouts: current.withLock { $0 }) })
        current.withLock { $0 = timeouts }
        #expect(try await users[1].requireData().name == "fresh")
        #expect(try await remoteError { _ = try await users[1].requireData(from: .origin) }.stage == .timeout)
    }

    @Test(arguments: RealTransport.available)
    func `H9: stale content is served if the origin is unreachable`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        let users = try await expired(bench, then: StaleIfErrorTests.fresh)
        // A stopped origin would leave its port to others.
        bench.origin.goDown()
        #expect(try await users[1].requireData().name == "fresh")
        // After the stale window, the caller receives the error.
        time.advance(by: .seconds(3600))
        await #expect(throws: RemoteError.self) { try await users[1].requireData() }
    }

    @Test(
        arguments: ["must-revalidate", "must-revalidate, stale-if-error=60", "no-cache, stale-if-error=60", "stale-if-error=0"],
        [500, 503, 403])
    func `H9: no stale content is served if the origin forbids it`(_ control: String, _ status: Int) async throws {
        let bench = try Bench()
        let first = StaleIfErrorTests.fresh.setting("Cache-Control", to: "max-age=1, \(control)")
        let users = try await expired(bench, first: first, then: .status(status))
        #expect(try await remoteError { _ = try await users[1].requireData() }.status == status)
    }

    @Test func `H9: the origin's window applies to the same failures as the policy's`() async throws {
        let bench = try Bench()
        let first = StaleIfErrorTests.fresh.setting("Cache-Control", to: "max-age=1, stale-if-error=60")
        let users = store(bench.host(patient), .default)
        for (id, status) in [503, 403].enumerated() {
            serve(bench, id, first: first, then: .status(status))
            _ = try await users[id].requireData()
        }
        time.advance(by: .seconds(5))
        #expect(try await users[0].requireData().name == "fresh")
        #expect(try await remoteError { _ = try await users[1].requireData() }.status == 403)
    }

    @Test func `C12, H9: a remembered failure allows stale content only if the failure itself did`() async throws {
        let bench = try Bench()
        let users = store(bench.host(patient), policy { $0.errorExpiry = .seconds(60) })
        for (id, status) in [503, 401].enumerated() {
            serve(bench, id, then: .status(status))
            let observer = RecordingObserver(users[id].publish())
            try await observer.next { $0.isCompleted }
            time.advance(by: .seconds(5))
            await users[id].refresh()
            // An observer receives the last content with either error (C4).
            #expect(try await observer.next { $0.error != nil }.content?.name == "fresh")
            let requests = bench.asked.count
            if status == 503 {
                #expect(try await users[id].requireData().name == "fresh")
            } else {
                #expect(try await remoteError { _ = try await users[id].requireData() }.status == status)
            }
            #expect(bench.asked.count == requests)
            try await observer.stopAndLeave()
        }
    }

    @Test func `C13, H9: a list is not served stale if its refresh is rejected`() async throws {
        let bench = try Bench()
        let fetcher = bench.host(patient).pages(of: Int.self) { (org: Int) in Route(path: "/orgs/\(org)") }
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher, policy: policy(), time: time)
        for (id, status) in [502, 451].enumerated() {
            bench.on(
                "GET", "/orgs/\(id)", inTurn: .json([1]).setting("Cache-Control", to: "max-age=1").setting("Link", to: "</next>; rel=next"),
                .status(status))
            bench.on("GET", "/next") { _ in .json([2]) }
            #expect(try await lists[id].requireData() == [1])
            #expect(await lists[id].requestNextData() == .loaded)
        }
        time.advance(by: .seconds(5))
        #expect(try await lists[0].requireData() == [1, 2])
        #expect(try await remoteError { _ = try await lists[1].requireData() }.status == 451)
    }

    /// Errors before a request, and whether they allow stale content.
    private static let causes: [(error: any Error, isServed: Bool)] = [
        (RemoteError(.transport, .connectionRefused, operation: "GET", "refused"), true),
        (RemoteError(.timeout, .headTimedOut, operation: "GET", "late"), true), (TransportFailure(.offline, "no network"), true),
        (TransportFailure(.bodyTooLarge, "too large"), false),
        (RemoteError(.decode, .undecodable, operation: "GET", "no token"), false), (TestError(), false),
    ]

    @Test(arguments: causes.indices, [true, false])
    func `H9: a failed interceptor or credential refresh allows stale content only if its cause does`(
        _ index: Int, _ isRefresh: Bool
    ) async throws {
        let (cause, isServed) = StaleIfErrorTests.causes[index]
        let bench = try Bench()
        let failure = Lock<(any Error)?>(nil)
        let plain = bench.host(patient)
        let host =
            isRefresh
            ? plain.authorized(by: .bearer(Token(accessToken: "a")) { _, _ in throw cause })
            : plain.intercepting(requests: Changing { _ in if let failure = failure.withLock({ $0 }) { throw failure } })
        let users = try await expired(bench, then: .status(isRefresh ? 401 : 500), on: host)
        failure.withLock { $0 = cause }
        if isRefresh {
            let error = try await remoteError { _ = try await users[1].requireData(from: .origin) }
            #expect(error.code == .refreshFailed && error.allowsStale == isServed)
        }
        if isServed {
            #expect(try await users[1].requireData().name == "fresh")
        } else {
            await #expect(throws: RemoteError.self) { try await users[1].requireData() }
        }
        if !isRefresh { #expect(bench.asked.count == 1) }
    }
}

/// Records of responses that fields of the request selected.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct VaryTests {
    private struct User: Codable, Equatable, Sendable { var name: String }

    /// The part of a program that writes a field.
    enum Source: CaseIterable, Sendable { case defaults, route, interceptor, authorization }

    private let place: TemporaryDirectory
    private let time = ManualTime(date: Date())

    init() throws { place = try TemporaryDirectory() }

    private static func origin(of field: String, vary: [String], tag: Bool = true) -> MemoryTransport {
        MemoryTransport { request in
            let value = request.fields[field] ?? "none"
            var response = MemoryTransport.Response.json(#"{"name":"\#(value)"}"#).adding("Cache-Control", "max-age=600")
            for line in vary { response = response.adding("Vary", line) }
            return tag ? response.adding("ETag", "\"\(value)\"") : response
        }
    }

    /// Starts the program with a value of a field, shows user 7, and ends the program.
    ///
    /// - Returns: The names that an observer saw.
    private func launch(
        _ transport: MemoryTransport, _ field: String, _ value: String?, from source: Source, change: (inout RemoteHost) -> Void = { _ in }
    ) async throws -> [String] {
        var host = RemoteHost("api.example.com", transport: transport, time: time)
        var headers: Headers = [:]
        if let value {
            switch source {
            case .defaults: host.defaults.append(field, value)
            case .route: headers.append(field, value)
            case .interceptor: host = host.intercepting(requests: Changing { try $0.fields.set(field, value) })
            case .authorization: host = host.authorized(by: .custom { try $0.set(field, value) })
            }
        }
        change(&host)
        let store = Store(
            cacher: TieredCacher(over: FileCacher<Int, User>(directory: place.url, expiry: .after(.seconds(10)))),
            fetcher: host.fetcher(of: User.self) { [headers] (id: Int) in Route(path: "/users/\(id)", headers: headers) }, time: time)
        let observer = RecordingObserver(store[7].publish())
        try await observer.next { $0.isCompleted }
        try await observer.stopAndLeave()
        try await store.waitUntilSaved()
        return observer.states.compactMap(\.content?.name)
    }

    @Test(arguments: Source.allCases, [true, false])
    func `H19: content that was selected by another value is a miss`(_ source: Source, _ hasTag: Bool) async throws {
        let transport = VaryTests.origin(of: "X-Tenant", vary: ["Accept-Encoding, x-tenant"], tag: hasTag)
        #expect(Set(try await launch(transport, "X-Tenant", "a", from: source)) == ["a"])
        #expect(Set(try await launch(transport, "X-Tenant", "b", from: source)) == ["b"])
        #expect(Set(try await launch(transport, "X-Tenant", nil, from: source)) == ["none"])
        #expect(Set(try await launch(transport, "X-Tenant", "a", from: source)) == ["a"])
        #expect(transport.requests.count == 4)
    }

    @Test(arguments: [Source.defaults, .route], [true, false])
    func `H19: content that was selected by the same value is a hit`(_ source: Source, _ hasTag: Bool) async throws {
        let transport = VaryTests.origin(of: "Accept-Language", vary: ["Accept-Language", "User-Agent", "X-Missing"], tag: hasTag)
        for _ in 0..<3 { #expect(Set(try await launch(transport, "Accept-Language", "de, en;q=0.5", from: source)) == ["de, en;q=0.5"]) }
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [Source.interceptor, .authorization])
    func `H19: content that a dynamic field of the same value selected is shown and revalidated`(_ source: Source) async throws {
        let transport = VaryTests.origin(of: "X-Tenant", vary: ["X-Tenant"])
        for _ in 0..<2 { #expect(Set(try await launch(transport, "X-Tenant", "a", from: source)) == ["a"]) }
        #expect(transport.requests.map { $0.fields["If-None-Match"] } == [nil, "\"a\""])
    }

    @Test(arguments: [true, false])
    func `H19: saved content waits for no refresh of a token that did not select it, and survives its failure`(
        _ isRefused: Bool
    ) async throws {
        let (hasBegun, mayEnd) = (WatchedState(false), WatchedState(isRefused))
        let tokens = RefreshingTokens(Token(accessToken: "old")) { _, _ in
            hasBegun.update { $0 = true }
            try await mayEnd.wait { $0 ? () : nil }
            throw TestError()
        }
        let transport = VaryTests.origin(of: "Accept-Language", vary: ["Accept-Language"])
        #expect(Set(try await launch(transport, "Accept-Language", "de", from: .defaults)) == ["de"])
        let rejected = RemoteHost("api.example.com", transport: MemoryTransport { _ in .status(401) }).authorized(by: .bearer(tokens))
        let task = Task { try await remoteError { try await rejected.send("/x") } }
        try await hasBegun.wait { $0 ? () : nil }
        if isRefused { _ = try await task.value }
        let names = try await launch(transport, "Accept-Language", "de", from: .defaults) { $0 = $0.authorized(by: .bearer(tokens)) }
        #expect(Set(names) == ["de"] && transport.requests.count == 1)
        mayEnd.update { $0 = true }
        _ = try await task.value
    }

    @Test(arguments: [["*"], ["Accept, *"], (0..<70).map { "X-\($0)" }])
    func `H19: content that any field may have selected is a miss if one differs`(_ vary: [String]) async throws {
        let transport = VaryTests.origin(of: "X-Tenant", vary: vary)
        for tenant in ["a", "b", "b"] { #expect(Set(try await launch(transport, "X-Tenant", tenant, from: .defaults)) == [tenant]) }
        // Content of the same request is shown and revalidated.
        #expect(transport.requests.map { $0.fields["If-None-Match"] } == [nil, nil, "\"b\""])
    }

    @Test func `H19: content that the app has changed keeps its selection`() async throws {
        let transport = VaryTests.origin(of: "X-Tenant", vary: ["X-Tenant"])
        #expect(Set(try await launch(transport, "X-Tenant", "a", from: .defaults)) == ["a"])
        let host = RemoteHost("api.example.com", transport: transport, time: time).with { $0.defaults.append("X-Tenant", "a") }
        let store = Store(
            cacher: FileCacher<Int, User>(directory: place.url),
            fetcher: host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)") }, time: time)
        #expect(try await store[7].requireData().name == "a")
        await store[7].update { $0.name = "changed" }
        try await store.waitUntilSaved()
        #expect(Set(try await launch(transport, "X-Tenant", "b", from: .defaults)) == ["b"])
    }

    @Test func `H19: the values of credentials are not saved in clear text`() async throws {
        let transport = VaryTests.origin(of: "X-Tenant", vary: ["Authorization"])
        _ = try await launch(transport, "Authorization", "Bearer sesame", from: .authorization)
        let texts = try FileManager.default.subpathsOfDirectory(atPath: place.url.path).map {
            String(decoding: (try? Data(contentsOf: place.url.appending(path: $0))) ?? Data(), as: UTF8.self)
        }
        #expect(texts.contains { $0.contains("Cache-Control") || $0.contains("cache-control") || $0.contains("max-age") })
        #expect(texts.allSatisfy { !$0.contains("sesame") })
    }

    @Test func `H19: a redirect that varies selects the content behind it`() async throws {
        let transport = MemoryTransport { request in
            let language = request.fields["Accept-Language"] ?? "none"
            guard request.url.path == "/users/7" else {
                return .json(#"{"name":"\#(request.url.lastPathComponent)"}"#).adding("Cache-Control", "max-age=600")
            }
            return .status(301).adding("Location", "/\(language)").adding("Vary", "Accept-Language").adding("Cache-Control", "max-age=600")
        }
        #expect(Set(try await launch(transport, "Accept-Language", "de", from: .defaults)) == ["de"])
        #expect(Set(try await launch(transport, "Accept-Language", "de", from: .defaults)) == ["de"])
        #expect(transport.requests.count == 2)
        #expect(Set(try await launch(transport, "Accept-Language", "fr", from: .defaults)) == ["fr"])
        #expect(transport.requests.count == 4)
    }

    @Test func `H19: content of a stream that another value selected is a miss, and its id is not sent`() async throws {
        let transport = MemoryTransport { request in
            let text = #"{"name":"\#(request.fields["X-Tenant"] ?? "none")"}"#
            let headers = [("Content-Type", "text/event-stream"), ("Vary", "X-Tenant, Accept, Last-Event-ID")]
            return MemoryTransport.Response(headers: headers, body: Data("id: 1\ndata: \(text)\n\n".utf8)).stalling
        }
        func launch(_ tenant: String, connections: Int) async throws -> Set<String> {
            let host = RemoteHost("api.example.com", transport: transport, time: time).with { $0.defaults.append("X-Tenant", tenant) }
            let store = Store(
                cacher: TieredCacher(over: FileCacher<Int, User>(directory: place.url)),
                fetcher: host.liveFetcher(of: User.self) { (_: Int) in Route(path: "/x") }, time: time)
            let observer = RecordingObserver(store[7].publish(forceRefresh: true))
            try await until("the stream begins") { transport.requests.count == connections }
            try await observer.next { $0.isCompleted }
            try await observer.stopAndLeave()
            try await store.waitUntilSaved()
            return Set(observer.states.compactMap(\.content?.name))
        }
        for (index, tenant) in ["a", "a", "a", "b"].enumerated() { #expect(try await launch(tenant, connections: index + 1) == [tenant]) }
        #expect(transport.requests.map { $0.fields["Last-Event-ID"] } == [nil, "1", "1", nil])
    }

    @Test(arguments: [false, true])
    func `H19: the first page of a list that another value selected is a miss, and several pages keep their selection`(
        _ hasPages: Bool
    ) async throws {
        let transport = MemoryTransport { request in
            let response = MemoryTransport.Response.json(#"["\#(request.fields["X-Tenant"] ?? "none")"]"#)
                .adding("Cache-Control", "max-age=600").adding("Vary", "X-Tenant").adding("ETag", "\"v1\"")
            return hasPages && request.url.query() == nil ? response.adding("Link", "</names?page=2>; rel=\"next\"") : response
        }
        for (tenant, count) in [("a", 1), ("a", 1), ("b", 2)] {
            let host = RemoteHost("api.example.com", transport: transport, time: time).with { $0.defaults.append("X-Tenant", tenant) }
            let lists = PaginationStore(
                cacher: FileCacher<Int, [String]>(directory: place.url),
                fetcher: host.pages(of: String.self) { (_: Int) in Route(path: "/names") }, time: time)
            // The second page replaces the element of the first one, which is equal.
            #expect(try await lists[1].requireData().allSatisfy { $0 == tenant })
            if hasPages { _ = await lists[1].requestNextData() }
            try await lists.waitUntilSaved()
            #expect(hasPages || transport.requests.count == count)
        }
    }
}
