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
        Form(method: .post, body: .stream(HTTPBodyStream(chunks: [Data("abc".utf8)], length: nil)), name: "POST in chunks"),
    ]

    private static let ends: [LoopbackOrigin.Misbehavior] =
        [.closeOnNextRequest]
        + part(of: [0, 50, 200, 1000, 2000, 5000, 20_000], each: 3).map { .closeLate(after: .microseconds($0)) }

    @Test(arguments: unsafe, ends)
    func `W2: an unsafe request arrives at most once, whenever its connection is closed`(
        _ form: Form, _ end: LoopbackOrigin.Misbehavior
    ) async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(end) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for round in 1...rounds(30, quick: 5) {
            _ = try await host.data(for: Route(path: "/warm"))
            do {
                _ = try await host.data(for: Route(path: "/x", method: form.method, body: form.body))
                // This server reads the request that it closes, so only a second sending would succeed.
                #expect(origin.requests(to: "/x").count == 1 && end != .closeOnNextRequest, "round \(round)")
            } catch let error as RemoteError {
                #expect(error.code == .connectionLost && !error.isRetryable, "\(error)")
                #expect(origin.requests(to: "/x").count <= 1, "round \(round)")
            }
            if end != .closeOnNextRequest { try await origin.waitUntil { $0.requests.allSatisfy { $0.ending != nil } } }
            origin.forget()
        }
    }

    @Test func `W2: unsafe requests reuse connections`() async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        let host = try RealTransport.curl.host(origin.port)
        for form in ReuseTests.unsafe + ReuseTests.unsafe { try await host.send(Route(path: "/x", method: form.method, body: form.body)) }
        #expect(origin.acceptedConnections == 1)
    }
}

/// Connections that servers close at any time after the last response; `STOREHOUSE_SEEDS=1000` tests a thousand per method.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct ClosingTests {
    private static let forms =
        [
            ReuseTests.Form(method: .get, body: .none, name: "GET"), ReuseTests.Form(method: .delete, body: .none, name: "DELETE"),
            ReuseTests.Form(method: .put, body: .data(Data(count: 40_000)), name: "PUT"),
        ] + ReuseTests.unsafe

    private struct Count: Sendable {
        var seenClosed = 0
        var succeeded = 0
        var lost = 0
        var repeated = 0
    }

    @Test(arguments: forms)
    func `W2: no unsafe request arrives twice, and none fails on a connection known to be closed`(_ form: ReuseTests.Form) async throws {
        let count = rounds(60, quick: 15)
        let limit = isLongRun ? 2000 : 100
        let lanes = min(50, count)
        // Waits for the requested time, independently of the connections under test.
        let clock = try LoopbackOrigin { .text("x").misbehaving(.delayHead(by: .milliseconds(Int($0.path.dropFirst()) ?? 0))) }
        let waiting = try RealTransport.curl.host(clock.port) { $0.limits.concurrentExchanges = lanes }
        let counts = WatchedState(Count())
        try await atOnce(lanes) { lane in
            let mine = stride(from: lane, to: count, by: lanes)
            try await Lane(form: form, limit: limit, waiting: waiting, counts: counts).run(mine)
        }
        let found = counts.current
        if isLongRun { print("W2 \(form.name): \(count) connections, \(found)") }
        #expect(found.succeeded + found.lost == count)
        #expect(found.seenClosed > 0)
        if ![HTTPMethod.post, .patch].contains(form.method) { #expect(found.lost == 0) } else { #expect(found.repeated == 0) }
    }

    /// One server and one transport, so that each request finds the connection of the request before it.
    private struct Lane {
        let form: ReuseTests.Form
        let limit: Int
        let waiting: RemoteHost
        let counts: WatchedState<Count>

        func run(_ numbers: StrideTo<Int>) async throws {
            let origin = try LoopbackOrigin { .text("\($0.body.count)") }
            let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
            for number in numbers {
                var chance = SplitMix(seed: number)
                let delay = chance.below(limit + 1)
                origin.on(.get, "/warm") { _ in
                    .text("warm").misbehaving(
                        number % 2 == 0 ? .closeLate(after: .milliseconds(delay)) : .closeIdle(after: .milliseconds(delay)))
                }
                _ = try await host.data(for: Route(path: "/warm"))
                if number % 3 == 0 {
                    try await origin.waitUntil { $0.openConnections == 0 }
                } else {
                    let place = max(0, delay + chance.below(16) - 12)
                    _ = try await waiting.data(for: Route(path: RoutePath(stringLiteral: "/\(place)")))
                }
                try await send(number, host, origin)
                // The next round starts without open requests.
                try await origin.waitUntil { $0.requests.allSatisfy { $0.ending != nil } }
                origin.goDown()
                try origin.comeBack()
                origin.forget()
            }
        }

        private func send(_ number: Int, _ host: RemoteHost, _ origin: LoopbackOrigin) async throws {
            let isSeenClosed = origin.openConnections == 0
            let isUnsafe = [HTTPMethod.post, .patch].contains(form.method)
            var isLost = false
            do {
                _ = try await host.data(for: Route(path: "/x", method: form.method, body: form.body))
            } catch let error as RemoteError {
                isLost = true
                #expect(error.code == .connectionLost && !error.isRetryable, "\(number): \(error)")
                #expect(!isSeenClosed && isUnsafe, "connection \(number) was closed before the request: \(error)")
            }
            let arrivals = origin.requests(to: "/x").count
            #expect(isLost ? arrivals <= 1 : arrivals >= 1, "connection \(number)")
            #expect(!isUnsafe || arrivals <= 1, "connection \(number): \(arrivals) arrivals")
            counts.update { [isLost] in
                $0.seenClosed += isSeenClosed ? 1 : 0
                $0.succeeded += isLost ? 0 : 1
                $0.lost += isLost ? 1 : 0
                $0.repeated += arrivals > 1 ? 1 : 0
            }
        }
    }
}

/// Many concurrent exchanges over HTTP/1.1 and TLS.
@Suite(
    .enabled(if: TrustBench.problem == nil, "libcurl or OpenSSL is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct WidthTests {
    /// Returns the largest number of connections of one host; a few more than its width are opened while others are about to be free.
    private func limit(_ width: Int, _ count: Int) -> Int { width + max(50, count / 20) }

    private func send(_ count: Int, to hosts: [RemoteHost]) async throws {
        try await atOnce(count * hosts.count) { number in try await hosts[number % hosts.count].send("/x") }
    }

    @Test(arguments: isWholeRun || isLongRun ? [64, 128, 256] : [64, 128])
    func `W16: at any width, exchanges reuse their connections`(_ width: Int) async throws {
        let bench = try TrustBench()
        let count = rounds(4_000, quick: 400)
        try await send(count, to: [try bench.host().with { $0.limits.concurrentExchanges = width }])
        let connections = bench.front.record.accepted
        #expect(connections <= limit(width, count), "\(connections) connections")
    }

    @Test func `W16: four hosts reuse their connections side by side`() async throws {
        let benches = try (0..<4).map { _ in try TrustBench() }
        let (transport, count) = (try RealTransport.curl.make(), rounds(1_000, quick: 200))
        let hosts = try benches.map { try $0.host(over: transport).with { $0.limits.concurrentExchanges = 32 } }
        try await send(count, to: hosts)
        let connections = benches.reduce(0) { $0 + $1.front.record.accepted }
        #expect(connections <= 4 * limit(32, count), "\(connections) connections")
    }
}
#endif
