#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Unsafe requests on reused connections that servers close.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct ReuseTests {
    struct Form: Sendable, CustomTestStringConvertible {
        var method: HTTPMethod
        var body: RouteBody
        var name: String
        var testDescription: String { name }
    }

    static let unsafe: [Form] = [
        Form(method: .post, body: .data(Data("abc".utf8)), name: "POST"), Form(method: .post, body: .none, name: "POST without a body"),
        Form(method: .patch, body: .data(Data(count: 100_000)), name: "PATCH of 100 KB"),
        Form(
            method: .post,
            body: .stream(
                HTTPBodyStream(length: nil, isReplayable: true) {
                    let parts = Parts([Data("abc".utf8)])
                    return { _ in parts.next() }
                }), name: "POST in chunks"),
    ]

    @Test(arguments: unsafe)
    func `W2: a connection known to be closed fails no unsafe request`(_ form: Form) async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(.closeSilently) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for round in 1...rounds(50, quick: 6) {
            _ = try await host.data(for: Route(path: "/warm"))
            try await origin.waitUntil { $0.openConnections == 0 }
            origin.forget()
            _ = try await host.data(for: Route(path: "/x", method: form.method, body: form.body))
            #expect(origin.requests(to: "/x").count == 1, "round \(round)")
            // Ends the connection of the request itself, so that each round starts with a warm one.
            _ = try await host.data(for: Route(path: "/warm"))
        }
    }

    @Test(arguments: unsafe, part(of: [0, 50, 200, 1000, 2000, 5000, 20_000], each: 3))
    func `W2: an unsafe request arrives at most once, whenever the server closes the connection`(_ form: Form, _ microseconds: Int)
        async throws
    {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(.closeLate(after: .microseconds(microseconds))) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        var failures = 0
        for round in 1...rounds(30, quick: 5) {
            _ = try await host.data(for: Route(path: "/warm"))
            do {
                _ = try await host.data(for: Route(path: "/x", method: form.method, body: form.body))
                #expect(origin.requests(to: "/x").count == 1, "round \(round)")
            } catch let error as RemoteError {
                failures += 1
                #expect(error.code == .connectionLost && !error.isRetryable, "\(error)")
                #expect(origin.requests(to: "/x").count <= 1, "round \(round)")
            }
            try await origin.waitUntil { $0.requests.allSatisfy { $0.ending != nil } }
            origin.forget()
        }
        _ = failures
    }

    @Test(arguments: unsafe)
    func `W2: an unsafe request that closes its reused connection is not sent again`(_ form: Form) async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(.closeOnNextRequest) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for _ in 1...rounds(20, quick: 5) {
            _ = try await host.data(for: Route(path: "/warm"))
            let error = try await remoteError { try await host.send(Route(path: "/x", method: form.method, body: form.body)) }
            #expect(error.code == .connectionLost && !error.isRetryable, "\(error)")
            // The server has read the request, so a second sending would succeed and be visible.
            #expect(origin.requests(to: "/x").count <= 1)
            origin.forget()
        }
    }

    @Test(arguments: [HTTPMethod.put, .delete, .get])
    func `W2: a repeatable request survives a closing connection`(_ method: HTTPMethod) async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(.closeOnNextRequest) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for _ in 1...10 {
            _ = try await host.data(for: Route(path: "/warm"))
            let body = method == .put ? RouteBody.data(Data(count: 100_000)) : .none
            #expect(try await host.data(for: Route(path: "/x", method: method, body: body)) == Data("/x".utf8))
        }
    }

    @Test func `W2: unsafe requests reuse connections`() async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        let host = try RealTransport.curl.host(origin.port)
        for form in ReuseTests.unsafe + ReuseTests.unsafe { try await host.send(Route(path: "/x", method: form.method, body: form.body)) }
        #expect(origin.acceptedConnections == 1)
    }
}
#endif
