import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// Parts of a representation that were not requested.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PartialResponseTests {
    private func bench(_ kind: TransportKind, range: String?) throws -> Bench {
        let bench = try Bench(kind)
        bench.on("GET", "/x") { _ in
            let response = LoopbackOrigin.Response.json(literal: "[1]", status: 206).setting("Cache-Control", to: "max-age=600").tagged(
                "v1")
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

    @Test(arguments: TransportKind.allCases)
    func `H9: a part that is the whole is the whole`(_ kind: TransportKind) async throws {
        let bench = try bench(kind, range: "bytes 0-2/3")
        let cacher = MemoryCacher<Int, [Int]>()
        let store = Store(cacher: cacher, fetcher: bench.host().fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") })
        #expect(try await store[1].requireData() == [1])
        #expect(await cacher.load(param: 1) != nil)
    }

    @Test(arguments: TransportKind.allCases, [nil, "0-2/10", "items 0-2/10"] as [String?])
    func `H9: a part without a range of bytes is returned, and not saved`(_ kind: TransportKind, _ range: String?) async throws {
        let bench = try bench(kind, range: range)
        let cacher = MemoryCacher<Int, [Int]>()
        let store = Store(cacher: cacher, fetcher: bench.host().fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") })
        #expect(try await store[1].requireData() == [1])
        #expect(await cacher.load(param: 1) == nil)
    }

    @Test(arguments: TransportKind.allCases)
    func `H9: a part in response to another method is returned, and not saved`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("POST", "/x") { _ in
            LoopbackOrigin.Response.json(literal: "[1]", status: 206).setting("Cache-Control", to: "max-age=600").setting(
                "Content-Range", to: "bytes 0-2/10")
        }
        let cacher = MemoryCacher<Int, [Int]>()
        let store = Store(cacher: cacher, fetcher: bench.host().fetcher(of: [Int].self) { (_: Int) in Route(path: "/x", method: .post) })
        #expect(try await store[1].requireData() == [1])
        #expect(await cacher.load(param: 1) == nil)
    }

    @Test(arguments: TransportKind.allCases)
    func `H9: a part that the route requests is returned`(_ kind: TransportKind) async throws {
        let bench = try bench(kind, range: "bytes 0-2/10")
        let value: [Int] = try await bench.host().send(Route(path: "/x", headers: ["Range": "bytes=0-2"]))
        #expect(value == [1])
    }
}
