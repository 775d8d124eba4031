import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// The limits of a host on exchanges and streams, which no caller makes itself wait for.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct HostLimitTests {
    /// Sends a request for each response to `/x`.
    private struct Asking: ResponseInterceptor {
        let ask: @Sendable () async throws -> Void

        func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws {
            if request.url.path == "/x" { try await ask() }
        }
    }

    /// Sends a request for each request to `/x`.
    private struct Preparing: RequestInterceptor {
        let ask: @Sendable () async throws -> Void

        func intercept(_ request: inout HTTPRequest) async throws { if request.url.path == "/x" { try await ask() } }
    }

    private static let stalling = MemoryTransport { request in
        request.url.path == "/events" ? MemoryTransport.Response.status(200).stalling : .json("[1]")
    }

    private func host(_ limit: Int, _ transport: any Transport = stalling, time: any TimeSource = .system) -> RemoteHost {
        RemoteHost("api.example.com", transport: transport, limits: HostLimits(concurrentExchanges: limit), time: time)
            .with { $0.timeouts = .init(overall: hangLimit) }
    }

    @Test(arguments: TransportKind.allCases)
    func `W15: open streams do not hold up the other calls of a host`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/events") { _ in .text("data: 1\n\n").misbehaving(.stall(afterBodyBytes: 3)) }
        bench.on("GET", "/x") { _ in .text("x") }
        let host = bench.host {
            $0.limits.concurrentExchanges = 4
            $0.timeouts = .init(overall: hangLimit)
        }
        var streams: [RemoteBytes] = []
        for _ in 0..<8 { streams.append(try await host.bytes(for: Route(path: "/events"))) }
        #expect(try await host.data(for: Route(path: "/x")) == Data("x".utf8))
        #expect(streams.count == 8)
    }

    @Test(arguments: TransportKind.allCases)
    func `W15: a response interceptor that sends a request needs no second permit`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        for path in ["/x", "/token"] { bench.on("GET", path) { _ in .text("x") } }
        let host = bench.host {
            $0.limits.concurrentExchanges = 4
            $0.timeouts = .init(overall: hangLimit)
        }
        let asking = host.intercepting(responses: Asking { _ = try await host.data(for: Route(path: "/token")) })
        let tasks = (0..<64).map { _ in Task { try await asking.data(for: Route(path: "/x")) } }
        for task in tasks { #expect(try await task.value == Data("x".utf8)) }
        #expect(bench.asked("/token").count == 64)
    }

    @Test func `W15: an interceptor of a stream may open another one, although all streams are in use`() async throws {
        let host = host(1).with { $0.limits.concurrentStreams = 1 }
        let inner: @Sendable () async throws -> Void = { _ = try await host.bytes(for: Route(path: "/other")) }
        let asking = host.intercepting(responses: Asking(ask: inner))
        let bytes = try await asking.bytes(for: Route(path: "/x"))
        var body = Data()
        for try await piece in bytes { body += piece }
        #expect(body == Data("[1]".utf8))
        #expect(host.streamGate.waiterCount == 0)
    }

    @Test func `W15: refreshes, request interceptors and parsers need no permit of their caller`() async throws {
        let memory = MemoryTransport { request in request.fields["Authorization"] == "Bearer old" ? .status(401) : .json("[1]") }
        let plain = host(1, memory)
        let asking = plain.intercepting(requests: Preparing { try await plain.send("/token") })
            .authorized(
                by: .bearer(Token(accessToken: "old")) { _, host in
                    try await host.send("/refresh")
                    return Token(accessToken: "new")
                })
        let tasks = (0..<16).map { _ in Task { try await asking.send("/x", as: [Int].self) } }
        for task in tasks { #expect(try await task.value == [1]) }
    }

    @Test(arguments: [false, true])
    func `W15: the error of a call that finds no place names the host's limit`(_ hasInterceptor: Bool) async throws {
        let time = ManualTime()
        var host = RemoteHost(
            "api.example.com", transport: HostLimitTests.stalling, limits: HostLimits(concurrentExchanges: 1), time: time
        ).with { $0.timeouts = .init() }
        let holder = Task { [host] in try await host.send("/events") }
        let gate = host.gate
        try await until("the place is taken") { gate.takeIfFree() == nil }
        host.timeouts.overall = .seconds(5)
        if hasInterceptor { host = host.intercepting(responses: Asking {}) }
        let task = Task { [host] in try await host.send("/x") }
        try await until("the call waits") { gate.waiterCount == 1 }
        try await time.advance(by: .seconds(6), sleepers: 1)
        let error = try await remoteError { try await task.value }
        #expect(error.code == .overallTimedOut && !error.mayHaveArrived)
        #expect(error.message.contains("all 1 exchanges") && error.message.contains("concurrentExchanges"), "\(error.message)")
        holder.cancel()
        _ = await holder.result
    }

    @Test func `H13: a released stream gives its place back, and counts no longer among the exchanges of its transport`() async throws {
        let memory = MemoryTransport { _ in MemoryTransport.Response.status(200).stalling }
        let host = host(1, memory)
        var stream: RemoteBytes? = try await host.bytes(for: Route(path: "/events"))
        #expect(stream?.response.status == 200)
        #expect(memory.exchangeCount == 1 && host.streamGate.takenCount == 1)
        stream = nil
        try await until("the stream has ended") { memory.exchangeCount == 0 && host.streamGate.takenCount == 0 }
    }

    @Test func `W15: a stream that finds a place in its second attempt does not name the limit for a later deadline`() async throws {
        let time = ManualTime()
        let silent = MemoryTransport { _ in
            try await Task<Never, Never>.never()
            return .status(204)
        }
        let host = RemoteHost("api.example.com", transport: silent, limits: HostLimits(concurrentStreams: 1), time: time).with {
            $0.timeouts = .init(head: .seconds(10), overall: .seconds(20))
            $0.retry = .exponential(attempts: 2, base: .seconds(5))
            $0.random = { 1 }
        }
        let permit = try await host.streamGate.take()
        let task = Task { _ = try await host.bytes(for: Route(path: "/x")) }
        try await until("the stream waits") { host.streamGate.waiterCount == 1 }
        // The deadline of the call, and the time for a place.
        try await time.advance(by: .seconds(10), sleepers: 2)
        try await until("the first attempt has ended") { host.streamGate.waiterCount == 0 }
        permit.release()
        // The delay between the attempts.
        try await time.advance(by: .seconds(5), sleepers: 2)
        try await until("the second attempt runs") { silent.exchangeCount == 1 }
        try await time.advance(by: .seconds(5), sleepers: 2)
        let error = try await remoteError { try await task.value }
        #expect(error.code == .overallTimedOut && error.mayHaveArrived)
        #expect(!error.message.contains("streams of the host"), "\(error.message)")
    }

    @Test func `W15: a stream that finds no place reports the host's limit, although it has no overall deadline`() async throws {
        let time = ManualTime()
        let bench = try Bench(.memory, on: "GET", "/events") { _ in
            .data(Data("data: 1\n\ndata: 2".utf8), type: "text/event-stream").misbehaving(.stall(afterBodyBytes: 10))
        }
        let host = bench.host(time: time) { $0.limits.concurrentStreams = 2 }
        let store = Store(
            cacher: MemoryCacher<Int, Int>(), fetcher: host.liveFetcher(of: Int.self) { (_: Int) in Route(path: "/events") },
            policy: StorePolicy(retry: .never), time: time)
        let shown = (0..<2).map { RecordingObserver(store[$0].publish()) }
        for observer in shown { try await observer.next { $0.content == 1 } }
        let third = RecordingObserver(store[2].publish())
        try await until("the stream waits") { host.streamGate.waiterCount == 1 }
        try await time.advance(by: .seconds(31), sleepers: 1)
        try await third.next { state in
            guard let error = state.error as? RemoteError else { return false }
            return error.code == .headTimedOut && error.message.contains("all 2 streams") && error.message.contains("concurrentStreams")
        }
        for observer in shown + [third] { try await observer.stopAndLeave() }
    }
}
