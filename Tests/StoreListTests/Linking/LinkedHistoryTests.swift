import Foundation
import StoreCoreTesting
import Testing
import Trials

@testable import StoreCore

/// Random histories over an entity store, two keys of a feed, and search results, against a model of one dictionary of stamped values.
///
/// `STOREHOUSE_SEEDS=N` runs N of them. Every third one has no disk, so it has no restarts and failing loads, and its evictions lose content.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LinkedHistoryTests {
    @Test func `E1, E2, E3, E5, E7, E8, E10: random histories leave all stores with the newest value of each field`() async throws {
        for seed in seeds(UInt64(2_000), quick: 12, sanitized: 12) {
            var history = LinkedHistory(seed: seed)
            try await history.run(steps: 30)
        }
    }
}

private struct LinkedHistory {
    /// The newest value of a field.
    struct Value: Equatable {
        var text: String
        var stamp: Int
    }

    /// The cachers of a history without a disk.
    struct Memories {
        let articles = MemoryCacher<Int, Article>()
        let feed = MemoryCacher<String, [Article]>()
        let search = MemoryCacher<String, [Finding]>()
    }

    var world: LinkedWorld
    /// The disks; `nil` for a history without them.
    let disks: Disks?
    let memories = Memories()
    var random: SplitMix
    let seed: UInt64
    var log: [String] = []
    var now = 0
    var titles: [Int: Value] = [:]
    var texts: [Int: Value] = [:]
    /// The times of removals, before which no row is shown.
    var removals: [Int: Int] = [:]
    /// The keys of all entities, and of those with content.
    var ids = Array(0..<5)
    var known: Set<Int> = []
    /// The rows of the loaded lists and of the search.
    var lists: [String: [Int]] = [:]
    var found: [Int]?
    /// The held fetches: a list, its next page or an entity, and the start.
    var feedFetch: (key: String, isPage: Bool, start: Int, task: Task<Void, Never>)?
    var entityFetch: (id: Int, start: Int, task: Task<Void, Never>)?

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix(seed: seed)
        disks = seed.isMultiple(of: 3) ? nil : Disks(recordsCalls: false)
        if let disks {
            world = disks.world()
        } else {
            world = LinkedWorld(articles: memories.articles, feed: memories.feed, search: memories.search)
        }
    }

    mutating func run(steps: Int) async throws {
        try await fetchFeed("a")
        for _ in 0..<steps {
            now += 1
            if random.below(2) == 0 { try await change() } else { try await disturb() }
            try await check()
        }
        try await endFeedFetch()
        try await endEntityFetch()
        try await check()
    }

    // MARK: The model

    private mutating func accept(_ id: Int, title: String?, text: String?, at stamp: Int) {
        if let title, stamp > titles[id]?.stamp ?? -1 { titles[id] = Value(text: title, stamp: stamp) }
        if let text, stamp > texts[id]?.stamp ?? -1 { texts[id] = Value(text: text, stamp: stamp) }
    }

    /// The entities of a list that was requested at a time.
    private mutating func accept(_ list: Range<Int>, at stamp: Int) -> [Int] {
        let shown = list.filter { removals[$0] ?? -1 < stamp }
        for id in shown { accept(id, title: "t\(stamp)", text: "x\(stamp)", at: stamp) }
        return shown
    }

    private func fresh(_ id: Int, _ stamp: Int) -> Article { Article(id: id, title: "t\(stamp)", text: "x\(stamp)") }

    private mutating func note(_ step: String) { log.append("\(now): \(step)") }

    // MARK: Changes and fetches

    private mutating func change() async throws {
        let id = ids[random.below(ids.count)]
        let key = random.below(2) == 0 ? "a" : "b"
        let title = "t\(now)"
        let hasRow = lists[key]?.contains(id) == true
        switch random.below(12) {
        case 0:
            guard entityFetch?.id != id else { return }
            note("update \(id)")
            await world.articles[id].update(fresh(id, now))
            accept(id, title: title, text: "x\(now)", at: now)
            known.insert(id)
        case 1:
            guard feedFetch == nil else { return }
            try await fetchFeed(key)
            let choice = random.below(4)
            if choice == 1 { try await beginFeedFetch(key, isPage: true) }
            guard choice > 1 else { return }
            note("page of \(key)")
            world.feedOrigin.enqueue(.page((3..<5).map { fresh($0, now) }))
            guard await world.feed[key].requestNextData() == .loaded else { throw failure("no page of \(key)") }
            let rows = accept(3..<5, at: now)
            lists[key]? += rows
        case 2:
            guard feedFetch == nil else { return }
            try await beginFeedFetch(key, isPage: false)
        case 3: try await endFeedFetch()
        case 4:
            guard entityFetch == nil else { return }
            note("begin entity \(id)")
            entityFetch = (id, now, try await world.beginRefresh(of: id))
        case 5: try await endEntityFetch()
        case 6: await fetchSearch()
        case 7:
            guard hasRow, feedFetch?.key != key else { return }
            note("change row \(id) of \(key)")
            let isChanged = await world.feed[key].update { rows in
                for row in rows.indices where rows[row].id == id { rows[row].title = title }
            }
            guard isChanged else { throw failure("no list \(key)") }
            accept(id, title: title, text: texts[id]?.text, at: now)
        case 8:
            guard entityFetch?.id != id, known.contains(id) else { return }
            note("mutate \(id)")
            try await world.articles[id].mutate(optimistically: { $0.title = title }) {}
            accept(id, title: title, text: texts[id]?.text, at: now)
        case 9:
            guard entityFetch?.id != id, hasRow else { return }
            note("mutate row \(id) of \(key)")
            try await world.feed[key].mutate(element: id, optimistically: { $0.title = title }) {}
            accept(id, title: title, text: texts[id]?.text, at: now)
            // The row becomes the content of an entity that had none.
            known.insert(id)
        case 10:
            guard entityFetch?.id != id else { return }
            note("remove \(id)")
            try await world.articles.remove(id) {}
            known.remove(id)
            (titles[id], texts[id], removals[id]) = (nil, nil, now)
            lists = lists.mapValues { rows in rows.filter { $0 != id } }
            found = found?.filter { $0 != id }
        default:
            guard entityFetch?.id != id else { return }
            note("failed changes of \(id)")
            if known.contains(id) { try? await world.articles[id].mutate(optimistically: { $0.title = "failed" }) { throw Offline() } }
            if hasRow { try? await world.feed[key].mutate(element: id, optimistically: { $0.title = "failed" }) { throw Offline() } }
            try? await world.articles.remove(id) { throw Offline() }
        }
    }

    private mutating func fetchFeed(_ key: String) async throws {
        note("fetch feed \(key)")
        world.feedOrigin.enqueue(.page((0..<3).map { fresh($0, now) }, nextKey: "2"))
        await world.feed[key].refresh()
        lists[key] = accept(0..<3, at: now)
    }

    private mutating func fetchSearch() async {
        note("search")
        world.searchOrigin.enqueue(.page((0..<5).map { Finding(articleID: $0, title: "t\(now).\($0)") }))
        await world.search["swift"].refresh()
        for id in 0..<5 { accept(id, title: "t\(now).\(id)", text: nil, at: now) }
        found = Array(0..<5)
    }

    private mutating func beginFeedFetch(_ key: String, isPage: Bool) async throws {
        note(isPage ? "begin page of \(key)" : "begin feed \(key)")
        let task = try await world.beginFeed(key) { list in
            if isPage { _ = await list.requestNextData() } else { await list.refresh() }
        }
        feedFetch = (key, isPage, now, task)
    }

    private mutating func endFeedFetch() async throws {
        guard let (key, isPage, start, task) = feedFetch else { return }
        note(isPage ? "end page of \(key)" : "end feed \(key)")
        feedFetch = nil
        let ids = isPage ? 3..<5 : 0..<3
        await world.end(task, with: ids.map { fresh($0, start) }, nextKey: isPage ? nil : "2")
        let rows = accept(ids, at: start)
        lists[key] = isPage ? (lists[key] ?? []) + rows : rows
    }

    private mutating func endEntityFetch() async throws {
        guard let (id, start, task) = entityFetch else { return }
        note("end entity \(id)")
        entityFetch = nil
        await world.end(task, with: fresh(id, start))
        accept(id, title: "t\(start)", text: "x\(start)", at: start)
        known.insert(id)
    }

    // MARK: Disturbances

    /// Without held fetches: after a clear or an eviction, an older page may bring back an older row.
    private mutating func disturb() async throws {
        guard feedFetch == nil, entityFetch == nil else { return try await change() }
        let key = random.below(2) == 0 ? "a" : "b"
        switch random.below(8) {
        case 0:
            let id = ids[random.below(ids.count)]
            note("clear \(id)")
            await world.articles[id].clear()
            known.remove(id)
        case 1:
            note("clear articles")
            try await world.articles.clear()
            known = []
        case 2:
            note("clear \(key)")
            await world.feed[key].clear()
            lists[key] = nil
        case 3:
            note("clear search")
            await world.search["swift"].clear()
            found = nil
        case 4:
            let seconds = random.below(200) - 100
            note("move the clock by \(seconds) s")
            if seconds > 0 { world.time.advance(by: .seconds(seconds)) } else { world.time.shiftDate(by: .seconds(seconds)) }
        case 5:
            let choice = random.below(8)
            note("evict \(choice)")
            guard let memory = disks?.memory.value else { return lose(choice) }
            if choice & 1 == 0 { memory.articles.trim(to: 0) }
            if choice & 2 == 0 { memory.feed.trim(to: 0) }
            if choice & 4 == 0 { memory.search.trim(to: 0) }
        case 6:
            if random.below(2) == 0 { try await restart() } else { try await failLoads(key) }
        default: try await create(in: key)
        }
    }

    /// Evicts contents that no disk has.
    private mutating func lose(_ choice: Int) {
        if choice & 1 == 0 {
            memories.articles.trim(to: 0)
            known = []
        }
        if choice & 2 == 0 {
            memories.feed.trim(to: 0)
            lists = [:]
        }
        if choice & 4 == 0 {
            memories.search.trim(to: 0)
            found = nil
        }
    }

    private mutating func restart() async throws {
        guard let disks else { return }
        note("restart")
        try await world.waitUntilSaved()
        world = disks.world()
        removals = [:]
        // The clock of the last launch may have been ahead.
        world.time.advance(by: .seconds(random.below(200)))
        // The first state of a list waits for its entities.
        try await checkLists(of: known)
    }

    /// Fetches while no article can be read.
    private mutating func failLoads(_ key: String) async throws {
        guard let disks else { return }
        note("failing loads")
        disks.memory.value?.articles.trim(to: 0)
        disks.articles.fail(.load)
        if random.below(2) == 0 { try await fetchFeed(key) } else { await fetchSearch() }
        await readLists()
        try await checkLists()
        disks.articles.recover()
        let (articles, known) = (world.articles, known)
        try await until("the articles are read again, seed \(seed)", patience: .seconds(60)) {
            var isComplete = true
            for id in known { if await kept({ try await articles[id].requireData(from: .cache) }) == nil { isComplete = false } }
            return isComplete
        }
    }

    /// Creates an article under a temporary key with a row in a list, as the command of an outbox does.
    private mutating func create(in key: String) async throws {
        guard lists[key] != nil, ids.count < 8 else { return }
        let (id, command, engine) = (100 + ids.count, UUID(), world.articles.engine)
        note("create \(id) in \(key)")
        let draft = Article(id: -id, title: "draft")
        engine.knowCommands([command])
        engine.showCreation(CommandMark(id: command, order: UInt64(now)), of: BoxedKey(-id), BoxedContent(draft))
        await world.feed[key].update { $0.append(draft) }
        guard await readList(key)?.last == draft else { throw failure("no row of the created article in \(key)") }
        await engine.settleCreation(
            command, from: BoxedKey(-id), to: BoxedKey(id), .response(BoxedContent(fresh(id, now))), first: BoxedContent(draft),
            moved: {}, saved: { _ in })
        ids.append(id)
        known.insert(id)
        lists[key]?.append(id)
        accept(id, title: "t\(now)", text: "x\(now)", at: now)
    }

    // MARK: Checks

    private func check() async throws {
        // Articles that are only on disk are read, and lists that are not observed agree at their next read.
        for id in ids { _ = await readArticle(id) }
        await readLists()
        try await checkLists()
        for id in ids {
            let article = await readArticle(id)
            guard known.contains(id) == (article != nil) else { throw failure("entity \(id) has \(article?.title ?? "no content")") }
            if let article { try expect(article.title, article.text, of: id, "entity") }
        }
    }

    private func readLists() async {
        for key in ["a", "b"] { _ = await readList(key) }
        _ = await readSearch()
    }

    /// Checks the rows of some entities in all lists, and of all if `ids` is `nil`.
    private func checkLists(of ids: Set<Int>? = nil) async throws {
        for key in ["a", "b"] {
            try expect(await readList(key), lists[key], ids, "feed \(key)")
            if let hit = world.feed.lists.hit(key) { try expect(hit, lists[key], ids, "hit of feed \(key)") }
        }
        let rows = await readSearch()
        guard rows?.map(\.id) == found else { throw failure("search has \(rows?.map(\.id) ?? []), expected \(found ?? [])") }
        for row in rows ?? [] where ids?.contains(row.articleID) ?? true { try expect(row.title, nil, of: row.articleID, "search") }
    }

    private func readArticle(_ id: Int) async -> Article? { await kept { try await world.articles[id].requireData(from: .cache) } }
    private func readList(_ key: String) async -> [Article]? { await kept { try await world.feed[key].requireData(from: .cache) } }
    private func readSearch() async -> [Finding]? { await kept { try await world.search["swift"].requireData(from: .cache) } }

    private func expect(_ rows: [Article]?, _ expected: [Int]?, _ ids: Set<Int>?, _ place: String) throws {
        guard rows?.map(\.id) == expected else { throw failure("\(place) has \(rows?.map(\.id) ?? []), expected \(expected ?? [])") }
        for row in rows ?? [] where ids?.contains(row.id) ?? true { try expect(row.title, row.text, of: row.id, place) }
    }

    private func expect(_ title: String, _ text: String?, of id: Int, _ place: String) throws {
        guard title == titles[id]?.text, text == nil || text == texts[id]?.text else {
            throw failure("\(place), entity \(id): \(title) \(text ?? ""), expected \(titles[id]?.text ?? "") \(texts[id]?.text ?? "")")
        }
    }

    private func failure(_ text: String) -> Failure { Failure(description: "seed \(seed), \(text)\n\(log.joined(separator: "\n"))") }

    struct Failure: Error, CustomStringConvertible { let description: String }
}

/// Returns content from the cache, even if it is out of date.
private func kept<Content: Sendable>(_ read: () async throws -> Content) async -> Content? {
    do { return try await read() } catch { return (error as? StoreError)?.staleContent as? Content }
}
