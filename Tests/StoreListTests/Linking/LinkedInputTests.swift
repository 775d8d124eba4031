import Foundation
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Tests of links with input that no law's own test has: shared identities, failing cachers, clocks that go back, and their like.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LinkedInputTests {
    private let world = LinkedWorld()

    #if os(macOS) || os(Linux)
    @Test func `E9: a link to a store of another scope is refused`() async {
        await #expect(processExitsWith: .failure) {
            let articles = Store(cacher: MemoryCacher<Int, Article>(), scope: CacheScope()) { Article(id: $0) }
            _ = Store(cacher: MemoryCacher<String, [Article]>(), links: [.elements(of: articles)], scope: CacheScope()) { _ in [] }
        }
    }
    #endif

    @Test func `E10: of two elements of one page with the same identity, both show the last one`() async throws {
        let lists = Store(
            cacher: MemoryCacher<String, [Article]>(), links: [.elements(of: world.articles)], time: world.time
        ) { _ in [Article(id: 7, title: "first"), Article(id: 6), Article(id: 7, title: "last")] }
        await world.articles[7].update(Article(id: 7, title: "old"))
        world.time.advance(by: .seconds(1))
        #expect(try await lists["a"].requireData().map(\.title) == ["last", "title", "last"])
        #expect(try await world.articles[7].requireData().title == "last")
        await world.articles[7].update { $0.isLiked = true }
        #expect(try await lists["a"].requireData().map(\.isLiked) == [true, false, true])
    }

    @Test func `E10: an entity that states another key changes no place`() async throws {
        world.origin.enqueue(.success(Article(id: 8, title: "stray")))
        try await world.loadFeed([Article(id: 7, title: "seven"), Article(id: 8, title: "eight")])
        #expect(try await world.articles[7].requireData().title == "stray")
        #expect(try await world.feed["home"].requireData().map(\.title) == ["seven", "eight"])
        #expect(try await world.articles[7].requireData().title == "stray")
    }

    @Test func `E10: a pending change of an entity that states another key is not shown`() async throws {
        await world.articles[7].update(Article(id: 7))
        try await world.loadFeed([Article(id: 7)])
        let observer = RecordingObserver(world.feed["home"].publish())
        let (request, task) = world.like(7)
        try await observer.next { $0.content?.first?.isLiked == true }
        await world.articles[7].update(Article(id: 8))
        await request.fail(task)
        #expect(try await world.liked() == [])
    }

    /// Creates an article under a temporary key with a row in the feed or the search, until the origin assigns key 7.
    private func create(inSearch isFound: Bool = false) async {
        let (id, draft, engine) = (UUID(), Article(id: -1, title: "draft"), world.articles.engine)
        engine.knowCommands([id])
        engine.showCreation(CommandMark(id: id, order: 1), of: BoxedKey(-1), BoxedContent(draft))
        if isFound {
            await world.search["swift"].update { $0.append(Finding(articleID: -1, title: "draft", rank: 3)) }
        } else {
            await world.feed["home"].update { $0.append(draft) }
        }
        await engine.settleCreation(
            id, from: BoxedKey(-1), to: BoxedKey(7), .response(BoxedContent(Article(id: 7, title: "made"))), first: BoxedContent(draft),
            moved: {}, saved: { _ in })
    }

    @Test func `E10: the row of a temporary key follows the key that replaces it`() async throws {
        try await world.loadFeed([Article(id: 6)], nextKey: "2")
        let observer = try await observeCompleted(world.feed["home"].publish())
        await create()
        try await observer.next { $0.content?.map(\.title) == ["title", "made"] }
        await world.articles[7].update { $0.isLiked = true }
        try await observer.next { $0.content?.map(\.isLiked) == [false, true] }
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "page"), Article(id: 8)]))
        #expect(await world.feed["home"].requestNextData() == .loaded)
        #expect(try await world.feed["home"].requireData().map(\.id) == [6, 7, 8])
    }

    @Test func `E10: the row of a temporary key leaves a list that has its entity already`() async throws {
        try await world.loadFeed([Article(id: 6), Article(id: 7)])
        let observer = RecordingObserver(world.feed["home"].publish())
        try await observer.next { $0.isCompleted }
        await create()
        #expect(try await world.feed["home"].requireData().map(\.title) == ["title", "made"])
    }

    @Test(arguments: [false, true])
    func `E10: the row of a temporary key follows a key that another process has learned`(_ isEarly: Bool) async throws {
        try await world.loadFeed([Article(id: -1, title: "draft")])
        if !isEarly { await world.articles[7].update(Article(id: 7, title: "made")) }
        let observer = try await observeCompleted(world.feed["home"].publish())
        world.articles.engine.replaceKey(BoxedKey(-1), with: BoxedKey(7), unlessShown: true)
        if isEarly { await world.articles[7].update(Article(id: 7, title: "made")) }
        try await observer.next { $0.content?.map(\.title) == ["made"] }
    }

    @Test func `E10: a fragment of a temporary key gets the key that replaces it`() async throws {
        try await world.loadSearch([Finding(articleID: 6)])
        await create(inSearch: true)
        let made = Finding(articleID: 7, title: "made", rank: 3)
        #expect(try await world.search["swift"].requireData() == [Finding(articleID: 6), made])
        await world.articles[7].update { $0.isLiked = true }
        #expect(try await world.found() == [7])
    }

    private struct Story: Identifiable, Hashable, Sendable {
        var id: Int
        var author: Writer?
    }

    private func storesOfStories() async -> (writers: Store<String, Writer>, stories: Store<Int, Story>, feed: Store<String, [Story]>) {
        let writers = Store(cacher: MemoryCacher<String, Writer>(), time: world.time) { Writer(id: $0) }
        let stories = Store(cacher: MemoryCacher<Int, Story>(), time: world.time) { Story(id: $0) }
        let links: [EntityLink<[Story]>] = [
            .elements(of: stories),
            .entities(of: writers, id: { $0.id }) { rows, visit in
                for row in rows.indices {
                    guard var author = rows[row].author else { continue }
                    visit(&author)
                    rows[row].author = author
                }
            },
        ]
        let feed = Store(cacher: MemoryCacher<String, [Story]>(), links: links, time: world.time) { _ in
            [Story(id: 1, author: Writer(id: "ada")), Story(id: 2, author: Writer(id: "ada"))]
        }
        for id in 1...2 { await stories[id].update(Story(id: id, author: Writer(id: "ada"))) }
        await writers["ada"].update(Writer(id: "ada"))
        return (writers, stories, feed)
    }

    @Test func `E1, E10: a pending change is shown at the places that another pending change leaves to its entity`() async throws {
        let (writers, stories, feed) = await storesOfStories()
        let observer = RecordingObserver(feed["home"].publish())
        try await observer.next { $0.isCompleted }
        try await writers["ada"].mutate {
            $0.name = "Countess"
        } perform: {
            for author in [nil, Writer(id: "bob", name: "Bob")] {
                try? await stories[1].mutate {
                    $0.author = author
                } perform: {
                    let names = try await feed["home"].requireData().map(\.author?.name)
                    #expect(names == [author?.name, "Countess"])
                    throw Offline()
                }
            }
            let names = try await feed["home"].requireData().map(\.author?.name)
            #expect(names == ["Countess", "Countess"])
        }
    }

    @Test(arguments: [false, true])
    func `E1: observers see a change through content that is idle in memory`(_ isSaved: Bool) async throws {
        func store<Key: Hashable & Sendable, Content: Sendable>(
            _ links: [EntityLink<Content>], _ fetch: @escaping @Sendable (Key) -> Content
        ) -> Store<Key, Content> {
            guard isSaved else { return Store(cacher: MemoryCacher(), links: links, time: world.time, fetch: fetch) }
            return Store(cacher: TieredCacher(over: GatedCacher<Key, Content>()), links: links, time: world.time, fetch: fetch)
        }
        let writers = store([]) { (id: String) in Writer(id: id) }
        let news = store([.value(at: \.writer, of: writers)]) { (id: Int) in News(id: id, writer: Writer(id: "ada")) }
        let feed = store([.elements(of: news)]) { (_: String) in [News(id: 1, writer: Writer(id: "ada"))] }
        _ = try await writers["ada"].requireData()
        _ = try await news[1].requireData()
        let observer = try await observeCompleted(feed["home"].publish())
        try await writers["ada"].mutate {
            $0.name = "Countess"
        } perform: {
            try await observer.next { $0.content?.first?.writer.name == "Countess" }
        }
        await writers["ada"].update(Writer(id: "ada", name: "Lovelace"))
        try await observer.next { $0.content?.first?.writer.name == "Lovelace" }
    }

    private struct News: Identifiable, Hashable, Sendable {
        var id: Int
        var writer: Writer
    }

    @Test func `E10: places inside the values of another link move with them`() async throws {
        let (writers, stories, feed) = await storesOfStories()
        let observer = RecordingObserver(feed["home"].publish())
        try await observer.next { $0.isCompleted }
        await stories[2].update(Story(id: 2, author: Writer(id: "bob", name: "Bob")))
        await writers["ada"].update(Writer(id: "ada", name: "Countess"))
        #expect(try await feed["home"].requireData().map(\.author?.name) == ["Countess", "Bob"])
        await stories[1].update(Story(id: 1))
        await writers["ada"].update(Writer(id: "ada", name: "Lovelace"))
        #expect(try await feed["home"].requireData().map(\.author?.name) == [nil, "Bob"])
        #expect(try await writers["ada"].requireData().name == "Lovelace")
        #expect(try await stories[2].requireData().author?.id == "bob")
    }

    @Test func `V2, E9: content that a change of an entity takes out of memory is there for a reader`() async throws {
        let (place, isTaken) = (WatchedState<Store<Int, Article>?>(nil), WatchedState(false))
        let writers = Store(cacher: MemoryCacher<String, Writer>(), time: world.time) { Writer(id: $0) }
        let link = EntityLink<Article>.entities(of: writers, id: { $0.id }) { article, visit in
            if place.current?.memory?.count == 0, !isTaken.current {
                isTaken.update { $0 = true }
                // Meanwhile the reader looks.
                Thread.sleep(forTimeInterval: 0.05)
            }
            visit(&article.author)
        }
        let articles = Store(cacher: MemoryCacher<Int, Article>(), links: [link], time: world.time) { Article(id: $0) }
        let observer = try await observeCompleted(articles[7].publish())
        place.update { $0 = articles }
        defer { place.update { $0 = nil } }
        await writers["ada"].update(Writer(id: "ada", name: "Countess"))
        try await isTaken.wait { $0 ? () : nil }
        #expect(articles[7].stateInMemory?.content?.author.name == "Countess")
        withExtendedLifetime(observer) {}
    }

    @Test func `E3: a row of the entity's type without its text leaves the text of the detail`() async throws {
        let feed = PaginationStore(
            cacher: MemoryCacher<String, [Article]>(), fetcher: world.feedOrigin,
            links: [.elements(of: world.articles, id: \.id, fields: (\.title, \.title), (\.isLiked, \.isLiked))], time: world.time)
        await world.articles[7].update(Article(id: 7, text: "long"))
        world.time.advance(by: .seconds(1))
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "new", text: "")]))
        #expect(try await feed["home"].requireData() == [Article(id: 7, title: "new", text: "")])
        #expect(try await world.articles[7].requireData() == Article(id: 7, title: "new", text: "long"))
    }

    @Test(arguments: [true, false])
    func `E7: an entity that is removed while its mutation is pending stays removed`(_ succeeds: Bool) async throws {
        await world.articles[7].update(Article(id: 7))
        try await world.loadFeed([Article(id: 6), Article(id: 7)])
        let (request, task) = world.like(7)
        try await request.hasBegun()
        try await world.articles.remove(7) {}
        #expect(try await world.feed["home"].requireData().map(\.id) == [6])
        request.end(succeeds ? .success(()) : .failure(Offline()))
        _ = await task.result
        #expect(try await world.feed["home"].requireData().map(\.id) == [6])
        await #expect(throws: StoreError.self) { try await world.articles[7].requireData() }
        #expect(world.origin.startedCount == 0)
    }

    enum Loss: Sendable { case clear, storeClear, eviction, evictionToDisk }

    /// The clock may stand still between the request and the like. A page may repeat a row, because the list has moved at its origin.
    @Test(
        arguments: [
            (.storeClear, false, 1), (.clear, false, 1), (.clear, false, 0), (.eviction, false, 1), (.evictionToDisk, false, 1),
            (.eviction, true, 1),
        ] as [(Loss, Bool, Int)])
    func `E2: a list or page that was requested before a like does not take it back, although the entity was cleared or evicted meanwhile`(
        _ loss: Loss, _ isPage: Bool, _ seconds: Int
    ) async throws {
        let memory = (MemoryCacher<Int, Article>(), TieredCacher(over: GatedCacher<Int, Article>()))
        let world = loss == .evictionToDisk ? LinkedWorld(articles: memory.1) : LinkedWorld(articles: memory.0)
        try await world.loadFeed([Article(id: 6), Article(id: 7)], nextKey: "2")
        world.time.advance(by: .seconds(seconds))
        await world.articles[7].update(Article(id: 7))
        let request = try await world.beginFeed { list in
            if isPage { _ = await list.requestNextData() } else { await list.refresh() }
        }
        world.time.advance(by: .seconds(seconds))
        let isCleared = loss == .clear || loss == .storeClear
        if isCleared || isPage {
            await world.articles[7].update { $0.isLiked = true }
        } else {
            try await world.articles[7].mutate(optimistically: { $0.isLiked = true }) {}
        }
        #expect(try await world.liked() == [7])
        switch loss {
        case .clear: await world.articles[7].clear()
        case .storeClear: try await world.articles.clear()
        case .eviction, .evictionToDisk:
            try await world.articles.waitUntilSaved()
            memory.0.trim(to: 0)
            memory.1.trim(to: 0)
        }
        if isCleared { #expect(try await world.liked() == [7]) }
        await world.end(request, with: [Article(id: 7), Article(id: 8)])
        if !isCleared, !isPage { try await until("an entity on disk was read") { try await world.liked() == [7] } }
        #expect(try await world.liked() == [7])
        #expect(try await world.feed["home"].requireData().map(\.id).sorted() == (isPage ? [6, 7, 8] : [7, 8]))
    }

    @Test func `E2: a page that arrives after clear of the entities' store shows its own rows and makes no entity`() async throws {
        await world.articles[7].update(Article(id: 7))
        try await world.loadFeed([Article(id: 6)], nextKey: "2")
        let page = try await world.beginFeed { await $0.requestNextData() }
        try await world.articles.clear()
        #expect(await world.end(page, with: [Article(id: 7, title: "page")]) == .loaded)
        #expect(try await world.feed["home"].requireData().map(\.title) == ["title", "page"])
        await #expect(throws: StoreError.self) { try await world.articles[7].requireData(from: .cache) }
        #expect(world.origin.startedCount == 0)
    }

    @Test func `E2: a clock that is set back between two launches does not make later changes older`() async throws {
        let disks = Disks()
        let first = disks.world()
        first.time.advance(by: .seconds(86_400))
        await first.articles[7].update(Article(id: 7, title: "before"))
        try await first.loadFeed([Article(id: 7, title: "fed")])
        try await first.waitUntilSaved()
        // The clock of the new world is a day behind.
        let second = disks.world()
        _ = await second.feed["home"].getData(from: .cache)
        await second.articles[7].update { $0.title = "after" }
        let observer = RecordingObserver(second.feed["home"].publish())
        try await observer.next { $0.content?.first?.title == "after" }
        second.feedOrigin.enqueue(.page([Article(id: 7, title: "newest")]))
        await second.feed["home"].refresh()
        #expect(try await second.feed["home"].requireData().map(\.title) == ["newest"])
        #expect(try await second.articles[7].requireData().title == "newest")
    }

    /// The contents of a store have stamps from its first link or removal on.
    @Test(arguments: [true, false])
    func `E2: a fetch that began before the first link or removal of its store is accepted`(_ isLinked: Bool) async throws {
        let articles = Store(cacher: MemoryCacher<Int, Article>(), fetcher: world.origin, time: world.time)
        await articles[7].update(Article(id: 7))
        world.time.advance(by: .seconds(1))
        world.origin.hold()
        let refresh = Task { await articles[7].refresh() }
        try await world.origin.started(count: 1)
        var feed: PaginationStore<String, Article>?
        if isLinked {
            feed = PaginationStore(
                cacher: MemoryCacher<String, [Article]>(), fetcher: world.feedOrigin, links: [.elements(of: articles)], time: world.time)
        } else {
            try await articles.remove(8) {}
        }
        await world.end(refresh, with: Article(id: 7, title: "fetched"))
        #expect(try await articles[7].requireData().title == "fetched")
        withExtendedLifetime(feed) {}
    }

    @Test func `E2: a fetch from after the success of a mutation is accepted, although the change became content during it`() async throws {
        await world.articles[7].update(Article(id: 7))
        let (request, articles) = (HeldRequest<Void>(), world.articles)
        let earlier = Task { try await articles[7].mutate(optimistically: { $0.text = "failed" }) { try await request.run() } }
        try await request.hasBegun()
        try await articles[7].mutate(optimistically: { $0.isLiked = true }) {}
        world.time.advance(by: .seconds(1))
        let refresh = try await world.beginRefresh(of: 7)
        world.time.advance(by: .seconds(1))
        await request.fail(earlier)
        await world.end(refresh, with: Article(id: 7, title: "fetched", isLiked: true))
        #expect(try await articles[7].requireData() == Article(id: 7, title: "fetched", isLiked: true))
    }

    @Test func `E2: a damaged stamp of a record does not precede later fetches and changes`() async throws {
        let cacher = GatedCacher<Int, Article>()
        var record = CacheRecord(content: Article(id: 7), fetchedAt: world.time.date)
        record.fields.stamp = .max
        record.fields.parts = ["title": .max]
        try await cacher.save(record, param: 7)
        let second = LinkedWorld(articles: TieredCacher(over: cacher))
        #expect(try await second.articles[7].requireData() == Article(id: 7))
        second.origin.enqueue(.success(Article(id: 7, title: "fetched")))
        await second.articles[7].refresh()
        #expect(try await second.articles[7].requireData().title == "fetched")
        try await second.loadFeed([Article(id: 7, title: "newer")])
        #expect(try await second.articles[7].requireData().title == "newer")
    }

    @Test func `E2: a created entity gives way to a fetch of its key that began before`() async throws {
        let (id, draft) = (UUID(), BoxedContent(Article(id: -1, title: "draft")))
        let (engine, articles) = (world.articles.engine, world.articles)
        engine.knowCommands([id])
        engine.showCreation(CommandMark(id: id, order: 1), of: BoxedKey(-1), draft)
        world.origin.hold()
        let fetch = Task { try await articles[7].requireData().title }
        try await world.origin.started(count: 1)
        await engine.settleCreation(id, from: BoxedKey(-1), to: BoxedKey(7), .unknown, first: draft, moved: {}, saved: { _ in })
        world.origin.enqueue(.success(Article(id: 7, title: "fetched")))
        world.origin.release()
        #expect(try await fetch.value == "fetched")
        #expect(try await articles[7].requireData(from: .cache).title == "fetched")
    }

    @Test func `E2: after a restart with a clock that was set back, a fetch is newer than the fields of older fragments`() async throws {
        let disks = Disks()
        let first = disks.world()
        await first.articles[7].update(Article(id: 7))
        first.time.advance(by: .seconds(86_400))
        try await first.loadSearch([Finding(articleID: 7, title: "fragment")])
        try await first.articles.waitUntilSaved()
        // The clock of the new world is a day behind, and the search is not loaded.
        let second = disks.world()
        #expect(try await second.articles[7].requireData().title == "fragment")
        second.origin.enqueue(.success(Article(id: 7, title: "fetched")))
        await second.articles[7].refresh()
        #expect(try await second.articles[7].requireData().title == "fetched")
    }

    @Test func `E1: thousands of rows that all change agree with their entities`() async throws {
        let count = max(4_000, rounds(100_000, quick: 4_000))
        await world.articles[7].update(Article(id: 7))
        world.feedOrigin.enqueue(.page((0..<count).map { Article(id: $0) }))
        _ = try await world.feed["home"].requireData()
        world.time.advance(by: .seconds(1))
        world.feedOrigin.enqueue(.page((0..<count).map { Article(id: $0, title: "new") }))
        await world.feed["home"].refresh()
        #expect(try await world.articles[7].requireData().title == "new")
        await world.articles[7].update { $0.isLiked = true }
        #expect(try await world.liked() == [7])
        await world.feed["home"].update { rows in for row in rows.indices { rows[row].isLiked = row != 7 } }
        #expect(try await world.liked().count == count - 1)
        #expect(try await !world.articles[7].requireData().isLiked)
    }

    @Test func `E9: a list keeps a newer row while the store of its entities is being closed`() async throws {
        let disk = GatedCacher<Int, Article>()
        let world = LinkedWorld(articles: TieredCacher(over: disk))
        let articles = world.articles
        await articles[7].update(Article(id: 7))
        try await world.loadFeed([Article(id: 7)])
        try await articles.waitUntilSaved()
        let count = disk.calls(.save).count
        disk.hold(.save)
        let update = Task { await articles[7].update { $0.title = "saved late" } }
        try await disk.began(.save, count: count + 1)
        let closing = Task { try await articles.close() }
        try await until("the store is closed") { !articles.engine.isOpen }
        await world.feed["home"].update { $0[0].title = "newer" }
        #expect(try await world.feed["home"].requireData().map(\.title) == ["newer"])
        disk.release()
        try await closing.value
        _ = await update.value
        #expect(try await world.feed["home"].requireData().map(\.title) == ["newer"])
    }

    @Test func `E8: a place shows its own value if its entity cannot be loaded, and an event says so`() async throws {
        let disks = Disks()
        let first = disks.world()
        await first.articles[7].update(Article(id: 7, title: "entity"))
        try await first.loadFeed([Article(id: 7, title: "row")])
        try await first.feed.waitUntilSaved()
        disks.articles.fail(.load)
        let events = EventLog()
        let second = disks.world(onEvent: events.append)
        #expect(try await second.feed["home"].requireData(from: .cache).map(\.title) == ["row"])
        try await until("the fault is reported") {
            events.all.contains { if case .cacherFault(.load, _) = $0.kind { true } else { false } }
        }
    }

    /// The program ends after one of the two saves.
    @Test(arguments: [true, false])
    func `E8: entity and list agree after a launch that ended between their saves`(_ savesEntity: Bool) async throws {
        let disks = Disks()
        let first = disks.world()
        await first.articles[7].update(Article(id: 7))
        try await first.loadFeed([Article(id: 7)])
        try await first.loadSearch([Finding(articleID: 7)])
        try await first.waitUntilSaved()
        first.time.advance(by: .seconds(1))
        if savesEntity {
            disks.feed.fail(.save)
            disks.search.fail(.save)
        } else {
            disks.articles.fail(.save)
        }
        await first.feed["home"].update { $0[0].isLiked = true }
        #expect(try await first.found() == [7])
        try? await first.articles.waitUntilSaved()
        try? await first.feed.waitUntilSaved()
        try? await first.search.waitUntilSaved()
        disks.articles.recover()
        disks.feed.recover()
        disks.search.recover()
        let second = disks.world()
        second.time.advance(by: .seconds(2))
        #expect(try await second.liked() == [7])
        #expect(try await second.found() == [7])
        #expect(try await second.articles[7].requireData().isLiked)
        #expect(second.feedOrigin.startedCount + second.searchOrigin.startedCount + second.origin.startedCount == 0)
    }

    @Test func `E2, E8: the stamps of fields that fragments have brought survive a restart`() async throws {
        let disks = Disks()
        let first = disks.world()
        await first.articles[7].update(Article(id: 7, title: "first"))
        first.time.advance(by: .seconds(1))
        first.searchOrigin.enqueue(.page([Finding(articleID: 7, title: "second")]))
        _ = try await first.search["old"].requireData()
        try await first.search.waitUntilSaved()
        disks.memory.value?.search.trim(to: 0)
        first.time.advance(by: .seconds(1))
        first.searchOrigin.enqueue(.page([Finding(articleID: 7, title: "third")]))
        _ = try await first.search["new"].requireData()
        #expect(try await first.articles[7].requireData().title == "third")
        try await first.waitUntilSaved()
        let second = disks.world()
        second.time.advance(by: .seconds(5))
        #expect(try await second.search["old"].requireData(from: .cache).map(\.title) == ["third"])
        #expect(try await second.articles[7].requireData(from: .cache).title == "third")
    }
}
