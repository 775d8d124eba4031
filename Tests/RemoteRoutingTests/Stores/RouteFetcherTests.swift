import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing

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
        _ host: RemoteHost, _ cacher: MemoryCacher<Int, User> = MemoryCacher(), policy: StorePolicy = .default,
        options: RouteOptions = RouteOptions()
    ) -> Store<Int, User> {
        Store(
            cacher: cacher, fetcher: host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)", options: options) },
            policy: policy, time: time)
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

    @Test func `H9: a modification date revalidates content, too`() async throws {
        let date = HTTPDate.format(time.date.addingTimeInterval(-1000))
        origin.on(.get, "/users/7") { request in
            .json(User(name: "Ada")).setting("Last-Modified", to: date).setting("Cache-Control", to: "max-age=0").revalidated(by: request)
        }
        let users = users(host(origin))
        _ = try await users[7].requireData()
        _ = try await users[7].requireData()
        #expect(origin.requests.map(\.status) == [200, 304] && origin.requests.last?.headers["If-Modified-Since"] == date)
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

    @Test(arguments: [("max-age=1", true), ("max-age=1, stale-if-error=60", true), ("max-age=1, must-revalidate", false)])
    func `H9: must-revalidate forbids stale content on errors`(control: String, isServed: Bool) async throws {
        origin.on(
            .get, "/users/7", inTurn: .json(User(name: "a")).setting("Cache-Control", to: control), .status(500))
        var policy = StorePolicy()
        policy.staleIfError = .seconds(60)
        let users = users(host(origin), policy: policy)
        _ = try await users[7].requireData()
        time.advance(by: .seconds(5))
        if isServed {
            #expect(try await users[7].requireData().name == "a")
        } else {
            let error = await #expect(throws: RemoteError.self) { try await users[7].requireData() }
            #expect(error?.status == 500)
        }
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [("X-User", 2), ("Accept", 1), ("*", 2)])
    func `H9: a response that varies by an interceptor's field has a lifetime of zero`(vary: String, requests: Int) async throws {
        origin.on(.get, "/users/7") { _ in .json(User(name: "a")).setting("Cache-Control", to: "max-age=60").setting("Vary", to: vary) }
        let users = users(host(origin).intercepting(requests: Changing { try $0.fields.set("X-User", "7") }))
        _ = try await users[7].requireData()
        _ = try await users[7].requireData()
        #expect(origin.requests.count == requests && origin.requests.first?.headers["X-User"] == "7")
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

    @Test func `H9: a second 304 without stored content is an error`() async throws {
        origin.on(.get, "/users/7") { _ in .notModified }
        let error = await #expect(throws: RemoteError.self) { try await users(host(origin))[7].requireData() }
        #expect(error?.status == 304 && origin.requests.count == 2)
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
