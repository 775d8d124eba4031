import Foundation
import StoreCore
internal import StorePlatform
internal import StoreFiles
internal import StoreOutbox
import Trials

private struct Post: Codable, Hashable, Identifiable, Sendable {
    var id: String
    var title = ""
    var likes = 0
}

private struct Like: Command {
    static let name = "like"
    var post: String
    var number: Int

    func replacing(_ identifiers: IdentifierReplacement) -> Like { Like(post: identifiers[post], number: number) }
}

private struct Rename: Command {
    static let name = "rename"
    var post: String
    var number: Int

    func replacing(_ identifiers: IdentifierReplacement) -> Rename { Rename(post: identifiers[post], number: number) }
}

private struct Create: Command {
    static let name = "create"
    var post: String
    var number: Int
}

/// The origin of all processes: a file that they change under a lock.
private final class PostOrigin: Sendable {
    private struct State: Codable {
        var posts: [Post] = []
        /// The commands that were performed, with the posts that they created.
        var performed: [UUID: String] = [:]
        var numbers: [Int] = []
    }

    private struct NoSuchPost: Error, FailureAdvising {
        var failureKind: FailureKind { .permanent }
        var retryAfter: Duration? { nil }
        var attempts: Int { 1 }
    }

    let directory: URL
    /// The longest delay before and after the origin acts, in milliseconds; without one, nothing fails.
    let lag: Int
    private let lock: FileLock
    /// The lock of the file holds for the process, not for each of its tasks.
    private let turn = Lock(())

    init(_ directory: URL, lag: Int) throws {
        (self.directory, self.lag) = (directory, lag)
        guard let folder = try DirectoryHandle(opening: Directory(path: directory.path(percentEncoded: false))) else {
            throw POSIXError(.ENOENT)
        }
        lock = try FileLock("lock", in: folder, patience: .seconds(600))
    }

    private var file: URL { directory.appending(path: "origin") }

    private func read() throws -> State {
        FileManager.default.fileExists(atPath: file.path(percentEncoded: false))
            ? try JSONDecoder().decode(State.self, from: Data(contentsOf: file)) : State()
    }

    private func wait(_ mayFail: Bool = false) async throws {
        if lag > 0 { try await Task.sleep(for: .milliseconds(Int.random(in: 0...lag))) }
        if mayFail, lag > 0, Int.random(in: 0..<8) == 0 { throw POSIXError(.ETIMEDOUT) }
    }

    func posts() async throws -> [Post] {
        try await wait()
        let posts = try read().posts
        try await wait()
        return posts
    }

    func post(_ id: String) async throws -> Post {
        guard let post = try await posts().first(where: { $0.id == id }) else { throw NoSuchPost() }
        return post
    }

    /// Performs a command once, and returns its post. The process may end at any moment.
    ///
    /// - Parameter change: Changes the posts, and returns the place of the changed one; `nil` if there is no such post.
    private func perform(_ id: UUID, _ number: Int, _ change: (inout [Post]) -> Int?) async throws -> Post {
        try await wait(true)
        let post = try turn.withLock { _ in try performNow(id, number, change) }
        try await wait(true)
        return post
    }

    private func performNow(_ id: UUID, _ number: Int, _ change: (inout [Post]) -> Int?) throws -> Post {
        guard let held = try lock.take() else { throw POSIXError(.ENOLCK) }
        defer { held.unlock() }
        var state = try read()
        if let name = state.performed[id], let post = state.posts.first(where: { $0.id == name }) { return post }
        guard let place = change(&state.posts) else { throw NoSuchPost() }
        state.performed[id] = state.posts[place].id
        state.numbers.append(number)
        try JSONEncoder().encode(state).write(to: file, options: .atomic)
        return state.posts[place]
    }

    func changePost(_ post: String, _ id: UUID, _ number: Int, _ change: (inout Post) -> Void) async throws -> Post {
        try await perform(id, number) { posts in
            guard let place = posts.firstIndex(where: { $0.id == post }) else { return nil }
            change(&posts[place])
            return place
        }
    }

    func createPost(_ id: UUID, _ number: Int) async throws -> Post {
        try await perform(id, number) { posts in
            posts.append(Post(id: "post\(number)"))
            return posts.indices.last
        }
    }

    /// The numbers of the commands in the order in which they were performed.
    var numbers: [Int] { get throws { try read().numbers } }
}

/// A program with an outbox over linked stores, of which several run at the same time over one directory.
final class AppLife: Sendable {
    private let origin: PostOrigin
    private let posts: Store<String, Post>
    private let feed: PaginationStore<UnitParam, Post>
    private let own: Store<UnitParam, [Post]>
    private let outbox: Outbox

    /// `form` has a bit for each choice: whether the list of own posts is linked, whether the origin responds with posts, whether likes
    /// change elements of lists, and whether likes have two lanes.
    private init(_ directory: URL, form: Int, lag: Int) async throws {
        let origin = try PostOrigin(directory, lag: lag)
        func cacher<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>(
            _ name: String
        ) -> TieredCacher<FileCacher<Key, Value>> {
            TieredCacher(over: FileCacher(directory: directory.appending(path: name), sharing: .processes))
        }
        posts = Store(cacher: cacher("posts")) { try await origin.post($0) }
        feed = PaginationStore(
            cacher: cacher("feed"),
            fetcher: PaginationClosureFetcher { _, nextKey in
                let (all, start) = (try await origin.posts(), Int(nextKey ?? "0") ?? 0)
                return Page(Array(all.dropFirst(start).prefix(3)), nextKey: start + 3 < all.count ? "\(start + 3)" : nil)
            }, links: [.elements(of: posts)])
        own = Store(cacher: cacher("own"), links: form & 1 > 0 ? [.elements(of: posts)] : []) { _ in
            try await origin.posts().filter { $0.id != "post0" }
        }
        var policy = OutboxPolicy()
        (policy.backOff, policy.longestBackOff) = (.milliseconds(20), .milliseconds(50))
        outbox = try Outbox(directory: directory.appending(path: "outbox"), policy: policy)
        self.origin = origin
        await register(form)
        outbox.start()
    }

    private func register(_ form: Int) async {
        let origin = origin
        let (isLinked, responds, byElement, hasLanes) = (form & 1 > 0, form & 2 > 0, form & 4 > 0, form & 8 > 0)
        func inOwn<Value: Command>(
            _ id: @escaping @Sendable (Value) -> String, _ change: @escaping @Sendable (Value, inout Post) -> Void
        ) -> [CommandPatch<Value>] {
            guard !isLinked else { return [] }
            return [
                CommandPatch(own, at: { _ in UnitParam() }) { command, posts in
                    for place in posts.indices where posts[place].id == id(command) { change(command, &posts[place]) }
                }
            ]
        }
        let like: @Sendable (Like, inout Post) -> Void = { $1.likes += 1 }
        let rename: @Sendable (Rename, inout Post) -> Void = { $1.title = "\($0.number)" }
        let parity: @Sendable (Like) -> String = { "\($0.number % 2)" }
        let sendLike: @Sendable (Like, Delivery) async throws -> Post = { command, delivery in
            try await origin.changePost(command.post, delivery.id, command.number) { $0.likes += 1 }
        }
        let (lane, likes) = (hasLanes ? parity : nil, inOwn(\Like.post, like))
        switch (byElement, responds) {
        case (true, true):
            await outbox.register(Like.self, patching: feed, element: \.post, lane: lane, and: likes, patch: like, perform: sendLike)
        case (true, false):
            await outbox.register(Like.self, patching: feed, element: \.post, lane: lane, and: likes, patch: like) {
                _ = try await sendLike($0, $1)
            }
        case (false, true):
            await outbox.register(Like.self, patching: posts, at: \.post, lane: lane, and: likes, patch: like, perform: sendLike)
        case (false, false):
            await outbox.register(Like.self, patching: posts, at: \.post, lane: lane, and: likes, patch: like) {
                _ = try await sendLike($0, $1)
            }
        }
        let renames = inOwn(\Rename.post, rename)
        await outbox.register(Rename.self, patching: posts, at: \.post, and: renames, patch: rename) { command, delivery in
            _ = try await origin.changePost(command.post, delivery.id, command.number) { $0.title = "\(command.number)" }
        }
        let row = CommandPatch<Create>(own, at: { _ in UnitParam() }) { command, posts in
            if !posts.contains(where: { [command.post, "post\(command.number)"].contains($0.id) }) { posts.append(Post(id: command.post)) }
        }
        await outbox.register(Create.self, creating: posts, at: \.post, and: isLinked ? [row] : []) { command in
            Post(id: command.post)
        } perform: { command, delivery in
            let post = try await origin.createPost(delivery.id, command.number)
            return Created(post.id, content: post)
        }
    }

    static func run(_ mode: String, _ directory: URL, _ numbers: [Int]) async throws {
        let form = numbers[0]
        switch mode {
        case "begin":
            _ = try await PostOrigin(directory, lag: 0).createPost(UUID(), 0)
            say("begun")
        case "live":
            var dice = SplitMix(seed: UInt64(numbers[1]))
            let app = try await AppLife(directory, form: form, lag: [0, 1, 4, 12][dice.below(4)])
            try await app.live(from: numbers[2], &dice)
        case "read": try await AppLife(directory, form: form, lag: 0).read()
        default: say("unknown mode \(mode)")
        }
    }

    /// Changes and reads posts, prints the numbers of the commands that are kept, and ends or kills itself.
    private func live(from first: Int, _ dice: inout SplitMix) async throws {
        var (number, keys, death) = (first, try await origin.posts().map(\.id), dice.below(60))
        for _ in 0..<40 {
            death -= 1
            if death == 0 { killSelf() }
            let key = keys[dice.below(keys.count)]
            switch dice.below(14) {
            case 0..<3:
                number += 1
                try await outbox.submit(Like(post: key, number: number))
                say("kept \(number)")
            case 3:
                number += 1
                try await outbox.submit(Rename(post: key, number: number))
                say("kept \(number)")
            case 4:
                number += 1
                try await outbox.submit(Create(post: "temporary\(number)", number: number))
                say("kept \(number)")
                keys.append("temporary\(number)")
            case 5: _ = try? await posts[key].requireData()
            case 6: await posts[key].refresh()
            case 7: _ = try? await feed.flowable.requireData()
            case 8: _ = await feed.flowable.requestNextData()
            case 9: await feed.flowable.refresh()
            case 10: _ = try? await own.flowable.requireData()
            case 11: await own.flowable.refresh()
            default: try await Task.sleep(for: .milliseconds(dice.below(20)))
            }
        }
    }

    /// Delivers what is pending, and prints each difference between the origin and the stores.
    private func read() async throws {
        guard await outbox.drain(until: .seconds(600)) == .drained else { return say("the outbox is not empty") }
        for command in await outbox.commands() where command.status == .failed { say("\(command) has failed") }
        let all = try await origin.posts()
        func compare(_ place: String, _ found: [Post]) {
            for post in found where !all.contains(post) { say("\(place) has \(post), the origin has \(all.filter { $0.id == post.id })") }
        }
        for post in all { compare("the store", [try await posts[post.id].requireData()]) }
        compare("the feed", try await feed.flowable.requireData())
        let rows = try await own.flowable.requireData()
        compare("the list", rows)
        if Set(rows.map(\.id)).count != rows.count { say("the list has a post twice: \(rows)") }
        say("performed \(try origin.numbers.map(String.init).joined(separator: " "))")
    }
}
