import Foundation
import StoreCoreTesting
import StoreFiles
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Tests linked content on disk, over real files.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LinkedRestartTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func launch(memory: Bool = true, after duration: Duration = .zero) -> LinkedWorld {
        let articles = FileCacher<Int, Article>(directory: place.url.appending(path: "articles"))
        let feed = FileCacher<String, [Article]>(directory: place.url.appending(path: "feed"))
        let search = FileCacher<String, [Finding]>(directory: place.url.appending(path: "search"))
        let world =
            memory
            ? LinkedWorld(articles: TieredCacher(over: articles), feed: TieredCacher(over: feed), search: TieredCacher(over: search))
            : LinkedWorld(articles: articles, feed: feed, search: search)
        world.time.advance(by: duration)
        return world
    }

    @Test(arguments: [true, false])
    func `E2, E8: after a restart a list agrees with an entity that was changed without it`(_ memory: Bool) async throws {
        let first = launch(memory: memory)
        try await first.loadFeed([Article(id: 6), Article(id: 7)])
        try await first.loadSearch([Finding(articleID: 7)])
        try await first.waitUntilSaved()
        // The lists are not loaded in the second launch, so the entity alone is saved.
        let second = launch(memory: memory, after: .seconds(1))
        await second.articles[7].update(Article(id: 7, isLiked: true))
        try await second.waitUntilSaved()
        let third = launch(memory: memory, after: .seconds(2))
        #expect(try await third.liked() == [7])
        #expect(try await third.found() == [7])
        #expect(try await third.articles[7].requireData().isLiked)
        #expect(third.feedOrigin.startedCount + third.origin.startedCount + third.searchOrigin.startedCount == 0)
    }

    @Test(arguments: [true, false])
    func `E2, E3, E8: after a restart an older list does not undo a newer entity, and a newer one is merged`(_ memory: Bool) async throws {
        let first = launch(memory: memory)
        await first.articles[7].update(Article(id: 7))
        try await first.loadFeed([Article(id: 7, title: "newer")])
        // An entity that is only on disk is read first.
        let detail = RecordingObserver(first.articles[7].publish())
        try await detail.next { $0.content?.title == "newer" }
        try await first.waitUntilSaved()
        let second = launch(memory: memory, after: .seconds(1))
        #expect(try await second.articles[7].requireData().title == "newer")
        await second.articles[7].update { $0.title = "newest" }
        try await second.waitUntilSaved()
        let third = launch(memory: memory, after: .seconds(2))
        #expect(try await third.feed["home"].requireData().map(\.title) == ["newest"])
    }

    @Test(arguments: [true, false])
    func `E3, E10: the row of a temporary key gets the content of the key that replaces it from disk`(_ memory: Bool) async throws {
        let first = launch(memory: memory)
        await first.articles[7].update(Article(id: 7, title: "made"))
        try await first.waitUntilSaved()
        let second = launch(memory: memory, after: .seconds(1))
        try await second.loadFeed([Article(id: -1, title: "draft")])
        let feed = try await observeCompleted(second.feed["home"].publish())
        second.articles.engine.replaceKey(BoxedKey(-1), with: BoxedKey(7), unlessShown: true)
        try await feed.next { $0.content?.map(\.title) == ["made"] }
    }

    @Test func `E7: a record that another store has saved after a removal brings the entity back`() async throws {
        let (origin, time) = (ScriptedFetcher<Int, Article>(), ManualTime())
        let files = FileCacher<Int, Article>(directory: place.url, expiry: .after(.seconds(60)))
        let (store, other) = (Store(cacher: files, fetcher: origin, time: time), Store(cacher: files, fetcher: origin, time: time))
        try await store.remove(7) {}
        time.advance(by: .seconds(1))
        await other[7].update(Article(id: 7))
        #expect(try await store[7].requireData().id == 7)
        time.advance(by: .seconds(60))
        origin.enqueue(.success(Article(id: 7, title: "again")))
        #expect(try await store[7].requireData().title == "again")
    }

    @Test func `E8: an observed list and its entity agree in the first state`() async throws {
        let first = launch()
        try await first.loadFeed([Article(id: 7)])
        try await first.waitUntilSaved()
        let second = launch(after: .seconds(1))
        await second.articles[7].update(Article(id: 7, isLiked: true))
        try await second.waitUntilSaved()
        let third = launch(after: .seconds(2))
        let observer = try await observeCompleted(third.feed["home"].publish())
        #expect(observer.states.map { $0.content?.first?.isLiked } == [true])
    }

    @Test func `E8: a like in a loaded list is saved with the list`() async throws {
        let first = launch()
        try await first.loadFeed([Article(id: 7)])
        await first.articles[7].update(Article(id: 7))
        let observer = RecordingObserver(first.feed["home"].publish())
        try await observer.next { $0.isCompleted }
        await first.articles[7].update { $0.isLiked = true }
        try await first.waitUntilSaved()
        let files = FileCacher<String, [Article]>(directory: place.url.appending(path: "feed"))
        let record = try await files.load(param: "home")
        #expect(record?.content == [Article(id: 7, isLiked: true)])
        #expect(record?.details?.fields.places?.links.map(\.count) == [1])
    }

    @Test func `E8, E10: a list shows the change of an idle entity by another process, and is not saved for it`() async throws {
        func shared() -> TieredCacher<FileCacher<Int, Article>> {
            TieredCacher(over: FileCacher(directory: place.url.appending(path: "articles"), sharing: .processes))
        }
        let (lists, time) = (GatedCacher<String, [Article]>(), ManualTime())
        let world = LinkedWorld(articles: shared(), feed: lists)
        // The first load begins to follow the changes of others.
        _ = await world.articles[1].getData(from: .cache)
        await world.articles[7].update(Article(id: 7))
        try await world.loadFeed([Article(id: 7)])
        let list = try await observeCompleted(world.feed["home"].publish())
        try await world.waitUntilSaved()
        let saves = lists.calls(.save).count
        let other = Store(cacher: shared(), time: time) { Article(id: $0) }
        for time in [world.time, time] { time.advance(by: .seconds(10)) }
        await other[7].update { $0.isLiked = true }
        try await list.next { $0.content?.first?.isLiked == true }
        try await world.feed.waitUntilSaved()
        #expect(lists.calls(.save).count == saves)
        #expect(world.origin.startedCount == 0)
    }

    @Test func `E2: stamps of loaded records are newer than a clock that was set back`() async throws {
        let first = launch()
        first.time.advance(by: .seconds(1_000_000))
        await first.articles[7].update(Article(id: 7))
        try await first.waitUntilSaved()
        // The record is from the future, so it is stale, but its stamp counts.
        let second = launch()
        await #expect(throws: StoreError.self) { try await second.articles[7].requireData(from: .cache) }
        try await second.loadFeed([Article(id: 7, title: "later")])
        #expect(try await second.feed["home"].requireData().map(\.title) == ["later"])
        let error = await #expect(throws: StoreError.self) { try await second.articles[7].requireData(from: .cache) }
        #expect((error?.staleContent as? Article)?.title == "later")
    }

    @Test func `E8: a record with more entities on disk than the limit counts as expired`() async throws {
        let first = launch()
        let count = StoreEngine.entityLimit + 1
        try await first.loadFeed((0..<count).map { Article(id: $0) })
        try await first.waitUntilSaved()
        let second = launch(after: .seconds(1))
        second.feedOrigin.enqueue(.failure(Offline()), .page([Article(id: 1)]))
        // The failed fetch leaves the record in memory.
        await #expect(throws: Offline.self) { try await second.feed["home"].requireData() }
        #expect(try await second.feed["home"].requireData().map(\.id) == [1])
    }

    @Test func `E2: the stamps of places are encoded as runs`() throws {
        let stamps = PlaceStamps([[5, 5, 5, 9, 5], []])
        let data = try JSONEncoder().encode(stamps)
        #expect(String(decoding: data, as: UTF8.self) == "[[3,5,1,9,1,5],[]]")
        #expect(try JSONDecoder().decode(PlaceStamps.self, from: data) == stamps)
        let damaged = Data("[[18446744073709551615,5,2],[3]]".utf8)
        #expect(try JSONDecoder().decode(PlaceStamps.self, from: damaged).links == [[], []])
    }
}
