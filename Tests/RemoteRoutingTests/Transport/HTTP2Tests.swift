#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// The conditions for HTTP/2, without a network.
@Suite
struct HTTP2OfferTests {
    @Test(
        arguments: [
            (0x075801, true, true, false, true), (0x080300, true, true, false, true), (0x075702, true, true, false, false),
            (0x080000, true, true, false, false), (0x080201, true, true, false, false),
            (0x075800, false, true, false, false), (0x075800, true, false, false, false), (0x075800, true, true, true, false),
        ] as [(UInt32, Bool, Bool, Bool, Bool)])
    func `W5, W9: HTTP 2 is offered over TLS for responses that are not streamed, if libcurl supports it`(
        _ version: UInt32, _ hasHTTP2: Bool, _ isSecure: Bool, _ isStream: Bool, _ expected: Bool
    ) {
        let build = WireLibrary.Build(name: "X", version: version, hasThreads: true, hasHTTP2: hasHTTP2)
        #expect(build.mayOfferHTTP2(isSecure: isSecure, isStream: isStream) == expected)
    }
}

@Suite(.needsNginx, .timeLimit(.minutes(hangMinutes)))
struct HTTP2Tests {
    /// Sends concurrent requests; returns nginx's numbers of their connections and their versions.
    private func burst(_ host: RemoteHost, _ count: Int, path: RoutePath = "/x") async throws -> (Set<String>, Set<ExchangeMetrics.Version>)
    {
        let responses = try await atOnce(count) { _ in try await host.dataResponse(for: Route(path: path)) }
        return (Set(responses.map { String(decoding: $0.value, as: UTF8.self) }), Set(responses.compactMap(\.metrics?.version)))
    }

    /// The most connections that concurrent requests may use: one, and another for each handshake that the others did not wait for.
    private func connectionLimit(since start: ContinuousClock.Instant) -> Int {
        1 + Int(start.duration(to: .now) / ConnectionSharing.patience)
    }

    @Test func `W9: concurrent GETs use one connection`() async throws {
        let origin = try LoopbackOrigin()
        let arrived = origin.meet(200, at: "/up", .text("all"))
        let server = try await NginxServer(upstream: origin.port)
        let host = try secureHost(server.port)
        let start = ContinuousClock.now
        let (first, versions) = try await burst(host, rounds(10_000, quick: 1_000))
        #expect(first.count <= connectionLimit(since: start) && versions == [.http2])
        let (bodies, again) = try await burst(host, 200, path: "/up")
        #expect(bodies == ["all"] && again == [.http2] && arrived.current == 200)
        let (last, _) = try await burst(host, 200)
        #expect(last.isSubset(of: first))
    }

    @Test func `W9: 200 concurrent GETs that all wait for their first response use one connection`() async throws {
        let origin = try LoopbackOrigin()
        // libcurl assumes 100 streams until it learns the server's limit.
        let arrived = origin.meet(90, at: "/up", .text("all"))
        let server = try await NginxServer(upstream: origin.port)
        let host = try secureHost(server.port)
        let start = ContinuousClock.now
        let (bodies, _) = try await burst(host, 200, path: "/up")
        let (connections, _) = try await burst(host, 10)
        #expect(bodies == ["all"] && connections.count <= connectionLimit(since: start))
        // The number of the client's only connection, after those to the upstream.
        #expect(arrived.current == 200)
    }

    @Test(arguments: [1, 10, 128])
    func `W9: a server with a low stream limit gets few connections`(_ streams: Int) async throws {
        let server = try await NginxServer(streams: streams)
        let host = try secureHost(server.port)
        let start = ContinuousClock.now
        let (connections, versions) = try await burst(host, 400)
        #expect(versions == [.http2])
        #expect(connections.count <= 400 / streams + 1 + connectionLimit(since: start), "\(connections.count)")
    }

    @Test func `W4, W9: a slow first response delays no other response, with HTTP 2 and without it`() async throws {
        let gate = WatchedState(false)
        let origin = try LoopbackOrigin { request in
            if request.path == "/up/slow" { _ = try? await gate.wait { $0 ? () : nil } }
            return .text("done")
        }
        for (isOffered, isAllowed) in [(false, true), (true, false), (true, true)] {
            gate.update { $0 = false }
            let server = try await NginxServer(http2: isOffered, upstream: origin.port)
            let host = try secureHost(server.port) { $0.allowsHTTP2 = isAllowed }
            origin.forget()
            let slow = Task { try await host.data(for: Route(path: "/up/slow")) }
            try await origin.waitUntil { $0.requests.contains { $0.path == "/up/slow" } }
            let (bodies, versions) = try await burst(host, 50, path: "/up/x")
            #expect(bodies == ["done"] && versions == [isOffered && isAllowed ? .http2 : .http1_1])
            gate.update { $0 = true }
            _ = try await slow.value
        }
    }

    @Test func `W5, W9: a streamed response uses HTTP 1.1, before and after other responses use HTTP 2`() async throws {
        let server = try await NginxServer()
        let host = try secureHost(server.port)
        for _ in 0..<3 {
            let bytes = try await host.bytes(for: Route(path: "/x"))
            for try await _ in bytes {}
            #expect(bytes.metrics?.version == .http1_1)
        }
        let start = ContinuousClock.now
        let (connections, versions) = try await burst(host, 100)
        #expect(versions.contains(.http2) && connections.count <= connectionLimit(since: start), "\(connections.count)")
        let bytes = try await host.bytes(for: Route(path: "/x"))
        for try await _ in bytes {}
        #expect(bytes.metrics?.version == .http1_1)
    }

    @Test(arguments: [true, false], [HTTPMethod.post, .put])
    func `W6, W9: streamed bodies arrive completely over HTTP 2`(_ hasLength: Bool, _ method: HTTPMethod) async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        let server = try await NginxServer(upstream: origin.port)
        let host = try secureHost(server.port)
        for count in [0, 1, 70_000, 3_000_000] {
            let chunks = stride(from: 0, to: count, by: 50_000).map { Data(count: min(50_000, count - $0)) }
            let body = HTTPBodyStream(chunks: chunks, length: hasLength ? Int64(count) : nil)
            let response = try await host.dataResponse(for: Route(path: "/up", method: method, body: .stream(body)))
            #expect(response.value == Data("\(count)".utf8))
            #expect(response.metrics?.version == .http2 && response.metrics?.sentBodyBytes == Int64(count))
        }
    }

    @Test(arguments: [0, 100, 1_000_000])
    func `W2, W9: an unsafe request has a fresh connection and arrives once`(_ count: Int) async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        let server = try await NginxServer(upstream: origin.port)
        let host = try secureHost(server.port)
        _ = try await burst(host, 5)
        for _ in 0..<5 {
            let response = try await host.dataResponse(for: Route(path: "/up", method: .post, body: .data(Data(count: count))))
            #expect(response.value == Data("\(count)".utf8))
            #expect(response.metrics?.isReused == false && response.metrics?.version == .http2)
        }
        #expect(origin.requests.count == 5)
        let put = Route(path: "/up", method: .put, body: .data(Data(count: count)))
        #expect(try await host.dataResponse(for: put).metrics?.isReused == true)
    }

    @Test func `W10: metrics of HTTP 2 distinguish a new connection from a reused one`() async throws {
        let server = try await NginxServer()
        let host = try secureHost(server.port)
        let first = try #require(try await host.dataResponse(for: Route(path: "/x")).metrics)
        #expect(first.version == .http2 && first.isReused == false)
        #expect(try #require(first.secure) > .zero && first.connect != nil && first.nameLookup != nil)
        let second = try #require(try await host.dataResponse(for: Route(path: "/x")).metrics)
        #expect(second.version == .http2 && second.isReused == true && second.secure == nil)
        #expect(second.receivedBodyBytes == second.decodedBodyBytes)
    }
}

/// HTTP/2 with a server that ends streams and connections.
@Suite(.needsFrames, .timeLimit(.minutes(hangMinutes)))
struct HTTP2FaultTests {
    @Test(
        arguments: [HTTPMethod.get, .post], ["reset", "reset-in-body", "goaway-in-body", "close", "garbage", "no-status", "short"])
    func `W1, W2, W9, H18: a request with a broken response may have arrived`(_ method: HTTPMethod, _ plan: String) async throws {
        let (server, host) = try await FrameServer.serving(plan)
        let error = try await remoteError { try await host.send(Route(path: "/x", method: method)) }
        #expect([.connectionLost, .protocolViolation].contains(error.code), "\(error)")
        #expect(error.mayHaveArrived)
        #expect(error.isRetryable == (method == .get && error.code == .connectionLost))
        let (_, requests) = server.ending()
        #expect(method == .get || requests == 1)
    }

    @Test(arguments: ["received GOAWAY, error=0, last_stream=0", "FRAME[GOAWAY, error=0, reason='', last_stream=0]"])
    func `H18, W9: a request that contains a message of libcurl may have arrived nevertheless`(_ text: String) async throws {
        let (server, host) = try await FrameServer.serving("close")
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post, headers: ["X-Note": text])) }
        #expect(error.mayHaveArrived, "\(error)")
        #expect(server.ending().requests == 1)
    }

    @Test(arguments: ["bomb", "flood"])
    func `W1, W4, W9: an endless compressed head, or one with too many fields, is a typed error`(_ plan: String) async throws {
        let (server, host) = try await FrameServer.serving(plan)
        #expect(try await host.data(for: Route(path: "/x")).isEmpty == false)
        for _ in 0..<3 {
            let error = try await remoteError { try await host.send("/x") }
            #expect([.protocolViolation, .connectionLost].contains(error.code), "\(error)")
        }
        _ = server.ending()
    }

    @Test func `W9: a refused stream was not processed, and a safe request is sent again`() async throws {
        let (server, host) = try await FrameServer.serving("refuse-first")
        #expect(try await host.data(for: Route(path: "/x")).isEmpty == false)
        #expect(server.ending().requests == 2)
    }

    @Test func `W9: a server that refuses every stream is an error`() async throws {
        let (server, host) = try await FrameServer.serving("refuse-all")
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .connectionLost, "\(error)")
        #expect(server.ending().requests <= 10)
    }

    @Test func `W7, W9: responses of unknown length share a connection, and none is taken for the end of another`() async throws {
        let (server, host) = try await FrameServer.serving("good")
        #expect(try await host.data(for: Route(path: "/x")).isEmpty == false)
        for _ in 0..<10 {
            let bodies = try await atOnce(20) { _ in try await host.data(for: Route(path: "/x")) }
            #expect(!bodies.contains(Data()))
        }
        let (connections, requests) = server.ending()
        #expect(connections <= 3 && requests == 201, "\(connections) connections, \(requests) requests")
    }

    @Test(arguments: ["goaway-unprocessed", "goaway-and-go"])
    func `W9: requests after a GOAWAY use another connection`(_ plan: String) async throws {
        let (server, failing) = try await FrameServer.serving(plan)
        let host = failing.with { $0.retry = .exponential(attempts: 3, base: .zero) }
        let bodies = try await atOnce(20) { _ in try await host.data(for: Route(path: "/x")) }
        #expect(!bodies.contains(Data()))
        for _ in 0..<3 { #expect(try await host.data(for: Route(path: "/x")) == Data("2".utf8)) }
        let (connections, requests) = server.ending()
        #expect(connections <= 3 && requests <= 23 + 20, "\(connections) connections, \(requests) requests")
    }

    @Test func `W9, W13: canceling resets the streams, or ends a connection without other users`() async throws {
        let (server, host) = try await FrameServer.serving("never")
        let calls = (0..<20).map { _ in Task { try await host.data(for: Route(path: "/x")) } }
        try await server.wait(for: 20, "R")
        for call in calls { call.cancel() }
        for call in calls { #expect(await call.result.isFailure) }
        try await server.wait(for: 20, "X", or: "E 1")
        let next = Task { try await host.data(for: Route(path: "/x")) }
        try await server.wait(for: 1, "R")
        next.cancel()
        _ = await next.result
    }

    @Test func `W9, W13: 1 000 streams without a response end when their calls are canceled`() async throws {
        let (server, host) = try await FrameServer.serving("never")
        let transport = try #require(host.transport as? CurlTransport)
        for _ in 0..<10 {
            let calls = (0..<100).map { _ in Task { try await host.data(for: Route(path: "/x")) } }
            try await until("all exchanges are known") { transport.exchangeCount == calls.count }
            for call in calls { call.cancel() }
            for call in calls { #expect(await call.result.isFailure) }
        }
        try await until("nothing is in flight") { transport.exchangeCount == 0 }
        _ = server.ending()
    }
}

extension Result {
    fileprivate var isFailure: Bool { if case .failure = self { true } else { false } }
}
#endif
