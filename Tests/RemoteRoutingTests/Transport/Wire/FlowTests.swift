#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// A listener with a full queue, so that connecting to it does not end.
private final class FullListener: Sendable {
    let port: UInt16
    private let sockets: [Int32]

    init() throws {
        func open() -> Int32 { RawConnection.makeSocket(flags: Int32(SOCK_NONBLOCK.rawValue)) }
        var sockets = [open()]
        let isBound: Bool
        (isBound, port) = withLoopbackAddress { address, size in
            guard bind(sockets[0], address, size) == 0, listen(sockets[0], 0) == 0, getsockname(sockets[0], address, &size) == 0 else {
                return false
            }
            for _ in 0..<4 {
                sockets.append(open())
                _ = connect(sockets[sockets.count - 1], address, size)
            }
            return true
        }
        self.sockets = sockets
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
    }

    deinit { for socket in sockets { close(socket) } }
}

@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct FlowTests {
    @Test func `W5: a slow reader of a large body stops the server and holds at most 1 MiB`() async throws {
        let megabytes = isSanitized ? 32 : min(rounds(256, quick: 32), 4_096)
        let origin = try LoopbackOrigin { _ in
            .repeating(Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 7) }), times: megabytes * 16)
        }
        let transport = try RealTransport.curl.make()
        let host = RemoteHost(origin.port, over: transport)
        let bytes = try await host.bytes(for: Route(path: "/x"))
        try await until("half of the limit is unread") { bytes.unreadBytes > 1 << 19 }
        for _ in 0..<20_000 { await Task.yield() }
        #expect(bytes.unreadBytes <= 1 << 20)
        var count = 0
        var most = 0
        for try await piece in bytes {
            count += piece.count
            most = max(most, bytes.unreadBytes)
            if count % (8 << 20) < piece.count { for _ in 0..<200 { await Task.yield() } }
        }
        #expect(count == megabytes << 20)
        #expect(most <= 1 << 20)
    }

    /// `STOREHOUSE_SEEDS=5000` opens that many streams.
    @Test func `W5: streams that are never read hold little memory and one connection each, and block no other exchanges`() async throws {
        // Usually in a process of its own, because other tests take memory at the same time.
        if isLongRun { return try await FlowTests.holdStreams() }
        await #expect(processExitsWith: .success) { try await FlowTests.holdStreams() }
    }

    private static func holdStreams() async throws {
        let room = LoopbackOrigin.allowOpenDescriptors(20_000)
        // Both ends of each connection are in this process, and streams may use half of the descriptors.
        let width = min(rounds(600, quick: 300), room / 2 - 600)
        let origin = try LoopbackOrigin { $0.path == "/quick" ? .text("quick") : .repeating(Data(count: 65_536), times: 64) }
        let transport = try RealTransport.curl.make()
        let host = RemoteHost(origin.port, over: transport).with {
            $0.limits.concurrentStreams = 10_000
            $0.limits.memoryBytes = 65_536
            $0.timeouts = .init()
        }
        _ = try await host.data(for: Route(path: "/quick"))
        let memory = ProcessState.residentBytes ?? 0
        var streams = try await atOnce(width) { _ in try await host.bytes(for: Route(path: "/x")) }
        for _ in 0..<200 { #expect(try await host.data(for: Route(path: "/quick")) == Data("quick".utf8)) }
        let unread = streams.reduce(0) { $0 + $1.unreadBytes }
        let held = (ProcessState.residentBytes ?? 0) - memory
        let opened = origin.openConnections
        if isLongRun { print("W5: \(width) streams hold \(held >> 20) MiB, \(unread >> 20) of them unread, and \(opened) connections") }
        #expect(unread <= width * 3 << 16)
        #expect(held <= width * 768 << 10)
        #expect(opened <= width + 50)
        streams = []
        try await until("no exchange is left") { transport.exchangeCount == 0 }
        try await origin.waitUntil { $0.requests.allSatisfy { $0.ending != nil } }
        try await origin.waitUntil { $0.openConnections <= 100 }
    }

    @Test func `W5: streams that are never read leave connections for other exchanges, however few there are`() async throws {
        let origin = try LoopbackOrigin { $0.path == "/quick" ? .text("quick") : .repeating(Data(count: 65_536), times: 64) }
        let engine = try WireEngine(
            try WireLibrary(path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]), width: 4, connections: 10)
        // Their readers never read, so each pauses at its first byte.
        let limits = ExchangeLimits(head: hangLimit, idle: hangLimit, bodyBytes: .max, memoryBytes: 0)
        let streams = (0..<40).map { _ in Exchange(limits: limits, source: .wire) }
        for stream in streams { try engine.start(origin.url.appending(path: "x"), stream) }
        func pausedCount() -> Int { streams.count { $0.state.withLock(\.isPaused) } }
        try await until("the maximum number of streams is open") { pausedCount() == 6 }
        for _ in 0..<20 {
            let quick = Exchange(limits: .untilHang, source: .wire)
            try engine.start(origin.url.appending(path: "quick"), quick)
            #expect(try await quick.collect() == Data("quick".utf8))
        }
        #expect(pausedCount() == 6)
        #expect(origin.openConnections <= 10)
    }

    @Test func `W6: a stream of known length is sent with its length, and a stream of unknown length in chunks`() async throws {
        let origin = try LoopbackOrigin { request in
            .text("\(request.headers["Content-Length"] ?? "none") \(request.headers["Transfer-Encoding"] ?? "none") \(request.body.count)")
        }
        let host = try RealTransport.curl.host(origin.port)
        func sent(_ body: RouteBody, _ method: HTTPMethod = .post) async throws -> String {
            String(decoding: try await host.data(for: Route(path: "/x", method: method, body: body)), as: UTF8.self)
        }
        func stream(_ length: Int64?) -> RouteBody {
            .stream(HTTPBodyStream(chunks: Array(repeating: Data(count: 100_000), count: 30), length: length))
        }
        #expect(try await sent(stream(3_000_000)) == "3000000 none 3000000")
        #expect(try await sent(stream(nil)) == "none chunked 3000000")
        #expect(try await sent(.data(Data(count: 5_000_000)), .put) == "5000000 none 5000000")
        #expect(try await sent(.data(Data()), .post) == "0 none 0")
        #expect(try await sent(.none, .post) == "0 none 0")
        #expect(try await sent(.none, .delete) == "none none 0")
        let get = HTTPRequest(url: origin.url.appending(path: "x"), body: .data(Data("q".utf8)))
        #expect(try await host.transport.perform(get, limits: .untilHang).body.collect() == Data("1 none 1".utf8))
        #expect(origin.acceptedConnections == 1)
        #expect(origin.requests.allSatisfy { $0.headers["Expect"] == nil })
    }

    @Test func `W6: fields are sent as given, and none is added`() async throws {
        let origin = try LoopbackOrigin { _ in .text("x") }
        let transport = try RealTransport.curl.make()
        let fields = try fields(["X-Empty": "", "X-Twice": "1", "X-Twice": "2"])
        for body in [HTTPBody.none, .data(Data("x".utf8))] {
            let request = HTTPRequest(method: .post, url: origin.url.appending(path: "a;b/%2e/c"), fields: fields, body: body)
            _ = try await transport.perform(request, limits: .untilHang).body.collect()
            let seen = try #require(origin.requests.last).headers.fields
            let expected = ["Host", "X-Empty", "X-Twice", "X-Twice", "Accept-Encoding", "Content-Length"]
            #expect(seen.map(\.name).sorted() == expected.sorted())
            #expect(seen.first { $0.name == "X-Empty" }?.value == "")
        }
    }

    @Test(arguments: RealTransport.available)
    func `W6: a body that does not have its announced length fails the request`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("x") }
        let host = try transport.host(origin.port) { $0.retry = .never }
        for length in [300_000, 500_000] as [Int64] {
            let body = HTTPBodyStream(chunks: [Data(count: 400_000)], length: length)
            let error = try await remoteError { try await host.send(Route(path: "/x", method: .post, body: .stream(body))) }
            #expect(error.code == .bodyUnreadable, "said \(length)")
        }
        #expect(origin.requests.isEmpty)
    }

    private func host(_ port: UInt16, _ transport: CurlTransport, width: Int) -> RemoteHost {
        RemoteHost(port, over: transport).with { $0.limits.concurrentExchanges = width }
    }

    /// Begins as many exchanges as a host performs at once.
    private func begin(_ host: RemoteHost, _ path: RoutePath = "/") -> [Task<Data, any Error>] {
        (0..<host.limits.concurrentExchanges).map { _ in Task { try await host.data(for: Route(path: path)) } }
    }

    /// Whether a test uses a libcurl that cannot ask before it sends, which needs a C compiler.
    private static let libraries = StubLibrary.canBeBuilt ? [false, true] : [false]

    private static let old = Task {
        try await StubLibrary(StubLibrary.version, defining: ["VERSION=0x074f01", "NAME=\"7.79.1\""], isPreloaded: false)
    }

    private func path(isOld: Bool) async throws -> String? {
        isOld ? try await FlowTests.old.value.url.path() : ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]
    }

    @Test func `W13: exchanges that never connect do not make more idle connections stay open`() async throws {
        let width = 64
        let (arrived, isOpen) = (WatchedState(0), WatchedState(true))
        // Responds only after all requests have arrived, so that each has a connection of its own.
        let origins = try (0..<2).map { index in
            try LoopbackOrigin { _ in
                arrived.update { $0 += 1 }
                _ = try? await arrived.wait { $0 >= (index + 1) * width ? () : nil }
                _ = try? await isOpen.wait { $0 ? () : nil }
                return .text("x")
            }
        }
        let full = try FullListener()
        let transport = try CurlTransport(width: width, path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"])
        for task in begin(host(origins[0].port, transport, width: width)) { _ = try await task.value }
        isOpen.update { $0 = false }
        let requests = begin(host(origins[1].port, transport, width: width))
        try await arrived.wait { $0 == 2 * width ? () : nil }
        let unconnected = begin(host(full.port, transport, width: width))
        try await until("all exchanges are known") { transport.exchangeCount == 2 * width }
        // The unconnected ones begin as the requests end.
        isOpen.update { $0 = true }
        for task in requests { _ = try await task.value }
        for task in unconnected { task.cancel() }
        try await until("no exchange is left") { transport.exchangeCount == 0 }
        // The last one to become idle may be one more.
        try await until("at most as many connections as exchanges that run at once stay open") {
            origins.reduce(0) { $0 + $1.openConnections } <= width + 1
        }
    }

    @Test(arguments: libraries)
    func `W15: a stream that finds no connection names the limit, although no other deadline ends its wait`(_ isOld: Bool) async throws {
        let origin = try LoopbackOrigin { _ in .text("xy").misbehaving(.stall(afterBodyBytes: 1)) }
        let client = try CurlTransport(width: 1, connections: 2, path: try await path(isOld: isOld))
        func begin(head: Duration?) throws -> Exchange {
            let limits = ExchangeLimits(head: head, idle: nil, bodyBytes: .max)
            let exchange = Exchange(limits: limits, source: .wire)
            let engine = try client.usableEngine()
            let ticket = engine.start(try WireRequest(HTTPRequest(url: origin.url), over: ConnectionOptions(), limits), exchange)
            exchange.onStop { engine.cancel(ticket) }
            return exchange
        }
        let open = try await begin(head: nil).response()
        let second = try begin(head: .milliseconds(100))
        do {
            _ = try await Task { try await second.response() }.value(of: "the second stream ends")
            Issue.record("a stream above the limit began")
        } catch let failure as TransportFailure {
            #expect(failure.code == .headTimedOut && !failure.mayHaveArrived)
            #expect(failure.message.contains("another stream"), "\(failure)")
        }
        #expect(open.status == 200 && origin.requests.count == 1)
    }

    @Test func `W16: exchanges that never connect do not close the idle connections of others`() async throws {
        let width = 64
        let origin = try LoopbackOrigin { _ in .text("x") }
        let full = try FullListener()
        let transport = try CurlTransport(width: width, path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"])
        // As many as there may be idle connections.
        let (away, near) = (host(full.port, transport, width: width), host(origin.port, transport, width: width))
        let unconnected = begin(away)
        try await until("all exchanges are known") { transport.exchangeCount == width }
        for _ in 0..<20 { _ = try await near.data(for: Route(path: "/")) }
        #expect(origin.acceptedConnections <= 2)
        for task in unconnected { task.cancel() }
        for task in unconnected { _ = await task.result }
    }

    @Test(arguments: libraries)
    func `W16: exchanges on kept connections do not close the idle connections of others`(_ isOld: Bool) async throws {
        let width = 64
        let (busy, near) = (try LoopbackOrigin(), try LoopbackOrigin { _ in .text("x") })
        busy.meet(width)
        busy.on(.get, "/never") { _ in .text("x").misbehaving(.neverAnswer) }
        let transport = try CurlTransport(width: width, path: try await path(isOld: isOld))
        let host = host(busy.port, transport, width: width)
        for task in begin(host) { _ = try await task.value }
        let held = begin(host, "/never")
        try await busy.waitUntil { $0.requests.count == 2 * width }
        #expect(busy.acceptedConnections == width)
        for _ in 0..<20 { _ = try await self.host(near.port, transport, width: width).data(for: Route(path: "/")) }
        #expect(near.acceptedConnections <= 2)
        for task in held { task.cancel() }
        for task in held { _ = await task.result }
    }

    @Test(.enabled(if: FrameServer.problem == nil, "python3 or OpenSSL is missing"))
    func `W16: the idle connections of both pools leave descriptors to others, and those of one leave some to the other`() async throws {
        let count = 16
        let (plain, near, secure) = (try LoopbackOrigin(), try LoopbackOrigin(), try await FrameServer("good+"))
        plain.meet(count)
        near.meet(2)
        let library = try WireLibrary(path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"])
        let engine = try WireEngine(library, width: 2 * count, connections: 2 * count)
        var options = ConnectionOptions()
        // Such connections have their own pool.
        options.allowsHTTP2 = false
        options.tls.authorities = try TLSOptions.Authorities(contentsOf: try TestCertificates.made.get().authority)
        func get(_ times: Int, _ url: URL, over options: ConnectionOptions = ConnectionOptions()) async throws {
            let exchanges = (0..<times).map { _ in Exchange(limits: ExchangeLimits(head: nil, idle: nil), source: .wire) }
            for exchange in exchanges { try engine.start(url, over: options, exchange) }
            for exchange in exchanges { _ = try await Task { try await exchange.collect() }.value(of: "an exchange ends") }
        }
        try await get(count, plain.url)
        for path in ["meet16", "meet4"] {
            let url = try #require(URL(string: "https://127.0.0.1:\(secure.port)/\(path)"))
            try await get(path == "meet4" ? 4 : count, url, over: options)
        }
        try await get(2, near.url)
        #expect(secure.ending().connections == count)
    }

    /// `STOREHOUSE_SEEDS=20000` runs that many exchanges.
    @Test func `W13: canceling a third of all exchanges does not affect the others`() async throws {
        let count = rounds(1500, quick: 150)
        let body = Data((0..<6000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let origin = try LoopbackOrigin { .data($0.body) }
        origin.on(.get, "/quick") { _ in .text("0123456789") }
        origin.on(.get, "/body") { _ in LoopbackOrigin.Response.data(body).framed(.chunked(bytes: 1000)) }
        origin.on(.get, "/drip") { _ in .text("0123456789").misbehaving(.drip(bytes: 5, every: .milliseconds(1))) }
        let transport = try RealTransport.curl.make()
        let host = RemoteHost(origin.port, over: transport).with {
            $0.limits.concurrentExchanges = 64
            $0.retry = .never
        }
        let done = WatchedState((succeeded: 0, canceled: 0))
        @Sendable func exchange(_ number: Int) async throws -> Bool {
            switch number % 5 {
            case 0: return try await host.data(for: Route(path: "/body")) == body
            case 1: return try await host.data(for: Route(path: "/echo", method: .post, body: .data(body))) == body
            case 2: return try await host.data(for: Route(path: "/drip")) == Data("0123456789".utf8)
            case 3:
                return try await host.bytes(for: Route(path: "/body")).whole() == body
            default: return try await host.data(for: Route(path: "/quick")) == Data("0123456789".utf8)
            }
        }
        try await atOnce(48) { lane in
            for number in stride(from: lane, to: count, by: 48) {
                let task = Task { try await exchange(number) }
                guard number % 3 == 1 else {
                    let isRight = try await task.value
                    #expect(isRight, "exchange \(number)")
                    done.update { $0.succeeded += 1 }
                    continue
                }
                var chance = SplitMix(seed: number)
                for _ in 0..<chance.below(60) { await Task.yield() }
                task.cancel()
                do {
                    let isRight = try await task.value
                    #expect(isRight, "exchange \(number)")
                } catch {
                    #expect((error as? RemoteError)?.stage == .cancelled, "exchange \(number): \(error)")
                }
                done.update { $0.canceled += 1 }
            }
        }
        #expect(done.current.succeeded + done.current.canceled == count)
        try await until("no exchange is left") { transport.exchangeCount == 0 }
    }

    @Test func `H6: deadlines are enforced without a task, to a fraction of a second`() async throws {
        let origin = try LoopbackOrigin { _ in .text("0123456789").misbehaving(.neverAnswer) }
        origin.on(.get, "/stall") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 4)) }
        // Lasts longer than any test.
        origin.on(.get, "/drip") { _ in
            .text(String(repeating: "x", count: 100_000)).misbehaving(.drip(bytes: 1, every: .milliseconds(100)))
        }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        func code(_ path: RoutePath, _ timeouts: RouteOptions.Timeouts) async throws -> RemoteError.Code {
            try await remoteError { _ = try await host.with { $0.timeouts = timeouts }.data(for: Route(path: path)) }.code
        }
        #expect(try await code("/x", .init(head: .milliseconds(60))) == .headTimedOut)
        #expect(try await code("/stall", .init(idle: .milliseconds(60))) == .idleTimedOut)
        #expect(try await code("/drip", .init(idle: hangLimit, attempt: .milliseconds(250))) == .attemptTimedOut)
        #expect(try await code("/drip", .init(idle: hangLimit, overall: .milliseconds(250))) == .overallTimedOut)
        try await origin.waitUntil { $0.openConnections == 0 }
    }

    @Test func `H20: the system probes the connection of a silent stream`() async throws {
        let server = try RawServer(sending: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") { $0.drain() }
        let bytes = try await RealTransport.curl.host(server.port).bytes(for: Route(path: "/silent"))
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
        let probed = open.filter { descriptor in
            let (isConnected, port) = withLoopbackAddress { address, size in getpeername(descriptor, address, &size) == 0 }
            var (isProbed, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            guard isConnected, port == server.port else { return false }
            return getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &isProbed, &size) == 0 && isProbed != 0
        }
        #expect(probed.count == 1)
        withExtendedLifetime(bytes) {}
    }

    @Test func `H6: the time between two pieces begins with the earlier one, however long it was awaited`() async throws {
        let sent = Lock(ContinuousClock.now)
        let server = try RawServer { connection in
            guard connection.readHead() != nil else { return }
            // Longer than libcurl's own timers, so that the engine only waits.
            usleep(500_000)
            sent.withLock { $0 = .now }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            connection.drain()
        }
        let idle = Duration.milliseconds(500)
        let host = try RealTransport.curl.host(server.port) { ($0.retry, $0.timeouts) = (.never, .init(head: hangLimit, idle: idle)) }
        let error = try await remoteError { _ = try await host.data(for: Route(path: "/slow")) }
        #expect(error.code == .idleTimedOut && sent.withLock { $0 }.duration(to: .now) >= idle)
    }
}

extension RemoteBytes {
    fileprivate var unreadBytes: Int { body.unreadBytes }
}

extension Exchange.Source {
    /// The source of an exchange that the engine feeds.
    static let wire = Exchange.Source(keepsDeadlines: true, waitsForReader: true, leavesCoding: true)
}

extension WireEngine {
    /// Sends a GET request; the exchange receives the response.
    func start(_ url: URL, over connection: ConnectionOptions = ConnectionOptions(), from port: UInt16 = 0, _ exchange: Exchange) throws {
        var request = try WireRequest(HTTPRequest(url: url), over: connection, exchange.limits)
        request.localPort = Int32(port)
        _ = start(request, exchange)
    }
}
#endif
