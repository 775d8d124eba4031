import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Connectivity, recordings, and the texts of errors.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct AdviceTests {
    @Test func `H15: a reader receives the current status and then each change`() async {
        let manual = ManualConnectivity(.offline)
        var statuses = manual.connectivity.statuses.makeAsyncIterator()
        #expect(await statuses.next() == .offline)
        manual.set(.offline)
        manual.set(.online)
        #expect(await statuses.next() == .online)
        manual.set(.offline)
        manual.set(.unknown)
        // Only the latest status is delivered.
        #expect(await statuses.next() == .unknown)
    }

    @Test func `H15: each reader receives the changes, and the end of a reader leaves the others`() async throws {
        let manual = ManualConnectivity(.offline)
        var first = manual.connectivity.statuses.makeAsyncIterator()
        #expect(await first.next() == .offline)
        do {
            var second = manual.connectivity.statuses.makeAsyncIterator()
            #expect(await second.next() == .offline)
            // A reader that reads nothing is counted, and ends, too.
            let third = manual.connectivity.statuses
            #expect(manual.readerCount == 3)
            withExtendedLifetime(third) {}
            manual.set(.online)
            #expect(await second.next() == .online)
            #expect(await first.next() == .online)
        }
        try await until("the second reader is forgotten") { manual.readerCount == 1 }
        manual.set(.unknown)
        #expect(await first.next() == .unknown)
    }

    @Test func `H15: a path reports cellular and expensive only if they are known`() async {
        let manual = ManualConnectivity(.online)
        var paths = manual.connectivity.paths.makeAsyncIterator()
        #expect(await paths.next() == Connectivity.Path(.online, isCellular: nil, isExpensive: nil))
        manual.set(.online, isCellular: true, isExpensive: true)
        #expect(await paths.next() == Connectivity.Path(.online, isCellular: true, isExpensive: true))
        manual.set(.online, isCellular: false)
        #expect(await paths.next() == Connectivity.Path(.online, isCellular: false, isExpensive: nil))
        #expect(manual.path == Connectivity.Path(.online, isCellular: false))
    }

    @Test func `H15: a change of the path with the same status is not a new status`() async {
        let manual = ManualConnectivity(.online, isCellular: false)
        let statuses = manual.connectivity.statuses
        var paths = manual.connectivity.paths.makeAsyncIterator()
        #expect(await statuses.first { _ in true } == .online)
        #expect(await paths.next()?.isCellular == false)
        manual.set(.online, isCellular: true)
        #expect(await paths.next()?.isCellular == true)
        // A canceled reader receives a buffered status, or nil.
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await statuses.first { _ in true }
        }
        #expect(await late.value == nil)
    }

    @Test func `H15: a custom monitor runs once per reader and stops with the reader`() async throws {
        let running = Lock(0)
        let connectivity = Connectivity { report in
            running.withLock { $0 += 1 }
            // A system's monitor may repeat its last report.
            for _ in 1...3 { report(Connectivity.Path(.online)) }
            report(Connectivity.Path(.offline))
            return { running.withLock { $0 -= 1 } }
        }
        do {
            var (one, two) = (connectivity.statuses.makeAsyncIterator(), connectivity.paths.makeAsyncIterator())
            #expect(running.withLock { $0 } == 2)
            #expect(await one.next() == .offline)
            #expect(await two.next() == Connectivity.Path(.offline))
        }
        try await until("both monitors have stopped") { running.withLock { $0 } == 0 }
    }

    #if !canImport(Network)
    @Test func `H14: a missing path monitor is an unsupported error`() {
        #expect { try Connectivity.system() } throws: { ($0 as? RemoteError)?.code == .unsupported }
    }
    #endif

    /// libcurl sends a GET with a body.
    @Test(arguments: [(RealTransport.urlSession, HTTPMethod.get), (.urlSession, .head), (.curl, .head)])
    func `H14: a body that the transport cannot send is refused`(_ transport: RealTransport, _ method: HTTPMethod) async throws {
        guard RealTransport.available.contains(transport) else { return }
        let bench = try Bench(transport.kind)
        let url = try #require(URL(string: bench.origin.url.absoluteString + "/x"))
        let request = HTTPRequest(method: method, url: url, body: .data(Data("x".utf8)))
        let failure = await #expect(throws: TransportFailure.self) { try await bench.transport.perform(request, limits: ExchangeLimits()) }
        #expect(failure?.code == .unsupported)
        #expect(bench.asked.isEmpty)
    }

    @Test(arguments: RealTransport.available)
    func `recorded responses are replayed, each once`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on("GET", "/x", inTurn: .json([1]).setting("Set-Cookie", to: "sid=secret"), .json([2]).gzipped())
        let recorder = ExchangeRecorder(recording: bench.transport)
        let live = bench.host().with { $0.transport = recorder }
        for _ in 1...2 { _ = try await live.send("/x", as: [Int].self) }
        let file = try recorder.exchanges.encoded()
        #expect(!String(decoding: file, as: UTF8.self).contains("secret"))
        let played = bench.host().with { host in
            host.transport = MemoryTransport { _ in .status(500) }
            if let exchanges = try? RecordedExchanges(decoding: file) { host.transport = exchanges.transport() }
        }
        bench.origin.stop()
        #expect(try await played.send("/x", as: [Int].self) == [1])
        #expect(try await played.send("/x", as: [Int].self) == [2])
        #expect(try await remoteError { try await played.send("/x") }.code == .unsupported)
    }

    @Test(arguments: RealTransport.available)
    func `an error describes the operation, the attempts and the request id`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/x") { _ in .problem(503, "Down").setting("X-Request-Id", to: "r-7") }
        let error = try await remoteError { try await bench.host { $0.random = { 0 } }.send("/x", parameters: ["token": "hush"]) }
        #expect(error.requestID == "r-7" && error.problem?.title == "Down", "\(error)")
        #expect(
            error.description
                == "RemoteError.badStatus (status): GET \(bench.origin.url.absoluteString)/x: the server responded with 503 Service Unavailable; "
                + "try again later (after 3 attempts) (request id r-7)")
    }

    @Test func `an exchange ends once, from either side`() async throws {
        let stops = WatchedState(0)
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil))
        exchange.onStop { stops.update { $0 += 1 } }
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        exchange.receive(HTTPResponse(status: 500, url: URL(filePath: "/")))
        exchange.receive(Data("a".utf8))
        var reply: HTTPResponse? = try await exchange.response()
        #expect(reply?.status == 200)
        reply = nil
        #expect(stops.current == 1)
        exchange.receive(Data("b".utf8))
        exchange.finish()
        exchange.fail(TransportFailure(.connectionLost, "late"))
        #expect(stops.current == 1)
        let late = WatchedState(0)
        exchange.onStop { late.update { $0 += 1 } }
        #expect(late.current == 1)
        // Bytes from before the end can still be read, later ones cannot.
        #expect(try await exchange.next() == Data("a".utf8))
        await #expect { try await exchange.next() } throws: { ($0 as? TransportFailure)?.code == .cancelled }
    }

    /// The response may arrive before its transport sets the action for stopping.
    @Test func `a successful exchange releases its stop action, and runs its action for the end once`() async throws {
        final class Wire: Sendable {}
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil))
        let ends = WatchedState(0)
        exchange.onEnd { ends.update { $0 += 1 } }
        #expect(!exchange.isOver)
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        #expect(!exchange.isOver && ends.current == 0)
        exchange.finish()
        #expect(exchange.isOver && ends.current == 1)
        exchange.onEnd { ends.update { $0 += 10 } }
        #expect(ends.current == 11)
        weak var wire: Wire?
        do {
            let held = Wire()
            wire = held
            exchange.onStop { withExtendedLifetime(held) {} }
        }
        #expect(wire == nil)
        #expect(try await exchange.response().status == 200)
    }

    @Test func `an exchange that its transport fails does not stop the transport`() async throws {
        let stops = WatchedState(0)
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil))
        exchange.onStop { stops.update { $0 += 1 } }
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        exchange.fail(TransportFailure(.connectionLost, "the peer is gone"))
        let reply = try await exchange.response()
        await #expect { for try await _ in reply.body {} } throws: { ($0 as? TransportFailure)?.code == .connectionLost }
        #expect(stops.current == 0)
    }
}

/// Errors that no exchange has completed.
struct RemoteErrorTests {
    @Test(
        arguments: [
            (RemoteError.Code.offline, nil, "You are offline."),
            (.connectionRefused, nil, "The server cannot be reached. Try again later."),
            (.idleTimedOut, nil, "The server takes too long. Try again later."),
            (.pinMismatch, nil, "The connection to the server is not secure."), (.badStatus, 401, "Sign in again."),
            (.badStatus, 404, "This is not available."), (.badStatus, 418, "The server does not accept this."),
            (.badStatus, 503, "The server has a problem. Try again later."),
            (.undecodable, 200, "The response of the server cannot be read. Try again later."),
            (.engineFailed, nil, "Something went wrong."),
        ] as [(RemoteError.Code, Int?, String)])
    func `a notice is a sentence for people, without address and cause`(_ code: RemoteError.Code, _ status: Int?, _ notice: String) {
        var error = RemoteError(.transport, code, operation: "GET https://a.example/x", "the reason", underlyingError: CancellationError())
        error.status = status
        #expect(error.notice == notice)
        #expect(error.description.contains("a.example") && !error.notice.contains("a.example"))
    }

    @Test(arguments: [(RemoteError.Code.connectionLost, "The server cannot be reached. Try again later."), (.badStatus, "Sign in again.")])
    func `H5: a notice asks for a sign-in only if the server has refused the refresh`(_ code: RemoteError.Code, _ notice: String) {
        var cause = RemoteError(code == .badStatus ? .status : .transport, code, operation: "POST https://a.example/token", "the reason")
        cause.status = code == .badStatus ? 400 : nil
        let error = RemoteError(.status, .refreshFailed, operation: "GET https://a.example/x", "the reason", underlyingError: cause)
        #expect(error.notice == notice)
    }
}
