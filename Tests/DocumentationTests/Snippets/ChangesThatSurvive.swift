internal import Foundation
internal import StoreCore
import StoreFiles
import StoreOutbox
import StoreCoreTesting
internal import Testing
internal import Trials

//: ChangesThatSurvive.md: struct Like: Command

private struct LikeWithoutEquality {
    //: Command.swift: struct Like: Command
}

private struct Memo: Codable, Sendable, Equatable {
    var text: String
}

//: ChangesThatSurvive.md: struct CreateMemo

private struct Comment: Command {
    static let name = "comment"
    var post: String
    var text: String

    //: ChangesThatSurvive.md: func replacing
}

private struct Draft: Command {
    static let name = "draft"
    var memo: String
    var text: String

    //: ChangesThatSurvive.md: func supersedes
}

private struct MemosAPI: Sendable {
    func create(_ text: String, idempotencyKey: UUID) async throws -> String { "42" }
    func save(_ memo: String, _ text: String, idempotencyKey: UUID) async throws {}
}

//: ChangesThatSurvive.md: /// One launch of the app

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ChangesThatSurviveTests {
    private let directory = temporaryURL()
    private let time = ManualTime()
    private let posts = Store<Post.ID, Post>(cacher: MemoryCacher()) { Post(id: $0) }

    @Test func `a like is shown at once and delivered once`() async throws {
        let (posts, directory) = (posts, directory)
        let api = AcceptingAPI()
        //: ChangesThatSurvive.md: let outbox = try
        #expect(try await posts[7].requireData().isLiked)
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(api.keys.current.count == 1)
    }

    @Test func `a like of a post that is only in lists is shown there and delivered once`() async throws {
        let feeds = PaginationStore<String, Post>(cacher: MemoryCacher(), fetcher: PostFetcher())
        let (api, outbox) = (AcceptingAPI(), try Outbox(directory: directory))
        //: ChangesThatSurvive.md: await outbox.register(Like
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
        //: ScriptedDeliveries.swift
    }

    //: ChangesThatSurvive.md: @Test func `a like waits

    /// The printed output of a screen that shows what was refused, and discards it.
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
            //: ChangesThatSurvive.md: for await state
            return [printed.lines]
        }
    }

    @Test func `a stuck change is discarded, or given up by a policy`() async throws {
        //: ChangesThatSurvive.md: var policy = OutboxPolicy
        let api = AcceptingAPI()
        //: ChangesThatSurvive.md: let posts = Store
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
                //: ChangesThatSurvive.md: switch try await
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
        //: ChangesThatSurvive.md: await outbox.register(CreateMemo
        let command = CreateMemo(text: "milk")
        let id = command.id
        try await outbox.submit(command)
        #expect(try await memos[id].requireData() == Memo(text: "milk"))
        outbox.start()
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        while await memos["42"].getData(from: .cache) == nil { await Task.yield() }
        #expect(try await memos[id].requireData() == Memo(text: "milk"))
    }

    @Test func `signing out sends what can be sent, and drops the rest`() async throws {
        //: ChangesThatSurvive.md: let scope = CacheScope
        await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
            post.isLiked = true
        } perform: { command, _ in
            if command.post == 7 { throw Refused() }
        }
        outbox.start()
        for post in [7, 8] { try await outbox.submit(Like(post: post)) }
        for await state in outbox.publish() where state.pendingCount == 0 { break }
        #expect(try await outbox.commands().map { try $0.value(as: Like.self).post } == [7])
        //: ChangesThatSurvive.md: _ = await outbox
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
        //: ChangesThatSurvive.md: await outbox.resume
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
