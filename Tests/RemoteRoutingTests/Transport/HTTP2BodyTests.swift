#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// HTTP/2 bodies without a length, and servers with HTTP/2 only.
@Suite(.needsFrames, .timeLimit(.minutes(hangMinutes)))
struct HTTP2BodyTests {
    private static let broken = ["no-error", "no-error-at-once", "too-long-frame", "garbage-in-body", "wrong-padding"]

    @Test(arguments: [HTTPMethod.get, .post], broken)
    func `W7: a body without a length that is broken before its end is an error`(_ method: HTTPMethod, _ plan: String) async throws {
        let (server, host) = try await FrameServer.serving(plan)
        let error = try await remoteError { _ = try await host.data(for: Route(path: "/x", method: method)) }
        #expect(error.code == .connectionLost, "\(error)")
        #expect(error.mayHaveArrived && error.isRetryable == (method == .get))
        _ = server.ending()
    }

    @Test(arguments: broken)
    func `W7: a safe request with a broken body is repeated over HTTP 1.1`(_ plan: String) async throws {
        let server = try await FrameServer(plan + "+")
        let host = try secureHost(server.port) { $0.retry = .exponential(attempts: 3, base: .zero) }
        #expect(try await host.data(for: Route(path: "/x")) == Data("whole".utf8))
        #expect(server.ending().requests <= 2)
    }

    @Test(arguments: ["no-error", "garbage-in-body"])
    func `H6, W7: a request that is repeated over HTTP 1.1 has the time for another head`(_ plan: String) async throws {
        let server = try await FrameServer(plan + "+-")
        let host = try secureHost(server.port) {
            // If a part of the response reaches the caller before the body breaks, only another attempt repeats the request.
            $0.retry = .exponential(attempts: 2, base: .zero)
            $0.retryRules.errors = [.connectionLost]
            $0.timeouts = .init(head: .seconds(1))
        }
        let task = Task { try await host.data(for: Route(path: "/x")) }
        let error = try await remoteError { _ = try await task.value(of: "the call ends") }
        #expect(error.code == .headTimedOut, "\(error)")
        _ = server.ending()
    }

    @Test(arguments: [HTTPMethod.get, .post], ["whole-and-goaway", "empty-last-frame"])
    func `W7: a complete body without a length is a response`(_ method: HTTPMethod, _ plan: String) async throws {
        let (server, host) = try await FrameServer.serving(plan)
        for _ in 0..<3 { #expect(try await host.data(for: Route(path: "/x", method: method)) == Data("whole".utf8)) }
        #expect(server.ending().requests == 3)
    }

    @Test(.disabled(if: RealTransport.hasLibcurl7, "libcurl 7 does not name frames"))
    func `W7: of the streams of a connection, only the one that is reset is cut`() async throws {
        let (server, host) = try await FrameServer.serving("no-error-of-last")
        let bodies = try await atOnce(10) { _ in try? await host.data(for: Route(path: "/x")) }
        #expect(bodies.count { $0 == Data("whole".utf8) } == 9 && bodies.count { $0 == nil } == 1, "\(bodies)")
        _ = server.ending()
    }

    @Test(.disabled(if: RealTransport.hasLibcurl7, "libcurl 7 fails a request that the server stops"))
    func `W7: a complete response that stops the request is a response`() async throws {
        let (server, host) = try await FrameServer.serving("no-error-after-end")
        // The rest of the body is never there.
        let gate = DispatchSemaphore(value: 0)
        defer { gate.signal() }
        let body = HTTPBodyStream(length: 10, isReplayable: false) {
            let parts = Lock([Data("half".utf8)])
            return { _ in
                if let part = parts.withLock({ $0.popLast() }) { return part }
                gate.wait()
                return nil
            }
        }
        let data = try await host.data(for: Route(path: "/x", method: .post, body: .stream(body)))
        #expect(data == Data("whole".utf8))
        _ = server.ending()
    }

    @Test func `W9: streams and downloads use HTTP 2 if the server has nothing else`() async throws {
        let (server, host) = try await FrameServer.serving("empty-last-frame")
        for _ in 0..<2 {
            let bytes = try await host.bytes(for: Route(path: "/x"))
            #expect(try await bytes.whole() == Data("whole".utf8))
            #expect(bytes.metrics?.version == .http2)
        }
        let file = temporaryURL()
        _ = try await host.download(Route(path: "/x"), to: file)
        #expect(try Data(contentsOf: file) == Data("whole".utf8))
        #expect(try await host.data(for: Route(path: "/x")) == Data("whole".utf8))
        _ = server.ending()
    }

    @Test(arguments: ["refuse-all", "goaway-below"])
    func `H18, W2, W9: a request that the server refused to process has not arrived, and is not sent again`(_ plan: String) async throws {
        let (server, host) = try await FrameServer.serving(plan)
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(error.code == .connectionLost && !error.mayHaveArrived, "\(error)")
        #expect(plan != "refuse-all" || !error.isRetryable, "\(error)")
        #expect(server.ending().requests == 1)
    }
}

/// Exchanges that wait for the connection of another one, which comes to nothing.
@Suite(.needsNginx, .timeLimit(.minutes(hangMinutes)))
struct WaitingExchangeTests {
    private func codes(_ host: RemoteHost, _ count: Int) async throws -> [RemoteError.Code?] {
        try await atOnce(count) { _ in
            do {
                _ = try await host.data(for: Route(path: "/x"))
                return nil
            } catch let error as RemoteError {
                return error.code
            }
        }
    }

    @Test func `W9: exchanges fail if the server of their shared connection is gone`() async throws {
        let server = try await NginxServer()
        // Until its end, no other server gets the port.
        defer { withExtendedLifetime(server) {} }
        let host = try secureHost(server.port) { $0.retry = .never }
        #expect(try await codes(host, 50) == Array(repeating: nil, count: 50))
        server.end()
        try await until("nothing listens") { !isListening(server.port) }
        let failed = try await codes(host, 50)
        // The end of a connection may not have arrived yet when an exchange takes the connection.
        #expect(failed.allSatisfy { $0 == .connectionRefused || $0 == .connectionLost }, "\(failed)")
        let transport = try #require(host.transport as? CurlTransport)
        try await until("all have ended") { transport.exchangeCount == 0 }
    }

    /// A server in between that passes nothing on to the clients of some connections, by their numbers.
    private func relay(to nginx: NginxServer, _ isSilent: @escaping @Sendable (Int) -> Bool) throws -> RawServer {
        let port = UInt16(nginx.port)
        return try RawServer { client in
            client.relay(to: port) { bytes, _ in
                if isSilent(client.number) { bytes = [] }
                return true
            }
        }
    }

    @Test func `W4, W9: a connection on which nothing more arrives is abandoned`() async throws {
        let nginx = try await NginxServer()
        let isSilent = Lock(false)
        let server = try relay(to: nginx) { number in number == 1 && isSilent.withLock(\.self) }
        let patient = try secureHost(Int(server.port)) { $0.retry = .never }
        _ = try await patient.data(for: Route(path: "/x"))
        isSilent.withLock { $0 = true }
        // Keeps the silent connection in use between the others.
        let waiting = Task { try await patient.data(for: Route(path: "/x")) }
        let transport = try #require(patient.transport as? CurlTransport)
        try await until("an exchange waits") { transport.exchangeCount == 1 }
        var results: [RemoteError.Code?] = []
        // A busy machine may need longer than the first limits for a handshake.
        var limit = Duration.seconds(1)
        while results.count < 10, !results.contains(nil) {
            results += try await codes(patient.with { $0.timeouts.head = limit }, 1)
            limit = limit * 2
        }
        waiting.cancel()
        _ = await waiting.result
        try #require(results.last == .some(nil) && results.dropLast().allSatisfy { $0 == .headTimedOut }, "\(results)")
        _ = try await patient.data(for: Route(path: "/x"))
        #expect(server.acceptedConnections <= results.count + 2)
    }

    @Test(arguments: [true, false])
    func `W4, W9: a handshake that never ends delays no other exchange with the origin`(_ http2: Bool) async throws {
        let nginx = try await NginxServer(http2: http2)
        // The first connection is accepted and nothing more, as by one of several servers behind an address.
        let server = try relay(to: nginx) { $0 == 1 }
        let host = try secureHost(Int(server.port)) { $0.retry = .never }
        let stalled = Task { try await host.send("/x") }
        try await until("the first connection is there") { server.acceptedConnections == 1 }
        #expect(try await codes(host, 20) == Array(repeating: nil, count: 20))
        stalled.cancel()
        _ = await stalled.result
    }

    @Test func `W13: a thousand exchanges that wait for a handshake end with their callers`() async throws {
        let server = try RawServer { $0.drain() }
        let host = try secureHost(Int(server.port)) { $0.retry = .never }
        let transport = try #require(host.transport as? CurlTransport)
        for isScoutFirst in [true, false] {
            let early = WatchedState<[any Error]>([])
            let calls = (0..<1000).map { _ in
                Task {
                    do { try await host.send("/x") } catch {
                        early.update { $0.append(error) }
                        throw error
                    }
                }
            }
            try await until("all are known") { transport.exchangeCount == 1000 || !early.current.isEmpty }
            try #require(early.current.isEmpty)
            for call in isScoutFirst ? calls : calls.reversed() { call.cancel() }
            for call in calls { await #expect(throws: RemoteError.self) { try await call.value } }
            try await until("all have ended") { transport.exchangeCount == 0 }
        }
        // The next one connects at once.
        let before = server.acceptedConnections
        let call = Task { try await host.send("/x") }
        try await until("a connection is there") { server.acceptedConnections > before }
        call.cancel()
        _ = await call.result
    }
}
#endif
