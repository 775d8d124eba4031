internal import Foundation
internal import StoreCore
import StoreFiles
import StoreOutbox
import StoreCoreTesting
internal import Testing
internal import Trials

struct Like: Command, Hashable {
    static let name = "like"
    var post: Post.ID
}

private struct LikeWithoutEquality {
    // Command
    struct Like: Command {
        static let name = "like"
        var post: Post.ID
    }
}

private struct Memo: Codable, Sendable, Equatable {
    var text: String
}

private struct CreateMemo: Command {
    static let name = "create-memo"
    var id: String
    var text: String
}

private struct Comment: Command {
    static let name = "comment"
    var post: String
    var text: String

    func replacing(_ identifiers: IdentifierReplacement) -> Comment {
        var copy = self
        copy.post = identifiers[post]
        return copy
    }
}

private struct Draft: Command {
    static let name = "draft"
    var memo: String
    var text: String

    func supersedes(_ earlier: Draft) -> Bool { true }
}

private struct MemosAPI: Sendable {
    func create(_ text: String, idempotencyKey: UUID) async throws -> String { "42" }
    func save(_ memo: String, _ text: String, idempotencyKey: UUID) async throws {}
}

/// One launch of the app.
private struct App {
    let posts = Store<Post.ID, Post>(cacher: MemoryCacher()) { Post(id: $0) }
    let outbox: Outbox

    init(
        _ directory: URL, _ origin: ScriptedDeliveries<Like, Void>,
        _ time: ManualTime
    ) async throws {
        outbox = try Outbox(directory: directory, time: time)
        await outbox.register(
            Like.self, patching: posts, at: \.post,
            patch: { _, post in post.isLiked = true },
            perform: { try await origin.perform($0, $1) })
        outbox.start()
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ChangesThatSurviveTests {
    private let directory = temporaryURL()
    private let time = ManualTime()
    private let posts = Store<Post.ID, Post>(cacher: MemoryCacher()) { Post(id: $0) }

    @Test func `a like is shown at once and delivered once`() async throws {
        let (posts, directory) = (posts, directory)
        let api = AcceptingAPI()
        let outbox = try Outbox(directory: directory)
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, delivery in
            try await api.like(command.post, idempotencyKey: delivery.id)
        }
        outbox.start()
        try await outbox.submit(Like(post: 7))
        #expect(try await posts[7].requireData().isLiked)
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(api.keys.current.count == 1)
    }

    @Test func `a like of a post that is only in lists is shown there and delivered once`() async throws {
        let feeds = PaginationStore<String, Post>(cacher: MemoryCacher(), fetcher: PostFetcher())
        let (api, outbox) = (AcceptingAPI(), try Outbox(directory: directory))
        await outbox.register(Like.self, patching: feeds, element: \.post) { _, post in
            post.isLiked = true
        } perform: { command, delivery in
            try await api.like(command.post, idempotencyKey: delivery.id)
        }
        outbox.start()
        #expect(try await feeds["swift"].requireData().allSatisfy { !$0.isLiked })
        try await outbox.submit(Like(post: 7))
        #expect(try await feeds["swift"].requireData().map(\.isLiked) == [false, true])
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(try await feeds["swift"].requireData().map(\.isLiked) == [false, true])
        #expect(api.keys.current.count == 1)
    }

    private struct PostFetcher: PaginationFetcher {
        func fetch(param: String) async throws -> Page<Post> { Page([Post(id: 6), Post(id: 7)]) }
        func fetchNext(nextKey: String, param: String) async throws -> Page<Post> { Page([]) }
    }

    @Test func `a delivery is repeated under the same identity`() async throws {
        let outbox = try Outbox(directory: directory, time: time)
        let origin = ScriptedDeliveries<Like, Void>(
            .failure(URLError(.timedOut)), .success(()))
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, delivery in
            try await origin.perform(command, delivery)
        }
        outbox.start()
        try await outbox.submit(Like(post: 7))
        for await state in outbox.publish()
        where state.commands.first?.attempts == 1 { break }
        time.advance(by: .seconds(1))
        try await origin.ended(count: 2)
        #expect(Set(origin.deliveries.map(\.delivery.id)).count == 1)
    }

    @Test func `a like waits for the network, also after a restart`() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let origin = ScriptedDeliveries<Like, Void>(
            .failure(URLError(.timedOut)), .success(()))
        do {
            let app = try await App(directory, origin, time)
            try await app.outbox.submit(Like(post: 7))
            for await state in app.outbox.publish()
            where state.commands.first?.attempts == 1 { break }
        }
        origin.hold()
        let app = try await App(directory, origin, time)
        #expect(try await app.posts[7].requireData().isLiked)
        origin.release()
        #expect(await app.outbox.drain(until: .seconds(1)) == .drained)
        #expect(Set(origin.deliveries.map(\.delivery.id)).count == 1)
    }

    @Test func `a screen shows what was refused, and discards it`() async throws {
        #expect(try await Self.output() == [["not sent: refused"]])
    }

    static func output() async throws -> [[String]] {
        let directory = temporaryURL()
        let posts = Store<Post.ID, Post>(cacher: MemoryCacher()) { Post(id: $0) }
        let outbox = try Outbox(directory: directory)
        let origin = ScriptedDeliveries<Like, Void>(.failure(Refused()))
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, delivery in
            try await origin.perform(command, delivery)
        }
        try await outbox.submit(Like(post: 7))
        outbox.start()
        return try await tell { printed in
            for await state in outbox.pending(for: posts[7]) {
                for command in state.commands where command.status == .failed {
                    print("not sent: \(command.lastError ?? "")")
                    try await outbox.discard(command.id)
                }
                if state.commands.isEmpty { break }
            }
            return [printed.lines]
        }
    }

    @Test func `a stuck change is discarded, or given up by a policy`() async throws {
        var policy = OutboxPolicy()
        policy.attemptLimit = 20
        policy.ageLimit = .seconds(7 * 86_400)
        let api = AcceptingAPI()
        let posts = Store(
            cacher: MemoryCacher<Post.ID, Post>(), name: "posts"
        ) { id in
            try await api.post(id)
        }
        let outbox = try Outbox(directory: directory, policy: policy, time: time)
        let origin = ScriptedDeliveries<Like, Void>(.failure(URLError(.timedOut)))
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, delivery in
            try await origin.perform(command, delivery)
        }
        outbox.start()
        try await outbox.submit(Like(post: 7))
        for await state in outbox.publish()
        where state.commands.first?.attempts == 1 { break }
        let shown = try await tell { printed in
            for command in await outbox.commands() {
                switch try await outbox.discard(command.id) {
                case .discarded: print("discarded")
                case .perhapsPerformed: print("discarded, but perhaps performed")
                case .delivering: print("being delivered; try again")
                case .unknown: print("delivered meanwhile")
                }
            }
            return [printed.lines]
        }
        #expect(shown == [["discarded, but perhaps performed"]])
        #expect(await outbox.commands().isEmpty)
    }

    @Test func `a note is created under a temporary key`() async throws {
        let outbox = try Outbox(directory: directory)
        let memos = Store<String, Memo>(cacher: MemoryCacher()) { _ in throw Offline() }
        let api = MemosAPI()
        await outbox.register(CreateMemo.self, creating: memos, at: \.id) { command in
            Memo(text: command.text)
        } perform: { command, delivery in
            Created(try await api.create(command.text, idempotencyKey: delivery.id))
        }
        let id = UUID().uuidString
        try await outbox.submit(CreateMemo(id: id, text: "milk"))
        #expect(try await memos[id].requireData() == Memo(text: "milk"))
        outbox.start()
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        while await memos["42"].getData(from: .cache) == nil { await Task.yield() }
        #expect(try await memos[id].requireData() == Memo(text: "milk"))
    }

    @Test func `signing out sends what can be sent, and drops the rest`() async throws {
        let scope = CacheScope(directory: directory)
        let outbox = try Outbox(
            directory: scope.directory(named: "outbox"), scope: scope)
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, _ in
            if command.post == 7 { throw Refused() }
        }
        outbox.start()
        for post in [7, 8] { try await outbox.submit(Like(post: post)) }
        for await state in outbox.publish() where state.pendingCount == 0 { break }
        #expect(try await outbox.commands().map { try $0.value(as: Like.self).post } == [7])
        _ = await outbox.drain(until: .seconds(5))  // to send what can be sent
        try await scope.close(clearing: true)
        #expect(await outbox.commands().isEmpty)
        await #expect(throws: StoreError.self) { try await outbox.submit(Like(post: 9)) }
        #expect(try await posts[7].requireData().isLiked == false)
    }

    @Test func `a sign-in continues the deliveries`() async throws {
        let outbox = try Outbox(directory: directory)
        let origin = ScriptedDeliveries<Like, Void>(.failure(SignedOut()), .success(()))
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, delivery in
            try await origin.perform(command, delivery)
        }
        outbox.start()
        try await outbox.submit(Like(post: 7))
        for await state in outbox.publish() where state.isStopped { break }
        #expect(try await posts[7].requireData().isLiked)
        await outbox.resume()
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(Set(origin.deliveries.map(\.delivery.id)).count == 1)
    }

    @Test func `commands refer to identifiers and supersede each other`() {
        let comment = Comment(post: "t", text: "yes")
        #expect(comment.replacing(IdentifierReplacement(["t": "42"])).post == "42")
        #expect(Draft(memo: "1", text: "b").supersedes(Draft(memo: "1", text: "a")))
    }

    private struct Refused: Error, FailureAdvising, CustomStringConvertible {
        var failureKind: FailureKind { .permanent }
        var description: String { "refused" }
    }

    private struct SignedOut: Error, FailureAdvising {
        var failureKind: FailureKind { .fatal }
    }

    private struct AcceptingAPI: Sendable {
        let keys = Keys()

        func like(_ post: Post.ID, idempotencyKey: UUID) async throws { keys.add(idempotencyKey) }
        func post(_ id: Post.ID) async throws -> Post { Post(id: id) }
    }

    private final class Keys: Sendable {
        let printed = Printed()
        var current: [String] { printed.lines }

        func add(_ key: UUID) { printed.add("\(key)") }
    }
}
