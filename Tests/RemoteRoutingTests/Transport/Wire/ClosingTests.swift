#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Connections that servers close at any time after the last response; `STOREHOUSE_SEEDS=1000` tests a thousand per method.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct ClosingTests {
    private static let forms =
        [
            ReuseTests.Form(method: .get, body: .none, name: "GET"), ReuseTests.Form(method: .delete, body: .none, name: "DELETE"),
            ReuseTests.Form(method: .put, body: .data(Data(count: 40_000)), name: "PUT"),
        ] + ReuseTests.unsafe

    /// The outcomes of the requests.
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
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<lanes {
                group.addTask {
                    let mine = stride(from: lane, to: count, by: lanes)
                    try await Lane(form: form, limit: limit, waiting: waiting, counts: counts).run(mine)
                }
            }
            try await group.waitForAll()
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
#endif
