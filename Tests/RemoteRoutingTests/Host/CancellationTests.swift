import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Canceled calls at every point: nothing more is sent, and the permit is released for the next call.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CancellationTests {
    /// Prevents a transport from beginning exchanges until the returned function is called.
    private func hold(_ transport: any Transport, _ origin: LoopbackOrigin) async throws -> () async throws -> Void {
        if let session = transport as? URLSessionTransport {
            session.starting.suspend()
            return { session.starting.resume() }
        }
        // The engine's only thread waits in the progress callback of another exchange.
        let (isHeld, mayGoOn) = (WatchedState(false), DispatchSemaphore(value: 0))
        var limits = ExchangeLimits(head: nil, idle: nil)
        limits.onSent = { _, _ in
            guard !isHeld.current else { return }
            isHeld.update { $0 = true }
            mayGoOn.wait()
        }
        let holder = HTTPRequest(method: .post, url: origin.url.appending(path: "holder"), body: .data(Data("abc".utf8)))
        let task = Task { [limits] in try await transport.perform(holder, limits: limits).body.collect() }
        try await isHeld.wait { $0 ? () : nil }
        return {
            mayGoOn.signal()
            _ = try await task.value
        }
    }

    @Test(arguments: [HTTPMethod.get, .post], RealTransport.available)
    func `H13: a call that is canceled before the transport begins it sends nothing`(_ method: HTTPMethod, _ kind: RealTransport)
        async throws
    {
        let origin = try LoopbackOrigin { .text($0.path) }
        let transport = try kind.make()
        let release = try await hold(transport, origin)
        let calls = (0..<20).map { number in
            Task {
                let request = HTTPRequest(method: method, url: origin.url.appending(path: "left/\(number)"))
                // Without a deadline: with many concurrent tests the cancellation may come late.
                return try await transport.perform(request, limits: ExchangeLimits(head: nil))
            }
        }
        for call in calls {
            call.cancel()
            await #expect { _ = try await call.value } throws: { ($0 as? TransportFailure)?.code == .cancelled }
        }
        try await release()
        // The next request waits behind the canceled ones.
        let host = RemoteHost(origin.port, over: transport)
        #expect(try await host.data(for: Route(path: "/next")) == Data("/next".utf8))
        #expect(origin.requests.map(\.path).filter { $0 != "/holder" } == ["/next"])
    }

    @Test(arguments: [HTTPMethod.get, .post, .delete], RealTransport.available.flatMap { [($0, true), ($0, false)] })
    func `H6, H13: a call that is canceled or late before it begins sends nothing`(
        _ method: HTTPMethod, _ way: (transport: RealTransport, isLate: Bool)
    ) async throws {
        let isLate = way.isLate
        let origin = try LoopbackOrigin { .text($0.path) }
        let session = try way.transport.make(), memory = MemoryTransport { _ in .status(204) }
        for transport in [session, memory] as [any Transport] {
            for number in 0..<20 {
                let request = HTTPRequest(method: method, url: origin.url.appending(path: "\(number)"))
                let call = Task {
                    if !isLate { withUnsafeCurrentTask { $0?.cancel() } }
                    let limits = ExchangeLimits(deadline: isLate ? ExchangeLimits().time.now : nil)
                    return try await transport.perform(request, limits: limits)
                }
                await #expect { _ = try await call.value } throws: {
                    ($0 as? TransportFailure)?.code == (isLate ? .overallTimedOut : .cancelled)
                }
            }
        }
        let host = RemoteHost(origin.port, over: session)
        #expect(try await host.data(for: Route(path: "/next", method: method)) == Data("/next".utf8))
        #expect(origin.requests.map(\.path) == ["/next"] && memory.requests.isEmpty)
    }

    @Test func `H13: a call that is canceled before a redirect sends nothing more`() async throws {
        let sent = Lock<[String]>([])
        let memory = MemoryTransport { request in
            MemoryTransport.Response(status: request.url.path() == "/a" ? 307 : 204, headers: [("Location", "/b")])
        }
        // It need not check for cancellation, and cancels the call when a response has arrived.
        let transport = CustomTransport { request, limits in
            sent.withLock { $0.append(request.url.path()) }
            let reply = try await memory.perform(request, limits: limits)
            withUnsafeCurrentTask { $0?.cancel() }
            return reply
        }
        let host = RemoteHost("a.example", transport: transport)
        let call = Task { try await host.send(Route(path: "/a", method: .post)) }
        #expect(try await remoteError { try await call.value }.stage == .cancelled)
        #expect(sent.withLock { $0 } == ["/a"])
    }

    enum Place: CaseIterable { case beforeStart, gate, head, body, backOff, refresh, requestInterceptor, responseInterceptor }

    @Test(arguments: Place.allCases)
    func `H13: a canceled call ends at once and releases its permit`(_ place: Place) async throws {
        let time = ManualTime()
        let isOver = WatchedState(false)
        let arrived = WatchedState(0)
        let memory = MemoryTransport { request in
            arrived.update { $0 += 1 }
            guard !isOver.current, request.url.path() == "/slow" else { return .json("[1]") }
            switch place {
            case .gate, .head: try await untilCanceled()
            case .body:
                var answer = MemoryTransport.Response.json("[1]")
                answer.stalls = true
                return answer
            case .backOff: return .status(503)
            case .refresh: return .status(401)
            default: return .json("[1]")
            }
            return .json("[1]")
        }
        var host = RemoteHost("a.example", transport: memory, limits: HostLimits(concurrentExchanges: 1), time: time)
            .withoutDeadlines(unit: 0.5)
        let plain = host
        let gate = WatchedState(false)
        switch place {
        case .refresh:
            host = host.authorized(
                by: .bearer(Token(accessToken: "a")) { _, _ in
                    arrived.update { $0 += 1 }
                    try await gate.wait { $0 ? () : nil }
                    return Token(accessToken: "b")
                })
        case .requestInterceptor: host = host.intercepting(requests: Changing { _ in try await gate.wait { $0 ? () : nil } })
        case .responseInterceptor: host = host.intercepting(responses: Reading { _, _ in try await gate.wait { $0 ? () : nil } })
        default: break
        }
        let holder = place == .gate ? Task { [plain] in try await plain.send("/slow") } : nil
        if place == .gate { try await arrived.wait { $0 == 1 ? () : nil } }
        let task = Task { [host] in
            if place == .beforeStart { withUnsafeCurrentTask { $0?.cancel() } }
            return try await host.send("/slow", as: [Int].self)
        }
        switch place {
        case .beforeStart: break
        case .gate: try await until("the call waits") { plain.gate.waiterCount > 0 }
        case .head, .body, .responseInterceptor: try await arrived.wait { $0 == 1 ? () : nil }
        case .refresh: try await arrived.wait { $0 == 2 ? () : nil }
        case .backOff: try await time.sleepers(atLeast: 1)
        case .requestInterceptor: for _ in 0..<100 { await Task.yield() }
        }
        task.cancel()
        let error = try await remoteError { _ = try await task.value }
        #expect(error.stage == .cancelled && error.failureKind == .cancelled, "\(error)")
        if place == .beforeStart || place == .requestInterceptor { #expect(memory.requests.isEmpty) }
        #expect(memory.requests.count <= 1)
        isOver.update { $0 = true }
        gate.update { $0 = true }
        holder?.cancel()
        _ = await holder?.result
        #expect(try await plain.send("/next", as: [Int].self) == [1])
        #expect(plain.gate.waiterCount == 0)
    }

    @Test func `H13: waiters enter up to the limit in order of arrival, even if many are canceled`() async throws {
        let gate = Permits(2)
        let (first, second) = (try await gate.take(), try await gate.take())
        let order = WatchedState<[Int]>([])
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<300 {
            tasks.append(
                Task {
                    let permit = try await gate.take()
                    order.update { $0.append(number) }
                    permit.release()
                })
            try await until("call \(number) waits") { gate.waiterCount > number }
        }
        let leaving = Set((0..<300).filter { $0 % 10 != 3 })
        for number in leaving { tasks[number].cancel() }
        try await until("the canceled waiters have left") { gate.waiterCount == 30 }
        #expect(order.current.isEmpty)
        // New waiters queue behind the remaining ones.
        let last = Task {
            let permit = try await gate.take()
            order.update { $0.append(300) }
            permit.release()
        }
        try await until("the last one waits") { gate.waiterCount > 30 }
        first.release()
        first.release()
        try await last.value
        #expect(order.current == (0...300).filter { !leaving.contains($0) })
        for number in leaving { await #expect(throws: CancellationError.self) { try await tasks[number].value } }
        second.release()
        // Both places are free again, but not a third.
        let again = [gate.takeIfFree(), gate.takeIfFree()]
        #expect(again.allSatisfy { $0 != nil })
        let third = Task { try await gate.take() }
        try await until("the third waits") { gate.waiterCount == 1 }
        third.cancel()
        await #expect(throws: CancellationError.self) { _ = try await third.value }
        withExtendedLifetime(again) {}
    }
}

/// The limits of a host on exchanges and streams, which no caller makes itself wait for.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct HostLimitTests {
    /// An interceptor that acts on each response to `/x`.
    private func asking(_ ask: @escaping @Sendable () async throws -> Void) -> Reading {
        Reading { _, request in if request.url.path == "/x" { try await ask() } }
    }

    private static let stalling = MemoryTransport { request in
        request.url.path == "/events" ? MemoryTransport.Response.status(200).stalling : .json("[1]")
    }

    private func host(_ limit: Int, _ transport: MemoryTransport = stalling) -> RemoteHost {
        RemoteHost("api.example.com", transport: transport, limits: HostLimits(concurrentExchanges: limit))
    }

    @Test(arguments: TransportKind.allCases)
    func `W15: open streams do not hold up the other calls of a host`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/events") { _ in .text("data: 1\n\n").misbehaving(.stall(afterBodyBytes: 3)) }
        bench.on("GET", "/x") { _ in .text("x") }
        let host = bench.host { $0.limits.concurrentExchanges = 4 }
        var streams: [RemoteBytes] = []
        for _ in 0..<8 { streams.append(try await host.bytes(for: Route(path: "/events"))) }
        #expect(try await host.data(for: Route(path: "/x")) == Data("x".utf8))
        #expect(streams.count == 8)
    }

    @Test(arguments: TransportKind.allCases)
    func `W15: a response interceptor that sends a request needs no second permit`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        for path in ["/x", "/token"] { bench.on("GET", path) { _ in .text("x") } }
        let host = bench.host { $0.limits.concurrentExchanges = 4 }
        let outer = host.intercepting(responses: asking { _ = try await host.data(for: Route(path: "/token")) })
        #expect(try await atOnce(64) { _ in try await outer.data(for: Route(path: "/x")) } == Array(repeating: Data("x".utf8), count: 64))
        #expect(bench.asked("/token").count == 64)
    }

    @Test func `W15: an interceptor of a stream may open another one, although all streams are in use`() async throws {
        let host = host(1).with { $0.limits.concurrentStreams = 1 }
        let outer = host.intercepting(responses: asking { _ = try await host.bytes(for: Route(path: "/other")) })
        #expect(try await outer.bytes(for: Route(path: "/x")).whole() == Data("[1]".utf8))
        #expect(host.streamGate.waiterCount == 0)
    }

    @Test func `H13: a stream that a task of an interceptor opens later needs a place`() async throws {
        let host = host(1, MemoryTransport { _ in MemoryTransport.Response.status(200).stalling }).with { $0.limits.concurrentStreams = 1 }
        let isOpen = WatchedState(false)
        let late = Lock<Task<Void, any Error>?>(nil)
        let outer = host.intercepting(
            responses: asking {
                let task = Task {
                    try await isOpen.wait { $0 ? () : nil }
                    _ = try await host.bytes(for: Route(path: "/events"))
                }
                late.withLock { $0 = task }
            })
        let bytes = try await outer.bytes(for: Route(path: "/x"))
        isOpen.update { $0 = true }
        try await until("the later stream waits") { host.streamGate.waiterCount == 1 }
        late.withLock(\.self)?.cancel()
        withExtendedLifetime(bytes) {}
    }

    @Test func `W15: refreshes, request interceptors and parsers need no permit of their caller`() async throws {
        let memory = MemoryTransport { request in request.fields["Authorization"] == "Bearer old" ? .status(401) : .json("[1]") }
        let plain = host(1, memory)
        let outer = plain.intercepting(requests: Changing { if $0.url.path == "/x" { try await plain.send("/token") } })
            .authorized(
                by: .bearer(Token(accessToken: "old")) { _, host in
                    try await host.send("/refresh")
                    return Token(accessToken: "new")
                })
        #expect(try await atOnce(16) { _ in try await outer.send("/x", as: [Int].self) } == Array(repeating: [1], count: 16))
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
        if hasInterceptor { host = host.intercepting(responses: Reading { _, _ in }) }
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
            try await untilCanceled()
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
        #expect(error.code == .overallTimedOut && error.mayHaveArrived && error.attempts == 2)
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
