import Foundation
import StoreCore
import StoreFiles
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// Records of responses that fields of the request selected.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct VaryTests {
    private struct User: Codable, Equatable, Sendable { var name: String }

    /// The part of a program that writes a field.
    enum Source: CaseIterable, Sendable { case defaults, route, interceptor, authorization }

    private let place: TemporaryDirectory
    private let time = ManualTime(date: Date())

    init() throws { place = try TemporaryDirectory() }

    /// Answers with the value of a field.
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

    @Test func `H19: a field that an interceptor adds later selects, too`() async throws {
        let transport = VaryTests.origin(of: "X-Tenant", vary: ["X-Tenant"])
        #expect(Set(try await launch(transport, "X-Tenant", nil, from: .defaults)) == ["none"])
        #expect(Set(try await launch(transport, "X-Tenant", "b", from: .interceptor)) == ["b"])
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

    @Test func `H19: the first page of a list that another value selected is a miss`() async throws {
        let transport = MemoryTransport { request in
            .json(#"["\#(request.fields["X-Tenant"] ?? "none")"]"#).adding("Cache-Control", "max-age=600").adding("Vary", "X-Tenant")
        }
        for (tenant, count) in [("a", 1), ("a", 1), ("b", 2)] {
            let host = RemoteHost("api.example.com", transport: transport, time: time).with { $0.defaults.append("X-Tenant", tenant) }
            let lists = PaginationStore(
                cacher: FileCacher<Int, [String]>(directory: place.url),
                fetcher: host.pages(of: String.self) { (_: Int) in Route(path: "/names") }, time: time)
            #expect(try await lists[1].requireData() == [tenant])
            try await lists.waitUntilSaved()
            #expect(transport.requests.count == count)
        }
    }

    @Test func `H19: a list with several pages keeps its selection`() async throws {
        let transport = MemoryTransport { request in
            let response = MemoryTransport.Response.json(#"["\#(request.fields["X-Tenant"] ?? "none")"]"#)
                .adding("Cache-Control", "max-age=600").adding("Vary", "X-Tenant").adding("ETag", "\"v1\"")
            return request.url.query() == nil ? response.adding("Link", "</names?page=2>; rel=\"next\"") : response
        }
        for tenant in ["a", "b"] {
            let host = RemoteHost("api.example.com", transport: transport, time: time).with { $0.defaults.append("X-Tenant", tenant) }
            let lists = PaginationStore(
                cacher: FileCacher<Int, [String]>(directory: place.url),
                fetcher: host.pages(of: String.self) { (_: Int) in Route(path: "/names") }, time: time)
            // The second page replaces the element of the first one, which is equal.
            #expect(try await lists[1].requireData().allSatisfy { $0 == tenant })
            _ = await lists[1].requestNextData()
            try await lists.waitUntilSaved()
        }
    }
}
