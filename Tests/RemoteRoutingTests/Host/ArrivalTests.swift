import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// The reports of errors about requests that may have reached the server.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ArrivalTests {
    private static let unsafe: [HTTPMethod] = [.post, .patch]

    @Test(arguments: unsafe, RealTransport.available)
    func `H18, W2: an unsafe request whose connection is lost may have arrived`(
        _ method: HTTPMethod, _ transport: RealTransport
    ) async throws {
        let origin = try LoopbackOrigin { _ in .text("x").misbehaving(.resetBeforeHead) }
        let host = try transport.host(origin.port)
        let error = try await remoteError { try await host.send(Route(path: "/x", method: method, body: .data(Data("abc".utf8)))) }
        #expect(error.code == .connectionLost && error.mayHaveArrived && !error.isRetryable, "\(error)")
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: unsafe, RealTransport.available)
    func `H18, W2: an unsafe request that finds no listener has not arrived`(
        _ method: HTTPMethod, _ transport: RealTransport
    ) async throws {
        let port = try ClosedPort()
        defer { withExtendedLifetime(port) {} }
        let host = try transport.host(.init(port.number))
        let error = try await remoteError { try await host.send(Route(path: "/x", method: method)) }
        #expect(error.code == .connectionRefused && !error.mayHaveArrived, "\(error)")
    }

    /// The server does not use TLS, so the request is never sent. FoundationNetworking does not report this.
    @Test(arguments: RealTransport.available)
    func `H18, W2: a request whose handshake fails has not arrived`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let host = try transport.host(origin.port) { $0.configuration.scheme = .https }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(error.code == .tlsFailed)
        #expect(error.mayHaveArrived == (transport == .urlSession))
        #expect(origin.requests.allSatisfy { $0.path != "/x" })
    }

    @Test(arguments: RealTransport.available)
    func `H18, W2: a request whose deadline passes at the server may have arrived`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("x").misbehaving(.neverAnswer) }
        let host = try transport.host(origin.port)
        try await withGrowingLimit { limit in
            // An earlier request may arrive after its deadline.
            let id = UUID().uuidString
            let impatient = host.with { $0.timeouts.head = limit }
            let error = try await remoteError { try await impatient.send(Route(path: "/\(id)", method: .post)) }
            #expect(error.code == .headTimedOut)
            // The deadline may pass before the request is sent.
            let hasArrived = origin.requests.contains { $0.path == "/\(id)" }
            #expect(error.mayHaveArrived || !hasArrived)
            return hasArrived
        }
    }

    @Test(arguments: RealTransport.available)
    func `H18, W2: a call that is canceled before sending has not arrived`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let (plain, url) = (try transport.make(), origin.url.appending(path: "x"))
        let task = Task {
            try? await untilCanceled()
            return try await plain.perform(HTTPRequest(method: .post, url: url), limits: ExchangeLimits())
        }
        task.cancel()
        let failure = await #expect(throws: TransportFailure.self) { _ = try await task.value }
        #expect(failure?.code == .cancelled && failure?.mayHaveArrived == false)
        #expect(origin.requests.isEmpty)
    }

    private static func host(inTurn answers: Result<MemoryTransport.Response, TransportFailure>...) -> RemoteHost {
        let left = Lock(answers[...])
        let transport = MemoryTransport { _ in
            guard let next = left.withLock({ $0.popFirst() }) else { throw TransportFailure(.unsupported, "no response is left") }
            return try next.get()
        }
        return RemoteHost("api.example.com", transport: transport).with { $0.random = { 0 } }
    }

    private static let refused = TransportFailure(.connectionRefused, "refused")
    private static let lost = TransportFailure(.connectionLost, "lost")

    @Test func `H18, W2: an earlier attempt that may have arrived counts`() async throws {
        let host = ArrivalTests.host(inTurn: .failure(ArrivalTests.lost), .failure(ArrivalTests.refused), .failure(ArrivalTests.refused))
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .connectionRefused && error.attempts == 3 && error.mayHaveArrived, "\(error)")
    }

    @Test(arguments: [(301, true), (302, true), (303, true), (307, false), (308, false)])
    func `H18, W2: a redirect that refuses the request does not count as arrival`(_ status: Int, _ mayHaveArrived: Bool) async throws {
        let host = ArrivalTests.host(
            inTurn: .success(.status(status).adding("Location", "/y")), .failure(ArrivalTests.refused), .failure(ArrivalTests.refused),
            .failure(ArrivalTests.refused)
        ).with { $0.retry = .never }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(error.code == .connectionRefused && error.mayHaveArrived == mayHaveArrived, "\(error)")
    }

    @Test func `H18, W2: a rejection before new credentials does not count as arrival`() async throws {
        let host = ArrivalTests.host(inTurn: .success(.status(401)), .failure(ArrivalTests.refused)).authorized(
            by: .bearer(Token(accessToken: "old")) { _, _ in Token(accessToken: "new") })
        let error = try await remoteError { try await host.send(Route(path: "/x", method: .post)) }
        #expect(error.code == .connectionRefused && !error.mayHaveArrived, "\(error)")
    }

    @Test func `H18, W2: failed and undecodable responses mean arrival, and a build error does not`() async throws {
        let failed = try await remoteError { try await ArrivalTests.host(inTurn: .success(.status(500))).send("/x", method: .post) }
        #expect(failed.mayHaveArrived)
        let undecodable = try await remoteError {
            _ = try await ArrivalTests.host(inTurn: .success(.json("[]"))).send("/x", method: .post, as: Int.self)
        }
        #expect(undecodable.stage == .decode && undecodable.mayHaveArrived)
        let unbuilt = try await remoteError { try await ArrivalTests.host().send("/../x", method: .post) }
        #expect(unbuilt.stage == .build && !unbuilt.mayHaveArrived)
    }

    @Test(arguments: [true, false])
    func `H18, W2: the deadline of a call reports whether the request was sent`(_ isSent: Bool) async throws {
        let time = ManualTime()
        let sent = WatchedState(0)
        let transport = MemoryTransport { _ in
            sent.update { $0 += 1 }
            return .status(200).stalling
        }
        var host = RemoteHost("api.example.com", transport: transport, time: time).with { $0.timeouts = .init(overall: .seconds(5)) }
        if !isSent { host = host.intercepting(requests: Changing { _ in try await untilCanceled() }) }
        let task = Task { [host] in try await host.send("/x", method: .post) }
        if isSent { try await sent.wait { $0 == 1 ? () : nil } }
        try await time.advance(by: .seconds(6), sleepers: 1)
        let error = try await remoteError { try await task.value }
        #expect(error.code == .overallTimedOut && error.mayHaveArrived == isSent, "\(error)")
    }

    @Test(arguments: RealTransport.available, [true, false])
    func `H18, W2: a failure thrown by a request body keeps its code, and the transport decides about arrival`(
        _ transport: RealTransport, isSent: Bool
    ) async throws {
        let origin = try LoopbackOrigin { _ in .text("x") }
        for thrown in [ArrivalTests.refused, ArrivalTests.lost] {
            let body = HTTPBodyStream(length: 1_000_000, isReplayable: false) {
                let isFirst = Lock(isSent)
                return { _ in
                    let goesOn = isFirst.withLock { isFirst in
                        defer { isFirst = false }
                        return isFirst
                    }
                    guard goesOn else { throw thrown }
                    return Data(count: 1000)
                }
            }
            let request = HTTPRequest(method: .post, url: origin.url, body: .stream(body))
            let failure = await #expect(throws: TransportFailure.self) { try await transport.make().perform(request, limits: .untilHang) }
            #expect(failure?.code == thrown.code)
            if isSent { #expect(failure?.mayHaveArrived == true) }
        }
    }

    @Test(
        arguments: [
            (NSURLErrorCannotFindHost, "", false), (NSURLErrorDNSLookupFailed, "", false), (NSURLErrorNotConnectedToInternet, "", false),
            (NSURLErrorCannotConnectToHost, "", false), (NSURLErrorServerCertificateUntrusted, "", false),
            (NSURLErrorCannotConnectToHost, "Network is unreachable", false), (-1, "Could not resolve host: nowhere.invalid", false),
            (NSURLErrorNetworkConnectionLost, "", true), (NSURLErrorTimedOut, "", true), (NSURLErrorCancelled, "", true),
            (NSURLErrorSecureConnectionFailed, "", true), (-1, "Recv failure: Connection reset by peer", true), (-1, "", true),
        ] as [(Int, String, Bool)])
    func `H18, W2: a session's error excludes arrival only if no connection was made`(
        _ code: Int, _ text: String, _ mayHaveArrived: Bool
    ) {
        #expect(TransportFailure(urlErrorCode: code, text: text).mayHaveArrived == mayHaveArrived)
    }

    @Test(arguments: [0, 1] as [Int64])
    func `H18, W2: a sent request may have arrived, even if the system is offline by then`(_ count: Int64) async {
        let exchange = Exchange(limits: .untilHang)
        var metrics = ExchangeMetrics()
        metrics.sentHeadBytes = count
        exchange.note(metrics)
        exchange.fail(TransportFailure(urlErrorCode: NSURLErrorNotConnectedToInternet, text: ""))
        let failure = await #expect(throws: TransportFailure.self) { try await exchange.response() }
        #expect(failure?.code == .offline && failure?.mayHaveArrived == (count > 0))
    }
}

/// Responses that cannot be used, each of which shows that the request has arrived.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct BrokenResponseTests {
    struct Broken: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        /// Whether the response would end a process that uses `URLSession`; see the article on security.
        var endsSession = false
        /// Whether `URLSession` accepts the response.
        var isTakenBySession = false

        var testDescription: String { name }

        init(_ name: String, _ text: String, _ body: [UInt8] = [], endsSession: Bool = false, isTakenBySession: Bool = false) {
            self.name = name
            bytes = Array(text.utf8) + body
            self.endsSession = endsSession
            self.isTakenBySession = isTakenBySession
        }

        static func gzip(_ name: String, _ body: [UInt8]) -> Broken {
            Broken(
                name, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n", body, isTakenBySession: true)
        }
    }

    /// The gzip member of the text "x".
    private static let member: [UInt8] = [
        0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF, 1, 1, 0, 0xFE, 0xFF, 0x78, 0x83, 0x16, 0xDC, 0x8C, 1, 0, 0, 0,
    ]

    private static let responses: [Broken] = [
        Broken("nothing", ""), Broken("no HTTP", "hello\r\n\r\n", isTakenBySession: true),
        Broken("a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", isTakenBySession: true),
        Broken("a cut head", "HTTP/1.1 200 OK\r\nContent-Le", endsSession: true),
        Broken("an interim response only", "HTTP/1.1 103 Early Hints\r\n\r\n", endsSession: true),
        Broken(
            "an unrequested upgrade", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", endsSession: true),
        Broken("a field of 300 KB", "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 300_000))\r\n\r\n", endsSession: true),
        Broken("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", isTakenBySession: true),
        Broken("a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nx", isTakenBySession: true),
        Broken("an unknown transfer coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: bogus\r\n\r\nx", isTakenBySession: true),
        Broken("a body cut before its length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
        Broken("a cut chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
        Broken("a missing last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
        Broken("a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nab\r\n0\r\n\r\n"),
        Broken(
            "a coding that cannot be decoded", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
            isTakenBySession: true),
        .gzip("gzip that is none", Array("hello, hello, hello".utf8)),
        .gzip("cut gzip", member.dropLast(6)),
        .gzip("gzip with a wrong checksum", member.dropLast(8) + [0, 0, 0, 0, 1, 0, 0, 0]),
        .gzip("gzip with bytes behind it", member + Array("trailing".utf8)),
        .gzip("gzip with a second member that is cut", member + member.dropLast(10)),
        Broken("a body over its limit", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", Array(repeating: 0x78, count: 5000)),
        Broken("a failed status", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"),
        Broken("a forbidden redirect", "HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n"),
    ]

    private func host(_ response: Broken, _ transport: RealTransport) throws -> (RemoteHost, LoopbackOrigin) {
        let origin = try LoopbackOrigin { _ in .verbatim(Data(response.bytes)) }
        let host = try transport.host(origin.port) {
            $0.limits.responseBytes = 4000
            $0.random = { 0 }
        }
        return (host, origin)
    }

    private static let order = Route(path: "/orders", method: .post, body: .data(Data("abc".utf8)))

    @Test(arguments: responses, RealTransport.available.flatMap { [($0, false), ($0, true)] })
    func `H18: an order with a broken response may have arrived, and is sent once, streamed or not`(
        _ response: Broken, _ way: (transport: RealTransport, isStream: Bool)
    ) async throws {
        if response.endsSession, way.transport == .urlSession { return }
        let (host, origin) = try host(response, way.transport)
        do {
            if way.isStream {
                for try await _ in try await host.bytes(for: BrokenResponseTests.order, limit: 4000) {}
            } else {
                _ = try await host.data(for: BrokenResponseTests.order)
            }
            #expect(response.isTakenBySession && way.transport == .urlSession)
        } catch let error as RemoteError {
            #expect(error.mayHaveArrived, "\(error)")
            #expect(way.isStream || !error.isRetryable)
        }
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: ["", "x", "[]"], RealTransport.available)
    func `H18: an order with an undecodable response may have arrived`(_ body: String, _ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text(body).setting("Content-Type", to: "application/json") }
        let error = try await remoteError { _ = try await transport.host(origin.port).send(BrokenResponseTests.order, as: Int.self) }
        #expect(error.stage == .decode && error.mayHaveArrived)
    }

    @Test(arguments: RealTransport.available)
    func `H18: an order with a response that stops may have arrived`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("hello").misbehaving(.stall(afterBodyBytes: 2)) }
        let host = try transport.host(origin.port) { $0.timeouts.idle = .milliseconds(200) }
        let error = try await remoteError { _ = try await host.data(for: BrokenResponseTests.order) }
        #expect(error.stage == .timeout && error.mayHaveArrived)
    }

    @Test(arguments: [RemoteError.Code.unsupported, .connectionRefused, .certificateExpired, .hostNotFound])
    func `H18: no failure after a part of the body of a request, or the head of a response, excludes arrival`(
        _ code: RemoteError.Code
    ) async throws {
        let unanswered = Exchange(limits: ExchangeLimits())
        unanswered.sent(1, of: 2)
        unanswered.fail(TransportFailure(code, "failed"))
        let early = await #expect(throws: TransportFailure.self) { _ = try await unanswered.response() }
        #expect(early?.mayHaveArrived == true)
        let exchange = Exchange(limits: ExchangeLimits())
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        let response = try await exchange.response()
        exchange.fail(TransportFailure(code, "failed"))
        let failure = await #expect(throws: TransportFailure.self) { try await response.body.collect() }
        #expect(failure?.mayHaveArrived == true)
        // Without a response, these codes exclude it.
        #expect(!TransportFailure(code, "failed").mayHaveArrived)
    }

    @Test(arguments: [
        (RemoteError.Stage.build, RemoteError.Code.invalidRoute, false), (.transport, .connectionRefused, false),
        (.transport, .connectionLost, true), (.timeout, .overallTimedOut, true), (.cancelled, .cancelled, true),
        (.status, .badStatus, true), (.decode, .undecodable, true),
    ])
    func `H18: a new error excludes arrival only if its stage or its code does`(
        _ stage: RemoteError.Stage, _ code: RemoteError.Code, _ mayHaveArrived: Bool
    ) {
        #expect(RemoteError(stage, code, operation: "POST /x", "failed").mayHaveArrived == mayHaveArrived)
    }
}
