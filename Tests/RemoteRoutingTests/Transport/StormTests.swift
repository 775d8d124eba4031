import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Faults that appear only under load. `STOREHOUSE_SEEDS=10` runs the suite in full.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct StormTests {
    private static let width = isLongRun ? 2000 : 300

    @Test(arguments: RealTransport.available)
    func `H13, W13: requests canceled at random moments neither hang nor leak`(_ kind: RealTransport) async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/quick") { _ in .text("0123456789") }
        origin.on(.get, "/drip") { _ in .text("0123456789").misbehaving(.drip(bytes: 1, every: .milliseconds(2))) }
        origin.on(.get, "/stall") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 4)) }
        origin.on(.get, "/never") { _ in .text("x").misbehaving(.neverAnswer) }
        origin.on(.get, "/late") { _ in .text("0123456789").misbehaving(.delayHead(by: .milliseconds(5))) }
        origin.on(.post, "/post") { .text("\($0.body.count)") }
        let transport = try kind.make()
        var host = RemoteHost(origin.port, over: transport)
        let routes =
            ["/quick", "/drip", "/stall", "/late", "/never"].map { Route(path: RoutePath(stringLiteral: $0)) }
            + [Route(path: "/post", method: .post, body: .data(Data(count: 10_000)))]
        var filesBefore: Int?
        var bytesBefore: Int?
        for round in 0..<rounds(1) {
            // Alternates between few permits, so that most calls wait, and many, so that most are on the wire.
            host.limits.concurrentExchanges = round % 2 == 0 ? 400 : 32
            let outcomes = WatchedState<[String: Int]>([:])
            let tasks = (0..<StormTests.width).map { index in
                Task { [host] in
                    do {
                        _ = try await host.data(for: routes[index % routes.count])
                        outcomes.update { $0["done", default: 0] += 1 }
                    } catch let error as RemoteError {
                        outcomes.update { $0[error.code.rawValue, default: 0] += 1 }
                    }
                }
            }
            var generator = SystemRandomNumberGenerator()
            for task in tasks.shuffled(using: &generator) {
                for _ in 0..<Int.random(in: 0..<4) { await Task.yield() }
                task.cancel()
            }
            for task in tasks { try await task.value }
            let counts = outcomes.current
            #expect(counts.values.reduce(0, +) == StormTests.width)
            #expect(Set(counts.keys).isSubset(of: ["done", "cancelled"]), "round \(round): \(counts)")
            // Neither an exchange nor a permit is leaked.
            try await origin.waitUntil { $0.requests.allSatisfy { $0.ending != nil } }
            try await until("no exchange is left") { transport.exchangeCount == 0 }
            #expect(try await host.data(for: routes[0]) == Data("0123456789".utf8))
            origin.forget()
            if filesBefore == nil { (filesBefore, bytesBefore) = (ProcessState.openFiles, ProcessState.residentBytes) }
        }
        if kind == .curl {
            try await until("no more connections than exchanges that run at once are left") { origin.openConnections <= 256 }
            if isLongRun, let bytesBefore, let bytes = ProcessState.residentBytes { #expect(bytes - bytesBefore <= 64 << 20) }
        }
        // Other tests of the process open files and connections at the same time, and close them again.
        guard let before = filesBefore else { return }
        try await until("the descriptors are closed") { (ProcessState.openFiles ?? 0) <= before + 70 }
    }

    /// In a process of its own, because other tests take memory at the same time.
    @Test(arguments: RealTransport.available)
    func `H8: a decompression bomb of 200 MB stays near the limit`(_ kind: RealTransport) async {
        await #expect(processExitsWith: .success) { [name = kind.rawValue as String] in
            let transport = try #require(RealTransport(rawValue: name)).make()
            let origin = try LoopbackOrigin { $0.path == "/bomb" ? .gzipBomb(inflatingTo: 200_000_000) : .text("x") }
            let host = RemoteHost(origin.port, over: transport)
            // The first exchange loads what all of them share.
            _ = try await host.data(for: Route(path: "/x"))
            let before = ProcessState.residentBytes
            #expect(try await remoteError { _ = try await host.data(for: Route(path: "/bomb")) }.code == .bodyTooLarge)
            // The sanitizer shadows all memory.
            let limit = isSanitized ? 256 << 20 : 64 << 20
            if let before, let after = ProcessState.residentBytes { #expect(after - before < limit, "\((after - before) >> 20) MB") }
            // The bomb is small on the wire; only its decoding ends early.
            try await until("no exchange is left") { transport.exchangeCount == 0 }
        }
    }

    @Test(arguments: RealTransport.available)
    func `H13: a released transport leaves nothing behind`(_ kind: RealTransport) async throws {
        let origin = try LoopbackOrigin { .text($0.path) }
        for _ in 0..<20 {
            let host = try kind.host(origin.port)
            _ = try await host.data(for: Route(path: "/x"))
            _ = try await host.data(for: Route(path: "/x", method: .post))
        }
        try await origin.waitUntil { $0.openConnections == 0 }
    }
}

/// Requests on a connection that the server has closed meanwhile.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OnceTests {
    private static let methods: [(HTTPMethod, RouteBody)] = [
        (.post, .data(Data("abc".utf8))), (.post, .none), (.delete, .none), (.put, .data(Data("abc".utf8))), (.patch, .none),
        (.post, .stream(HTTPBodyStream(chunks: [Data("abc".utf8)], length: 3, isReplayable: false))), (.get, .none),
        (.put, .data(Data(count: 100_000))),
    ]

    @Test(
        arguments: methods.indices,
        RealTransport.available.flatMap { [($0, LoopbackOrigin.Misbehavior.closeOnNextRequest), ($0, .closeSilently)] })
    func `H7: an unsafe request reaches the server at most once`(
        _ index: Int, _ way: (kind: RealTransport, end: LoopbackOrigin.Misbehavior)
    ) async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(way.end) }
        let (method, body) = OnceTests.methods[index]
        let name = try #require(LoopbackOrigin.Method(rawValue: method.rawValue))
        origin.on(name, "/x") { .data($0.body) }
        let host = try way.kind.host(origin.port) { $0.retry = .never }
        let isUnsafe = method == .post || method == .patch
        // `URLSession` uses fresh connections for unsafe requests, and repeats a GET itself. libcurl reuses a connection, which the server
        // closes before it reads the request or responds.
        let mayBeLost = way.kind == .curl && way.end == .closeOnNextRequest
        for _ in 1...5 {
            _ = try await host.data(for: Route(path: "/warm"))
            if way.end == .closeSilently { try await origin.waitUntil { $0.openConnections == 0 } }
            origin.forget()
            do {
                let echo = try await host.data(for: Route(path: "/x", method: method, body: body))
                #expect(origin.requests(to: "/x").last?.body == echo)
            } catch let error as RemoteError where mayBeLost && isUnsafe {
                #expect(error.code == .connectionLost)
            }
            let seen = origin.requests(to: "/x")
            #expect(seen.count == 1 || way.end == .closeOnNextRequest && !isUnsafe && seen.count == 2)
            #expect(seen.allSatisfy { $0.method.rawValue == method.rawValue })
        }
    }

    @Test(arguments: 0..<3, RealTransport.available)
    func `H7: an unsafe request without a response is not sent again`(_ index: Int, _ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin()
        let (method, body) = OnceTests.methods[index]
        let name = try #require(LoopbackOrigin.Method(rawValue: method.rawValue))
        origin.on(name, "/x") { _ in .text("x").misbehaving(.resetBeforeHead) }
        let host = try transport.host(origin.port) { $0.retry = .never }
        let error = try await remoteError { try await host.send(Route(path: "/x", method: method, body: body)) }
        #expect(error.code == .connectionLost)
        #expect(error.isRetryable == (method == .delete))
        #expect(origin.requests(to: "/x").count == 1)
    }

    @Test(arguments: 0..<6, RealTransport.available)
    func `H13: canceling an unsafe request ends it on the wire`(_ index: Int, _ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("x").misbehaving(.neverAnswer) }
        let (method, body) = OnceTests.methods[index]
        let host = try transport.host(origin.port)
        let task = Task { try await host.send(Route(path: "/x", method: method, body: body)) }
        try await origin.waitForRequests(count: 1)
        task.cancel()
        #expect(try await remoteError { try await task.value }.stage == .cancelled)
        try await origin.waitUntil { $0.requests.first?.ending == .clientLeft && $0.openConnections == 0 }
        #expect(origin.requests.count == 1)
    }
}

extension HTTPBodyStream {
    init(chunks: [Data], length: Int64?, isReplayable: Bool = true) {
        self.init(length: length, isReplayable: isReplayable) {
            let parts = Parts(chunks)
            return { _ in parts.next() }
        }
    }
}

final class Parts: Sendable {
    private let parts: Lock<[Data]>
    init(_ parts: [Data]) { self.parts = Lock(parts) }
    func next() -> Data? { parts.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
}
