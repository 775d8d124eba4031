import Foundation
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

/// The conditions that a fetcher adds to a route, and the page keys that it returns.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ConditionTests {
    private let memory = MemoryTransport { request in
        .json("[1]").adding("Link", "<?page=3>; rel=next, <?page=1>; rel=prev")
    }

    private var host: RemoteHost { RemoteHost("a.example", transport: memory) }

    @Test func `H9: a store's conditions replace the route's own`() async throws {
        let fetcher = host.fetcher(of: [Int].self) { (_: Int) in
            Route(
                path: "/x",
                headers: ["If-None-Match": "\"own\"", "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT", "If-Match": "\"own\""])
        }
        _ = try await fetcher.fetch(param: 1, revalidating: Validator(entityTag: "\"v1\""))
        _ = try await fetcher.fetch(param: 1, revalidating: nil)
        #expect(memory.requests.map { $0.fields.values(of: "If-None-Match") } == [["\"v1\""], ["\"own\""]])
        #expect(memory.requests.map { $0.fields["If-Modified-Since"] == nil } == [true, false])
        #expect(memory.requests.map { $0.fields["If-Match"] == nil } == [true, false])
    }

    @Test(arguments: [HTTPMethod.get, .post, .put])
    func `H9: a GET becomes conditional, and a POST or PUT does not`(_ method: HTTPMethod) async throws {
        let fetcher = host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x", method: method) }
        _ = try await fetcher.fetch(param: 1, revalidating: Validator(entityTag: "\"v1\""))
        #expect((memory.requests.last?.fields["If-None-Match"] != nil) == (method == .get))
    }

    @Test func `H9: a 304 for a request without a store's conditions is an error`() async throws {
        let host = RemoteHost("a.example", transport: MemoryTransport { _ in .status(304) })
        let error = try await remoteError { try await host.send("/x", method: .get) }
        #expect(error.stage == .status && error.status == 304)
    }

    @Test func `H9: an added page has a key in its own direction only`() async throws {
        let fetcher = host.pages(of: Int.self) { (_: Int) in Route(path: "/x") }
        let first = try await fetcher.respond(to: .content(1, revalidating: nil))
        #expect([first.nextKey, first.prevKey] == ["/x?page=3", "/x?page=1"])
        let next = try await fetcher.respond(to: .page(.next, key: "/x?page=2", 1))
        #expect([next.nextKey, next.prevKey] == ["/x?page=3", nil])
        let prev = try await fetcher.respond(to: .page(.prev, key: "/x?page=2", 1))
        #expect([prev.nextKey, prev.prevKey] == [nil, "/x?page=1"])
    }
}
