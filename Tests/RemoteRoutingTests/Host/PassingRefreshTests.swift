import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

/// Refreshes that fail transiently, end too late, or are triggered by another origin.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PassingRefreshTests {
    private func guarded(_ bench: Bench, _ path: String = "/x") {
        bench.on("GET", path) { asked in asked["Authorization"] == "Bearer new" ? .json([1]) : .status(401) }
    }

    private func host(_ bench: Bench) -> RemoteHost {
        // On a busy machine an exchange may exceed the usual deadlines, and its retry would be an extra request.
        bench.host().with { $0.timeouts = .untilHang }.authorized(
            by: .bearer(Token(accessToken: "old")) { current, unauthenticated in
                try await unauthenticated.send("/refresh", method: .post, parameters: ["credential": current.refreshToken])
            })
    }

    @Test(arguments: RealTransport.available)
    func `H5: a transient failure fails the waiters, and the next 401 tries again`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        let isOpen = WatchedState(false)
        let asked = WatchedState(0)
        bench.on("GET", "/x") { request in
            if request["Authorization"] == "Bearer new" { return .json([1]) }
            // All requests must be sent before the first rejection; later ones would wait for the refresh.
            asked.update { $0 += 1 }
            do { try await asked.wait { $0 >= 20 ? () : nil } } catch { return .status(500) }
            return .status(401)
        }
        let turn = Lock([LoopbackOrigin.Response.status(503), .json(Token(accessToken: "new"))])
        bench.on("POST", "/refresh") { _ in
            do { try await isOpen.wait { $0 ? () : nil } } catch { return .status(500) }
            return turn.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
        }
        let host = host(bench)
        let tasks = (0..<20).map { _ in Task { try await host.send("/x", as: [Int].self) } }
        try await bench.origin.waitForRequests(count: 20, to: "/x")
        isOpen.update { $0 = true }
        for task in tasks {
            let error = try await remoteError { _ = try await task.value }
            #expect(error.code == .refreshFailed)
            #expect((error.underlyingError as? RemoteError)?.status == 503)
            #expect(!error.isRetryable)
        }
        #expect(bench.asked("/refresh").count == 1)
        #expect(try await host.send("/x", as: [Int].self) == [1])
        #expect(bench.asked("/refresh").count == 2)
    }

    @Test(arguments: RealTransport.available)
    func `H5: a late 401 of the same generation starts no second refresh`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        guarded(bench)
        let isLate = WatchedState(false)
        bench.on("GET", "/late") { _ in
            do { try await isLate.wait { $0 ? () : nil } } catch { return .status(500) }
            return .status(401)
        }
        bench.on("POST", "/refresh", inTurn: .status(503), .json(Token(accessToken: "new")))
        let host = host(bench)
        let late = Task { try await host.send("/late", as: [Int].self) }
        try await bench.origin.waitForRequests(count: 1, to: "/late")
        #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
        isLate.update { $0 = true }
        #expect(try await remoteError { _ = try await late.value }.code == .refreshFailed)
        #expect(bench.asked("/refresh").count == 1)
        #expect(try await host.send("/x", as: [Int].self) == [1])
    }

    struct Advised: FailureAdvising { var failureKind: FailureKind }
    struct Plain: Error {}

    private static func remote(_ stage: RemoteError.Stage, _ code: RemoteError.Code, _ status: Int? = nil) -> RemoteError {
        var error = RemoteError(stage, code, operation: "POST https://a.example/refresh", "it failed")
        error.status = status
        return error
    }

    private static let failures: [(any Error, passes: Bool)] = [
        (remote(.transport, .connectionRefused), true), (remote(.transport, .offline), true), (remote(.timeout, .overallTimedOut), true),
        (remote(.status, .badStatus, 503), true), (remote(.status, .badStatus, 429), true), (remote(.cancelled, .cancelled), true),
        (CancellationError(), true), (Advised(failureKind: .transient), true), (Advised(failureKind: .cancelled), true),
        (remote(.status, .badStatus, 400), false), (remote(.status, .badStatus, 401), false), (remote(.decode, .undecodable), false),
        (Advised(failureKind: .permanent), false), (Advised(failureKind: .fatal), false), (Plain(), false),
    ]

    @Test(arguments: failures.indices)
    func `H5: a refusal is final, and a transient failure is not`(_ index: Int) async throws {
        let (failure, passes) = PassingRefreshTests.failures[index]
        let memory = MemoryTransport { request in request.fields["Authorization"] == "Bearer new" ? .json("[1]") : .status(401) }
        let attempts = Lock(0)
        let host = RemoteHost("a.example", transport: memory).authorized(
            by: .bearer(Token(accessToken: "old")) { _, _ in
                let attempt = attempts.withLock {
                    $0 += 1; return $0
                }
                if attempt == 1 { throw failure }
                return Token(accessToken: "new")
            })
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .refreshFailed)
        #expect(error.message.hasSuffix(passes ? "try again later" : "sign in again"))
        if passes {
            #expect(try await host.send("/x", as: [Int].self) == [1])
        } else {
            #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
        }
        #expect(attempts.withLock(\.self) == (passes ? 2 : 1))
    }

    @Test func `H5: a token that arrives after a replacement is not saved`() async throws {
        let accepted = WatchedState("third")
        let memory = MemoryTransport { request in
            request.fields["Authorization"] == "Bearer \(accepted.current)" ? .json("[1]") : .status(401)
        }
        let isOpen = WatchedState(false)
        let begun = WatchedState(0)
        let saved = WatchedState<[String]>([])
        let tokens = RefreshingTokens(Token(accessToken: "first"), onRefresh: { token in saved.update { $0.append(token.accessToken) } }) {
            current, _ in
            begun.update { $0 += 1 }
            guard current.accessToken == "first" else { return Token(accessToken: "third") }
            try await isOpen.wait { $0 ? () : nil }
            return Token(accessToken: "second")
        }
        let host = RemoteHost("a.example", transport: memory).authorized(by: .bearer(tokens))
        let task = Task { try await host.send("/x", as: [Int].self) }
        try await begun.wait { $0 == 1 ? () : nil }
        tokens.replace(by: Token(accessToken: "signed in"))
        #expect(try await remoteError { _ = try await task.value }.status == 401)
        isOpen.update { $0 = true }
        for _ in 0..<200 { await Task.yield() }
        #expect(try await host.send("/x", as: [Int].self) == [1])
        #expect(tokens.current.accessToken == "third" && saved.current == ["third"])
    }

    @Test(arguments: RealTransport.available)
    func `H5: a 401 of another origin starts no refresh`(_ transport: RealTransport) async throws {
        let other = try LoopbackOrigin { _ in .status(401) }
        let bench = try Bench(transport.kind)
        let place = other.url.absoluteString + "/there"
        bench.on("GET", "/a") { _ in .redirect(to: place) }
        bench.on("POST", "/refresh") { _ in .json(Token(accessToken: "new")) }
        #expect(try await remoteError { try await host(bench).send("/a") }.status == 401)
        #expect(bench.asked("/refresh").isEmpty && other.requests.count == 1)
    }

    @Test(arguments: ["X-API-Key", "api-key", "X-Auth-Token", "X-Amz-Security-Token", "Cookie", "Authorization"])
    func `H5: a key in a field of the route or the host requires encryption`(_ name: String) async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost(HostConfiguration("a.example", scheme: .http), transport: memory)
        let route = Route(path: "/x", headers: [name: "k"])
        #expect(try await remoteError { try await host.send(route) }.code == .insecureCredentials)
        let byDefault = host.with { $0.defaults.append(name, "k") }
        #expect(try await remoteError { try await byDefault.send("/x") }.code == .insecureCredentials)
        #expect(memory.requests.isEmpty)
        try await host.with { $0.allowsInsecureCredentials = true }.send(route)
        try await RemoteHost("a.example", transport: memory).send(route)
        try await RemoteHost(HostConfiguration("localhost", scheme: .http), transport: memory).send(route)
        #expect(memory.requests.count == 3)
    }
}
