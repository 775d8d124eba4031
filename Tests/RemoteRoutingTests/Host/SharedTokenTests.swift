import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting
@testable import StoreCore
@testable import StoreFiles

@Suite(.timeLimit(.minutes(hangMinutes)))
struct SharedTokenTests {
    /// A server that accepts the newest access token, and each refresh token once. A second use signs the user out, as RFC 9700 asks.
    private final class Issuer: Sendable {
        struct State {
            var number = 1
            var refreshes = 0
            var isRevoked = false
            var failures = 0
            /// Whether the newest access token has expired.
            var isExpired = false
        }

        let state = Lock(State())

        func respond(to path: String, _ authorization: String?, _ body: Data?) throws -> (Int, String) {
            try state.withLock { state throws in
                guard path == "/tokens" else {
                    let isAccepted = authorization == "Bearer a\(state.number)" && !state.isRevoked && !state.isExpired
                    return isAccepted ? (200, "[1]") : (401, "")
                }
                state.refreshes += 1
                if state.failures > 0 {
                    state.failures -= 1
                    throw TransportFailure(.connectionLost, "lost")
                }
                guard body == Data("r\(state.number)".utf8), !state.isRevoked else {
                    state.isRevoked = true
                    return (400, "")
                }
                state.number += 1
                state.isExpired = false
                return (200, #"{"accessToken":"a\#(state.number)","refreshToken":"r\#(state.number)"}"#)
            }
        }

        var transport: MemoryTransport {
            MemoryTransport { [self] request in
                let body: Data? = if case .data(let data) = request.body { data } else { nil }
                let (status, json) = try respond(to: request.url.path, request.fields["Authorization"], body)
                return .json(json, status: status)
            }
        }
    }

    private let place: TemporaryDirectory
    private let issuer = Issuer()

    init() throws { place = try TemporaryDirectory() }

    /// Creates what one process has: a host, and tokens in the directory.
    private func user(_ token: Token) -> (RemoteHost, RefreshingTokens<Token>) {
        user(token, keptIn: cacher())
    }

    private func cacher() -> FileCacher<String, Token> { FileCacher(directory: place.url, sharing: .processes) }

    private func user(_ token: Token, keptIn cacher: some SharedCacher<String, Token>) -> (RemoteHost, RefreshingTokens<Token>) {
        let tokens = RefreshingTokens(token, keptIn: cacher) { current, host in
            try await host.send(Route(path: "/tokens", method: .post, body: .data(Data(current.refreshToken.utf8))), as: Token.self)
        }
        let host = RemoteHost("api.example.com", transport: issuer.transport).with { $0.retry = .never }
        return (host.authorized(by: .bearer(tokens)), tokens)
    }

    private let expired = Token(accessToken: "a0", refreshToken: "r1")

    @Test func `D11: a rotating token is refreshed once for all users of a place`() async throws {
        let users = (0..<4).map { _ in user(expired) }
        let tasks = users.flatMap { host, _ in (0..<8).map { _ in Task { try await host.send("/x", as: [Int].self) } } }
        for task in tasks { #expect(try await task.value == [1]) }
        #expect(issuer.state.withLock { $0.refreshes == 1 && !$0.isRevoked })
        #expect(users.allSatisfy { $0.1.current == Token(accessToken: "a2", refreshToken: "r2") })
    }

    @Test func `D11: processes refresh a rotating token once`() async throws {
        let origin = try LoopbackOrigin { [issuer] request in
            let answer = try? issuer.respond(to: request.path, request.headers["Authorization"], request.body)
            guard let (status, json) = answer else { return .status(500) }
            return .json(literal: json, status: status)
        }
        let client = try ChildProcess.path(of: "HostileClient")
        let processes = try (0..<3).map { _ in try ChildProcess(client, ["share", "\(origin.port)", place.url.path]) }
        for process in processes {
            #expect(try await process.nextLine() == "8 a2")
            #expect(try await process.ending() == 0)
        }
        #expect(issuer.state.withLock { $0.refreshes == 1 && !$0.isRevoked })
    }

    @Test func `D11: a user reads the place again before it refreshes, and begins with the kept token`() async throws {
        let (first, _) = user(expired)
        let (second, tokens) = user(expired)
        #expect(try await first.send("/x", as: [Int].self) == [1])
        // The second user has not read the place since, or never.
        #expect(try await second.send("/x", as: [Int].self) == [1])
        #expect(tokens.current.accessToken == "a2" && issuer.state.withLock(\.refreshes) == 1)
        // The next launch begins with the kept token, so no request is rejected.
        let (third, _) = user(expired)
        let (logged, entries) = third.logged()
        #expect(try await logged.send("/x", as: [Int].self) == [1])
        #expect(entries.current.compactMap { if case .received(let status, after: _) = $0.event { status } else { nil } } == [200])
    }

    @Test func `D11: a token that one user keeps after a sign-in reaches the others without a refresh`() async throws {
        let (first, tokens) = user(expired)
        let (second, _) = user(expired)
        #expect(try await second.send("/x", as: [Int].self) == [1])
        issuer.state.withLock { $0 = Issuer.State(number: 5) }
        try await tokens.keep(Token(accessToken: "a5", refreshToken: "r5"))
        for host in [first, second] { #expect(try await host.send("/x", as: [Int].self) == [1]) }
        #expect(issuer.state.withLock { $0.refreshes == 0 && !$0.isRevoked })
    }

    @Test func `D11: a sign-in of one user ends the refused refresh of another`() async throws {
        let (_, tokens) = user(expired)
        let (second, _) = user(expired)
        issuer.state.withLock { $0.isRevoked = true }
        for _ in 1...2 { #expect(try await remoteError { try await second.send("/x") }.code == .refreshFailed) }
        #expect(issuer.state.withLock(\.refreshes) == 1)
        issuer.state.withLock { $0 = Issuer.State(number: 5) }
        try await tokens.keep(Token(accessToken: "a5", refreshToken: "r5"))
        #expect(try await second.send("/x", as: [Int].self) == [1])
        #expect(issuer.state.withLock { $0.refreshes == 0 && !$0.isRevoked })
    }

    @Test func `D11: a kept token that the server rejects as well is refreshed in the same call`() async throws {
        let (host, tokens) = user(Token(accessToken: "a1", refreshToken: "r1"))
        #expect(try await host.send("/x", as: [Int].self) == [1])
        // Another user has refreshed the token since then, and that one has expired, too.
        let (_, others) = user(expired)
        try await others.keep(Token(accessToken: "a2", refreshToken: "r2"))
        issuer.state.withLock { $0 = Issuer.State(number: 2, isExpired: true) }
        #expect(try await host.send("/x", as: [Int].self) == [1])
        #expect(tokens.current == Token(accessToken: "a3", refreshToken: "r3"))
        #expect(issuer.state.withLock { $0.refreshes == 1 && !$0.isRevoked })
        // A refused refresh is final.
        issuer.state.withLock { $0.isRevoked = true }
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .refreshFailed, "\(error)")
    }

    @Test func `D11: a token that could not be saved is not exchanged for the one that it has replaced`() async throws {
        let (host, tokens) = user(expired, keptIn: SilentPlace(base: cacher(), isOpen: WatchedState(true), isFull: true))
        try await tokens.keep(expired)
        for token in ["a2", "a3"] {
            issuer.state.withLock { $0.isExpired = true }
            #expect(try await host.send("/x", as: [Int].self) == [1])
            #expect(tokens.current.accessToken == token)
        }
        #expect(issuer.state.withLock { $0.refreshes == 2 && !$0.isRevoked })
    }

    @Test func `D11: a token that replaces the shared one in one process is not exchanged for that of another user`() async throws {
        let (host, tokens) = user(expired)
        #expect(try await host.send("/x", as: [Int].self) == [1])
        // Another user signs in, in this process only, and is signed out by the server.
        tokens.replace(by: Token(accessToken: "b0", refreshToken: "b"))
        #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
        #expect(tokens.current.accessToken == "b0")
        issuer.state.withLock { $0 = Issuer.State(number: 5) }
        try await tokens.keep(Token(accessToken: "a4", refreshToken: "r5"))
        #expect(try await host.send("/x", as: [Int].self) == [1])
        let (other, _) = user(expired)
        #expect(try await other.send("/x", as: [Int].self) == [1])
        #expect(issuer.state.withLock { $0.refreshes == 1 && !$0.isRevoked })
    }

    @Test func `D11: a token that replaces one that is being kept is not exchanged for it`() async throws {
        let (isOpen, saves) = (WatchedState(true), WatchedState(0))
        let silent = SilentPlace(base: cacher(), isOpen: isOpen, saves: saves)
        let token = Token(accessToken: "a1", refreshToken: "r1")
        let tokens = RefreshingTokens(token, keptIn: silent) { _, _ in throw CocoaError(.featureUnsupported) }
        let host = RemoteHost("api.example.com", transport: issuer.transport).with { $0.retry = .never }.authorized(by: .bearer(tokens))
        #expect(try await host.send("/x", as: [Int].self) == [1])
        // One user signs in, and the next one before the place has saved the first token.
        isOpen.update { $0 = false }
        let keeping = Task { try await tokens.keep(token) }
        try await saves.wait { $0 > 0 ? () : nil }
        tokens.replace(by: Token(accessToken: "b0", refreshToken: "b"))
        isOpen.update { $0 = true }
        try await keeping.value
        #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
        #expect(tokens.current.accessToken == "b0")
    }

    @Test func `D11: a token that was refreshed while it was being kept is not exchanged for the kept one`() async throws {
        let (isOpen, saves) = (WatchedState(true), WatchedState(0))
        let silent = SilentPlace(base: cacher(), isOpen: isOpen, saves: saves)
        let (host, tokens) = user(Token(accessToken: "a1", refreshToken: "r1"), keptIn: silent)
        #expect(try await host.send("/x", as: [Int].self) == [1])
        isOpen.update { $0 = false }
        issuer.state.withLock { $0 = Issuer.State(number: 5) }
        let keeping = Task { try await tokens.keep(Token(accessToken: "a4", refreshToken: "r5")) }
        try await saves.wait { $0 > 0 ? () : nil }
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await until("the token is refreshed") { issuer.state.withLock(\.refreshes) == 1 }
        isOpen.update { $0 = true }
        try await keeping.value
        #expect(try await request.value == [1])
        issuer.state.withLock { $0.isExpired = true }
        #expect(try await host.send("/x", as: [Int].self) == [1])
        #expect(tokens.current.accessToken == "a7")
        #expect(issuer.state.withLock { $0.refreshes == 2 && !$0.isRevoked })
    }

    /// A place that neither reads nor saves anything for a sign-in before it is open, and may have no space for the results of refreshes.
    private struct SilentPlace: SharedCacher {
        let base: FileCacher<String, Token>
        let isOpen: WatchedState<Bool>
        var saves = WatchedState(0)
        /// Whether the results of refreshes cannot be saved, and whether no lease can be taken.
        var isFull = false
        var isBroken = WatchedState(false)

        var expiry: Expiry { base.expiry }
        var position: Revision { base.position }

        func load(param: String) async throws -> CacheRecord<Token>? {
            _ = try await isOpen.wait { $0 ? true : nil }
            return try await base.load(param: param)
        }

        func save(_ record: CacheRecord<Token>, param: String) async throws {
            saves.update { $0 += 1 }
            _ = try await isOpen.wait { $0 ? true : nil }
            try await base.save(record, param: param)
        }

        func remove(param: String) async throws { try await base.remove(param: param) }
        func removeAll() async throws { try await base.removeAll() }

        func observeChanges(_ observer: @escaping @Sendable (_ change: CacherChange<String>) -> Void) -> ChangeObservation {
            base.observeChanges(observer)
        }

        func save(_ record: CacheRecord<Token>, param: String, over revision: Revision) async throws -> SaveOutcome<Token> {
            if isFull { throw CocoaError(.fileWriteOutOfSpace) }
            return try await base.save(record, param: param, over: revision)
        }

        func remove(param: String, over revision: Revision) async throws -> SaveOutcome<Token> {
            try await base.remove(param: param, over: revision)
        }

        func lease(_ param: String, for duration: Duration) async throws -> LeaseOutcome {
            if isBroken.current { throw CocoaError(.fileWriteUnknown) }
            return try await base.lease(param, for: duration)
        }
    }

    @Test func `H6, D11: a place that does not respond delays neither the deadline of a call nor its cancellation`() async throws {
        let isOpen = WatchedState(false)
        let silent = SilentPlace(base: cacher(), isOpen: isOpen)
        let tokens = RefreshingTokens(Token(accessToken: "a1", refreshToken: "r1"), keptIn: silent) { current, _ in current }
        let time = ManualTime()
        let transport = issuer.transport
        let host = RemoteHost("api.example.com", transport: transport, time: time).with {
            $0.retry = .never
            $0.timeouts = .init(overall: .seconds(5))
        }.authorized(by: .bearer(tokens))
        let late = Task { try await host.send("/x", as: [Int].self) }
        try await time.advance(by: .seconds(6), sleepers: 1)
        #expect(try await remoteError { _ = try await late.value(of: "the late call ends") }.code == .overallTimedOut)
        let canceled = Task { try await host.send("/x", as: [Int].self) }
        canceled.cancel()
        #expect(try await remoteError { _ = try await canceled.value(of: "the canceled call ends") }.code == .cancelled)
        #expect(transport.requests.isEmpty)
        isOpen.update { $0 = true }
        #expect(try await host.send("/x", as: [Int].self) == [1])
    }

    @Test func `D11: a refresh that fails transiently for one user does not sign the others out`() async throws {
        issuer.state.withLock { $0.failures = 1 }
        let own = cacher()
        let ((first, _), (second, _)) = (user(expired, keptIn: own), user(expired))
        let error = try await remoteError { try await first.send("/x") }
        #expect(error.code == .refreshFailed && error.failureKind == .transient)
        // A user that waits for the lease while it ends shares the failure.
        await own.settle()
        #expect(try await second.send("/x", as: [Int].self) == [1])
        #expect(try await first.send("/x", as: [Int].self) == [1])
        #expect(issuer.state.withLock { $0.refreshes == 2 && !$0.isRevoked })
    }

    @Test func `D11: a place that fails does not sign the user out`() async throws {
        let isBroken = WatchedState(true)
        let (host, tokens) = user(expired, keptIn: SilentPlace(base: cacher(), isOpen: WatchedState(true), isBroken: isBroken))
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .refreshFailed && error.failureKind == .transient)
        isBroken.update { $0 = false }
        #expect(try await host.send("/x", as: [Int].self) == [1])
        #expect(tokens.current.accessToken == "a2")
    }

    @Test func `D11: the failure of the user that refreshes is that of the users that wait, with the kind of its cause`() async throws {
        let (own, other) = (cacher(), cacher())
        let place = CredentialPlace(cacher: own, name: "token", leaseDuration: hangLimit) { $0 == $1 }
        guard case .granted(let lease) = try await own.lease("token", for: hangLimit) else {
            Issue.record("the lease was not granted")
            return
        }
        let waiting = CredentialPlace(cacher: other, name: "token", leaseDuration: hangLimit) { $0 == $1 }
        let waiter = Task { [expired] in try await waiting.successor(of: expired, at: .system) { $0 } }
        try await until("the other user waits") { other.shared?.leaseEvents.current.waited.count == 1 }
        lease.end(
            .failed(FetchFailedElsewhere(failureKind: .transient, retryAfter: nil, allowsStale: false, message: "no network")))
        let failure = await #expect(throws: FetchFailedElsewhere.self) { try await waiter.value }
        #expect(failure?.passesByItself == true)
        #expect(try await place.load() == nil)
    }
}

/// Law C23 for credentials: no token of an earlier refresh is used or saved after the scope is closed or cleared.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ClosedTokenTests {
    /// A refresh that ignores its cancellation until the test opens it. Only the first one waits.
    private final class SlowRefresh: Sendable {
        let begun = WatchedState(0)
        let isOpen = WatchedState(false)
        let saved = WatchedState<[String]>([])

        func save(_ token: Token) { saved.update { $0.append(token.accessToken) } }

        func successor() async throws -> Token {
            let number = begun.update { begun in
                begun += 1
                return begun
            }
            guard number == 1 else { return Token(accessToken: "new") }
            try await Task { [isOpen] in try await isOpen.wait { $0 ? () : nil } }.value
            return Token(accessToken: "late")
        }
    }

    private func host(_ tokens: RefreshingTokens<Token>, accepting accepted: String = "new") -> RemoteHost {
        let memory = MemoryTransport { request in request.fields["Authorization"] == "Bearer \(accepted)" ? .json("[1]") : .status(401) }
        return RemoteHost("a.example", transport: memory).authorized(by: .bearer(tokens))
    }

    private let slow = SlowRefresh()
    private let scope = CacheScope()

    /// Tokens with the slow refresh.
    private var tokens: RefreshingTokens<Token> {
        RefreshingTokens(Token(accessToken: "old"), scope: scope, onRefresh: { [slow] in slow.save($0) }) { [slow] _, _ in
            try await slow.successor()
        }
    }

    private func sharedTokens(_ token: String, in directory: TemporaryDirectory) -> RefreshingTokens<Token> {
        let cacher = FileCacher<String, Token>(directory: directory.url, sharing: .processes)
        return RefreshingTokens(Token(accessToken: token), keptIn: cacher, scope: scope) { [slow] _, _ in try await slow.successor() }
    }

    @Test(arguments: RealTransport.available, [false, true])
    func `C23, H5: closing a scope ends a running refresh, and refuses later requests`(
        _ transport: RealTransport, _ clearing: Bool
    ) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/x") { $0["Authorization"] == "Bearer new" ? .json([1]) : .status(401) }
        let isOpen = WatchedState(false)
        bench.on("POST", "/refresh", behind: isOpen, .json(Token(accessToken: "new")))
        let tokens = RefreshingTokens(Token(accessToken: "old"), scope: scope, onRefresh: { [slow] in slow.save($0) }) {
            _, unauthenticated in
            try await unauthenticated.send("/refresh", method: .post)
        }
        let host = bench.host().authorized(by: .bearer(tokens))
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await bench.origin.waitForRequests(count: 1, to: "/refresh")
        // The server has not responded, so only the cancellation ends the refresh.
        try await scope.close(clearing: clearing)
        isOpen.update { $0 = true }
        let error = try await remoteError { _ = try await request.value }
        #expect(error.code == .refreshFailed && (error.underlyingError as? StoreError)?.code == .closed)
        let count = bench.asked("/x").count
        tokens.replace(by: Token(accessToken: "new"))
        let keeping = await #expect(throws: StoreError.self) { try await tokens.keep(Token(accessToken: "new")) }
        #expect(keeping?.code == .closed)
        for method in [HTTPMethod.get, .post] {
            let error = try await remoteError { try await host.send(Route(path: "/x", method: method)) }
            #expect(error.code == .refreshFailed && error.failureKind == .cancelled && !error.isRetryable)
        }
        #expect(bench.asked("/x").count == count && tokens.current.accessToken == "old" && slow.saved.current.isEmpty)
    }

    @Test func `C23: closing fails the waiting requests at once, and waits for a refresh that ignores its cancellation`() async throws {
        let host = host(tokens)
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await slow.begun.wait { $0 == 1 ? () : nil }
        let hasReturned = WatchedState(false)
        let closing = Task { [scope] in
            try await scope.close(clearing: true)
            hasReturned.update { $0 = true }
        }
        #expect(try await remoteError { _ = try await request.value }.code == .refreshFailed)
        await otherTasksRun()
        #expect(!hasReturned.current)
        slow.isOpen.update { $0 = true }
        try await closing.value
        #expect(slow.saved.current.isEmpty)
    }

    @Test(arguments: [false, true])
    func `C23: a refresh that closes its scope does not wait for itself`(_ clearing: Bool) async throws {
        let closed = WatchedState(false)
        let tokens = RefreshingTokens(Token(accessToken: "old"), scope: scope, onRefresh: { [slow] in slow.save($0) }) { [scope] _, _ in
            try await scope.close(clearing: clearing)
            closed.update { $0 = true }
            return Token(accessToken: "new")
        }
        let host = host(tokens)
        // The refresh belongs to the task of a fetch, and a request without a store waits for it too.
        let store = Store(cacher: MemoryCacher<Int, [Int]>(), scope: scope) { _ in try await host.send("/x", as: [Int].self) }
        let fetch = Task { try await store[1].requireData() }
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await closed.wait { $0 ? () : nil }
        await #expect(throws: StoreError.self) { try await fetch.value }
        #expect(try await remoteError { _ = try await request.value }.code == .refreshFailed)
        try await scope.close(clearing: clearing)
        #expect(slow.saved.current.isEmpty && tokens.current.accessToken == "old")
    }

    @Test func `C23: tokens of a scope that is closed already are closed`() async throws {
        try await scope.close()
        let host = host(RefreshingTokens(Token(accessToken: "new"), scope: scope) { current, _ in current })
        #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
    }

    @Test func `C23, H5: clearing a scope drops the result of a running refresh, and the token stays in use`() async throws {
        let tokens = self.tokens
        let host = host(tokens)
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await slow.begun.wait { $0 == 1 ? () : nil }
        try await scope.clear()
        let error = try await remoteError { _ = try await request.value }
        #expect(error.code == .refreshFailed && error.failureKind == .transient)
        slow.isOpen.update { $0 = true }
        await otherTasksRun()
        #expect(tokens.current.accessToken == "old")
        // The next 401 refreshes again.
        #expect(try await host.send("/x", as: [Int].self) == [1])
        // Waits for the dropped refresh too.
        try await scope.close()
        #expect(slow.saved.current == ["new"])
    }

    @Test(arguments: [false, true])
    func `C23, D11: a refresh that ends after its scope changes no place, and clearing removes the token`(_ clearing: Bool) async throws {
        let directory = try TemporaryDirectory()
        let tokens = sharedTokens("first", in: directory)
        try await tokens.keep(Token(accessToken: "old"))
        let host = host(tokens)
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await slow.begun.wait { $0 == 1 ? () : nil }
        let closing = Task { [scope] in try await scope.close(clearing: clearing) }
        #expect(try await remoteError { _ = try await request.value }.code == .refreshFailed)
        slow.isOpen.update { $0 = true }
        try await closing.value
        let other = FileCacher<String, Token>(directory: directory.url, sharing: .processes)
        #expect(try await other.load(param: "token")?.content.accessToken == (clearing ? nil : "old"))
        // The place belongs to the next user now.
        try await other.save(CacheRecord(content: Token(accessToken: "next"), fetchedAt: Date()), param: "token")
        if clearing {
            try await scope.close(clearing: true)
            #expect(try await other.load(param: "token")?.content.accessToken == "next")
        }
        try FileManager.default.removeItem(at: directory.url)
        #expect(try await remoteError { try await host.send("/x") }.code == .refreshFailed)
        await #expect(throws: StoreError.self) { try await tokens.keep(Token(accessToken: "old")) }
        try await scope.close(clearing: true)
        #expect(!FileManager.default.fileExists(atPath: directory.url.path))
    }

    @Test func `D11: a refresh for the former user does not replace the token that is kept meanwhile`() async throws {
        let directory = try TemporaryDirectory()
        let tokens = sharedTokens("old", in: directory)
        let host = host(tokens, accepting: "next")
        let request = Task { try await host.send("/x", as: [Int].self) }
        try await slow.begun.wait { $0 == 1 ? () : nil }
        try await tokens.keep(Token(accessToken: "next"))
        slow.isOpen.update { $0 = true }
        #expect(try await request.value == [1])
        // The lease of the refresh ends after any save of its result.
        let other = FileCacher<String, Token>(directory: directory.url, sharing: .processes)
        _ = try await other.lease("token", for: hangLimit)
        #expect(try await other.load(param: "token")?.content.accessToken == "next")
        #expect(tokens.current.accessToken == "next")
    }
}
