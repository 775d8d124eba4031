import Foundation
import Testing
import Trials
@testable import PostgresCacher
@testable import StoreCore

/// Tests loading and saving with a real server.
@Suite(.enabled(if: PostgresServer.obstacle == nil, needsPostgres))
struct PostgresRecordTests {
    private let place: PostgresPlace

    init() async throws { place = try await PostgresPlace() }

    @Test func `the commands of a record are saved with it`() async throws {
        var named = record(7)
        named.fields.commands = [UUID()]
        try await place.cacher().save(named, param: 1)
        #expect(try await place.cacher().load(param: 1) == named)
    }

    @Test func `the server expects little of each statement on a table without statistics`() async throws {
        let cacher = try place.cacher()
        try await cacher.save(record(1), param: 1)
        let statements = cacher.table.statements
        let (key, row) = (Data("1".utf8), PostgresRow(key: Data("1".utf8), schema: 1, fetchedAt: 0, content: Data("1".utf8)))
        let queries = [
            statements.load(key, schema: 1), statements.loadNewest(key, schema: 1), statements.keys(schema: 1),
            statements.save(row, base: 1, writer: 1, channel: "c"), statements.takeLease(key, id: 1, session: 1, duration: 1),
            statements.endLease(key, id: 1, session: 1, channel: "c", payload: ""),
        ]
        for var query in queries {
            (query.name, query.text) = (query.name.map { "explain " + $0 }, "EXPLAIN " + query.text)
            let plan = try #require(try await cacher.table.core.run(query).last?.first?.first??.postgresText)
            // From 100 000 on, the server compiles a query to machine code before it runs it.
            let cost = try #require(plan.firstMatch(of: /\.\.([0-9.]+) rows/).flatMap { Double($0.1) }, "\(plan)")
            #expect(cost < 1_000, "\(query.name ?? ""): \(plan)")
        }
    }

    @Test func `a record of another schema version is a miss`() async throws {
        let database = try place.database()
        let old = PostgresCacher<Int, Int>(database, table: place.table, version: 1)
        let new = PostgresCacher<Int, Int>(database, table: place.table, version: 2)
        try await old.save(record(1), param: 1)
        #expect(try await new.load(param: 1) == nil)
        try await new.save(record(2), param: 1)
        #expect(try await old.load(param: 1) == nil)
        #expect(try await new.load(param: 1)?.content == 2)
    }

    @Test(
        arguments: ["", "it's \"quoted\" \\ $1 %s; DROP TABLE x; --", "a\u{0}b", "😀 e\u{301}", "\n\r\t"]
            // The quotes of JSON add two bytes; the longest key in a notice has 3 500.
            + [3_497, 3_498, 3_499, 7_998, 8_001].map { String(repeating: "k", count: $0) })
    func `D1: a key with any characters is saved and announced, whether it fits into a notice or not`(key: String) async throws {
        let (a, b) = (try place.textCacher(), try place.textCacher())
        let seen = Lock<[CacherChange<String>]>([])
        let observation = b.observeChanges { change in seen.withLock { $0.append(change) } }
        _ = try await b.load(param: key)
        try await a.save(CacheRecord(content: key + key, fetchedAt: Date()), param: key)
        #expect(try await b.load(param: key)?.content == key + key)
        try await until("the change arrives") { seen.withLock { $0 }.contains { if case .changed(key, _) = $0 { true } else { false } } }
        #expect(seen.withLock { $0.count } == 1)
        withExtendedLifetime(observation) {}
    }

    @Test func `equal spellings of a key are one key`() async throws {
        let cacher = PostgresCacher<String, Int>(try place.database(), table: place.table)
        for (key, equal) in [("caf\u{E9}", "cafe\u{301}"), ("\u{AC01}", "\u{AC00}\u{11A8}")] {
            try await cacher.save(record(1), param: key)
            #expect(try await cacher.load(param: equal)?.content == 1)
        }
    }

    @Test func `a key with an accent behind a control character is listed as it is`() async throws {
        let cacher = PostgresCacher<String, Int>(try place.database(), table: place.table)
        let key = "\n\u{303}\u{1A}\u{301}\\u00\u{301}"
        try await cacher.save(record(1), param: key)
        #expect(try await cacher.keys() == [key])
    }

    @Test func `equal numbers in a key are one key`() async throws {
        struct Spot: Codable, Hashable, Sendable {
            var name: String
            var numbers: [Double]
        }
        let cacher = PostgresCacher<Spot, Int>(try place.database(), table: place.table)
        try await cacher.save(record(1), param: Spot(name: "\"-0", numbers: [0, -0.5, 1e-05, 0]))
        #expect(try await cacher.load(param: Spot(name: "\"-0", numbers: [-0.0, -0.5, 1e-05, -0.0]))?.content == 1)
        #expect(try await cacher.keys() == [Spot(name: "\"-0", numbers: [0, -0.5, 1e-05, 0])])
    }

    @Test func `a key with a set, the order of which changes with each launch, is refused`() async throws {
        struct Query: Codable, Hashable, Sendable {
            var text: String
            var tags: Set<String>
        }
        let cacher = PostgresCacher<Query, Int>(try place.database(), table: place.table)
        var refused = 0
        for number in 0..<20 {
            do {
                try await cacher.save(record(number), param: Query(text: "a", tags: ["a\(number)", "b", "c", "d"]))
            } catch let error as PostgresError {
                #expect(error.code == .unwritableRecord && error.description.contains("sorted elements"))
                refused += 1
            }
            try await cacher.save(record(number), param: Query(text: "a", tags: ["a\(number)"]))
            #expect(try await cacher.load(param: Query(text: "a", tags: ["a\(number)"]))?.content == number)
        }
        // By chance, a set of four elements has the same order in both copies in 1 of 576 cases.
        #expect(refused >= 16)
    }

    @Test func `a key and a record of megabytes are saved, and a record beyond the limit is refused`() async throws {
        let database = try place.database()
        let (a, b) = (try place.textCacher(), try place.textCacher())
        let small = PostgresCacher<String, String>(database, table: place.table, limit: 1_000)
        let length = isWholeRun || isLongRun ? 10_000_000 : 1_000_000
        let (key, content) = (String(repeating: "k", count: length), String(repeating: "c", count: length))
        let seen = Lock(0)
        let observation = b.observeChanges { change in if case .changed(key, _) = change { seen.withLock { $0 += 1 } } }
        _ = try await b.load(param: key)
        try await a.save(CacheRecord(content: content, fetchedAt: Date()), param: key)
        #expect(try await b.load(param: key)?.content == content)
        try await until("the change of the long key arrives") { seen.withLock { $0 } == 1 }
        let refused = await thrown { try await small.save(CacheRecord(content: content, fetchedAt: Date()), param: "1") }
        #expect(refused?.code == .unwritableRecord)
        #expect(PostgresCacher<String, String>(database, table: place.table, limit: .max).limit == 1_000_000_000)
        withExtendedLifetime(observation) {}
    }

    @Test func `D3: pruning deletes old rows, and an older decision is not saved afterward`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        _ = try await a.load(param: 1)
        let base = a.position
        try await b.save(record(1), param: 1)
        try await b.remove(param: 2)
        try await until("the changes arrive") { a.position.number >= b.position.number && a.position > base }
        #expect(try await b.prune(before: Date() + 3600) == 1)
        #expect(try await a.load(param: 1) == nil)
        #expect(try await !a.save(record(2), param: 1, over: base).isSaved)
        try await until("the pruning arrives") { try await a.save(record(3), param: 1, over: a.position).isSaved }
        #expect(try await b.prune(before: Date(timeIntervalSinceReferenceDate: .infinity)) == 1)
    }
}
