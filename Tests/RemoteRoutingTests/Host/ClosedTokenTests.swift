import Foundation
import LoopbackOrigin
import RemoteRouting
import RemoteRoutingTesting
import StoreCore
import StoreFiles
import Testing
import Trials

/// Law C23 for credentials: no token of an earlier refresh is used or saved after the scope is closed or cleared.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ClosedTokenTests {
    /// A refresh that ignores its cancellation until the test opens it. Only the first one waits.
    private final class SlowRefresh: Sendable {
        let begun = WatchedState(0)
        let isOpen = WatchedState(false)
        /// The tokens that the app has received.
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

    /// A host whose server accepts one token.
    private func host(_ tokens: RefreshingTokens<Token>, accepting accepted: String = "new") -> RemoteHost {
        let memory = MemoryTransport { request in request.fields["Authorization"] == "Bearer \(accepted)" ? .json("[1]") : .status(401) }
        return RemoteHost("a.example", transport: memory).authorized(by: .bearer(tokens))
    }

    private let slow = SlowRefresh()
    private let scope = CacheScope()

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
        let tokens = RefreshingTokens(Token(accessToken: "old"), scope: scope, onRefresh: { [slow] in slow.save($0) }) { [slow] _, _ in
            try await slow.successor()
        }
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
        let tokens = RefreshingTokens(Token(accessToken: "old"), scope: scope, onRefresh: { [slow] in slow.save($0) }) { [slow] _, _ in
            try await slow.successor()
        }
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
        let tokens = RefreshingTokens(
            Token(accessToken: "first"), keptIn: FileCacher<String, Token>(directory: directory.url, sharing: .processes), scope: scope
        ) { [slow] _, _ in try await slow.successor() }
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
        let tokens = RefreshingTokens(
            Token(accessToken: "old"), keptIn: FileCacher<String, Token>(directory: directory.url, sharing: .processes), scope: scope
        ) { [slow] _, _ in try await slow.successor() }
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
