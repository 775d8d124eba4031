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
            let error = try await remoteError { try await host.with { $0.timeouts.head = limit }.send(Route(path: "/x", method: .post)) }
            #expect(error.code == .headTimedOut)
            // The deadline may pass before the request is sent.
            let hasArrived = !origin.requests.isEmpty
            #expect(error.mayHaveArrived || !hasArrived)
            return hasArrived
        }
    }

    @Test(arguments: RealTransport.available)
    func `H18, W2: a call that is canceled before sending has not arrived`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        let (plain, url) = (try transport.make(), origin.url.appending(path: "x"))
        let task = Task {
            try await Task<Never, Never>.canceled()
            return try await plain.perform(HTTPRequest(method: .post, url: url), limits: ExchangeLimits())
        }
        task.cancel()
        do {
            _ = try await task.value
            Issue.record("a canceled exchange succeeded")
        } catch let failure as TransportFailure {
            #expect(failure.code == .cancelled && !failure.mayHaveArrived)
        }
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

    private struct Stuck: RequestInterceptor {
        func intercept(_ request: inout HTTPRequest) async throws { try await Task<Never, Never>.never() }
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
        if !isSent { host = host.intercepting(requests: Stuck()) }
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

    @Test(arguments: [
        (NSURLErrorCannotFindHost, "", false), (NSURLErrorDNSLookupFailed, "", false), (NSURLErrorNotConnectedToInternet, "", false),
        (NSURLErrorCannotConnectToHost, "", false), (NSURLErrorServerCertificateUntrusted, "", false),
        (NSURLErrorCannotConnectToHost, "Network is unreachable", false), (-1, "Could not resolve host: nowhere.invalid", false),
        (NSURLErrorNetworkConnectionLost, "", true), (NSURLErrorTimedOut, "", true), (NSURLErrorCancelled, "", true),
        (NSURLErrorSecureConnectionFailed, "", true), (-1, "Recv failure: Connection reset by peer", true), (-1, "", true),
    ])
    func `H18, W2: a session's error excludes arrival only if no connection was made`(
        _ code: Int, _ text: String, _ mayHaveArrived: Bool
    ) {
        #expect(TransportFailure(urlErrorCode: code, text: text).mayHaveArrived == mayHaveArrived)
    }
}

extension Task<Never, Never> {
    /// Returns once the task is canceled.
    fileprivate static func canceled() async throws { while !Task.isCancelled { await Task.yield() } }
}
