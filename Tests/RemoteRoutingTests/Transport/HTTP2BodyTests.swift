#if os(Linux)
import Dispatch
import Foundation
import RemoteRouting
import StoreCore
import Testing
import Trials

/// HTTP/2 bodies without a length, and servers with HTTP/2 only.
@Suite(
    .enabled(if: RealTransport.available.contains(.curl) && FrameServer.problem == nil, "libcurl, python3 or OpenSSL is missing"),
    .timeLimit(.minutes(hangMinutes)))
struct HTTP2BodyTests {
    private static let broken = ["no-error", "no-error-at-once", "too-long-frame", "garbage-in-body", "wrong-padding"]

    @Test(arguments: [HTTPMethod.get, .post], broken)
    func `W7: a body without a length that is broken before its end is an error`(_ method: HTTPMethod, _ plan: String) async throws {
        let server = try await FrameServer(plan)
        let host = try secureHost(server.port) { $0.retry = .never }
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
            $0.retry = .never
            $0.timeouts = .init(head: .seconds(1))
        }
        let task = Task { try await host.data(for: Route(path: "/x")) }
        #expect(try await remoteError { _ = try await task.value(of: "the call ends") }.code == .headTimedOut)
        _ = server.ending()
    }

    @Test(arguments: [HTTPMethod.get, .post], ["whole-and-goaway", "empty-last-frame"])
    func `W7: a complete body without a length is a response`(_ method: HTTPMethod, _ plan: String) async throws {
        let server = try await FrameServer(plan)
        let host = try secureHost(server.port) { $0.retry = .never }
        for _ in 0..<3 { #expect(try await host.data(for: Route(path: "/x", method: method)) == Data("whole".utf8)) }
        #expect(server.ending().requests == 3)
    }

    @Test(.disabled(if: RealTransport.hasLibcurl7, "libcurl 7 does not name frames"))
    func `W7: of the streams of a connection, only the one that is reset is cut`() async throws {
        let server = try await FrameServer("no-error-of-last")
        let host = try secureHost(server.port) { $0.retry = .never }
        let bodies = await withTaskGroup(of: Data?.self) { group in
            for _ in 0..<10 { group.addTask { try? await host.data(for: Route(path: "/x")) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bodies.count { $0 == Data("whole".utf8) } == 9 && bodies.count { $0 == nil } == 1, "\(bodies)")
        _ = server.ending()
    }

    @Test(.disabled(if: RealTransport.hasLibcurl7, "libcurl 7 fails a request that the server stops"))
    func `W7: a complete response that stops the request is a response`() async throws {
        let server = try await FrameServer("no-error-after-end")
        let host = try secureHost(server.port) { $0.retry = .never }
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
        let server = try await FrameServer("empty-last-frame")
        let host = try secureHost(server.port) { $0.retry = .never }
        for _ in 0..<2 {
            let bytes = try await host.bytes(for: Route(path: "/x"))
            var whole = Data()
            for try await chunk in bytes { whole.append(contentsOf: chunk) }
            #expect(whole == Data("whole".utf8) && bytes.metrics?.version == .http2)
        }
        let file = temporaryURL()
        _ = try await host.download(Route(path: "/x"), to: file)
        #expect(try Data(contentsOf: file) == Data("whole".utf8))
        #expect(try await host.data(for: Route(path: "/x")) == Data("whole".utf8))
        _ = server.ending()
    }

    @Test func `H18: a request whose response is not HTTP 2 may have arrived`() async throws {
        let server = try await FrameServer("garbage")
        let host = try secureHost(server.port) { $0.retry = .never }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(error.mayHaveArrived && !error.isRetryable, "\(error)")
        #expect(server.ending().requests == 1)
    }

    @Test(arguments: ["refuse-all", "goaway-below"])
    func `H18, W2: a request that the server has refused to process has not arrived`(_ plan: String) async throws {
        let server = try await FrameServer(plan)
        let host = try secureHost(server.port) { $0.retry = .never }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(error.code == .connectionLost && !error.mayHaveArrived, "\(error)")
        #expect(server.ending().requests == 1)
    }
}
#endif
