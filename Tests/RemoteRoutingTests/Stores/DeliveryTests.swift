import Foundation
import LoopbackOrigin
import RemoteRouting
import RemoteRoutingTesting
import StoreCore
import StoreOutbox
import StoreCoreTesting
import Testing
import Trials

/// Routes as the deliveries of an outbox, against a real origin.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct DeliveryTests {
    @Test(arguments: RealTransport.available)
    func `O4, H7: every attempt carries the identity of the command, and the outbox alone repeats it`(_ transport: RealTransport)
        async throws
    {
        let desk = try await Desk(transport)
        desk.bench.on("POST", "/likes/7", inTurn: .status(503), .status(204))
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded("attempt 1 failed")
        // The host makes three attempts of its other calls.
        #expect(desk.bench.asked.count == 1)
        desk.time.advance(by: .seconds(1))
        try await desk.recorded("delivered")
        let keys = desk.bench.asked.map { $0["Idempotency-Key"] }
        #expect(keys.count == 2 && Set(keys).count == 1)
        #expect(keys[0]?.wholeMatch(of: /"[0-9A-F-]{36}"/) != nil)
    }

    @Test(
        arguments: RealTransport.available,
        [
            (400, "failed"), (401, "stopped"), (403, "failed"), (404, "failed"), (408, "attempt 1 failed"), (409, "attempt 1 failed"),
            (410, "failed"), (412, "failed"), (422, "failed"), (425, "attempt 1 failed"), (429, "attempt 1 failed"),
            (500, "attempt 1 failed"), (501, "failed"), (502, "attempt 1 failed"), (503, "attempt 1 failed"), (504, "attempt 1 failed"),
            (507, "attempt 1 failed"), (529, "attempt 1 failed"),
        ])
    func `O5: a status refuses the change, defers it, or stops all lanes`(
        _ transport: RealTransport, _ way: (status: Int, event: String)
    ) async throws {
        let desk = try await Desk(transport)
        desk.bench.on("POST", "/likes/7") { _ in .status(way.status) }
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded(way.event)
        let state = try await desk.state()
        #expect(state.failedCount == (way.event == "failed" ? 1 : 0))
        #expect(state.pendingCount == (way.event == "failed" ? 0 : 1))
        #expect(state.isStopped == (way.event == "stopped"))
        // A refused change is taken back alone; all others stay visible.
        #expect(try await desk.posts[7].requireData().isLiked == (way.event != "failed"))
    }

    @Test(arguments: RealTransport.available, [403, 409, 413, 429, 503])
    func `O5: the delay of Retry-After is the delay of the next attempt`(_ transport: RealTransport, _ status: Int) async throws {
        let desk = try await Desk(transport)
        desk.bench.on("POST", "/likes/7", inTurn: .status(status).adding("Retry-After", "700"), .status(204))
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded("attempt 1 failed")
        let delays = desk.events.current.compactMap { if case .deferred(_, let delay, _) = $0.kind { delay } else { nil } }
        #expect(delays == [.seconds(700)])
        desk.time.advance(by: .seconds(699))
        try await desk.outbox.submit(Like(post: 8))
        try await desk.recorded("submitted", count: 2)
        #expect(desk.bench.asked("/likes/7").count == 1)
        desk.time.advance(by: .seconds(1))
        try await desk.bench.origin.waitForRequests(count: 2, to: "/likes/7")
        try await desk.recorded("delivered")
    }

    @Test(arguments: RealTransport.available)
    func `O5: a conflict with the first request of the same key is repeated until that request is done`(_ transport: RealTransport)
        async throws
    {
        let desk = try await Desk(transport)
        let performed = Lock<Set<String>>([])
        let isSlow = Lock(true)
        // The origin performs the first request, loses the response, and says for a while that the request still runs.
        desk.bench.on("POST", "/likes/7") { asked in
            let key = asked["Idempotency-Key"] ?? ""
            if performed.withLock({ $0.insert(key).inserted }) { return LoopbackOrigin.Response().misbehaving(.resetBeforeHead) }
            return isSlow.withLock { $0 } ? .problem(409, "A request is outstanding for this Idempotency-Key") : .status(204)
        }
        try await desk.outbox.submit(Like(post: 7))
        for attempt in 1...3 {
            try await desk.recorded("attempt \(attempt) failed")
            if attempt == 3 { isSlow.withLock { $0 = false } }
            desk.time.advance(by: .seconds(10))
        }
        try await desk.recorded("delivered")
        #expect(performed.withLock { $0.count } == 1)
        #expect(desk.bench.asked.count == 4)
    }

    @Test(arguments: RealTransport.available)
    func `O5: an origin that is down defers the change until it is back`(_ transport: RealTransport) async throws {
        let desk = try await Desk(transport)
        desk.bench.on("POST", "/likes/7") { _ in .status(204) }
        desk.bench.origin.goDown()
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded("attempt 1 failed")
        #expect(try await desk.posts[7].requireData().isLiked)
        try desk.bench.origin.comeBack()
        desk.time.advance(by: .seconds(1))
        try await desk.recorded("delivered")
    }

    @Test(arguments: RealTransport.available, [true, false])
    func `O5: a deadline defers the change, also that of the whole call`(_ transport: RealTransport, _ isOverall: Bool) async throws {
        let desk = try await Desk(transport) { host in
            host.timeouts = isOverall ? .init(overall: .seconds(30)) : .init(head: .seconds(30))
        }
        desk.bench.on("POST", "/likes/7") { _ in .status(204).misbehaving(.neverAnswer) }
        try await desk.outbox.submit(Like(post: 7))
        try await desk.bench.origin.waitForRequests(count: 1)
        // The deadline of the head begins with the last byte, which the origin receives before the transport notes it.
        try await until("the attempt failed") {
            desk.time.advance(by: .seconds(10))
            return desk.count("attempt 1 failed") > 0
        }
        #expect(try await desk.state().failedCount == 0)
    }

    @Test(arguments: RealTransport.available)
    func `O5, H5: new credentials are no failure, and refused ones stop all lanes until the user signs in`(_ transport: RealTransport)
        async throws
    {
        let tokens = RefreshingTokens(Token(accessToken: "old")) { _, host in try await host.send("/tokens", method: .post) }
        let desk = try await Desk(transport) { $0 = $0.authorized(by: .bearer(tokens)) }
        desk.bench.on("POST", "/tokens", inTurn: .json(["accessToken": "new", "refreshToken": "r"]), .status(403))
        let valid = Lock("Bearer new")
        for post in 7...8 {
            desk.bench.on("POST", "/likes/\(post)") { asked in .status(asked["Authorization"] == valid.withLock { $0 } ? 204 : 401) }
        }
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded("delivered")
        valid.withLock { $0 = "Bearer third" }
        try await desk.outbox.submit(Like(post: 8))
        try await desk.recorded("stopped")
        #expect(try await desk.posts[8].requireData().isLiked)
        tokens.replace(by: Token(accessToken: "third"))
        await desk.outbox.resume()
        try await desk.recorded("delivered", count: 2)
    }

    @Test(arguments: RealTransport.available)
    func `O5, C23: a command stays pending if its credentials belong to a closed scope`(_ transport: RealTransport) async throws {
        let scope = CacheScope()
        let tokens = RefreshingTokens(Token(accessToken: "old"), scope: scope) { current, _ in current }
        let desk = try await Desk(transport) { $0 = $0.authorized(by: .bearer(tokens)) }
        try await scope.close()
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded("attempt 1 failed")
        let state = try await desk.state()
        #expect(state.failedCount == 0 && state.pendingCount == 1 && !state.isStopped)
        #expect(desk.bench.asked.isEmpty)
    }

    @Test(arguments: RealTransport.available)
    func `O7: the decoded response replaces the content and the patch`(_ transport: RealTransport) async throws {
        let desk = try await Desk(transport, registers: false)
        await desk.outbox.register(
            Like.self, patching: desk.posts, at: \.post, patch: { _, post in post.isLiked = true },
            perform: desk.host.delivery(returning: Post.self) { Blog.like($0.post) })
        desk.bench.on("POST", "/likes/7") { _ in .json(Post(id: 7, isLiked: true, likes: 42)) }
        try await desk.outbox.submit(Like(post: 7))
        try await desk.recorded("delivered")
        // Reads only the cache: a fetch that began after the delivery would be newer than its response.
        try await until("the response is the content") { (try? await desk.posts[7].requireData(from: .cache).likes) == 42 }
    }

    @Test(arguments: RealTransport.available)
    func `O8: the key in the response replaces the temporary key`(_ transport: RealTransport) async throws {
        let desk = try await Desk(transport, registers: false)
        await desk.outbox.register(
            CreatePost.self, creating: desk.posts, at: \.id,
            content: { Post(id: $0.id, isLiked: false, likes: 0) },
            perform: desk.host.delivery(creating: Post.self, key: \.id) { _ in Blog.create })
        await desk.registerLikes()
        desk.bench.on("POST", "/posts") { _ in .json(Post(id: 42, isLiked: false, likes: 1)) }
        desk.bench.on("POST", "/likes/42") { _ in .status(204) }
        try await desk.outbox.submit(CreatePost(id: -1))
        try await desk.outbox.submit(Like(post: -1))
        try await desk.recorded("delivered", count: 2)
        #expect(desk.bench.asked.map(\.path) == ["/posts", "/likes/42"])
        try await until("the post has its key") { try await desk.posts[42].requireData(from: .cache).likes == 1 }
    }

    @Test(arguments: RealTransport.available)
    func `O5: the text of a refusal is kept across a restart`(_ transport: RealTransport) async throws {
        let desk = try await Desk(transport, registers: false)
        func register(_ outbox: Outbox) async {
            await outbox.register(
                Like.self, patching: desk.posts, at: \.post, patch: { _, post in post.isLiked = true },
                perform: desk.host.delivery {
                    Blog.like($0.post)
                } explaining: {
                    $0.problem?.title
                })
        }
        await register(desk.outbox)
        desk.bench.on("POST", "/likes/7") { _ in .problem(422, "The post is closed\u{1B}[2J") }
        desk.bench.on("POST", "/likes/8") { _ in .status(422) }
        try await desk.outbox.submit(Like(post: 7))
        try await desk.outbox.submit(Like(post: 8))
        try await desk.recorded("failed", count: 2)
        let again = try Outbox(directory: desk.directory)
        await register(again)
        let errors = await again.commands().map { $0.lastError ?? "" }
        // The text may be written to a terminal.
        #expect(errors.first == "The post is closed\\u{1B}[2J")
        #expect(errors.last?.hasPrefix("RemoteError.badStatus (status): POST http://127.0.0.1") == true)
    }

    @Test(arguments: RealTransport.available)
    func `O5: a file that changes while its delivery waits refuses no change`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "POST", "/likes/7") { _ in .status(204) }
        let file = temporaryURL()
        try Data("one".utf8).write(to: file)
        let host = bench.host().intercepting(requests: Changing { _ in try Data("second".utf8).write(to: file) })
        let route = Route(path: "/likes/7", method: .post, body: .file(file))
        let error = try await remoteError { try await host.send(route, idempotencyKey: UUID()) }
        #expect(error.code == .bodyUnreadable && error.failureKind == .transient && !error.isRetryable)
    }

    @Test func `O5: a file that cannot be opened, and credentials that cannot be sent, refuse no change`() async throws {
        let host = RemoteHost("a.example", transport: MemoryTransport { _ in .status(204) })
        let file = temporaryURL()
        func kind(_ host: RemoteHost, _ body: RouteBody) async throws -> FailureKind {
            let route = Route(path: "/likes/7", method: .post, body: body)
            return try await remoteError { try await host.send(route, idempotencyKey: UUID()) }.failureKind
        }
        #expect(try await kind(host, .file(file)) == .permanent)
        // A link to itself cannot be opened.
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: file)
        #expect(try await kind(host, .file(file)) == .transient)
        #expect(try await kind(host, .multipart([.file("a", at: file)])) == .transient)
        #expect(try await kind(host.authorized(by: .bearer("a\n")), .none) == .fatal)
        #expect(try await kind(host.authorized(by: .basic(user: "a:b", password: "c")), .none) == .fatal)
    }

    @Test(arguments: RealTransport.available)
    func `H7: the kind of a failure does not change what a host repeats`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "POST", "/likes/7") { _ in .status(409) }
        let error = try await remoteError { try await bench.host().send(Blog.like(7), idempotencyKey: UUID()) }
        #expect(error.attempts == 1 && error.failureKind == .transient && !error.isRetryable)
        #expect(try await remoteError { try await bench.host().send(Blog.like(7)) }.failureKind == .permanent)
    }
}

private struct Post: Codable, Equatable, Sendable {
    var id: Int
    var isLiked: Bool
    var likes: Int
}

private struct Like: Command {
    static let name = "like"
    var post: Int

    func replacing(_ identifiers: IdentifierReplacement) -> Like { Like(post: identifiers[post]) }
}

private struct CreatePost: Command {
    static let name = "create-post"
    var id: Int
}

private enum Blog: Routable {
    case like(Int), create

    var method: HTTPMethod { .post }
    var path: RoutePath {
        switch self {
        case .like(let post): "/likes/\(post)"
        case .create: "/posts"
        }
    }
}

/// An outbox that delivers likes to the origin of a bench.
private final class Desk: Sendable {
    let bench: Bench
    let time = ManualTime()
    let directory = temporaryURL()
    let host: RemoteHost
    let posts = Store<Int, Post>(cacher: MemoryCacher()) { Post(id: $0, isLiked: false, likes: 0) }
    let outbox: Outbox
    let events: WatchedState<[OutboxEvent]>

    init(_ transport: RealTransport, registers: Bool = true, _ change: (inout RemoteHost) -> Void = { _ in }) async throws {
        let bench = try Bench(transport.kind)
        self.bench = bench
        host = bench.host(time: time) { host in
            // Only the outbox may sleep.
            host.timeouts = .init()
            change(&host)
        }
        let events = WatchedState<[OutboxEvent]>([])
        self.events = events
        var policy = OutboxPolicy()
        // A deadline of the host comes first.
        policy.attemptTimeout = .seconds(1_000_000)
        outbox = try Outbox(directory: directory, policy: policy, time: time) { event in events.update { $0.append(event) } }
        if registers { await registerLikes() }
        outbox.start()
    }

    func registerLikes() async {
        await outbox.register(
            Like.self, patching: posts, at: \.post, patch: { _, post in post.isLiked = true }, perform: host.delivery { Blog.like($0.post) }
        )
    }

    /// Waits for an event whose description begins with this text.
    func recorded(_ text: String, count: Int = 1) async throws {
        try await events.wait { events in events.count { "\($0.kind)".hasPrefix(text) } >= count ? () : nil }
    }

    func count(_ text: String) -> Int { events.current.count { "\($0.kind)".hasPrefix(text) } }

    func state() async throws -> OutboxState {
        for await state in outbox.publish() { return state }
        throw CancellationError()
    }
}
