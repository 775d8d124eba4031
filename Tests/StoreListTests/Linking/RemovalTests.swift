import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Tests mutations through lists, placeholders, and the removal of entities.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RemovalTests {
    private let world = LinkedWorld()

    @Test func `E5: a mutation of a full element is one mutation of the entity`() async throws {
        try await world.loadFeed([Article(id: 6), Article(id: 7)])
        try await world.loadSearch([Finding(articleID: 7)])
        await world.articles[7].update(Article(id: 7))
        let (request, task) = world.like(row: 7)
        try await request.hasBegun()
        #expect(try await world.articles[7].requireData().isLiked)
        #expect(try await world.liked() == [7])
        #expect(try await world.found() == [7])
        await request.fail(task)
        #expect(try await world.articles[7].requireData().isLiked == false)
        #expect(try await world.liked() == [])
        #expect(try await world.found() == [])
    }

    @Test func `E5: the response to a mutation of an element becomes the entity`() async throws {
        try await world.loadFeed([Article(id: 7)])
        await world.articles[7].update(Article(id: 7))
        try await world.feed["home"].mutate(element: 7) {
            $0.isLiked = true
        } perform: {
            Article(id: 7, title: "response", isLiked: true)
        }
        #expect(try await world.articles[7].requireData().title == "response")
        #expect(try await world.feed["home"].requireData().map(\.title) == ["response"])
    }

    @Test(arguments: [false, true])
    func `E5: a confirmed change that waits for an earlier one is not applied again to the value of a newer list`(
        _ isFragment: Bool
    ) async throws {
        await world.articles[7].update(Article(id: 7, title: "a"))
        try await world.loadFeed([Article(id: 7, title: "a")])
        try await world.loadSearch([Finding(articleID: 7, title: "a")])
        let (request, task) = world.like(7)
        try await request.hasBegun()
        try await world.articles[7].mutate(optimistically: { $0.title += "!" }) {}
        world.time.advance(by: .seconds(1))
        if isFragment {
            world.searchOrigin.enqueue(.page([Finding(articleID: 7, title: "a!")]))
            await world.search["swift"].refresh()
        } else {
            world.feedOrigin.enqueue(.page([Article(id: 7, title: "a!")]))
            await world.feed["home"].refresh()
        }
        #expect(try await world.articles[7].requireData() == Article(id: 7, title: "a!", isLiked: true))
        await request.fail(task)
        #expect(try await world.articles[7].requireData() == Article(id: 7, title: "a!"))
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, title: "a!")])
    }

    @Test func `E5: a mutation of a fragment stays in its list`() async throws {
        try await world.loadSearch([Finding(articleID: 7)])
        await world.articles[7].update(Article(id: 7))
        let request = HeldRequest<Void>()
        let search = world.search
        let task = Task { try await search["swift"].mutate(element: 7, optimistically: { $0.isLiked = true }) { try await request.run() } }
        try await request.hasBegun()
        #expect(try await world.found() == [7])
        #expect(try await world.articles[7].requireData().isLiked == false)
        await request.fail(task)
        #expect(try await world.found() == [])
    }

    @Test(arguments: [(false, false), (true, false), (true, true)])
    func `E5: a mutation of an entity without content shows at full places, and the row becomes the content`(
        _ isObserved: Bool, _ isOfRow: Bool
    ) async throws {
        try await world.loadFeed([Article(id: 7, title: "row")])
        let observer = try await isObserved ? observeCompleted(world.feed["home"].publish()) : nil
        let (request, task) = isOfRow ? world.like(row: 7) : world.like(7)
        try await request.hasBegun()
        #expect(try await world.liked() == [7])
        try await observer?.next { $0.content?.first?.isLiked == true }
        request.end(.success(()))
        try await task.value
        #expect(try await world.liked() == [7])
        guard isOfRow else { return }
        let error = await #expect(throws: StoreError.self) { try await world.articles[7].requireData(from: .cache) }
        #expect(error?.staleContent as? Article == Article(id: 7, title: "row", isLiked: true))
        #expect(world.origin.startedCount == 0)
    }

    @Test func `E5: a mutation of an entity without content still shows when a later one has succeeded`() async throws {
        try await world.loadFeed([Article(id: 7)])
        let (request, task) = world.like(row: 7)
        try await request.hasBegun()
        try await world.feed["home"].mutate(element: 7, optimistically: { $0.title = "new" }) {}
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, title: "new", isLiked: true)])
        request.end(.success(()))
        try await task.value
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, title: "new", isLiked: true)])
    }

    @Test func `E5: a mutation of an element changes the list although the entity was evicted`() async throws {
        let memory = MemoryCacher<Int, Article>()
        let world = LinkedWorld(articles: memory)
        await world.articles[7].update(Article(id: 7, text: "long"))
        try await world.loadFeed([Article(id: 7, text: "long")])
        memory.trim(to: 0)
        try await world.feed["home"].mutate(element: 7, optimistically: { $0.isLiked = true }) {}
        #expect(try await world.feed["home"].requireData() == [Article(id: 7, text: "long", isLiked: true)])
    }

    @Test func `E5: a mutation of an entity without content shows in a long list too`() async throws {
        let row = EntityRows.share + 1
        try await world.loadFeed((0...row).map { Article(id: $0) })
        let (request, task) = world.like(row: row)
        try await request.hasBegun()
        #expect(try await world.liked() == [row])
        request.end(.success(()))
        try await task.value
        #expect(try await world.liked() == [row])
        #expect(try await world.feed.lists.acceptedContent(of: "home")?.last?.isLiked == true)
    }

    @Test(arguments: [(false, false), (true, false), (false, true)])
    func `E6: the detail starts with the row of a loaded list, and fetches; after clear(), a failure shows the row`(
        _ isObserved: Bool, _ fails: Bool
    ) async throws {
        try await world.loadFeed([Article(id: 7, title: "row")])
        let feed = try await isObserved ? observeCompleted(world.feed["home"].publish()) : nil
        world.origin.hold()
        let detail = RecordingObserver(world.articles[7].publish())
        try await detail.next { $0.isLoading && $0.content?.title == "row" }
        #expect(detail.states.count == 1)
        await world.articles[7].clear()
        try await world.origin.started(count: 2)
        for _ in 1...2 { world.origin.enqueue(fails ? .failure(Offline()) : .success(Article(id: 7, title: "detail"))) }
        world.origin.release()
        if fails {
            #expect(try await detail.next { $0.error is Offline }.content?.title == "row")
            return
        }
        try await detail.next { $0.isCompleted && $0.content?.title == "detail" }
        #expect(!detail.states.contains { $0.isLoading && $0.content == nil })
        try await feed?.next { $0.content?.first?.title == "detail" }
    }

    @Test func `E6: the detail starts with the content that the list shows, even if that has left memory`() async throws {
        let memory = MemoryCacher<Int, Article>()
        let world = LinkedWorld(articles: memory)
        try await world.loadFeed([Article(id: 7, title: "row")])
        world.time.advance(by: .seconds(1))
        await world.articles[7].update(Article(id: 7, title: "new"))
        #expect(try await world.feed["home"].requireData().map(\.title) == ["new"])
        memory.trim(to: 0)
        world.origin.hold()
        let detail = RecordingObserver(world.articles[7].publish())
        #expect(try await detail.states(count: 1)[0].content?.title == "new")
    }

    @Test(arguments: [false, true])
    func `C14, E6: a mutation shows at once in the row in place of content that is loading or failed`(_ hasFailed: Bool) async throws {
        try await world.loadFeed([Article(id: 7, title: "row")])
        world.origin.hold()
        let detail = RecordingObserver(world.articles[7].publish())
        try await detail.next { $0.content?.title == "row" }
        if hasFailed {
            try await world.origin.answer(1, with: .failure(Offline()))
            try await detail.next { $0.error is Offline }
        }
        let (request, task) = world.like(7)
        try await detail.next { $0.content?.isLiked == true }
        await request.fail(task)
        try await detail.next { $0.content?.isLiked == false }
    }

    @Test func `E6, E10: the detail of a temporary key starts with the row of the key that has replaced it`() async throws {
        world.articles.engine.replaceKey(BoxedKey(-1), with: BoxedKey(7), unlessShown: true)
        try await world.loadFeed([Article(id: 7, title: "row")])
        world.origin.hold()
        let detail = RecordingObserver(world.articles[-1].publish())
        #expect(try await detail.states(count: 1)[0].content?.title == "row")
    }

    @Test func `E6, E7: clearing the scope drops rows and removals`() async throws {
        let scope = CacheScope()
        let world = LinkedWorld(scope: scope)
        let (articles, feed) = (world.articles, world.feed)
        world.feedOrigin.enqueue(.page([Article(id: 7, title: "row"), Article(id: 8)]))
        _ = try await feed["home"].requireData()
        try await articles.remove(8) {}
        world.origin.hold()
        let before = RecordingObserver(articles[7].publish())
        try await before.next { $0.content?.title == "row" }
        try await scope.clear()
        let after = RecordingObserver(articles[7].publish())
        #expect(try await after.states(count: 1)[0].content == nil)
        world.origin.enqueue(.success(Article(id: 7)), .success(Article(id: 8)))
        world.origin.release()
        try await after.next { $0.isCompleted }
        #expect(try await articles[8].requireData().id == 8)
    }

    @Test func `E6: a list of a scope that is being cleared brings no row back`() async throws {
        await world.articles[7].update(Article(id: 7))
        try await world.loadFeed([Article(id: 7, title: "row")])
        let feed = try await observeCompleted(world.feed["home"].publish())
        world.origin.hold()
        let detail = RecordingObserver(world.articles[7].publish())
        try await detail.next { $0.isCompleted }
        // The stores of a scope are cleared at once, and this one is the first.
        try await world.articles.engine.clear()
        #expect(try await world.feed["home"].requireData().map(\.title) == ["row"])
        #expect(world.articles.engine.newestRow(of: BoxedKey(7)) == nil)
        withExtendedLifetime(feed) {}
    }

    @Test func `E7: the detail of a removed entity does not show the row of a list`() async throws {
        try await world.loadFeed([Article(id: 7, title: "row")])
        world.origin.hold()
        let detail = RecordingObserver(world.articles[7].publish())
        try await detail.next { $0.content?.title == "row" }
        try await world.articles.remove(7) {}
        let state = try await detail.next { $0.error != nil }
        #expect((state.error as? StoreError)?.code == .removed)
        #expect(state.content == nil)
    }

    @Test func `E7: a removal hides the elements at once, and a failure restores them in place`() async throws {
        try await world.loadFeed([Article(id: 6), Article(id: 7), Article(id: 8)])
        try await world.loadSearch([Finding(articleID: 7), Finding(articleID: 8)])
        await world.articles[7].update(Article(id: 7))
        let feed = try await observeCompleted(world.feed["home"].publish())
        let request = HeldRequest<Void>()
        let articles = world.articles
        let task = Task { try await articles.remove(7) { try await request.run() } }
        try await feed.next { $0.content?.map(\.id) == [6, 8] }
        #expect(try await world.search["swift"].requireData().map(\.id) == [8])
        #expect(try await world.feed["home"].requireData().map(\.id) == [6, 8])
        await request.fail(task)
        #expect(try await world.feed["home"].requireData().map(\.id) == [6, 7, 8])
        #expect(try await world.search["swift"].requireData().map(\.id) == [7, 8])
        #expect(try await world.articles[7].requireData().id == 7)
        try await feed.next { $0.content?.map(\.id) == [6, 7, 8] }
    }

    @Test func `E7: a removed entity leaves the lists, fetched before or after, and the pages shrink with it`() async throws {
        try await world.loadFeed([Article(id: 6), Article(id: 7)], nextKey: "2")
        world.feedOrigin.enqueue(.page([Article(id: 8), Article(id: 9)]))
        #expect(await world.feed["home"].requestNextData() == .loaded)
        world.searchOrigin.hold()
        world.searchOrigin.enqueue(.page([Finding(articleID: 7), Finding(articleID: 8)]))
        let search = Task { [world] in try await world.search["swift"].requireData().map(\.id) }
        try await world.searchOrigin.started(count: 1)
        try await world.articles.remove(7) {}
        world.searchOrigin.release()
        #expect(try await search.value == [8])
        #expect(try await world.feed["home"].requireData().map(\.id) == [6, 8, 9])
        let record = world.feed.lists.memory?.entry(of: "home")?.record
        #expect(record?.content.map(\.id) == [6, 8, 9])
        #expect(record?.pages.map(\.count) == [1, 2])
    }

    @Test func `E7: an observed key that was removed is an error, and is not fetched before a refresh`() async throws {
        await world.articles[7].update(Article(id: 7))
        let detail = try await observeCompleted(world.articles[7].publish())
        try await world.articles.remove(7) {}
        let state = try await detail.next { $0.error != nil }
        #expect((state.error as? StoreError)?.code == .removed)
        #expect(state.content == nil)
        let error = await #expect(throws: StoreError.self) { try await world.articles[7].requireData() }
        #expect(error?.code == .removed)
        #expect(world.origin.startedCount == 0)
        world.origin.enqueue(.success(Article(id: 7, title: "again")))
        await world.articles[7].refresh()
        #expect(try await world.articles[7].requireData().title == "again")
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        #expect(try await world.feed["home"].requireData().map(\.id) == [7])
    }

    @Test func `E7: a refresh that runs while its entity is removed does not fetch it again`() async throws {
        let refresh = try await world.beginRefresh(of: 7)
        try await world.articles.remove(7) {}
        await refresh.value
        let error = await #expect(throws: StoreError.self) { try await world.articles[7].requireData() }
        #expect(error?.code == .removed && world.origin.startedCount == 1)
    }

    @Test func `E7: values inside content stay when their entity is removed`() async throws {
        let (writers, articles, _) = world.storesOfWriters()
        await writers["ada"].update(Writer(id: "ada", name: "Countess"))
        await articles[7].update(Article(id: 7, author: Writer(id: "ada", name: "Countess")))
        try await writers.remove("ada") {}
        #expect(try await articles[7].requireData().author.name == "Countess")
    }

    @Test func `E7: an update brings a removed entity back, but not into a list from before the removal`() async throws {
        try await world.loadFeed([Article(id: 6), Article(id: 7)])
        try await world.articles.remove(7) {}
        await world.articles[7].update(Article(id: 7))
        #expect(try await world.feed["home"].requireData().map(\.id) == [6])
        #expect(try await world.articles[7].requireData().id == 7)
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        #expect(try await world.feed["later"].requireData().map(\.id) == [7])
    }

    @Test(arguments: [false, true])
    func `E7, E10: the removal of a temporary key continues under the key that replaces it`(_ fails: Bool) async throws {
        try await world.loadFeed([Article(id: -1), Article(id: 6)])
        let feed = try await observeCompleted(world.feed["home"].publish())
        let (request, articles) = (HeldRequest<Void>(), world.articles)
        let task = Task { try await articles.remove(-1) { try await request.run() } }
        try await feed.next { $0.content?.map(\.id) == [6] }
        articles.engine.replaceKey(BoxedKey(-1), with: BoxedKey(7), unlessShown: true)
        #expect(try await world.feed["home"].requireData().map(\.id) == [6])
        request.end(fails ? .failure(Offline()) : .success(()))
        _ = await task.result
        #expect(try await world.feed["home"].requireData().map(\.id) == (fails ? [-1, 6] : [6]))
    }

    @Test(arguments: [false, true])
    func `E7: a removal has no effect on the content of a scope that was cleared meanwhile`(_ fails: Bool) async throws {
        let scope = CacheScope()
        let world = LinkedWorld(scope: scope)
        let (articles, feed) = (world.articles, world.feed)
        let request = HeldRequest<Void>()
        let task = Task { try await articles.remove(7) { try await request.run() } }
        try await request.hasBegun()
        try await scope.clear()
        await articles[7].update(Article(id: 7))
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        #expect(try await feed["home"].requireData().map(\.id) == [7])
        request.end(fails ? .failure(Offline()) : .success(()))
        _ = await task.result
        #expect(try await articles[7].requireData().id == 7)
        #expect(try await feed["home"].requireData().map(\.id) == [7])
    }

    @Test func `E7: the newest removals are remembered`() {
        var removals = Removals()
        for key in 0...Removals.limit {
            removals.note(.began, of: BoxedKey(key))
            removals.note(.succeeded(Stamp(key + 1)), of: BoxedKey(key))
        }
        #expect(!removals.isDone(BoxedKey(0)))
        #expect(removals.isDone(BoxedKey(1)))
        #expect(!removals.isRunning(BoxedKey(1)))
    }
}
