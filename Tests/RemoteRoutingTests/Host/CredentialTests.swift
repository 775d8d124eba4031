import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

struct Token: BearerToken, Codable, Hashable {
    var accessToken: String
    var refreshToken = "r"
}

extension RemoteHost {
    /// Returns a host with the token "old", which a request to `/refresh` replaces.
    func refreshing() -> RemoteHost {
        authorized(
            by: .bearer(Token(accessToken: "old")) { current, unauthenticated in
                try await unauthenticated.send("/refresh", method: .post, parameters: ["credential": current.refreshToken])
            })
    }
}

extension Bench {
    /// Serves a path to requests with the token "new".
    func guarded(_ method: String = "GET", _ path: String = "/x", otherwise refusal: Response = .status(401)) {
        on(method, path) { asked in asked["Authorization"] == "Bearer new" ? .json([1]) : refusal }
    }

    /// Replaces tokens by "new".
    func refreshes() {
        on("POST", "/refresh") { asked in asked["Authorization"] == nil ? .json(Token(accessToken: "new")) : .status(400) }
    }
}

/// The credential machine, and storms of 401.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CredentialTests {
    private func name(_ step: CredentialMachine<String>.Step) -> String {
        switch step {
        case .use(let credential, let generation): "use \(credential) \(generation)"
        case .refresh(let credential, let generation): "refresh \(credential) \(generation)"
        case .wait: "wait"
        case .fail: "fail"
        }
    }

    @Test func `H5: a generation is refreshed once`() {
        var machine = CredentialMachine("a")
        #expect(name(machine.wanted()) == "use a 0")
        #expect(name(machine.rejected(0)) == "refresh a 0")
        #expect(name(machine.rejected(0)) == "wait")
        #expect(name(machine.wanted()) == "wait")
        machine.refreshEnded(.success("b"), of: 0)
        #expect(name(machine.wanted()) == "use b 1")
        // A late rejection of a request that was sent with the old credential.
        #expect(name(machine.rejected(0)) == "use b 1")
        #expect(name(machine.rejected(1)) == "refresh b 1")
    }

    @Test func `H5: a failed refresh is final for its generation`() {
        var machine = CredentialMachine("a")
        _ = machine.rejected(0)
        machine.refreshEnded(.failure(TestError()), of: 0)
        #expect(name(machine.wanted()) == "fail")
        #expect(name(machine.rejected(0)) == "fail")
        machine.replace(by: "c")
        #expect(name(machine.wanted()) == "use c 1")
        #expect(name(machine.rejected(0)) == "use c 1")
    }

    @Test func `H5: a transient failure begins a new generation of the same credential`() {
        var machine = CredentialMachine("a")
        _ = machine.rejected(0)
        machine.refreshEnded(.failure(TestError()), of: 0, passes: true)
        // Waiters and late rejections of the same credential fail; requests sent from now on may refresh again.
        #expect(name(machine.outcome(of: 0)) == "fail")
        #expect(name(machine.rejected(0)) == "fail")
        #expect(name(machine.wanted()) == "use a 1")
        #expect(name(machine.rejected(1)) == "refresh a 1")
        #expect(name(machine.rejected(0)) == "fail")
        machine.refreshEnded(.failure(TestError()), of: 1, passes: true)
        #expect([0, 1].map { name(machine.rejected($0)) } == ["fail", "fail"])
        _ = machine.rejected(2)
        machine.refreshEnded(.success("b"), of: 2)
        #expect([0, 1, 2].map { name(machine.rejected($0)) } == ["use b 3", "use b 3", "use b 3"])
        #expect(name(machine.rejected(3)) == "refresh b 3")
        machine.refreshEnded(.failure(TestError()), of: 3)
        #expect(name(machine.wanted()) == "fail")
    }

    @Test func `H5: a refresh that ends after a replacement is dropped`() {
        var machine = CredentialMachine("a")
        _ = machine.rejected(0)
        machine.replace(by: "c")
        machine.refreshEnded(.success("b"), of: 0)
        #expect(name(machine.wanted()) == "use c 1")
        machine.refreshEnded(.failure(TestError()), of: 0)
        #expect(name(machine.wanted()) == "use c 1")
    }

    @Test func `C23: a dropped refresh fails its waiters only, and a closed credential fails every request`() {
        var machine = CredentialMachine("a")
        _ = machine.rejected(0)
        machine.dropRefresh()
        machine.refreshEnded(.success("b"), of: 0)
        #expect(name(machine.outcome(of: 0)) == "fail")
        // Nothing is dropped without a refresh.
        machine.dropRefresh()
        #expect(name(machine.wanted()) == "use a 1")
        #expect(name(machine.rejected(1)) == "refresh a 1")
        machine.close(TestError())
        machine.refreshEnded(.success("b"), of: 1)
        machine.replace(by: "c")
        machine.dropRefresh()
        #expect(name(machine.wanted()) == "fail")
        #expect((0...1).map { name(machine.rejected($0)) } == ["fail", "fail"])
        #expect(machine.current == "a")
    }

    private func guarded(_ bench: Bench) {
        bench.guarded(otherwise: .text("no", status: 401).setting("WWW-Authenticate", to: "Basic realm=\"x\""))
        bench.refreshes()
    }

    @Test(arguments: TransportKind.allCases)
    func `H5: a hundred 401s cause one refresh, and each request is replayed once`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        guarded(bench)
        let host = bench.host().refreshing()
        #expect(try await atOnce(100) { _ in try await host.send("/x", as: [Int].self) } == Array(repeating: [1], count: 100))
        #expect(bench.asked("/refresh").count == 1)
        #expect(bench.asked("/x").filter { $0["Authorization"] == "Bearer new" }.count == 100)
        #expect(bench.asked("/x").filter { $0["Authorization"] == "Bearer old" }.count <= 100)
    }

    @Test(arguments: RealTransport.available)
    func `H5: a waiter's cancellation does not end the refresh`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        guarded(bench)
        let gate = WatchedState(false)
        bench.on("POST", "/refresh", behind: gate, .json(Token(accessToken: "new")))
        let host = bench.host().refreshing()
        let first = Task { try await host.send("/x", as: [Int].self) }
        try await bench.origin.waitForRequests(count: 1, to: "/refresh")
        let second = Task { try await host.send("/x", as: [Int].self) }
        first.cancel()
        #expect(try await remoteError { _ = try await first.value }.stage == .cancelled)
        gate.update { $0 = true }
        #expect(try await second.value == [1])
        #expect(bench.asked("/refresh").count == 1)
    }

    @Test(arguments: RealTransport.available)
    func `H6: a refresh counts toward the call's deadline and outlives the call`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        let time = ManualTime()
        // The refresh begins a second after the call, so that its own deadline is later.
        bench.on("GET", "/x") { asked in
            if asked["Authorization"] == "Bearer new" { return .json([1]) }
            time.advance(by: .seconds(1))
            return .status(401)
        }
        let gate = WatchedState(false)
        bench.on("POST", "/refresh", behind: gate, .json(Token(accessToken: "new")))
        let host = bench.host().refreshing().with {
            $0.time = time
            $0.timeouts = .init(overall: .seconds(10))
        }
        let task = Task { try await host.send("/x", as: [Int].self) }
        try await bench.origin.waitForRequests(count: 1, to: "/refresh")
        time.advance(by: .seconds(9))
        #expect(try await remoteError { _ = try await task.value }.code == .overallTimedOut)
        gate.update { $0 = true }
        #expect(try await host.send("/x", as: [Int].self) == [1])
        #expect(bench.asked("/refresh").count == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `H5: 403 never refreshes, and a second 401 is an error`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        guarded(bench)
        bench.on("GET", "/forbidden") { _ in .status(403) }
        bench.on("GET", "/never") { _ in .status(401) }
        let host = bench.host().refreshing()
        #expect(try await remoteError { try await host.send("/forbidden") }.status == 403)
        #expect(bench.asked("/refresh").isEmpty)
        #expect(try await remoteError { try await host.send("/never") }.status == 401)
        #expect(bench.asked("/refresh").count == 1 && bench.asked("/never").count == 2)
    }

    @Test(arguments: RealTransport.available, [nil, true, false])
    func `H5: requiresAuth is respected`(_ transport: RealTransport, _ requires: Bool?) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/x") { asked in .text(asked["Authorization"] ?? "none") }
        let host = bench.host().authorized(by: .basic(user: "u", password: "p"))
        let data = try await host.data(for: Route(path: "/x", options: RouteOptions(requiresAuth: requires)))
        #expect(String(decoding: data, as: UTF8.self) == (requires == false ? "none" : "Basic dTpw"))
    }

    @Test(arguments: RealTransport.available)
    func `H5: a 401 with a challenge keeps its body and does not hang`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        guarded(bench)
        let error = try await remoteError { try await bench.host().send("/x") }
        #expect(error.status == 401 && error.body == Data("no".utf8), "\(error)")
    }

    @Test func `H5: credentials are not sent without encryption`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        for authorization in [Authorization.bearer("t"), .basic(user: "u", password: "p"), .custom { try $0.set("X-Api-Key", "k") }] {
            let host = RemoteHost(HostConfiguration("api.example.com", scheme: .http), transport: memory).authorized(by: authorization)
            #expect(try await remoteError { try await host.send("/x") }.code == .insecureCredentials)
            #expect(memory.requests.isEmpty)
        }
        let host = RemoteHost(HostConfiguration("api.example.com", scheme: .http), transport: memory).authorized(by: .bearer("t"))
        try await host.with { $0.allowsInsecureCredentials = true }.send("/x")
        try await RemoteHost("api.example.com", transport: memory).authorized(by: .bearer("t")).send("/x")
        #expect(memory.requests.map { $0.url.scheme } == ["http", "https"])
    }
}

/// Refreshes that fail transiently, end too late, or are triggered by another origin.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PassingRefreshTests {
    @Test(arguments: RealTransport.available, [503, 400])
    func `H5: a failed refresh fails the waiters, and only after a transient failure the next 401 tries again`(
        _ transport: RealTransport, _ status: Int
    ) async throws {
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
        let turn = Lock([LoopbackOrigin.Response.status(status), .json(Token(accessToken: "new"))])
        bench.on("POST", "/refresh") { _ in
            do { try await isOpen.wait { $0 ? () : nil } } catch { return .status(500) }
            return turn.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
        }
        let host = bench.host().refreshing()
        let tasks = (0..<20).map { _ in Task { try await host.send("/x", as: [Int].self) } }
        try await bench.origin.waitForRequests(count: 20, to: "/x")
        isOpen.update { $0 = true }
        for task in tasks {
            let error = try await remoteError { _ = try await task.value }
            #expect(error.code == .refreshFailed && error.status == 401, "\(error)")
            #expect((error.underlyingError as? RemoteError)?.status == status)
            #expect(!error.isRetryable)
        }
        #expect(bench.asked("/refresh").count == 1)
        let next = try? await host.send("/x", as: [Int].self)
        #expect(next == (status == 503 ? [1] : nil))
        #expect(bench.asked("/refresh").count == (status == 503 ? 2 : 1))
    }

    @Test(arguments: RealTransport.available)
    func `H5: a late 401 of the same generation starts no second refresh`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.guarded()
        let isLate = WatchedState(false)
        bench.on("GET", "/late", behind: isLate, .status(401))
        bench.on("POST", "/refresh", inTurn: .status(503), .json(Token(accessToken: "new")))
        let host = bench.host().refreshing()
        let late = Task { try await host.send("/late", as: [Int].self) }
        try await bench.origin.waitForRequests(count: 1, to: "/late")
        #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
        isLate.update { $0 = true }
        #expect(try await remoteError { _ = try await late.value }.code == .refreshFailed)
        #expect(bench.asked("/refresh").count == 1)
        #expect(try await host.send("/x", as: [Int].self) == [1])
    }

    struct Advised: FailureAdvising { var failureKind: FailureKind }

    private static func remote(
        _ stage: RemoteError.Stage, _ code: RemoteError.Code, _ status: Int? = nil, after delay: Duration? = nil
    ) -> RemoteError {
        var error = RemoteError(stage, code, operation: "POST https://a.example/refresh", "it failed")
        error.status = status
        error.retryAfter = delay
        return error
    }

    private static let failures: [(any Error, passes: Bool)] = [
        (remote(.transport, .connectionRefused), true), (remote(.transport, .offline), true), (remote(.timeout, .overallTimedOut), true),
        (remote(.status, .badStatus, 503), true), (remote(.status, .badStatus, 429), true), (remote(.cancelled, .cancelled), true),
        (remote(.status, .badStatus, 500), true), (remote(.status, .badStatus, 501), false), (remote(.transport, .tlsFailed), true),
        (remote(.transport, .certificateUntrusted), true), (remote(.transport, .clientCertificateRefused), false),
        (CancellationError(), true), (TransportFailure(.offline, "offline"), true), (TransportFailure(.unsupported, "no"), false),
        (Advised(failureKind: .transient), true), (Advised(failureKind: .cancelled), true),
        (remote(.status, .badStatus, 403), false), (remote(.status, .badStatus, 403, after: .seconds(60)), true),
        (remote(.status, .badStatus, 400), false), (remote(.status, .badStatus, 401), false), (remote(.decode, .undecodable), false),
        (Advised(failureKind: .permanent), false), (Advised(failureKind: .fatal), false), (TestError(), false),
    ]

    @Test(arguments: failures.indices)
    func `H5: a refusal is final, and a transient failure is not`(_ index: Int) async throws {
        let (failure, passes) = PassingRefreshTests.failures[index]
        let memory = MemoryTransport { request in request.fields["Authorization"] == "Bearer new" ? .json("[1]") : .status(401) }
        let attempts = Lock(0)
        let host = RemoteHost("a.example", transport: memory).authorized(
            by: .bearer(Token(accessToken: "old")) { _, _ in
                attempts.withLock { $0 += 1 }
                if attempts.withLock(\.self) == 1 { throw failure }
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
        #expect(try await remoteError { try await bench.host().refreshing().send("/a") }.status == 401)
        #expect(bench.asked("/refresh").isEmpty && other.requests.count == 1)
    }

    @Test(arguments: ["X-API-Key", "api-key", "X-Auth-Token", "X-Amz-Security-Token", "Cookie", "Authorization", "X-Session"])
    func `H5: a key or a redacted field of a route, a host or an interceptor requires encryption`(_ name: String) async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let log = ExchangeLog(redactedFields: ["X-Session"]) { _ in }
        let host = RemoteHost(HostConfiguration("a.example", scheme: .http), transport: memory).logging(to: log)
        let route = Route(path: "/x", headers: [name: "k"])
        #expect(try await remoteError { try await host.send(route) }.code == .insecureCredentials)
        let others = [host.with { $0.defaults.append(name, "k") }, host.intercepting(requests: Changing { try $0.fields.set(name, "k") })]
        for other in others { #expect(try await remoteError { try await other.send("/x") }.code == .insecureCredentials) }
        #expect(memory.requests.isEmpty)
        try await host.with { $0.allowsInsecureCredentials = true }.send(route)
        try await RemoteHost("a.example", transport: memory).send(route)
        try await RemoteHost(HostConfiguration("localhost", scheme: .http), transport: memory).send(route)
        #expect(memory.requests.count == 3)
    }
}
