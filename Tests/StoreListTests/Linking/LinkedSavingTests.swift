import Foundation
import StoreTrials
import Testing
import Trials

@testable import StoreCore
@testable import StoreCoreTesting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LinkedSavingTests {
    private let cacher = GatedCacher<String, [Article]>()

    private var savedTitle: String? { cacher.record(of: "home")?.content.first?.title }

    enum End: CaseIterable, Sendable { case intervalEnds, waitUntilSaved, release }

    @Test(arguments: End.allCases)
    func `E8: changes of an entity save an observed list at most once in an interval, and the last one always`(_ end: End) async throws {
        let world = LinkedWorld()
        var feed: PaginationStore<String, Article>? = PaginationStore(
            cacher: cacher, fetcher: world.feedOrigin, links: [.elements(of: world.articles)], time: world.time)
        await world.articles[7].update(Article(id: 7))
        world.feedOrigin.enqueue(.page([Article(id: 7)]))
        let observer = try await observeCompleted(#require(feed)["home"].publish())
        try await #require(feed).waitUntilSaved()
        let before = cacher.calls(.save).count
        for number in 1...5 { await world.articles[7].update { $0.title = "\(number)" } }
        try await until("the first change is saved") { savedTitle == "1" }
        switch end {
        case .intervalEnds:
            try await world.time.advance(by: .seconds(1) - .nanoseconds(1), sleepers: 1)
            #expect(savedTitle == "1")
            world.time.advance(by: .nanoseconds(1))
        case .waitUntilSaved:
            try await #require(feed).waitUntilSaved()
        case .release:
            try await observer.stopAndLeave()
            feed = nil
        }
        try await until("the last change is saved") { savedTitle == "5" }
        #expect(cacher.calls(.save).count == before + 2)
        withExtendedLifetime((feed, observer)) {}
    }

    @Test func `E3: a page agrees with its entities on disk, even with more than are read at once`() async throws {
        let (disk, count) = (GatedCacher<Int, Article>(), StoreEngine.entityLimit * 2 + 1)
        for id in 0..<count { disk.put(record(Article(id: id, title: "disk"), at: 2_000_000_000), param: id) }
        let world = LinkedWorld(articles: TieredCacher(over: disk))
        try await world.loadFeed((0..<count).map { Article(id: $0) })
        let list = RecordingObserver(world.feed["home"].publish())
        try await list.next { $0.content?.allSatisfy { $0.title == "disk" } == true }
        #expect(world.origin.startedCount == 0)
    }

    private struct Row: Identifiable, Hashable, Sendable {
        var id: Int
        var value = 0
    }

    @Test(arguments: [true, false])
    func `E10: a list shows the changes of idle entities by another process, even after a gap`(_ hasGap: Bool) async throws {
        let (numbersOnDisk, time) = (ScriptedSharedCacher(), ManualTime(date: Date(timeIntervalSince1970: 0)))
        let numbers = Store(cacher: TieredCacher(over: numbersOnDisk), time: time) { id in id }
        let lists = Store(
            cacher: MemoryCacher<String, [Row]>(), links: [.elements(of: numbers, id: \.id, fields: (\.value, \Int.self))], time: time
        ) { _ in (0..<600).map { Row(id: $0) } }
        // The first load begins to follow the changes of others.
        _ = await numbers[-1].getData(from: .cache)
        let list = try await observeCompleted(lists["a"].publish())
        try await until("the entities are read") { numbers.engine.state.withLock { $0.live.isEmpty } }
        for id in 0..<600 { numbersOnDisk.change(id, to: 5, delivers: !hasGap) }
        if hasGap { numbersOnDisk.announceGap() }
        try await list.next { $0.content?.allSatisfy { $0.value == 5 } == true }
    }

    @Test func `E9: the last 4 096 changed keys are known, but none from before a gap`() {
        var log = ChangeLog()
        for key in 0..<10 { _ = log.append(BoxedKey(key)) }
        #expect(log.keys(after: 8) == [BoxedKey(8), BoxedKey(9)])
        #expect(log.forgetAll().count == 10)
        #expect(log.keys(after: 10) == nil)
        #expect(log.keys(after: 11)?.isEmpty == true)
        for key in 0...ChangeLog.limit { _ = log.append(BoxedKey(key)) }
        #expect(log.keys(after: 11) == nil)
        #expect(log.keys(after: 12) == Set((1...ChangeLog.limit).map { BoxedKey($0) }))
    }

    /// An origin behind a cache, which states the age of its responses.
    private struct CachedArticles: Origin {
        let age: Duration

        func respond(to request: OriginRequest<Int>) async throws -> OriginResponse<Article> {
            guard case .content(let id, _) = request else { throw Offline() }
            return OriginResponse(.modified(Article(id: id, title: "cached")), age: age)
        }
    }

    /// The third argument is whether the cache has the confirmed change: it was made 60 s ago, and the content 120 s ago.
    @Test(arguments: [(59.5, "cached", false), (60.5, "cached", true), (119.5, "cached", true), (120.5, "own", true)])
    func `E2: a response from a cache is as old as it states, and takes back no newer confirmed change that waits`(
        _ age: Double, _ title: String, _ isLiked: Bool
    ) async throws {
        let (time, request) = (ManualTime(), HeldRequest<Void>())
        let articles = Store(cacher: MemoryCacher<Int, Article>(), fetcher: CachedArticles(age: .seconds(age)), time: time)
        let stories = Store(cacher: MemoryCacher<String, [Article]>(), links: [.elements(of: articles)], time: time) { _ in [] }
        await articles[7].update(Article(id: 7, title: "own"))
        time.advance(by: .seconds(60))
        let earlier = Task { try await articles[7].mutate(optimistically: { $0.text = "failed" }) { try await request.run() } }
        try await request.hasBegun()
        try await articles[7].mutate(optimistically: { $0.isLiked = true }) {}
        time.advance(by: .seconds(60))
        await articles[7].refresh()
        #expect(try await articles[7].requireData() == Article(id: 7, title: title, text: "failed", isLiked: isLiked))
        await request.fail(earlier)
        #expect(try await articles[7].requireData() == Article(id: 7, title: title, isLiked: isLiked))
        withExtendedLifetime(stories) {}
    }

    /// An origin of pages with one article each, behind a cache that states the ages of its responses.
    private func cachedPages(_ ages: Shared<[Int: Duration]>) -> ScriptedPaginationFetcher<Int, Article> {
        ScriptedPaginationFetcher { request in
            let page = request.pageKey.flatMap { Int($0) } ?? 0
            var response = OriginResponse(.modified([Article(id: page, title: "cached")]), age: ages.value[page] ?? .zero)
            (response.nextKey, response.prevKey) = ("\(page + 1)", page > 0 ? "\(page - 1)" : nil)
            return ScriptedAnswer(result: .success(response))
        }
    }

    @Test func `C25, E2: a list that is newer than the response from a cache keeps its pages with their keys`() async throws {
        let (ages, time) = (Shared<[Int: Duration]>([:]), ManualTime())
        let articles = Store(cacher: MemoryCacher<Int, Article>(), time: time) { Article(id: $0) }
        let list = PaginationStore(
            cacher: MemoryCacher<Int, [Article]>(), fetcher: cachedPages(ages), links: [.elements(of: articles)], time: time)[1]
        _ = try await list.requireData()
        #expect(await list.requestNextData() == .loaded)
        ages.value[0] = .seconds(1)
        await list.refresh()
        #expect(await list.requestNextData() == .loaded)
        #expect(try await list.requireData().map(\.id) == [0, 1, 2])
    }

    /// A window of one page has lost the first page of its list, so that a refetch begins with another one.
    @Test(arguments: [nil, 2, 1] as [Int?], [59.5, 60.5])
    func `E2: a page from a cache is as old as it states, when it is added, and when it is fetched again`(
        _ refetchedWindow: Int?, _ age: Double
    ) async throws {
        let (ages, time) = (Shared<[Int: Duration]>([:]), ManualTime())
        let articles = Store(cacher: MemoryCacher<Int, Article>(), time: time) { Article(id: $0) }
        let list = PaginationStore(
            cacher: MemoryCacher<Int, [Article]>(), fetcher: cachedPages(ages), paging: PagingPolicy(maximumPages: refetchedWindow ?? 2),
            links: [.elements(of: articles)], time: time)[1]
        _ = try await list.requireData()
        if refetchedWindow != nil { #expect(await list.requestNextData() == .loaded) }
        await articles[1].update(Article(id: 1, title: "own"))
        time.advance(by: .seconds(60))
        ages.value[1] = .seconds(age)
        if refetchedWindow == nil { #expect(await list.requestNextData() == .loaded) } else { await list.invalidate() }
        let title = age < 60 ? "cached" : "own"
        #expect(try await list.requireData().last == Article(id: 1, title: title))
        #expect(try await articles[1].requireData().title == title)
    }
}
