import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Requests on a connection that the server has closed meanwhile.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OnceTests {
    private static let methods: [(HTTPMethod, RouteBody)] = [
        (.post, .data(Data("abc".utf8))), (.post, .none), (.delete, .none), (.put, .data(Data("abc".utf8))), (.patch, .none),
        (
            .post,
            .stream(
                HTTPBodyStream(length: 3, isReplayable: false) {
                    let parts = Parts([Data("abc".utf8)])
                    return { _ in parts.next() }
                })
        ),
    ]

    @Test(
        arguments: 0..<6, RealTransport.available.flatMap { [($0, LoopbackOrigin.Misbehavior.closeOnNextRequest), ($0, .closeSilently)] })
    func `H7: an unsafe request reaches the server at most once`(
        _ index: Int, _ way: (kind: RealTransport, end: LoopbackOrigin.Misbehavior)
    ) async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(way.end) }
        let (method, body) = OnceTests.methods[index]
        let name = try #require(LoopbackOrigin.Method(rawValue: method.rawValue))
        origin.on(name, "/x") { .data($0.body) }
        let host = try way.kind.host(origin.port) { $0.retry = .never }
        let isUnsafe = method == .post || method == .patch
        // `URLSession` uses fresh connections. libcurl reuses one, which the server closes before it reads the request or responds.
        let mayBeLost = way.kind == .curl && way.end == .closeOnNextRequest
        for _ in 1...5 {
            _ = try await host.data(for: Route(path: "/warm"))
            if way.end == .closeSilently { try await origin.waitUntil { $0.openConnections == 0 } }
            origin.forget()
            do {
                let echo = try await host.data(for: Route(path: "/x", method: method, body: body))
                #expect(origin.requests(to: "/x").last?.body == echo)
            } catch let error as RemoteError where mayBeLost && isUnsafe {
                #expect(error.code == .connectionLost)
            }
            let seen = origin.requests(to: "/x")
            #expect(seen.count == 1 || mayBeLost && !isUnsafe && seen.count == 2)
            #expect(seen.allSatisfy { $0.method.rawValue == method.rawValue })
        }
    }

    @Test(arguments: 0..<3, RealTransport.available)
    func `H7: an unsafe request without a response is not sent again`(_ index: Int, _ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin()
        let (method, body) = OnceTests.methods[index]
        let name = try #require(LoopbackOrigin.Method(rawValue: method.rawValue))
        origin.on(name, "/x") { _ in .text("x").misbehaving(.resetBeforeHead) }
        let host = try transport.host(origin.port) { $0.retry = .never }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: method, body: body)) }
        #expect(error.code == .connectionLost)
        #expect(error.isRetryable == (method == .delete))
        #expect(origin.requests(to: "/x").count == 1)
    }

    @Test(arguments: 0..<6, RealTransport.available)
    func `H13: canceling an unsafe request ends it on the wire`(_ index: Int, _ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("x").misbehaving(.neverAnswer) }
        let (method, body) = OnceTests.methods[index]
        let host = try transport.host(origin.port)
        let task = Task { try await host.send(Route(path: "/x", method: method, body: body)) }
        try await origin.waitForRequests(count: 1)
        task.cancel()
        #expect(try await remoteError { try await task.value }.stage == .cancelled)
        try await origin.waitUntil { $0.requests.first?.ending == .clientLeft && $0.openConnections == 0 }
        #expect(origin.requests.count == 1)
    }
}

/// Chunks to be taken in order.
final class Parts: Sendable {
    private let parts: Lock<[Data]>
    init(_ parts: [Data]) { self.parts = Lock(parts) }
    func next() -> Data? { parts.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
}
