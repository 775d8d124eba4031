internal import Foundation
internal import RemoteRouting
internal import StoreCore
import StoreOutbox
import RemoteRoutingTesting
import StoreCoreTesting
internal import Testing
internal import Trials

// What stands in the documentation on routes as the deliveries of an outbox.

struct CreatePost: Command {
    static let name = "create-post"
    var id: Post.ID
}

enum Blog: Routable {
    case like(Post.ID), newPost

    var method: HTTPMethod { .post }
    var path: RoutePath {
        switch self {
        case .like(let post): "/posts/\(post)/likes"
        case .newPost: "/posts"
        }
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct DeliveriesTests {
    let directory = temporaryURL()
    let time = ManualTime()
    let posts = Store<Post.ID, Post>(cacher: MemoryCacher()) { Post(id: $0) }

    func host(over transport: MemoryTransport) -> RemoteHost {
        RemoteHost("api.example.com", transport: transport, time: time).with { $0.timeouts = .init() }
    }

    @Test func `a route is the delivery of a command`() async throws {
        let transport = MemoryTransport { _ in .status(204) }
        let (api, outbox) = (host(over: transport), try Outbox(directory: directory))
        //: RemoteRouting.docc/ErrorsAndRetries.md: perform: api.delivery { Blog
        outbox.start()
        let id = try await outbox.submit(Like(post: 7))
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(transport.requests.map(\.url.path) == ["/posts/7/likes"])
        #expect(transport.requests.first?.fields["Idempotency-Key"]?.isEmpty == false)
        #expect(await outbox.commands().allSatisfy { $0.id != id })
    }

    @Test func `the response is the content`() async throws {
        let transport = MemoryTransport { _ in .json(#"{"id": 7, "isLiked": true}"#) }
        let (api, outbox) = (host(over: transport), try Outbox(directory: directory))
        //: RemoteHost+Deliveries.swift: perform: api.delivery(returning
        outbox.start()
        try await outbox.submit(Like(post: 7))
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
    }

    @Test func `the response has the key of the new entity`() async throws {
        let transport = MemoryTransport { _ in .json(#"{"id": 42, "isLiked": false}"#) }
        let (api, outbox) = (host(over: transport), try Outbox(directory: directory))
        //: RemoteHost+Deliveries.swift: CreatePost.self
        outbox.start()
        try await outbox.submit(CreatePost(id: -1))
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        while await posts[42].getData(from: .cache) == nil { await Task.yield() }
    }

    @Test func `a screen shows the reason of a refusal`() async throws {
        let transport = MemoryTransport { _ in
            .init(
                status: 422, headers: [("Content-Type", "application/problem+json")],
                body: Data(#"{"title": "the post is closed"}"#.utf8))
        }
        let (api, outbox) = (host(over: transport), try Outbox(directory: directory))
        //: RemoteRouting.docc/ErrorsAndRetries.md: } explaining
        outbox.start()
        try await outbox.submit(Like(post: 7))
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(await outbox.commands().map(\.lastError) == ["the post is closed"])
    }

    //: TestingWithoutANetwork.md: @Test func `a delivery
}
