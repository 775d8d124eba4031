#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP

/// The cost of one response for the thread that serves all exchanges, measured as processor time of that thread. Other processes and tests
/// do not influence it.
@Suite(
    .enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"),
    .disabled(if: isSanitized, "the sanitizer's own work would be measured"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct IsolationTests {
    /// An exchange that records the processor time of the engine's thread at its end.
    private struct Meter {
        let end = WatchedState<(nanoseconds: Int64, failure: TransportFailure?)?>(nil)
        let exchange: Exchange

        init(_ limits: ExchangeLimits) {
            exchange = Exchange(limits: limits, source: .wire)
            // The engine calls the action on its thread.
            exchange.onEnd { [end, exchange] in
                var time = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
                let failure: TransportFailure? = exchange.state.withLock {
                    if case .failed(let failure) = $0.phase { failure } else { nil }
                }
                end.update { $0 = (Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec), failure) }
            }
        }
    }

    struct Attack: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: String
        var testDescription: String { name }

        init(_ name: String, _ bytes: String) {
            self.name = name
            self.bytes = "HTTP/1.1 \(bytes)"
        }
    }

    private static func times(_ count: Int, _ text: String) -> String { String(repeating: text, count: count) }
    private static let filler = times(240, "a")

    /// The maximum number of fields and bytes in a head.
    private static let largest = Attack(
        "the largest head", "200 OK\r\n" + times(999, "X-Field: \(filler)\r\n") + "Content-Length: 0\r\n\r\n")

    private static let attacks = [
        Attack("20 000 fields", "200 OK\r\n" + times(20_000, "X-Field: 12345678\r\n") + "Content-Length: 0\r\n\r\n"),
        Attack(
            "20 000 fields whose names have the length of known names",
            "200 OK\r\n" + times(20_000, "CONTENT-LENGHT: 1\r\n") + "\r\n"),
        Attack("fields of 250 bytes without end", "200 OK\r\n" + times(20_000, "X-Field: \(filler)\r\n") + "\r\n"),
        Attack("a folded field", "200 OK\r\n" + "X: a\r\n" + times(20_000, " \(filler)\r\n") + "Content-Length: 0\r\n\r\n"),
        Attack("the largest folded field", "200 OK\r\n" + "X: a\r\n" + times(998, " \(filler)\r\n") + "Content-Length: 0\r\n\r\n"),
        Attack("interim responses", times(20_000, "103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 ") + "200 OK\r\n\r\n"),
        Attack("lines of 200 KB", "200 OK\r\n" + times(3, "X: \(times(200_000, "a"))\r\n") + "\r\n"),
        Attack("lines of nothing", "200 OK\r\n" + times(20_000, ": \r\n") + "\r\n"),
        Attack("trailers", "200 OK\r\n" + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + times(20_000, "X-Field: 12345678\r\n") + "\r\n"),
    ]

    private func engine() throws -> WireEngine {
        try WireEngine(try WireLibrary(path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]), width: 16, connections: 64)
    }

    private func start(_ url: URL, _ tls: TLSOptions? = nil, on engine: WireEngine) throws -> Meter {
        // Ends a flood that newer versions of libcurl read in small steps.
        let idle = tls.map { _ in Duration.milliseconds(100) }
        // The next exchange may share its connection, and have no head.
        let head = tls.map { _ in Duration.seconds(1) }
        let meter = Meter(ExchangeLimits(head: head, idle: idle, bodyBytes: 64 << 20, memoryBytes: .max))
        var connection = ConnectionOptions()
        if let tls { connection.tls = tls }
        try engine.start(url, over: connection, meter.exchange)
        return meter
    }

    /// The least processor time of one exchange with each server, measured in turns.
    private func costs(of attacks: [Attack], times: Int = rounds(21, quick: 5)) async throws -> [(cost: Int64, failure: TransportFailure?)]
    {
        let origins = try attacks.map { attack in try LoopbackOrigin { _ in .verbatim(attack.bytes) } }
        let engine = try engine()
        for origin in origins { _ = try await start(origin.url, on: engine).end.wait { $0 } }
        var last = try await start(origins[0].url, on: engine).end.wait { $0 }.nanoseconds
        var costs = attacks.map { _ in (cost: Int64.max, failure: TransportFailure?.none) }
        for _ in 0..<times {
            for (index, origin) in origins.enumerated() {
                let end = try await start(origin.url, on: engine).end.wait { $0 }
                costs[index] = (min(costs[index].cost, end.nanoseconds - last), end.failure)
                last = end.nanoseconds
            }
        }
        return costs
    }

    /// Expects a cost within its limit, in nanoseconds.
    ///
    /// Other work of the machine disturbs the caches, and thus a measurement. The engine's own cost is part of each measurement.
    private func expectCost(_ measure: () async throws -> (cost: Int64, limit: Int64)) async throws {
        var seen: [(cost: Int64, limit: Int64)] = []
        while seen.count < 3, !seen.contains(where: { $0.cost <= $0.limit }) { seen.append(try await measure()) }
        #expect(seen.contains { $0.cost <= $0.limit }, "\(seen)")
    }

    @Test(arguments: part(of: attacks, each: 4))
    func `W4: no head costs the engine much more than the largest valid head`(_ attack: Attack) async throws {
        try await expectCost {
            let found = try await costs(of: [IsolationTests.largest, attack])
            #expect(found[0].failure == nil)
            return (found[1].cost, found[0].cost * 3 / 2)
        }
    }

    private static let tinyChunks = Attack(
        "chunks of one byte", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + times(50_000, "1\r\nx\r\n") + "0\r\n\r\n")

    @Test(arguments: part(of: [attacks[0], attacks[3], attacks[5], tinyChunks], each: 3))
    func `W4: a hostile response does not delay other exchanges`(_ attack: Attack) async throws {
        let hostile = try LoopbackOrigin { _ in .verbatim(attack.bytes) }
        try await expectIsolation(from: hostile.url)
    }

    @Test(
        .enabled(if: FrameServer.problem == nil, "python3 or OpenSSL is missing"),
        arguments: part(of: ["empty data", "priority", "pings", "ping responses", "windows", "unknown types", "settings"], each: 4))
    func `W4, W14: a flood of frames does not delay other exchanges`(_ plan: String) async throws {
        let server = try await FrameServer(plan + "+")
        var tls = TLSOptions()
        tls.authorities = try TLSOptions.Authorities(contentsOf: try TestCertificates.made.get().authority)
        try await expectIsolation(from: try #require(URL(string: "https://127.0.0.1:\(server.port)/x")), tls)
        _ = server.ending()
    }

    /// Expects that all exchanges but one are not delayed by a concurrent exchange with a hostile server.
    private func expectIsolation(from hostile: URL, _ tls: TLSOptions? = nil) async throws {
        let quiet = try LoopbackOrigin { _ in .text("well") }
        let engine = try engine()
        let count = rounds(100, quick: 20)
        /// The work of the engine's thread until a quiet exchange with a concurrent neighbor has ended.
        func delays(beside neighbor: URL, _ tls: TLSOptions? = nil) async throws -> [Int64] {
            var delays: [Int64] = []
            var last = try await start(quiet.url, on: engine).end.wait { $0 }.nanoseconds
            for _ in 0..<count {
                let neighbor = try start(neighbor, tls, on: engine)
                let end = try await start(quiet.url, on: engine).end.wait { $0 }
                delays.append(end.nanoseconds - last)
                last = max(end.nanoseconds, try await neighbor.end.wait { $0 }.nanoseconds)
            }
            return delays.sorted()
        }
        try await expectCost {
            let alone = try await delays(beside: quiet.url)
            let beside = try await delays(beside: hostile, tls)
            let largest = try await costs(of: [IsolationTests.largest])[0]
            // At worst the loop is processing the hostile head when the quiet response arrives, and that head has a limit.
            return (beside[count - 2], 2 * alone[count - 2] + 2 * largest.cost)
        }
    }
}

/// Servers that send without a pause, and nothing of use.
@Suite(.needsFrames, .serialized, .timeLimit(.minutes(hangMinutes)))
struct FloodTests {
    private static let floods = ["empty data", "priority", "pings", "ping responses", "windows", "unknown types", "settings"]

    @Test(arguments: part(of: floods, each: 3))
    func `H6, W14: a flood of frames without content delays neither deadlines nor other exchanges`(_ plan: String) async throws {
        let quiet = try LoopbackOrigin { _ in .text("well") }
        quiet.on(.get, "/never") { _ in .text("x").misbehaving(.neverAnswer) }
        let (server, hostile) = try await FrameServer.serving(plan)
        let host = RemoteHost(quiet.port, over: hostile.transport)
        let impatient = host.with { ($0.retry, $0.timeouts) = (.never, .init(head: .milliseconds(50))) }
        let flood = Task { try await remoteError { try await hostile.send(Route(path: "/x")) } }
        try await server.wait(for: 1, "R")
        let late = Task { try await remoteError { try await impatient.send("/never") } }
        let calls = Task { for _ in 0..<20 { _ = try await host.data(for: Route(path: "/x")) } }
        #expect(try await late.value(of: "the deadline passes").code == .headTimedOut)
        try await calls.value(of: "the other exchanges end")
        // Newer versions of libcurl read in small steps, so that the flood lasts until its deadline, and delays nothing.
        flood.cancel()
        let error = try await flood.value
        #expect([.protocolViolation, .connectionLost, .cancelled].contains(error.code), "\(error)")
    }

    @Test(.enabled(if: RealTransport.hasLibcurl7, "newer versions of libcurl read in small steps"), arguments: part(of: floods, each: 3))
    func `W14: after a flood, exchanges with the origin use HTTP 1.1`(_ plan: String) async throws {
        let (server, host) = try await FrameServer.serving(plan + "+")
        let error = try await remoteError { try await host.send(Route(path: "/x")) }
        #expect(error.code == .protocolViolation, "\(error) \(String(describing: error.underlyingError))")
        for _ in 0..<3 { #expect(try await host.data(for: Route(path: "/x")) == Data("whole".utf8)) }
        #expect(server.ending().requests == 1)
    }

    @Test func `W14: an endless body of chunks of one byte delays no other exchange`() async throws {
        let chunks = String(repeating: "1\r\nx\r\n", count: 10_000)
        let server = try RawServer(sending: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") { connection in
            while connection.sends(chunks) {}
        }
        let quiet = try LoopbackOrigin { _ in .text("well") }
        let host = try RealTransport.curl.host(quiet.port)
        let hostile = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(server.port)), transport: host.transport).with {
            $0.retry = .never
            $0.limits.responseBytes = 64 << 20
        }
        let flood = Task { try await remoteError { try await hostile.send(Route(path: "/x")) } }
        for _ in 0..<rounds(200, quick: 60) { _ = try await host.data(for: Route(path: "/x")) }
        flood.cancel()
        _ = try await flood.value
    }
}
#endif
