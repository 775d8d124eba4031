#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Many concurrent exchanges over HTTP/1.1 and TLS.
@Suite(
    .enabled(if: TrustBench.problem == nil, "libcurl or OpenSSL is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct WidthTests {
    /// Returns the largest number of connections of one host; a few more than its width are opened while others are about to be free.
    private func limit(_ width: Int, _ count: Int) -> Int { width + max(50, count / 20) }

    /// Sends requests to each host at once.
    private func send(_ count: Int, to hosts: [RemoteHost]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for host in hosts { for _ in 0..<count { group.addTask { try await host.send("/x") } } }
            try await group.waitForAll()
        }
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
