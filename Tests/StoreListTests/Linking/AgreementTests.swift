import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct AgreementTests {
    private let world = LinkedWorld()

    @Test func `E1: observers of a list see a mutation at once, and a failure takes it back everywhere`() async throws {
        try await world.loadFeed([Article(id: 6), Article(id: 7)])
        try await world.loadSearch([Finding(articleID: 7)])
        await world.articles[7].update(Article(id: 7))
        let feed = try await observeCompleted(world.feed["home"].publish())
        let search = try await observeCompleted(world.search["swift"].publish())
        let (request, task) = world.like(7)
        try await feed.next { $0.content?.last?.isLiked == true }
        try await search.next { $0.content?.last?.isLiked == true }
        #expect(try await world.liked() == [7])
        await request.fail(task)
        #expect(try await world.liked() == [])
        #expect(try await world.found() == [])
        try await feed.next { $0.content?.last?.isLiked == false }
        try await search.next { $0.content?.last?.isLiked == false }
    }

    @Test(arguments: [false, true])
    func `E2: a list or page that was requested before a like does not take it back`(_ isPage: Bool) async throws {
        if isPage { try await world.loadFeed([Article(id: 6)], nextKey: "2") }
        await world.articles[7].update(Article(id: 7))
        let request = try await world.beginFeed { await isPage ? $0.requestNextData() == .loaded : $0.getData() != nil }
        try await world.articles[7].mutate(optimistically: { $0.isLiked = true }) {}
        #expect(await world.end(request, with: [Article(id: 7)]))
        #expect(try await world.liked() == [7])
        #expect(try await world.articles[7].requireData().isLiked)
    }

    @Test func `E2: an older fetch of the entity does not undo a newer page`() async throws {
        await world.articles[7].update(Article(id: 7))
        let refresh = try await world.beginRefresh(of: 7)
        try await world.loadFeed([Article(id: 7, title: "new")])
        #expect(try await world.articles[7].requireData().title == "new")
        await world.end(refresh, with: Article(id: 7, title: "old"))
        #expect(try await world.articles[7].requireData().title == "new")
        #expect(try await world.feed["home"].requireData().map(\.title) == ["new"])
    }

    @Test func `E3: a fragment gives its fields and takes them, and the rest of the entity stays`() async throws {
        await world.articles[7].update(Article(id: 7, text: "long"))
        try await world.loadSearch([Finding(articleID: 7, title: "renamed", rank: 3)])
        #expect(try await world.articles[7].requireData() == Article(id: 7, title: "renamed", text: "long"))
        await world.articles[7].update { $0.isLiked = true }
        #expect(try await world.search["swift"].requireData() == [Finding(articleID: 7, title: "renamed", isLiked: true, rank: 3)])
    }

    @Test func `E3: fragments of two lists bring different fields, and the newest value of each field wins`() async throws {
        let titles = PaginationStore(
            cacher: MemoryCacher<String, [Finding]>(), fetcher: world.searchOrigin,
            links: [.elements(of: world.articles, id: \.articleID, fields: (\.title, \.title))], time: world.time)
        await world.articles[7].update(Article(id: 7))
        world.searchOrigin.enqueue(.page([Finding(articleID: 7, title: "second", isLiked: true)]))
        _ = try await titles["a"].requireData()
        try await world.loadSearch([Finding(articleID: 7, title: "third", isLiked: false)])
        #expect(try await world.articles[7].requireData() == Article(id: 7, title: "third"))
        #expect(try await titles["a"].requireData().map(\.title) == ["third"])
        world.searchOrigin.enqueue(.page([Finding(articleID: 7, title: "fourth")]))
        await titles["a"].refresh()
        #expect(try await world.search["swift"].requireData().map(\.title) == ["fourth"])
        #expect(try await world.articles[7].requireData().title == "fourth")
    }

    @Test func `E3: a newer fragment survives an older fetch of the whole entity`() async throws {
        await world.articles[7].update(Article(id: 7))
        let refresh = try await world.beginRefresh(of: 7)
        try await world.loadSearch([Finding(articleID: 7, title: "renamed")])
        await world.end(refresh, with: Article(id: 7, text: "fetched"))
        #expect(try await world.articles[7].requireData() == Article(id: 7, title: "renamed", text: "fetched"))
    }

    @Test func `E3: a list makes no record for an entity without content`() async throws {
        try await world.loadFeed([Article(id: 7)])
        await #expect(throws: StoreError.self) { try await world.articles[7].requireData(from: .cache) }
        #expect(world.origin.startedCount == 0)
        world.origin.enqueue(.success(Article(id: 7, title: "fetched")))
        #expect(try await world.articles[7].requireData().title == "fetched")
        #expect(try await world.feed["home"].requireData().map(\.title) == ["fetched"])
    }

    @Test func `E1, E3: lists agree about an entity that has no content`() async throws {
        try await world.loadFeed([Article(id: 7, title: "first")])
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "second")]))
        #expect(try await world.feed["top"].requireData().map(\.title) == ["second"])
        #expect(try await world.feed["home"].requireData().map(\.title) == ["second"])
        try await world.loadSearch([Finding(articleID: 7, title: "third")])
        #expect(try await world.feed["top"].requireData().map(\.title) == ["third"])
        await world.feed["home"].update { $0[0].isLiked = true }
        #expect(try await world.found() == [7])
        #expect(try await world.feed["top"].requireData() == [Article(id: 7, title: "third", isLiked: true)])
        await #expect(throws: StoreError.self) { try await world.articles[7].requireData(from: .cache) }
    }

    @Test func `E1: lists of fragments agree about an entity that has no content`() async throws {
        let world = LinkedWorld()
        try await world.loadSearch([Finding(articleID: 1), Finding(articleID: 2)])
        let observer = RecordingObserver(world.search["swift"].publish())
        _ = try await observer.next { $0.content?.count == 2 }
        world.time.advance(by: .seconds(1))
        world.searchOrigin.enqueue(.page([Finding(articleID: 1, title: "new", isLiked: true, rank: 9)]))
        #expect(try await world.search["other"].requireData().map(\.title) == ["new"])
        let rows = try await observer.next { $0.content?.first?.title == "new" }.content
        #expect(rows == [Finding(articleID: 1, title: "new", isLiked: true), Finding(articleID: 2)])
        #expect(try await world.found() == [1])
        // An older list takes the newer fields too.
        #expect(world.origin.startedCount == 0)
    }

    @Test func `E2: a fragment is newer than whole values that were requested before it`() async throws {
        let world = LinkedWorld()
        world.feedOrigin.hold()
        world.origin.hold()
        let feed = Task { try await world.feed["home"].requireData() }
        let article = Task { try await world.articles[1].requireData() }
        try await world.feedOrigin.started(count: 1)
        try await world.origin.started(count: 1)
        world.time.advance(by: .seconds(1))
        try await world.loadSearch([Finding(articleID: 1, title: "new", isLiked: true)])
        try await world.feedOrigin.answer(1, with: .page([Article(id: 1, text: "long")]))
        let shown = Article(id: 1, title: "new", text: "long", isLiked: true)
        #expect(try await feed.value == [shown])
        try await world.origin.answer(1, with: .success(Article(id: 1, text: "long")))
        #expect(try await article.value == shown)
        #expect(try await world.feed["home"].requireData() == [shown])
        #expect(try await world.found() == [1])
    }

    @Test func `E2: a field that a fragment brought stays the newest when its entity is cleared`() async throws {
        try await world.loadFeed([Article(id: 7)])
        try await world.loadSearch([Finding(articleID: 7, title: "second")])
        await world.articles[7].update(Article(id: 7, title: "third", text: "long"))
        world.searchOrigin.enqueue(.page([Finding(articleID: 7, title: "fourth")]))
        await world.search["swift"].refresh()
        #expect(try await world.feed["home"].requireData().map(\.title) == ["fourth"])
        await world.articles[7].clear()
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, title: "fourth", text: "long")])
    }

    @Test func `E2: an older fragment that arrives after its entity was cleared changes no list`() async throws {
        try await world.loadFeed([Article(id: 7)])
        await world.articles[7].update(Article(id: 7, text: "long"))
        world.searchOrigin.hold()
        let late = Task { [world] in try await world.search["late"].requireData() }
        try await world.searchOrigin.started(count: 1)
        let newer = Task { [world] in try await world.search["swift"].requireData() }
        try await world.searchOrigin.started(count: 2)
        try await world.searchOrigin.answer(2, with: .page([Finding(articleID: 7, title: "newer")]))
        _ = try await newer.value
        #expect(try await world.feed["home"].requireData().map(\.title) == ["newer"])
        await world.articles[7].clear()
        try await world.searchOrigin.answer(1, with: .page([Finding(articleID: 7, title: "older")]))
        #expect(try await late.value.map(\.title) == ["newer"])
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, title: "newer", text: "long")])
    }

    @Test func `E2: an entity with a first fetch from before a list takes the newer value of the list`() async throws {
        world.origin.enqueue(.success(Article(id: 7, title: "old")))
        world.origin.hold()
        let detail = Task { [world] in try await world.articles[7].requireData().title }
        try await world.origin.started(count: 1)
        try await world.loadFeed([Article(id: 7, title: "new")])
        world.origin.release()
        #expect(try await detail.value == "new")
    }

    @Test func `E3: merging changes no freshness and makes no request`() async throws {
        let world = LinkedWorld(articles: MemoryCacher(expiry: .after(.seconds(60))))
        await world.articles[7].update(Article(id: 7))
        world.time.advance(by: .seconds(50))
        try await world.loadFeed([Article(id: 7, title: "new")])
        #expect(try await world.articles[7].requireData(from: .cache).title == "new")
        world.time.advance(by: .seconds(11))
        await #expect(throws: StoreError.self) { try await world.articles[7].requireData(from: .cache) }
        #expect(world.origin.startedCount == 0)
    }

    @Test(arguments: [true, false])
    func `E2: a pushed change of one row does not make the other rows newer, even after an update`(_ isUpdated: Bool) async throws {
        let live = ScriptedLiveFetcher<String, [Article]>()
        let feed = Store(
            cacher: MemoryCacher<String, [Article]>(), fetcher: live, links: [.elements(of: world.articles)], time: world.time)
        await world.articles[6].update(Article(id: 6))
        let observer = RecordingObserver(feed["home"].publish())
        try await live.send(.content([Article(id: 6), Article(id: 7)]))
        try await observer.next { $0.isCompleted }
        if isUpdated { await feed["home"].update { $0[0].isLiked = true } }
        world.time.advance(by: .seconds(1))
        let refresh = try await world.beginRefresh(of: 6)
        world.time.advance(by: .seconds(1))
        try await live.send(.change({ $0[1].title = "pushed" }))
        try await observer.next { $0.content?.last?.title == "pushed" && $0.content?.first?.isLiked == isUpdated }
        await world.end(refresh, with: Article(id: 6, title: "fetched"))
        #expect(try await world.articles[6].requireData().title == "fetched")
        try await observer.next { $0.content?.map(\.title) == ["fetched", "pushed"] }
    }

    @Test func `L3, E4: after a change by entities, a pushed change applies to the stream's own last value`() async throws {
        let live = ScriptedLiveFetcher<String, [Article]>()
        let feed = Store(
            cacher: MemoryCacher<String, [Article]>(), fetcher: live, links: [.elements(of: world.articles)], time: world.time)
        let observer = RecordingObserver(feed["home"].publish())
        try await live.send(.content([Article(id: 6), Article(id: 7), Article(id: 8)]))
        try await observer.next { $0.isCompleted }
        try await world.articles.remove(6) {}
        try await observer.next { $0.content?.map(\.id) == [7, 8] }
        for title in ["b", "c"] {
            try await live.send(.change { $0[1].title = title })
            try await observer.next { $0.content?.contains { $0.title == title } == true }
            #expect(observer.states.last?.content?.map(\.title) == [title, "title"])
        }
    }

    @Test func `L3, E3: after a merge, a pushed change applies to the stream's own last value`() async throws {
        let live = ScriptedLiveFetcher<Int, Article>()
        let articles = Store(cacher: MemoryCacher<Int, Article>(), fetcher: live, time: world.time)
        let feed = Store(cacher: MemoryCacher<String, [Article]>(), links: [.elements(of: articles)], time: world.time) { _ in
            [Article(id: 7, title: "ab")]
        }
        let observer = RecordingObserver(articles[7].publish())
        try await live.send(.content(Article(id: 7, title: "a")))
        try await observer.next { $0.content?.title == "a" }
        world.time.advance(by: .seconds(1))
        _ = try await feed["home"].requireData()
        try await observer.next { $0.content?.title == "ab" }
        // The feed was fetched before the origin pushed this change.
        try await live.send(.change { $0.title += "b" })
        try await live.send(.change { $0.title += "c" })
        try await observer.next { $0.content?.title.hasSuffix("c") == true }
        #expect(observer.states.last?.content?.title == "abc")
        #expect(try await feed["home"].requireData().map(\.title) == ["abc"])
    }

    @Test func `E2, E4: a changed entity keeps the validator of a list, and its confirmation makes no place newer`() async throws {
        world.feedOrigin.enqueue(.page([Article(id: 7)], validator: Validator(entityTag: "a")), .notModified())
        _ = try await world.feed["home"].requireData()
        await world.articles[7].update(Article(id: 7, title: "changed"))
        world.time.advance(by: .seconds(1))
        let refresh = try await world.beginRefresh(of: 7)
        world.time.advance(by: .seconds(1))
        await world.feed["home"].refresh()
        #expect(world.feedOrigin.requests.last?.validator != nil)
        #expect(try await world.feed["home"].requireData().map(\.title) == ["changed"])
        await world.end(refresh, with: Article(id: 7, title: "fetched"))
        #expect(try await world.feed["home"].requireData().map(\.title) == ["fetched"])
        #expect(world.feedOrigin.startedCount == 2)
    }

    @Test func `E4: a change of an entity cancels nothing in a list`() async throws {
        try await world.loadFeed([Article(id: 7)])
        await world.articles[7].update(Article(id: 7))
        let refresh = try await world.beginFeed { await $0.refresh() }
        await world.articles[7].update { $0.isLiked = true }
        await world.end(refresh, with: [Article(id: 7, title: "later"), Article(id: 8)])
        #expect(world.feedOrigin.startedCount == 2)
        #expect(world.feedOrigin.cancelledCount == 0)
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, isLiked: true), Article(id: 8)])
    }

    /// Only the address is kept: a second reference to the list would make the store copy it.
    @Test func `E4: a change of an entity changes the row of an observed list in place, unless a reader has the list`() async throws {
        try await world.loadFeed((0..<50).map { Article(id: $0) })
        var states = world.feed["home"].publish().makeAsyncIterator()
        _ = await states.next()
        var addresses: Set<Int> = []
        for number in 0..<3 {
            await world.articles[7].update(Article(id: 7, title: "\(number)"))
            let address = await states.next()?.content.map { rows in
                #expect(rows[7].title == "\(number)")
                return rows.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
            }
            addresses.insert(try #require(address))
        }
        #expect(addresses.count == 1)
        let held = try await world.feed["home"].requireData()
        await world.articles[7].update(Article(id: 7, title: "new"))
        let newest = await states.next()?.content
        #expect(newest?[7].title == "new")
        #expect(held[7].title == "2")
    }

    @Test func `E4: an update of a list stamps only the places that differ`() async throws {
        await world.articles[6].update(Article(id: 6))
        try await world.loadFeed([Article(id: 6), Article(id: 7)])
        let refresh = try await world.beginRefresh(of: 6)
        await world.feed["home"].update { $0[1].isLiked = true }
        await world.end(refresh, with: Article(id: 6, title: "fetched"))
        // The row of 6 was not changed, so the fetch that began before the update is newer.
        #expect(try await world.feed["home"].requireData() == [Article(id: 6, title: "fetched"), Article(id: 7, isLiked: true)])
    }

    @Test func `E10: duplicates of one entity show the newest place, then the last`() async throws {
        let rows = PaginationStore(
            cacher: MemoryCacher<String, [Article]>(), fetcher: world.feedOrigin, links: [.elements(of: world.articles)], identity: .none,
            time: world.time)
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "first"), Article(id: 7, title: "last")], nextKey: "2"))
        #expect(try await rows["a"].requireData().map(\.title) == ["last", "last"])
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "page")]))
        #expect(await rows["a"].requestNextData() == .loaded)
        #expect(try await rows["a"].requireData().map(\.title) == ["page", "page", "page"])
    }

    @Test func `E10: a value whose identity is not its key changes nothing, and the store of the list reports it`() async throws {
        let events = EventLog()
        let list = Store(
            cacher: MemoryCacher<Int, [Article]>(), links: [.elements(of: world.articles)], time: world.time, onEvent: events.append
        ) { _ in [Article(id: 7)] }
        #expect(try await list[1].requireData() == [Article(id: 7)])
        #expect(!events.names.contains("mismatchedIdentity"))
        await world.articles[7].update(Article(id: 8, title: "other"))
        #expect(try await list[1].requireData() == [Article(id: 7)])
        #expect(try await world.articles[7].requireData().title == "other")
        #expect(events.all.map(\.description).contains { $0.hasSuffix("1: ignored the entity of key 7, which calls itself 8") })
    }

    @Test func `E10: a row that a window drops is no place any longer`() async throws {
        let feed = PaginationStore(
            cacher: MemoryCacher<String, [Article]>(), fetcher: world.feedOrigin, paging: PagingPolicy(maximumPages: 2),
            links: [.elements(of: world.articles)], time: world.time)
        world.feedOrigin.enqueue(
            .page([Article(id: 1), Article(id: 2)], nextKey: "2"), .page([Article(id: 3)], nextKey: "3", prevKey: "1"),
            .page([Article(id: 4)], prevKey: "2"))
        let list = try await observeCompleted(feed["home"].publish())
        for _ in 0..<2 { #expect(await feed["home"].requestNextData() == .loaded) }
        for id in 1...4 { await world.articles[id].update(Article(id: id, isLiked: id.isMultiple(of: 2))) }
        try await list.next { $0.content == [Article(id: 3), Article(id: 4, isLiked: true)] }
    }

    @Test func `E9: content without links has no stamps`() async throws {
        let plain = Store(cacher: MemoryCacher<Int, Article>(), time: world.time) { Article(id: $0) }
        _ = try await plain[7].requireData()
        #expect(plain.memory?.entry(of: 7)?.record.details == nil)
    }

    @Test func `E9: a hit of linked content takes the slow path once after a change`() async throws {
        try await world.loadFeed([Article(id: 7)])
        _ = try await world.liked()
        #expect(world.feed.lists.hit("home") != nil)
        await world.articles[9].update(Article(id: 9))
        #expect(world.feed.lists.hit("home") == nil)
        _ = try await world.liked()
        #expect(world.feed.lists.hit("home") != nil)
        for id in 0...ChangeLog.limit { await world.articles[id].update(Article(id: id, isLiked: true)) }
        #expect(try await world.liked() == [7])
    }

    @Test func `E1: a list that changes an entity shows the newer entity inside it at once`() async throws {
        let (writers, articles, feed) = world.storesOfWriters()
        await writers["ada"].update(Writer(id: "ada"))
        await articles[7].update(Article(id: 7))
        world.time.advance(by: .seconds(1))
        world.feedOrigin.hold()
        let load = Task { try await feed["home"].requireData() }
        try await world.feedOrigin.started(count: 1)
        world.time.advance(by: .seconds(1))
        await writers["ada"].update { $0.name = "Countess" }
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "new")]))
        world.feedOrigin.release()
        #expect(try await load.value == [Article(id: 7, title: "new", author: Writer(id: "ada", name: "Countess"))])
    }

    @Test func `E1: the row of a key without content shows the newer entity inside it`() async throws {
        let (writers, articles, feed) = world.storesOfWriters()
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        let list = try await observeCompleted(feed["home"].publish())
        world.time.advance(by: .seconds(1))
        await writers["ada"].update(Writer(id: "ada", name: "Countess"))
        try await list.next { $0.content?.first?.author.name == "Countess" }
        await #expect(throws: StoreError.self) { try await articles[7].requireData(from: .cache) }
    }

    /// The cacher has no memory in front, so the entity leaves memory once it is saved.
    @Test(arguments: [false, true])
    func `E1: idle lists show a change of an entity that only the cacher has by then`(_ wasObserved: Bool) async throws {
        let world = LinkedWorld(articles: GatedCacher<Int, Article>())
        if wasObserved { await world.articles[7].update(Article(id: 7)) }
        let detail = try await wasObserved ? observeCompleted(world.articles[7].publish()) : nil
        world.time.advance(by: .seconds(1))
        try await world.loadFeed([Article(id: 7)])
        try await world.loadSearch([Finding(articleID: 7)])
        try await detail?.stopAndLeave()
        world.time.advance(by: .seconds(1))
        await world.articles[7].update(Article(id: 7, isLiked: true))
        try await until("the article leaves memory") { world.articles.engine.state.withLock { $0.live.isEmpty } }
        #expect(try await world.liked() == [7])
        #expect(try await world.found() == [7])
    }

    /// An older list shows the entity before its change, or only after the entity has left memory.
    @Test(arguments: [false, true])
    func `E2: the row of a key without content keeps a newer entity inside it that has left memory`(_ isLate: Bool) async throws {
        let memory = MemoryCacher<String, Writer>()
        let (writers, _, feed) = world.storesOfWriters(memory)
        let request = HeldRequest<[Writer]>()
        let staff = Store(cacher: MemoryCacher<Int, [Writer]>(), links: [.elements(of: writers)], time: world.time) { _ in
            try await request.run()
        }
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        let list = try await observeCompleted(feed["home"].publish())
        world.time.advance(by: .seconds(1))
        let load = Task { try await staff[1].requireData() }
        try await request.hasBegun()
        func finish() async throws {
            request.end(.success([Writer(id: "ada")]))
            _ = try await load.value
        }
        if !isLate { try await finish() }
        world.time.advance(by: .seconds(1))
        await writers["ada"].update(Writer(id: "ada", name: "Countess"))
        try await list.next { $0.content?.first?.author.name == "Countess" }
        memory.trim(to: 0)
        if isLate { try await finish() }
        await writers["bob"].update(Writer(id: "bob"))
        #expect(try await feed["home"].requireData().map(\.author.name) == ["Countess"])
    }

    @Test func `E1, E9: values inside content agree across two levels of links`() async throws {
        let (writers, articles, feed) = world.storesOfWriters()
        await writers["ada"].update(Writer(id: "ada"))
        await articles[7].update(Article(id: 7))
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        _ = try await feed["home"].requireData()
        let observer = try await observeCompleted(feed["home"].publish())
        await writers["ada"].update { $0.name = "Countess" }
        #expect(try await articles[7].requireData().author.name == "Countess")
        #expect(try await feed["home"].requireData().map(\.author.name) == ["Countess"])
        try await observer.next { $0.content?.first?.author.name == "Countess" }
    }
}
