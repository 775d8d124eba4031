import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// The metrics of exchanges: times, bytes, version and connection.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct MetricsTests {
    @Test(arguments: TransportKind.allCases)
    func `W10: every transport reports total time, first byte and decoded bytes`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text(String(repeating: "x", count: 1000)) }
        let response = try await bench.host { $0.timeouts = .init() }.dataResponse(for: Route(path: "/x"))
        let metrics = try #require(response.metrics)
        let (first, total) = (try #require(metrics.firstByte), try #require(metrics.total))
        #expect(first >= .zero && first <= total && total <= response.duration)
        #expect(kind != .curl || first > .zero)
        #expect(metrics.decodedBodyBytes == 1000)
    }

    @Test func `W10: the times of a transport without a clock of its own are those of the host's clock`() async throws {
        let time = ManualTime()
        let transport = MemoryTransport { _ in
            try await time.sleep(until: time.now.advanced(by: .seconds(7)))
            return .json("7")
        }
        let host = RemoteHost("a.example", transport: transport, time: time).with { $0.timeouts = .init() }
        let call = Task { try await host.dataResponse(for: Route(path: "/x")) }
        try await time.advance(by: .seconds(7), sleepers: 1)
        let metrics = try #require(try await call.value.metrics)
        #expect(metrics.firstByte == .seconds(7) && metrics.total == .seconds(7))
        #expect(metrics.version == nil && metrics.isReused == nil)
    }

    @Test func `W10: metrics of several exchanges are those of the last one`() async throws {
        let transport = MemoryTransport(inTurn: .status(503), .json("[1,2,3]"))
        let entries = WatchedState<[ExchangeLog.Entry]>([])
        let host = RemoteHost("a.example", transport: transport).with {
            $0.retry = .exponential(attempts: 2, base: .zero)
        }.logging(to: ExchangeLog { entry in entries.update { $0.append(entry) } })
        let response = try await host.response(for: Route(path: "/x"), as: [Int].self)
        #expect(response.metrics?.decodedBodyBytes == 7 && response.attempts == 2)
        #expect(entries.current.compactMap(\.metrics?.decodedBodyBytes) == [7])
    }

    @Test func `W10: the description contains the known parts`() {
        var metrics = ExchangeMetrics()
        #expect("\(metrics)" == "")
        metrics.version = .http2
        metrics.isReused = true
        #expect("\(metrics)" == "HTTP/2, reused connection")
        (metrics.firstByte, metrics.total) = (.milliseconds(5), .milliseconds(120))
        #expect("\(metrics)" == "HTTP/2, reused connection, first byte after 5 ms, 120 ms")
    }

    @Test(
        arguments: [
            (1, ExchangeMetrics.Version.http1_0), (2, .http1_1), (3, .http2), (30, .http3), (0, nil), (4, nil), (-1, nil),
        ] as [(Int, ExchangeMetrics.Version?)])
    func `W10: a version is converted from libcurl's number`(_ number: Int, _ version: ExchangeMetrics.Version?) {
        #expect(ExchangeMetrics.Version(libcurl: number) == version)
    }

    @Test(
        arguments: [
            ("http/1.1", ExchangeMetrics.Version.http1_1), ("h2", .http2), ("h2c", .http2), ("h3", .http3), ("spdy/3", nil), ("", nil),
        ] as [(String, ExchangeMetrics.Version?)])
    func `W10: a version is converted from its ALPN name`(_ name: String, _ version: ExchangeMetrics.Version?) {
        #expect(ExchangeMetrics.Version(alpn: name) == version)
    }

    @Test func `W10: phases are the times between libcurl's marks, and a reused connection has none`() {
        func metrics(_ connections: Int, secure: Int64) -> ExchangeMetrics {
            ExchangeMetrics(version: 2, connections: connections, nameLookup: 30, connect: 100, secure: secure, firstByte: 500, total: 700)
        }
        let made = metrics(1, secure: 350)
        #expect(made.nameLookup == .microseconds(30) && made.connect == .microseconds(70) && made.secure == .microseconds(250))
        #expect(made.firstByte == .microseconds(500) && made.total == .microseconds(700) && made.isReused == false)
        #expect(metrics(1, secure: 0).secure == nil)
        let reused = metrics(0, secure: 0)
        #expect(reused.nameLookup == nil && reused.connect == nil && reused.secure == nil && reused.isReused == true)
    }

    @Test(
        arguments: [
            (150, 50, true, true, 100), (150, 50, true, false, 100), (150, 50, false, true, 100), (150, 50, false, false, 150),
            (30, 50, true, true, 0), (30, 50, false, false, 30),
        ] as [(Int64, Int64, Bool, Bool, Int64)])
    func `W10: the bytes of a head exclude the body if libcurl counts both together`(
        _ request: Int64, _ body: Int64, _ isCopied: Bool, _ countsBodies: Bool, _ expected: Int64
    ) {
        #expect(ExchangeMetrics.headBytes(of: request, body: body, isCopied: isCopied, countsBodies: countsBodies) == expected)
    }

    #if os(Linux)
    @Test(
        .enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"),
        arguments: [0, 10, 20_000, 300_000], [false, true])
    func `W10: libcurl's byte counts are those of the wire`(_ count: Int, _ isStream: Bool) async throws {
        let seen = Lock((head: 0, body: 0))
        let responseHead = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"
        let server = try RawServer { connection in
            while let head = connection.readHead() {
                let body = connection.readBytes(count)
                seen.withLock { $0 = (head.utf8.count, body) }
                connection.send(responseHead + "hello")
            }
        }
        let host = try RealTransport.curl.host(server.port) { $0.timeouts = .init() }
        let body: RouteBody
        if isStream {
            body = .stream(
                HTTPBodyStream(length: Int64(count), isReplayable: true) {
                    let parts = Parts(count == 0 ? [] : [Data(count: count)])
                    return { _ in parts.next() }
                })
        } else {
            body = .data(Data(count: count))
        }
        for round in 0...1 {
            let metrics = try #require(try await host.dataResponse(for: Route(path: "/x", method: .post, body: body)).metrics)
            let wire = seen.withLock(\.self)
            #expect(metrics.sentHeadBytes == Int64(wire.head))
            #expect(metrics.sentBodyBytes == Int64(count) && wire.body == count)
            #expect(metrics.receivedHeadBytes == Int64(responseHead.utf8.count))
            #expect(metrics.receivedBodyBytes == 5 && metrics.decodedBodyBytes == 5)
            #expect(metrics.version == .http1_1)
            #expect(metrics.isReused == (round == 1))
            #expect((metrics.connect == nil) == (round == 1) && metrics.secure == nil)
        }
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `W10: received and decoded bytes are counted separately, even for a stream`() async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/x") { _ in .gzipBomb(inflatingTo: 100_000) }
        let host = try RealTransport.curl.host(origin.port) { $0.timeouts = .init() }
        let metrics = try #require(try await host.dataResponse(for: Route(path: "/x")).metrics)
        let packed = try #require(metrics.receivedBodyBytes)
        #expect(packed < 10_000 && metrics.decodedBodyBytes == 100_000)
        let bytes = try await host.bytes(for: Route(path: "/x"))
        #expect(bytes.response.metrics == nil)
        var count = 0
        for try await piece in bytes { count += piece.count }
        #expect(count == 100_000)
        #expect(bytes.metrics?.receivedBodyBytes == packed && bytes.metrics?.decodedBodyBytes == 100_000)
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `W10: a response over HTTP 1.0 reports its version`() async throws {
        let server = try RawServer { connection in
            guard connection.readHead() != nil else { return }
            connection.send("HTTP/1.0 200 OK\r\n\r\nhello")
        }
        let host = try RealTransport.curl.host(server.port) { $0.timeouts = .init() }
        let metrics = try #require(try await host.dataResponse(for: Route(path: "/x")).metrics)
        #expect(metrics.version == .http1_0 && metrics.receivedBodyBytes == 5)
    }
    #endif
}
