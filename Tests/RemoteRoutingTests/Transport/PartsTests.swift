import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// The pure parts of an exchange.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PartsTests {
    private let start = MonotonicInstant(nanoseconds: 0)

    private func seconds(_ deadlines: Deadlines) -> String {
        guard let next = deadlines.next else { return "none" }
        return "\(next.part) \(next.instant.nanoseconds / 1_000_000_000)"
    }

    private func deadlines(_ limits: ExchangeLimits) -> Deadlines { Deadlines(limits.timeouts, until: limits.deadline, started: start) }

    @Test func `H6: the nearest deadline comes first`() {
        var limits = ExchangeLimits(head: .seconds(30), idle: .seconds(5), attempt: .seconds(60))
        var deadlines = deadlines(limits)
        #expect(seconds(deadlines) == "head 30")
        deadlines.moved(at: start.advanced(by: .seconds(10)))
        #expect(seconds(deadlines) == "head 40")
        deadlines.expectsBody(at: start.advanced(by: .seconds(20)))
        #expect(seconds(deadlines) == "idle 25")
        deadlines.moved(at: start.advanced(by: .seconds(58)))
        #expect(seconds(deadlines) == "attempt 60")
        limits.deadline = start.advanced(by: .seconds(3))
        #expect(seconds(self.deadlines(limits)) == "overall 3")
        #expect(seconds(self.deadlines(ExchangeLimits(head: nil, idle: nil))) == "none")
    }

    @Test func `H8: unread bytes beyond the limit go to disk and come back in order, and only then a buffer is empty`() throws {
        var buffer = BodyBuffer(memoryLimit: 1000, spillLimit: 1 << 20)
        var expected = Data()
        var read = Data()
        var most = 0
        var generator = SystemRandomNumberGenerator()
        for round in 0..<400 {
            let piece = Data((0..<Int.random(in: 1...900, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) })
            expected.append(piece)
            try buffer.push(piece, staysInMemory: false)
            #expect(buffer.memoryBytes <= 1000)
            most = max(most, buffer.spilledBytes)
            if round % 3 == 0, let some = try buffer.take() { read.append(some) }
            #expect(buffer.isEmpty == (read.count == expected.count))
        }
        #expect(most > 0)
        while let some = try buffer.take() {
            read.append(some)
            #expect(buffer.isEmpty == (read.count == expected.count))
        }
        #expect(read == expected)
    }

    @Test func `H8: a reader that is always one chunk behind receives every chunk`() throws {
        var buffer = BodyBuffer(memoryLimit: 1000, spillLimit: 0)
        var read = 0
        try buffer.push(Data([0]), staysInMemory: false)
        for number in 1...10_000 {
            try buffer.push(Data([UInt8(truncatingIfNeeded: number)]), staysInMemory: false)
            let piece = try buffer.take()
            if piece == Data([UInt8(truncatingIfNeeded: number - 1)]) { read += 1 }
        }
        #expect(read == 10_000)
    }

    @Test func `H8: unread bytes are spilled to disk and read back`() async throws {
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil, bodyBytes: .max, memoryBytes: 100_000, spillBytes: 5_000_000))
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        let piece = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 2) })
        for _ in 0..<60 { exchange.receive(piece) }
        exchange.finish()
        let reply = try await exchange.response()
        let whole = try await reply.body.whole()
        #expect(whole.count == 3_000_000 && whole.suffix(50_000) == piece)
    }

    @Test func `H8: unread bytes beyond the spill limit end the exchange`() async throws {
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil, bodyBytes: .max, memoryBytes: 1000, spillBytes: 10_000))
        let stops = WatchedState(0)
        exchange.onStop { stops.update { $0 += 1 } }
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        for _ in 0..<11 { exchange.receive(Data(count: 1000)) }
        #expect(stops.current == 0)
        for _ in 0..<9 { exchange.receive(Data(count: 1000)) }
        #expect(stops.current == 1)
        let reply = try await exchange.response()
        await #expect { for try await _ in reply.body {} } throws: { ($0 as? TransportFailure)?.code == .bodyTooLarge }
    }

    @Test func `H8: the spill file has no name`() async throws {
        func names() throws -> Set<String> {
            let all = try FileManager.default.contentsOfDirectory(atPath: FileManager.default.temporaryDirectory.path)
            return Set(all.filter { $0.hasPrefix(".remote-routing") })
        }
        let before = try names()
        let file = try SpillFile()
        try file.write(Data("abc".utf8), at: 0)
        // The files of other tests have names for a moment.
        let new = try names().subtracting(before)
        try await until("the new names are gone") { try new.isDisjoint(with: names()) }
        #expect(try file.read(upTo: 3, at: 0) == Data("abc".utf8))
    }

    @Test func `H8: an unreadable spill file is reported in the error`() throws {
        let file = try SpillFile()
        // No system call reads before the start of a file.
        let error = #expect(throws: TransportFailure.self) { try file.read(upTo: 3, at: -1) }
        #expect(error?.message.contains("reading unread bytes from a temporary file") == true)
    }

    @Test(arguments: [true, false])
    func `H6: no exchange is sent after its deadline`(_ keepsDeadlines: Bool) async throws {
        let time = ManualTime()
        let limits = ExchangeLimits(head: nil, idle: nil, deadline: time.now.advanced(by: .seconds(5)), time: time)
        func exchange() -> Exchange { Exchange(limits: limits, source: Exchange.Source(keepsDeadlines: keepsDeadlines)) }
        #expect(exchange().mayBegin())
        time.advance(by: .seconds(5))
        let late = exchange()
        #expect(!late.mayBegin())
        let failure = await #expect(throws: TransportFailure.self) { try await late.response() }
        #expect(failure?.code == .overallTimedOut && failure?.mayHaveArrived == false)
    }

    @Test func `H6: the idle deadline holds after a pause that was longer`() async throws {
        let time = ManualTime()
        let limits = ExchangeLimits(head: nil, idle: .seconds(10), memoryBytes: 8, time: time)
        let exchange = Exchange(limits: limits, source: Exchange.Source(waitsForReader: true))
        exchange.onResume {}
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        try await time.sleepers(atLeast: 1)
        let watcher = exchange.state.withLock { $0.watcher }
        exchange.receive(Data(count: 8))
        time.advance(by: .seconds(10))
        await watcher?.value
        #expect(try await exchange.next()?.count == 8)
        let end = Task { try await exchange.next() }
        try await time.advance(by: .seconds(10), sleepers: 1)
        await #expect { try await end.value } throws: { ($0 as? TransportFailure)?.code == .idleTimedOut }
    }

    @Test(
        arguments: [
            (-1004, "Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server", RemoteError.Code.connectionRefused),
            (-1003, "Could not resolve host: nonexistent.invalid", .hostNotFound),
            (-1005, "Recv failure: Connection reset by peer", .connectionLost),
            (-1, "transfer closed with 6 bytes remaining to read", .connectionLost), (-1, "Empty reply from server", .connectionLost),
            (-1, "Illegal or missing hexadecimal sequence in chunked-encoding", .protocolViolation),
            (-1002, "Received HTTP/0.9 when not allowed", .protocolViolation),
            (-1, "Error while processing content unencoding: incorrect header check", .protocolViolation),
            (-1, "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number", .tlsFailed), (-999, "cancelled", .cancelled),
            (-1009, "The Internet connection appears to be offline.", .offline), (-1001, "", .unreachable),
            (-1, "another reason", .unreachable), (-1004, "Failed to connect to 10.0.0.1: Network is unreachable", .unreachable),
            (NSURLErrorServerCertificateUntrusted, "", .certificateUntrusted),
            (NSURLErrorServerCertificateHasBadDate, "", .certificateExpired),
            (NSURLErrorClientCertificateRequired, "", .clientCertificateRefused),
            (-1, "SSL: no alternative certificate subject name matches target host name 'a'", .certificateNameMismatch),
        ] as [(Int, String, RemoteError.Code)])
    func `H15: failures are distinguished if the system reports them`(_ code: Int, _ text: String, _ expected: RemoteError.Code) {
        #expect(TransportFailure(urlErrorCode: code, text: text).code == expected)
    }

    @Test(arguments: [ECONNRESET, ECONNABORTED, ENOTCONN, EPIPE])
    func `H25: the error of a socket that ended is a lost connection`(_ code: Int32) {
        let error = NSError(domain: NSPOSIXErrorDomain, code: Int(code))
        #expect(TransportFailure(sessionError: error).code == .connectionLost)
    }

    /// libcurl waits for the reader, so unread bytes need no disk.
    @Test(arguments: RealTransport.available.filter { $0 == .curl })
    func `H8: a source that waits for its reader needs no space on disk`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        let content = Data(repeating: 7, count: 100_000)
        bench.on("GET", "/x") { _ in .data(content) }
        let host = bench.host {
            $0.limits.memoryBytes = 1000
            $0.limits.spillBytes = 0
        }
        #expect(try await host.bytes(for: Route(path: "/x")).whole() == content)
    }
}

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
        let transport = MemoryTransport(inTurn: .json("busy", status: 503), .json("[1,2,3]"))
        let (host, entries) = RemoteHost("a.example", transport: transport).with {
            $0.retry = .exponential(attempts: 2, base: .zero)
        }.logged()
        let response = try await host.response(for: Route(path: "/x"), as: [Int].self)
        #expect(response.metrics?.decodedBodyBytes == 7 && response.attempts == 2)
        // The response of a failed attempt is complete too.
        #expect(entries.current.compactMap(\.metrics?.decodedBodyBytes) == [4, 7])
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

    @Test func `W10: a version is converted from libcurl's number or from its ALPN name`() {
        let numbers = [1, 2, 3, 30, 0, 4, -1].map { ExchangeMetrics.Version(libcurl: $0) }
        #expect(numbers == [.http1_0, .http1_1, .http2, .http3, nil, nil, nil])
        let names = ["http/1.1", "h2", "h2c", "h3", "spdy/3", ""].map { ExchangeMetrics.Version(alpn: $0) }
        #expect(names == [.http1_1, .http2, .http2, .http3, nil, nil])
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
        let stream = HTTPBodyStream(chunks: count == 0 ? [] : [Data(count: count)], length: Int64(count))
        let body: RouteBody = isStream ? .stream(stream) : .data(Data(count: count))
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
        #expect(try await bytes.whole().count == 100_000)
        #expect(bytes.metrics?.receivedBodyBytes == packed && bytes.metrics?.decodedBodyBytes == 100_000)
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `W10: a head that was sent again on another connection counts once`() async throws {
        let sent = Lock(0)
        let server = try RawServer { connection in
            guard let head = connection.readHead() else { return }
            sent.withLock { $0 = head.utf8.count }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            // The first connection ends after another request.
            _ = connection.readHead()
        }
        let host = try RealTransport.curl.host(server.port) { $0.timeouts = .init() }
        for _ in 0...1 {
            let metrics = try #require(try await host.dataResponse(for: Route(path: "/x")).metrics)
            #expect(metrics.sentHeadBytes == Int64(sent.withLock(\.self)) && metrics.isReused == false)
        }
        #expect(server.acceptedConnections == 2)
    }

    @Test(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"))
    func `W10: a response over HTTP 1.0 reports its version`() async throws {
        let server = try RawServer(sending: "HTTP/1.0 200 OK\r\n\r\nhello")
        let host = try RealTransport.curl.host(server.port) { $0.timeouts = .init() }
        let metrics = try #require(try await host.dataResponse(for: Route(path: "/x")).metrics)
        #expect(metrics.version == .http1_0 && metrics.receivedBodyBytes == 5)
    }
    #endif
}
