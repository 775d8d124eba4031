#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Servers that send without a pause, and nothing of use.
@Suite(
    .enabled(if: RealTransport.available.contains(.curl) && FrameServer.problem == nil, "libcurl, python3 or OpenSSL is missing"),
    .serialized, .timeLimit(.minutes(hangMinutes)))
struct FloodTests {
    private static let floods = ["empty data", "priority", "pings", "ping responses", "windows", "unknown types", "settings"]

    @Test(arguments: part(of: floods, each: 3))
    func `W14: a flood of frames without content ends its connection, and delays no other exchange`(_ plan: String) async throws {
        let quiet = try LoopbackOrigin { _ in .text("well") }
        let server = try await FrameServer(plan)
        let hostile = try secureHost(server.port) { $0.retry = .never }
        let host = RemoteHost(quiet.port, over: hostile.transport)
        let flood = Task { try await remoteError { try await hostile.send(Route(path: "/x")) } }
        try await server.wait(for: 1, "R")
        let arrived = WatchedState(0)
        let calls = Task {
            for _ in 0..<20 {
                _ = try await host.data(for: Route(path: "/x"))
                arrived.update { $0 += 1 }
            }
        }
        try await until("the other exchanges end") { arrived.current == 20 }
        try await calls.value
        // Newer versions of libcurl read in small steps, so that the flood lasts until its deadline, and delays nothing.
        flood.cancel()
        let error = try await flood.value
        #expect([.protocolViolation, .connectionLost, .cancelled].contains(error.code), "\(error)")
    }

    @Test(.enabled(if: RealTransport.hasLibcurl7, "newer versions of libcurl read in small steps"), arguments: part(of: floods, each: 3))
    func `W14: after a flood, exchanges with the origin use HTTP 1.1`(_ plan: String) async throws {
        let server = try await FrameServer(plan + "+")
        let host = try secureHost(server.port) { $0.retry = .never }
        let error = try await remoteError { try await host.send(Route(path: "/x")) }
        #expect(error.code == .protocolViolation, "\(error) \(String(describing: error.underlyingError))")
        for _ in 0..<3 { #expect(try await host.data(for: Route(path: "/x")) == Data("whole".utf8)) }
        #expect(server.ending().requests == 1)
    }

    @Test func `H6, W14: deadlines pass during a flood`() async throws {
        let silent = try LoopbackOrigin { _ in LoopbackOrigin.Response.text("x").misbehaving(.neverAnswer) }
        let server = try await FrameServer("empty data")
        let hostile = try secureHost(server.port) { $0.retry = .never }
        let host = RemoteHost(silent.port, over: hostile.transport).with {
            ($0.retry, $0.timeouts) = (.never, .init(head: .milliseconds(50)))
        }
        let flood = Task { try await remoteError { try await hostile.send(Route(path: "/x")) } }
        try await server.wait(for: 1, "R")
        let code = WatchedState<RemoteError.Code?>(nil)
        let call = Task {
            let error = try await remoteError { try await host.send(Route(path: "/x")) }
            code.update { $0 = error.code }
        }
        try await until("the deadline passes") { code.current == .headTimedOut }
        try await call.value
        flood.cancel()
        _ = try await flood.value
    }

    @Test func `W14: an endless body of chunks of one byte delays no other exchange`() async throws {
        let chunks = String(repeating: "1\r\nx\r\n", count: 10_000)
        let server = try RawServer { connection in
            guard connection.readHead() != nil else { return }
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
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
