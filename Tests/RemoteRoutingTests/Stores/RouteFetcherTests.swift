import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

struct RouteFetcherTests {
    private struct User: Codable, Equatable, Sendable { var name: String }

    private let time = ManualTime(date: Date())
    private let origin: LoopbackOrigin

    init() throws { origin = try LoopbackOrigin() }

    private func host(_ origin: LoopbackOrigin) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)), time: time)
    }

    private func users(
        _ host: RemoteHost, _ cacher: MemoryCacher<Int, User> = MemoryCacher(), options: RouteOptions = RouteOptions()
    ) -> Store<Int, User> {
        Store(
            cacher: cacher, fetcher: host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)", options: options) }, time: time)
    }

    @Test func `H9: content is used for the lifetime of the origin, then revalidated without a transfer`() async throws {
        origin.on(.get, "/users/7") { request in
            .json(User(name: "Ada")).tagged("v1").setting("Cache-Control", to: "max-age=60").revalidated(by: request)
        }
        let users = users(host(origin))
        #expect(try await users[7].requireData() == User(name: "Ada"))
        time.advance(by: .seconds(55))
        #expect(try await users[7].requireData() == User(name: "Ada"))
        #expect(origin.requests.map(\.status) == [200])
        time.advance(by: .seconds(10))
        #expect(try await users[7].requireData() == User(name: "Ada"))
        #expect(origin.requests.map(\.status) == [200, 304] && origin.requests.last?.headers["If-None-Match"] == "\"v1\"")
        // The 304 carries a new lifetime.
        time.advance(by: .seconds(50))
        #expect(try await users[7].requireData() == User(name: "Ada"))
        #expect(origin.requests.count == 2)
    }

    @Test func `H9: changed content replaces the validator`() async throws {
        let version = Lock(1)
        origin.on(.get, "/users/7") { request in
            let number = version.withLock { $0 }
            return .json(User(name: "v\(number)")).tagged("\(number)").setting("Cache-Control", to: "no-cache").revalidated(by: request)
        }
        let users = users(host(origin))
        #expect(try await users[7].requireData().name == "v1")
        version.withLock { $0 = 2 }
        #expect(try await users[7].requireData().name == "v2")
        #expect(try await users[7].requireData().name == "v2")
        #expect(origin.requests.map(\.status) == [200, 200, 304])
        #expect(origin.requests.map { $0.headers["If-None-Match"] } == [nil, "\"1\"", "\"2\""])
    }

    @Test func `H9: content with no-store is not saved, and the older record is removed`() async throws {
        origin.on(
            .get, "/users/7", inTurn: .json(User(name: "a")).setting("Cache-Control", to: "max-age=1"),
            .json(User(name: "b")).setting("Cache-Control", to: "no-store, max-age=60"))
        let cacher = MemoryCacher<Int, User>()
        let users = users(host(origin), cacher)
        #expect(try await users[7].requireData().name == "a")
        #expect(await cacher.load(param: 7) != nil)
        time.advance(by: .seconds(5))
        #expect(try await users[7].requireData().name == "b")
        #expect(await cacher.load(param: 7) == nil)
        #expect(try await users[7].requireData().name == "b")
        #expect(origin.requests.count == 3)
    }

    @Test func `H9: a 304 without stored content is followed by an unconditional request`() async throws {
        origin.on(.get, "/users/7", inTurn: .notModified, .json(User(name: "a")))
        let fetcher = host(origin).fetcher(of: User.self) { (id: Int) in
            Route(path: "/users/\(id)", headers: ["If-None-Match": "\"old\""])
        }
        let users = Store(cacher: MemoryCacher<Int, User>(), fetcher: fetcher, time: time)
        #expect(try await users[7].requireData().name == "a")
        #expect(origin.requests.map { $0.headers["If-None-Match"] } == ["\"old\"", nil])
        #expect(origin.requests.last?.headers["Cache-Control"] == "no-cache")
    }

    @Test func `H9: a 304 behind a redirect confirms no content`() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on(
            .get, "/users/7", inTurn: .json(User(name: "a")).tagged("v1").setting("Cache-Control", to: "no-cache"), .redirect(to: "/new"))
        origin.on(.get, "/new", inTurn: .notModified, .json(User(name: "b")))
        let users = users(host(origin))
        #expect(try await users[7].requireData().name == "a")
        #expect(try await users[7].requireData().name == "b")
        #expect(origin.requests.map { $0.headers["If-None-Match"] } == [nil, "\"v1\"", nil, nil, nil])
    }

    @Test func `H9: ignoreLifetimes leaves lifetimes to the cacher`() async throws {
        origin.on(.get, "/users/7") { _ in .json(User(name: "a")).setting("Cache-Control", to: "no-cache") }
        let users = users(host(origin), MemoryCacher(expiry: .after(.seconds(10))), options: RouteOptions(cachePolicy: .ignoreLifetimes))
        _ = try await users[7].requireData()
        _ = try await users[7].requireData()
        #expect(origin.requests.count == 1)
        time.advance(by: .seconds(11))
        _ = try await users[7].requireData()
        #expect(origin.requests.count == 2)
    }
}

/// Stores of content other than JSON.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ParsingFetcherTests {
    private struct Picture: Equatable, Sendable {
        struct NoPicture: Error {}
        var bytes: Data
        var remaining: Int?

        init(_ response: RemoteResponse<Data>) throws {
            guard response.value.starts(with: [0x89]) else { throw NoPicture() }
            bytes = response.value
            remaining = response.fields["X-RateLimit-Remaining"].flatMap { Int($0) }
        }
    }

    private static let png = Data([0x89, 0x50, 0x4E, 0x47])
    private let time = ManualTime(date: Date())

    private func pictures(_ bench: Bench, accept: MimeType? = nil) -> Store<String, Picture> {
        Store(
            cacher: MemoryCacher(),
            fetcher: bench.host(time: time) { $0.retry = .never }.fetcher(parsing: { try Picture($0) }) { (name: String) in
                Route(path: "/pictures/\(name)", options: RouteOptions(accept: accept))
            },
            policy: StorePolicy(staleIfError: .seconds(3600)), time: time)
    }

    @Test(arguments: RealTransport.available)
    func `H9, H17: parsed content is revalidated, and the parsing function can read the response's fields`(_ transport: RealTransport)
        async throws
    {
        let bench = try Bench(transport.kind, on: "GET", "/pictures/a") { request in
            request["If-None-Match"] == "\"v1\""
                ? .notModified
                : .data(ParsingFetcherTests.png, type: "image/png").tagged("v1").setting("Cache-Control", to: "max-age=60")
                    .setting("X-RateLimit-Remaining", to: "41")
        }
        let pictures = pictures(bench)
        let picture = try await pictures["a"].requireData()
        #expect(picture.bytes == ParsingFetcherTests.png && picture.remaining == 41)
        time.advance(by: .seconds(50))
        #expect(try await pictures["a"].requireData() == picture)
        #expect(bench.asked.count == 1)
        time.advance(by: .seconds(20))
        #expect(try await pictures["a"].requireData() == picture)
        #expect(bench.asked.map { $0["If-None-Match"] } == [nil, "\"v1\""])
    }

    @Test(arguments: RealTransport.available)
    func `H9, H17: an error of the parsing function reaches the caller, without stale content`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on(
            "GET", "/pictures/a", inTurn: .data(ParsingFetcherTests.png, type: "image/png").setting("Cache-Control", to: "max-age=1"),
            .html("<form>Sign in</form>"))
        for accept in [nil, "image/png" as MimeType] {
            let pictures = pictures(bench, accept: accept)
            if accept == nil {
                _ = try await pictures["a"].requireData()
                time.advance(by: .seconds(5))
            }
            let error = try await remoteError { _ = try await pictures["a"].requireData() }
            #expect(error.stage == .decode)
            // If the route has an accepted type, the function receives no other type.
            #expect(error.code == (accept == nil ? .undecodable : .unexpectedType))
            #expect((error.underlyingError is Picture.NoPicture) == (accept == nil))
        }
    }

    @Test func `H17: a parsing function replaces every parser`() async throws {
        let bench = try Bench(.memory, on: "GET", "/x") { _ in .data(ParsingFetcherTests.png, type: "image/png") }
        let host = bench.host { $0.parser = FailingParser(mediaTypes: [.json]) }
        let fetcher = host.fetcher(parsing: { $0.value.count }) { (_: Int) in
            Route(path: "/x", options: RouteOptions(parser: FailingParser(mediaTypes: [.json])))
        }
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == .modified(4))
    }

    private struct OwnFetcher: RevalidatingFetcher {
        let host: RemoteHost

        func fetch(param id: Int, revalidating validator: Validator?) async throws -> FetchResult<User> {
            let response = try await host.response(for: Route(path: "/users/\(id)"), as: User.self)
            return .modified(response.value, Freshness(of: response), Validator(of: response))
        }
    }

    @Test(arguments: [
        ["Cache-Control": "max-age=60, stale-if-error=5", "Age": "20", "ETag": "\"a\""], ["Cache-Control": "no-store"],
        ["Cache-Control": "max-age=60", "Vary": "X-User"], ["Cache-Control": "max-age=60", "Vary": "Accept"],
        ["Expires": "0", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], [:],
    ])
    func `H9: a custom fetcher gets the same freshness and validator as a route's fetcher`(_ fields: [String: String]) async throws {
        let bench = try Bench()
        bench.on("GET", "/users/1") { _ in fields.reduce(.json(User(id: 1, name: "Ada"))) { $0.setting($1.key, to: $1.value) } }
        let host = bench.host(time: time).intercepting(requests: Changing { try $0.fields.set("X-User", "7") })
        let fetcher = host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)") }
        let own = try await OwnFetcher(host: host).fetch(param: 1, revalidating: nil)
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == own)
        #expect(try await fetcher.respond(to: .content(1, revalidating: nil)).age == .seconds(fields["Age"] == nil ? 0 : 20))
        guard case .modified(_, let freshness, let validator) = own else { throw TestError() }
        let isFresh = fields["Cache-Control"]?.contains("max-age") == true && fields["Vary"] != "X-User"
        #expect((freshness.lifetime ?? .zero > .zero) == isFresh)
        #expect(validator?.entityTag == fields["ETag"] && validator?.lastModified == fields["Last-Modified"])
        // The validator says what selected the response, even without a tag.
        #expect((validator == nil) == fields.keys.allSatisfy { !["ETag", "Last-Modified", "Vary"].contains($0) })
    }
}

/// Parts of a representation that were not requested.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PartialResponseTests {
    private func bench(_ kind: TransportKind, _ method: HTTPMethod = .get, range: String?) throws -> Bench {
        let bench = try Bench(kind)
        bench.on(method.rawValue, "/x") { _ in
            let response = Bench.Response.json(literal: "[1]", status: 206).setting("Cache-Control", to: "max-age=600").tagged("v1")
            return range.map { response.setting("Content-Range", to: $0) } ?? response
        }
        return bench
    }

    @Test(arguments: TransportKind.allCases, ["bytes 0-2/10", "bytes 3-5/6", "bytes 0-2/*"])
    func `H9: a part that was not requested is an error instead of the whole`(_ kind: TransportKind, _ range: String) async throws {
        let bench = try bench(kind, range: range)
        let cacher = MemoryCacher<Int, [Int]>()
        let store = Store(cacher: cacher, fetcher: bench.host().fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") })
        let error = try await remoteError { _ = try await store[1].requireData() }
        #expect(error.code == .wrongRange && error.status == 206 && error.mayHaveArrived && !error.isRetryable)
        #expect(try await remoteError { _ = try await bench.host().bytes(for: Route(path: "/x")) }.code == .wrongRange)
        #expect(await cacher.load(param: 1) == nil)
    }

    @Test(
        arguments: TransportKind.allCases,
        [
            (.get, "bytes 0-2/3", true), (.get, nil, false), (.get, "0-2/10", false), (.get, "items 0-2/10", false),
            (.post, "bytes 0-2/10", false),
        ] as [(HTTPMethod, String?, Bool)])
    func `H9: a part that is the whole is saved, and a part without a range of bytes or for another method is only returned`(
        _ kind: TransportKind, _ part: (method: HTTPMethod, range: String?, isSaved: Bool)
    ) async throws {
        let bench = try bench(kind, part.method, range: part.range)
        let (cacher, method) = (MemoryCacher<Int, [Int]>(), part.method)
        let fetcher = bench.host().fetcher(of: [Int].self) { (_: Int) in Route(path: "/x", method: method) }
        let store = Store(cacher: cacher, fetcher: fetcher)
        #expect(try await store[1].requireData() == [1])
        let isSaved = await cacher.load(param: 1) != nil
        #expect(isSaved == part.isSaved)
    }

    @Test(arguments: TransportKind.allCases)
    func `H9: a part that the route requests is returned`(_ kind: TransportKind) async throws {
        let bench = try bench(kind, range: "bytes 0-2/10")
        let value: [Int] = try await bench.host().send(Route(path: "/x", headers: ["Range": "bytes=0-2"]))
        #expect(value == [1])
    }
}
