import StoreCoreTesting
import Testing
import Trials

@testable import StoreCore

/// Random histories over an entity store, two keys of a feed, and search results, against a model of one dictionary of stamped values.
///
/// `STOREHOUSE_SEEDS=N` runs N of them.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LinkedHistoryTests {
    @Test func `E1, E2, E3: random histories leave all stores with the newest value of each field`() async throws {
        for seed in seeds(UInt64(2_000), quick: 12, sanitized: 12) {
            var history = LinkedHistory(seed: seed)
            try await history.run(steps: 25)
        }
    }
}

private struct LinkedHistory {
    /// The newest value of a field.
    struct Value: Equatable {
        var text: String
        var stamp: Int
    }

    let world = LinkedWorld()
    var random: SplitMix
    let seed: UInt64
    var log: [String] = []
    var now = 0
    var titles: [Int: Value] = [:]
    var texts: [Int: Value] = [:]
    /// The keys of entities with content.
    var known: Set<Int> = []
    var loaded: Set<String> = []
    var isSearched = false
    /// The held fetches: a list or an entity, and the start.
    var feedFetch: (key: String, start: Int, task: Task<Void, Never>)?
    var entityFetch: (id: Int, start: Int, task: Task<Void, Never>)?
    var feedFetches = 0
    var entityFetches = 0

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix(seed: seed)
    }

    mutating func run(steps: Int) async throws {
        try await fetchFeed("a")
        for _ in 0..<steps {
            try await step()
            try await check()
        }
        try await endFeedFetch()
        try await endEntityFetch()
        try await check()
    }

    private mutating func accept(_ id: Int, title: String?, text: String?, at stamp: Int) {
        if let title, stamp > titles[id]?.stamp ?? -1 { titles[id] = Value(text: title, stamp: stamp) }
        if let text, stamp > texts[id]?.stamp ?? -1 { texts[id] = Value(text: text, stamp: stamp) }
    }

    private func fresh(_ id: Int, _ stamp: Int) -> Article { Article(id: id, title: "t\(stamp)", text: "x\(stamp)") }

    private mutating func step() async throws {
        now += 1
        let id = random.below(3)
        let key = random.below(2) == 0 ? "a" : "b"
        switch random.below(10) {
        case 0:
            guard entityFetch?.id != id else { return }
            note("update \(id)")
            await world.articles[id].update(fresh(id, now))
            accept(id, title: "t\(now)", text: "x\(now)", at: now)
            known.insert(id)
        case 1:
            guard feedFetch == nil else { return }
            try await fetchFeed(key)
        case 2:
            guard feedFetch == nil else { return }
            note("begin feed \(key)")
            world.feedOrigin.hold()
            let feed = world.feed
            feedFetch = (key, now, Task { await feed[key].refresh() })
            feedFetches += 1
            try await world.feedOrigin.started(count: feedFetches)
        case 3: try await endFeedFetch()
        case 4:
            guard entityFetch == nil else { return }
            note("begin entity \(id)")
            world.origin.hold()
            let articles = world.articles
            entityFetch = (id, now, Task { await articles[id].refresh() })
            entityFetches += 1
            try await world.origin.started(count: entityFetches)
        case 5: try await endEntityFetch()
        case 6:
            note("search")
            world.searchOrigin.enqueue(.page((0..<3).map { Finding(articleID: $0, title: "t\(now).\($0)") }))
            await world.search["swift"].refresh()
            for id in 0..<3 { accept(id, title: "t\(now).\(id)", text: nil, at: now) }
            isSearched = true
        case 7:
            guard loaded.contains(key), feedFetch?.key != key else { return }
            note("change row \(id) of \(key)")
            let title = "t\(now)"
            await world.feed[key].update { $0[id].title = title }
            accept(id, title: title, text: texts[id]?.text, at: now)
        case 8:
            guard entityFetch?.id != id, known.contains(id) else { return }
            note("mutate \(id)")
            let title = "t\(now)"
            try await world.articles[id].mutate(optimistically: { $0.title = title }) {}
            accept(id, title: title, text: texts[id]?.text, at: now)
        default:
            guard entityFetch?.id != id, known.contains(id) else { return }
            note("failed mutation of \(id)")
            try? await world.articles[id].mutate(optimistically: { $0.title = "failed" }) { throw Offline() }
        }
    }

    private mutating func note(_ step: String) { log.append("\(now): \(step)") }

    private mutating func fetchFeed(_ key: String) async throws {
        note("fetch feed \(key)")
        world.feedOrigin.enqueue(.page((0..<3).map { fresh($0, now) }))
        await world.feed[key].refresh()
        feedFetches += 1
        for id in 0..<3 { accept(id, title: "t\(now)", text: "x\(now)", at: now) }
        loaded.insert(key)
    }

    private mutating func endFeedFetch() async throws {
        guard let (key, start, task) = feedFetch else { return }
        note("end feed \(key)")
        feedFetch = nil
        world.feedOrigin.enqueue(.page((0..<3).map { fresh($0, start) }))
        world.feedOrigin.release()
        await task.value
        for id in 0..<3 { accept(id, title: "t\(start)", text: "x\(start)", at: start) }
        loaded.insert(key)
    }

    private mutating func endEntityFetch() async throws {
        guard let (id, start, task) = entityFetch else { return }
        note("end entity \(id)")
        entityFetch = nil
        world.origin.enqueue(.success(fresh(id, start)))
        world.origin.release()
        await task.value
        accept(id, title: "t\(start)", text: "x\(start)", at: start)
        known.insert(id)
    }

    private func check() async throws {
        for key in loaded.sorted() {
            let rows = try await world.feed[key].requireData()
            for row in rows { try expect(row.title, row.text, of: row.id, "feed \(key)") }
        }
        if isSearched {
            for row in try await world.search["swift"].requireData() { try expect(row.title, nil, of: row.articleID, "search") }
        }
        for id in known.sorted() {
            let article = try await world.articles[id].requireData()
            try expect(article.title, article.text, of: id, "entity")
        }
    }

    private func expect(_ title: String, _ text: String?, of id: Int, _ place: String) throws {
        guard title == titles[id]?.text, text == nil || text == texts[id]?.text else {
            throw Failure(
                description: """
                    seed \(seed), \(place), entity \(id): \(title) \(text ?? ""), expected \(titles[id]?.text ?? "") \(texts[id]?.text ?? "")
                    \(log.joined(separator: "\n"))
                    """)
        }
    }

    struct Failure: Error, CustomStringConvertible { let description: String }
}
