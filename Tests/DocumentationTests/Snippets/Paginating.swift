internal import StoreCore
import StoreCoreTesting
internal import Testing

struct Message: Identifiable, Hashable, Codable, Sendable {
    let id: Int
    var text = ""
}

//: Paginating.md: struct MessageFetcher

/// Rooms of seven messages, three on a page.
struct ChatAPI: Sendable {
    struct Response {
        var messages: [Message]
        var cursor: String?
    }

    func messages(in room: String, after cursor: String? = nil) async throws -> Response {
        let first = cursor.flatMap { Int($0) } ?? 1
        let messages = (first..<min(first + 3, 8)).map { Message(id: $0) }
        return Response(messages: messages, cursor: first + 3 < 8 ? "\(first + 3)" : nil)
    }
}

/// Rooms with a page for each message.
struct TimelineAPI: Sendable {
    func page(_ key: String?) async throws -> Page<Message> {
        let id = key.flatMap { Int($0) } ?? 0
        return Page([Message(id: id)], nextKey: "\(id + 1)", prevKey: id > 0 ? "\(id - 1)" : nil)
    }
}

struct TimelineFetcher: TwoWayPaginationFetcher {
    let api: TimelineAPI

    func fetch(param: String) async throws -> Page<Message> { try await api.page(nil) }
    func fetchNext(nextKey: String, param: String) async throws -> Page<Message> { try await api.page(nextKey) }
    func fetchPrev(prevKey: String, param: String) async throws -> Page<Message> { try await api.page(prevKey) }
}

/// A list on a screen.
@MainActor
final class MessageList {
    private(set) var shown: [Message] = []
    private(set) var footer = ""

    func show(_ messages: [Message]?, footer: String) {
        shown = messages ?? []
        self.footer = footer
    }
}

struct PaginatingTests {
    @MainActor
    private func observe(_ rooms: PaginationStore<String, Message>, on list: MessageList) async {
        //: Paginating.md: for await state
    }

    @Test func `a whole list, page by page`() async throws {
        let api = ChatAPI()

        let rooms = PaginationStore(cacher: MemoryCacher(), fetcher: MessageFetcher(api: api))

        //: Paginating.md: var messages

        #expect(messages.map(\.id) == Array(1...7))
        #expect("\(await rooms["swift"].requestNextData())" == "noPage")
        #expect("\(await rooms["swift"].requestPrevData())" == "noPage")
    }

    @Test func `a closure fetches pages`() async throws {
        let api = ChatAPI()

        //: Paginating.md: cacher: MemoryCacher<String

        #expect(try await rooms["swift"].requireData().count == 3)
    }

    // MARK: Page requests

    private let fetcher = ScriptedPaginationFetcher<String, Message>()
    private let time = ManualTime()

    private func store(
        expiry: Expiry = .never, identity: ElementIdentity<Message> = .automatic, policy: StorePolicy = .default
    ) -> PaginationStore<String, Message> {
        PaginationStore(cacher: MemoryCacher(expiry: expiry), fetcher: fetcher, identity: identity, policy: policy, time: time)
    }

    private func page(_ ids: Int..., next: String? = nil, prev: String? = nil) -> ScriptedAnswer<[Message]> {
        .page(ids.map { Message(id: $0) }, nextKey: next, prevKey: prev)
    }

    @Test func `a page request for a missing list fetches the list`() async throws {
        let rooms = store()
        fetcher.enqueue(page(1, next: "b"))
        #expect("\(await rooms["swift"].requestNextData())" == "notLoadedYet")
        #expect(try await rooms["swift"].requireData(from: .cache).map(\.id) == [1])
    }

    @Test func `a page request for an expired list without observers fetches the list`() async throws {
        let rooms = store(expiry: .after(.seconds(60)))
        fetcher.enqueue(page(1, next: "b"), page(2, next: "c"))
        _ = try await rooms["swift"].requireData()
        time.advance(by: .seconds(60))
        #expect("\(await rooms["swift"].requestNextData())" == "notLoadedYet")
        #expect(try await rooms["swift"].requireData(from: .cache).map(\.id) == [2])
    }

    @Test func `a page does not make an old list younger`() async throws {
        let rooms = store(expiry: .after(.seconds(60)))
        fetcher.enqueue(page(1, next: "b"), page(2, next: "c"), page(3))
        _ = try await rooms["swift"].requireData()
        time.advance(by: .seconds(59))
        #expect("\(await rooms["swift"].requestNextData())" == "loaded")
        time.advance(by: .seconds(1))
        #expect(try await rooms["swift"].requireData().map(\.id) == [3])
    }

    @Test func `two callers share one page request`() async throws {
        let rooms = store()
        fetcher.enqueue(page(1, next: "b"))
        _ = try await rooms["swift"].requireData()
        fetcher.hold()
        async let first = rooms["swift"].requestNextData()
        try await fetcher.started(count: 2)
        fetcher.enqueue(page(2))
        async let second = rooms["swift"].requestNextData()
        try await fetcher.release(next: 1)
        _ = await (first, second)
        #expect(fetcher.startedCount == 2)
    }

    @Test func `a failed page keeps the list and can be requested again`() async throws {
        let rooms = store()
        fetcher.enqueue(page(1, next: "b"), .failure(Offline()))
        let recorder = RecordingObserver(rooms["swift"].publish())
        try await recorder.next { $0.isCompleted }
        #expect("\(await rooms["swift"].requestNextData())" == "failed(offline)")
        try await recorder.next { if case .completed(_, .error, _) = $0 { true } else { false } }

        #expect("\(await rooms["swift"].requestNextData(continueWhenError: false))" == "failed(offline)")
        #expect(fetcher.startedCount == 2)
        fetcher.enqueue(page(2))
        #expect("\(await rooms["swift"].requestNextData())" == "loaded")
        #expect(fetcher.requests.last?.pageKey == "b")
    }

    @Test func `a refresh supersedes a page request`() async throws {
        let rooms = store()
        fetcher.enqueue(page(1, next: "b"))
        _ = try await rooms["swift"].requireData()
        fetcher.hold()
        async let request = rooms["swift"].requestNextData()
        try await fetcher.started(count: 2)
        async let refresh: Void = rooms["swift"].refresh()
        #expect("\(await request)" == "superseded")
        try await fetcher.answer(3, with: page(5))
        await refresh
        #expect(try await rooms["swift"].requireData().map(\.id) == [5])
    }

    @Test func `a repeated element replaces the older one`() async throws {
        let rooms = store()
        fetcher.enqueue(.page([Message(id: 1, text: "old"), Message(id: 2)], nextKey: "b"))
        fetcher.enqueue(.page([Message(id: 1, text: "new"), Message(id: 3)]))
        _ = try await rooms["swift"].requireData()
        await rooms["swift"].requestNextData()
        #expect(try await rooms["swift"].requireData() == [Message(id: 1, text: "new"), Message(id: 2), Message(id: 3)])
    }

    @Test func `an identity may be another property, or none`() async throws {
        let api = ChatAPI()

        //: Paginating.md: cacher: MemoryCacher(), fetcher: MessageFetcher

        _ = try await rooms["swift"].requireData()
        await rooms["swift"].requestNextData()
        // All texts are equal, so each newer element replaces the first.
        #expect(try await rooms["swift"].requireData().map(\.id) == [6, 2, 3])
        let plain = store(identity: .none)
        fetcher.enqueue(page(1, next: "b"), page(1))
        _ = try await plain["swift"].requireData()
        await plain["swift"].requestNextData()
        #expect(try await plain["swift"].requireData().map(\.id) == [1, 1])
    }

    @Test func `a refresh fetches all loaded pages by policy`() async throws {
        //: Paginating.md: var policy = StorePolicy

        let rooms = store(policy: policy)
        fetcher.enqueue(page(1, next: "b"), page(2, next: "c"))
        _ = try await rooms["swift"].requireData()
        await rooms["swift"].requestNextData()
        fetcher.enqueue(page(11, next: "bb"), page(12, next: "cc"))
        await rooms["swift"].refresh()
        #expect(try await rooms["swift"].requireData().map(\.id) == [11, 12])
        #expect(fetcher.requests.map(\.pageKey) == [nil, "b", nil, "bb"])
    }

    @Test func `a fetcher names the reason for a guessed end`() async throws {
        @Sendable func page(of lines: [String]) -> Page<String> {
            //: Paginating.md: return Page(lines
        }
        let logs = PaginationStore(
            cacher: MemoryCacher<String, [String]>(), fetcher: PaginationClosureFetcher { _, _ in page(of: []) })
        _ = try await logs["today"].requireData()
        #expect(logs["today"].guessedEnd == .emptyPage)

        let rows: [Int] = []

        //: Page.swift

        #expect(page.guessedEnd == .emptyPage)
    }

    @Test func `both directions load concurrently`() async throws {
        let rooms = store()
        fetcher.enqueue(page(5, next: "after 5", prev: "before 5"))
        _ = try await rooms["swift"].requireData()
        fetcher.hold()
        async let next = rooms["swift"].requestNextData()
        try await fetcher.started(count: 2)
        async let prev = rooms["swift"].requestPrevData()
        try await fetcher.started(count: 3)
        try await fetcher.answer(3, with: page(4))
        try await fetcher.answer(2, with: page(6))
        _ = await (next, prev)
        #expect(try await rooms["swift"].requireData().map(\.id) == [4, 5, 6])
    }

    @Test func `a window of pages goes on and back`() async throws {
        let api = TimelineAPI()

        //: Paginating.md: cacher: MemoryCacher(), fetcher: TimelineFetcher

        _ = try await rooms["swift"].requireData()
        for _ in 0..<20 { #expect(await rooms["swift"].requestNextData() == .loaded) }
        #expect(try await rooms["swift"].requireData().map(\.id) == Array(11...20))
        #expect(await rooms["swift"].requestPrevData() == .loaded)
        #expect(try await rooms["swift"].requireData().map(\.id) == Array(10...19))
    }

    // MARK: Changing a list

    @Test func `a list changed in place keeps its page keys`() async throws {
        let rooms = store()
        fetcher.enqueue(page(1, 2, next: "b"), page(3))
        _ = try await rooms["swift"].requireData()

        //: Paginating.md: await rooms["swift"].update { messages

        await rooms["swift"].requestNextData()
        #expect(try await rooms["swift"].requireData().map(\.id) == [1, 3])
        #expect(fetcher.requests.last?.pageKey == "b")

        //: Paginating.md: await rooms["swift"].update([Message(id: 8)]

        fetcher.enqueue(page(9))
        await rooms["swift"].requestNextData()
        #expect(fetcher.requests.last?.pageKey == "nine")
    }
}
