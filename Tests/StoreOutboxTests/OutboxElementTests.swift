import Foundation
import StoreCoreTesting
import Testing
import Trials

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// Commands that change one element in every list of a store (O18).
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxElementTests {
    struct Row: Hashable, Codable, Identifiable, Sendable {
        var id: Int
        var likes = 0
    }

    /// A part of a row.
    struct Card: Hashable, Codable, Identifiable, Sendable {
        var id: Int
        var likes = 0
    }

    struct Like: Command, Hashable {
        static let name = "like"
        var row: Int
    }

    /// Lists of rows over files, an outbox beside them, and an origin for each.
    final class Bench: Sendable {
        let directory: TemporaryDirectory
        let time = ManualTime()
        let lists: PaginationStore<String, Row>
        let pages = ScriptedPaginationFetcher<String, Row>()
        let origin: ScriptedDeliveries<Like, Row?>
        let outbox: Outbox

        init(
            in directory: TemporaryDirectory? = nil, links: [EntityLink<[Row]>] = [],
            origin: ScriptedDeliveries<Like, Row?> = ScriptedDeliveries { _ in .success(nil) }
        ) throws {
            let directory = try directory ?? TemporaryDirectory()
            self.directory = directory
            self.origin = origin
            lists = PaginationStore(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("lists"))), fetcher: pages, links: links, time: time)
            outbox = try Outbox(directory: directory.file("outbox"), time: time)
        }

        func register(_ others: [CommandPatch<Like>] = []) async {
            await outbox.register(
                Like.self, patching: lists, element: \.row, and: others, patch: { _, row in row.likes += 1 },
                perform: { [origin] command, delivery in _ = try await origin.perform(command, delivery) })
        }

        /// Registers the likes.
        func registered() async -> Bench {
            await register()
            return self
        }

        /// Loads a list from the origin.
        func load(_ list: String, _ ids: [Int], nextKey: String? = nil) async throws {
            pages.enqueue(.page(ids.map { Row(id: $0) }, nextKey: nextKey))
            _ = try await lists[list].requireData()
        }

        func likes(_ list: String) async throws -> [Int] { try await lists[list].requireData().map(\.likes) }

        func saved(_ list: String) async throws -> [Int]? {
            try await FileCacher<String, [Row]>(directory: directory.file("lists")).load(param: list)?.content.map(\.likes)
        }

        /// What tells whether a file of the lists was saved again. Its number alone does not: a later file may get the number of a removed one.
        struct SavedFile: Equatable {
            var number: Int?
            var date: Date?
            var bytes: Data
        }

        /// The files of the lists by their names.
        func files() throws -> [String: SavedFile] {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.file("lists").path)
            return try names.reduce(into: [:]) { files, name in
                let url = directory.file("lists").appending(path: name)
                let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
                files[name] = try SavedFile(
                    number: attributes[.systemFileNumber] as? Int, date: attributes[.modificationDate] as? Date,
                    bytes: attributes[.type] as? FileAttributeType == .typeRegular ? Data(contentsOf: url) : Data())
            }
        }

        func settled() async throws {
            try await until("the outbox is empty") { await self.outbox.core.isEmpty }
            try await lists.waitUntilSaved()
        }
    }

    @Test func `O18: a command shows in every list that has the element, now and later, and a cancellation takes it back`() async throws {
        let bench = try await Bench().registered()
        try await bench.load("feed", [1, 5], nextKey: "2")
        try await bench.load("search", [5, 9])
        try await bench.load("other", [3])
        let observer = RecordingObserver(bench.lists["feed"].publish())
        let id = try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.likes("feed") == [0, 1])
        #expect(try await bench.likes("search") == [1, 0])
        #expect(try await bench.likes("other") == [0])
        _ = try await observer.next { $0.content?.last?.likes == 1 }
        // A list that is loaded later, and pages with and without the element.
        try await bench.load("later", [4], nextKey: "2")
        for (list, row) in [("later", 5), ("feed", 7)] {
            bench.pages.enqueue(.page([Row(id: row)]))
            _ = await bench.lists[list].requestNextData()
        }
        try await bench.load("last", [5])
        #expect(try await bench.likes("later") == [0, 1])
        #expect(try await bench.likes("feed") == [0, 1, 0])
        #expect(try await bench.likes("last") == [1])
        #expect(try await bench.outbox.cancel(id) == .canceled)
        for list in ["feed", "search", "later", "last"] { #expect(try await bench.likes(list).max() == 0) }
        try await bench.settled()
        #expect(try await bench.saved("search") == [0, 0])
    }

    @Test func `O18, E5: a list shows the change of an entity before the entity's file is read`() async throws {
        let directory = try TemporaryDirectory()
        let rows = Store<Int, Row>(cacher: TieredCacher(over: FileCacher(directory: directory.file("rows")))) { Row(id: $0) }
        let bench = try Bench(in: directory, links: [.elements(of: rows)])
        await bench.outbox.register(
            Like.self, patching: rows, at: \.row, patch: { _, row in row.likes += 1 },
            perform: { [origin = bench.origin] command, delivery in _ = try await origin.perform(command, delivery) })
        try await bench.load("feed", [1, 5])
        try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.likes("feed") == [0, 1])
        #expect(bench.origin.deliveries.isEmpty)
    }

    @Test func `O18: a search that contains the element shows its change after a restart`() async throws {
        let directory = try TemporaryDirectory()
        do {
            let bench = try await Bench(in: directory).registered()
            try await bench.load("search", [4, 5])
            try await bench.outbox.submit(Like(row: 5))
            try await bench.lists.close()
            try await bench.outbox.close()
        }
        let bench = try await Bench(in: directory).registered()
        #expect(try await bench.saved("search") == [0, 0])
        #expect(try await bench.likes("search") == [0, 1])
        #expect(bench.pages.startedCount == 0)
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.likes("search") == [0, 1])
        #expect(try await bench.saved("search") == [0, 1])
        #expect(bench.pages.startedCount == 0)
        // The next launch does not apply the change again.
        let again = try await Bench(in: directory).registered()
        #expect(try await again.likes("search") == [0, 1])
    }

    @Test func `O7, O18: a change that was delivered, but not saved, is in the list of the next process`() async throws {
        let directory = try TemporaryDirectory()
        do {
            let bench = try await Bench(in: directory).registered()
            try await bench.load("feed", [4, 5])
            try await bench.load("search", [5])
            try await bench.load("other", [3])
            try await bench.lists.waitUntilSaved()
            try await bench.outbox.submit(Like(row: 5))
            try await bench.lists.close()
            try await bench.outbox.close()
        }
        // A process without the lists learns that the command was delivered.
        let log = try Outbox(directory: directory.file("outbox"), time: ManualTime())
        let id = try #require(await log.core.machine.items.keys.first)
        try await log.core.log(.delivered(replacement: nil, hasContent: false), of: id)
        try await log.close()
        let bench = try await Bench(in: directory).registered()
        #expect(try await bench.likes("other") == [0])
        #expect(await bench.outbox.core.isEmpty == false)
        #expect(try await bench.likes("feed") == [0, 1])
        try await bench.settled()
        #expect(try await bench.saved("feed") == [0, 1])
        #expect(bench.pages.startedCount == 0)
        #expect(try await Bench(in: directory).registered().likes("feed") == [0, 1])
    }

    @Test(arguments: [false, true])
    func `O18: a delivered change is saved in each list with the element, and in no other, even an observed one`(
        _ isObserved: Bool
    ) async throws {
        let bench = try await Bench().registered()
        try await bench.load("feed", [1, 5])
        try await bench.load("search", [5])
        try await bench.load("other", [3])
        let observer = isObserved ? RecordingObserver(bench.lists["other"].publish()) : nil
        _ = try await observer?.next { $0.isCompleted }
        try await bench.lists.waitUntilSaved()
        let before = try bench.files()
        bench.outbox.start()
        for _ in 1...3 { try await bench.outbox.submit(Like(row: 5)) }
        try await bench.settled()
        #expect(try await bench.saved("feed") == [0, 3])
        #expect(try await bench.saved("search") == [3])
        #expect(bench.pages.startedCount == 3)
        #expect(try bench.files().filter { $0.value != before[$0.key] }.count == 2)
        try await until("nothing is in use") {
            bench.lists.lists.engine.state.withLock { $0.elementCommands.isEmpty && $0.live.count == (isObserved ? 1 : 0) }
        }
        withExtendedLifetime(observer) {}
    }

    @Test func `O18: the change is in a hit in memory of a list at rest`() async throws {
        let bench = try await Bench().registered()
        try await bench.load("feed", [5])
        try await bench.lists.waitUntilSaved()
        try await until("the list is at rest") { bench.lists.lists.engine.state.withLock { $0.live.count == 0 } }
        let id = try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.likes("feed") == [1])
        _ = try await bench.outbox.cancel(id)
        #expect(try await bench.likes("feed") == [0])
    }

    @Test func `O18: a response from before the delivery does not bring the element back as it was`() async throws {
        let bench = try await Bench().registered()
        try await bench.load("feed", [1], nextKey: "2")
        bench.pages.hold()
        let request = Task { await bench.lists["feed"].requestNextData() }
        let search = Task { try await bench.lists["search"].requireData() }
        try await bench.pages.started(count: 3)
        bench.outbox.start()
        try await bench.outbox.submit(Like(row: 5))
        try await bench.origin.ended(count: 1)
        try await until("the delivery has ended") { await bench.outbox.core.state(of: nil).commands.isEmpty }
        // The requests of before were canceled, or their responses do not count; those that follow see the origin as it is now.
        for number in 2...3 { try? await bench.pages.answer(number, with: .page([Row(id: 5)])) }
        for _ in 1...4 { bench.pages.enqueue(.page([Row(id: 5, likes: 1)])) }
        bench.pages.release()
        _ = await request.value
        #expect(try await search.value.map(\.likes) == [1])
        #expect(try await bench.likes("feed") == [0, 1])
    }

    @Test func `O18: a refused command disappears from every list, and those behind it are saved`() async throws {
        let bench = try Bench(
            origin: ScriptedDeliveries { delivery in
                if delivery.command.row == 1 { throw Refusal() }
                return .success(nil)
            })
        await bench.register()
        try await bench.load("feed", [1, 5])
        bench.origin.hold()
        bench.outbox.start()
        let refused = try await bench.outbox.submit(Like(row: 1))
        try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.likes("feed") == [1, 1])
        bench.origin.release()
        try await until("one command has failed") { await bench.outbox.core.state(of: nil).failedCount == 1 }
        #expect(try await bench.likes("feed") == [0, 1])
        _ = try await bench.outbox.discard(refused)
        try await bench.settled()
        #expect(try await bench.saved("feed") == [0, 1])
    }

    @Test func `O18: the element that the origin returns replaces the change`() async throws {
        let bench = try Bench(origin: ScriptedDeliveries { .success(Row(id: $0.command.row, likes: 40)) })
        await bench.outbox.register(
            Like.self, patching: bench.lists, element: \.row, patch: { _, row in row.likes += 1 },
            perform: { [origin = bench.origin] command, delivery in try await origin.perform(command, delivery) ?? Row(id: 0) })
        try await bench.load("feed", [1, 5])
        bench.outbox.start()
        try await bench.outbox.submit(Like(row: 5))
        try await bench.settled()
        #expect(try await bench.likes("feed") == [0, 40])
        #expect(try await bench.saved("feed") == [0, 40])
    }

    @Test func `O17, O18: a replaced command changes its new element, and no longer the old one`() async throws {
        let bench = try await Bench().registered()
        try await bench.load("feed", [5, 6])
        let id = try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.outbox.replace(id, with: Like(row: 6)) == .discarded)
        #expect(try await bench.likes("feed") == [0, 1])
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.saved("feed") == [0, 1])
    }

    @Test func `O18: an element may have the same identity as its list`() async throws {
        let directory = try TemporaryDirectory()
        let fetcher = PaginationClosureFetcher<Int, Row> { _, _ in Page([Row(id: 4), Row(id: 5)]) }
        let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher)
        let outbox = try Outbox(directory: directory.file("outbox"))
        await outbox.register(Like.self, patching: lists, element: \.row, patch: { $1.likes += 1 }, perform: { _, _ in })
        _ = try await lists[5].requireData()
        try await outbox.submit(Like(row: 5))
        #expect(try await lists[5].requireData().map(\.likes) == [0, 1])
        outbox.start()
        #expect(await outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(try await lists[5].requireData().map(\.likes) == [0, 1])
    }

    @Test(arguments: [false, true])
    func `O18: a command changes several elements of one store's lists`(_ responds: Bool) async throws {
        let bench = try Bench()
        let next = CommandPatch<Like>(bench.lists, element: { $0.row + 1 }) { _, row in row.likes += 10 }
        if responds {
            await bench.outbox.register(
                Like.self, patching: bench.lists, element: \.row, and: [next], patch: { _, row in row.likes += 1 },
                perform: { command, _ in Row(id: command.row, likes: 7) })
        } else {
            await bench.register([next])
        }
        try await bench.load("feed", [5, 6])
        try await bench.load("search", [6, 9])
        try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.likes("feed") == [1, 10])
        #expect(try await bench.likes("search") == [10, 0])
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.saved("feed") == [responds ? 7 : 1, 10])
        #expect(try await bench.saved("search") == [10, 0])
    }

    @Test func `O18: a command for an element of a linked list changes the entity`() async throws {
        let rows = Store<Int, Row>(cacher: MemoryCacher()) { Row(id: $0) }
        let bench = try await Bench(links: [.elements(of: rows)]).registered()
        await rows[5].update(Row(id: 5))
        try await bench.load("feed", [1, 5])
        let id = try await bench.outbox.submit(Like(row: 5))
        #expect(try await rows[5].requireData().likes == 1)
        #expect(try await bench.likes("feed") == [0, 1])
        _ = try await bench.outbox.cancel(id)
        #expect(try await rows[5].requireData().likes == 0)
        #expect(try await bench.likes("feed") == [0, 0])
    }

    @Test func `E5, O18: a delivered change of a linked element without an entity of its own stays in the list`() async throws {
        let rows = Store<Int, Row>(cacher: MemoryCacher()) { Row(id: $0) }
        let bench = try await Bench(links: [.elements(of: rows)]).registered()
        try await bench.load("feed", [1, 5])
        bench.outbox.start()
        try await bench.outbox.submit(Like(row: 5))
        try await bench.settled()
        #expect(try await bench.likes("feed") == [0, 1])
        try await bench.lists.waitUntilSaved()
        #expect(try await bench.saved("feed") == [0, 1])
    }

    @Test func `O18: a command changes an element of other lists beside its own content`() async throws {
        let bench = try Bench()
        let rows = Store<Int, Row>(cacher: MemoryCacher()) { Row(id: $0) }
        await bench.outbox.register(
            Like.self, patching: rows, at: \.row, and: [CommandPatch(bench.lists, element: \.row) { _, row in row.likes += 1 }],
            patch: { _, row in row.likes += 1 },
            perform: { [origin = bench.origin] command, delivery in _ = try await origin.perform(command, delivery) })
        await rows[5].update(Row(id: 5))
        try await bench.load("feed", [5, 5 + 1])
        bench.outbox.start()
        try await bench.outbox.submit(Like(row: 5))
        #expect(try await bench.likes("feed") == [1, 0])
        try await bench.settled()
        #expect(try await rows[5].requireData().likes == 1)
        #expect(try await bench.saved("feed") == [1, 0])
    }

    @Test func `E2: the response of a command is newer than the row that the command adds to a linked list`() async throws {
        let rows = Store<Int, Row>(cacher: MemoryCacher()) { Row(id: $0) }
        let liked = Store<UnitParam, [Row]>(cacher: MemoryCacher(), links: [.elements(of: rows)]) { _ in [] }
        let outbox = try Outbox(directory: TemporaryDirectory().file("outbox"))
        let addition = CommandPatch<Like>(liked, at: { _ in UnitParam() }) { command, rows in rows.append(Row(id: command.row, likes: 1)) }
        await outbox.register(
            Like.self, patching: rows, at: \.row, and: [addition], patch: { _, row in row.likes += 1 },
            perform: { command, _ in Row(id: command.row, likes: 7) })
        _ = try await (rows[5].requireData(), liked.flowable.requireData())
        try await outbox.submit(Like(row: 5))
        #expect(try await liked.flowable.requireData().map(\.likes) == [1])
        outbox.start()
        try await until("the change is saved") { await outbox.core.isEmpty }
        #expect(try await rows[5].requireData().likes == 7)
        #expect(try await liked.flowable.requireData().map(\.likes) == [7])
    }

    @Test func `E2: the response of a command is newer than the change of an element that is loaded later`() async throws {
        let rows = Store<Int, Row>(cacher: MemoryCacher()) { Row(id: $0) }
        let cacher = GatedCacher<String, [Card]>()
        cacher.put(CacheRecord(content: [Card(id: 5)], fetchedAt: Date(timeIntervalSinceNow: -60)), param: "feed")
        let lists = PaginationStore<String, Card>(
            cacher: cacher, fetcher: ScriptedPaginationFetcher<String, Card>(),
            links: [.elements(of: rows, id: \.id, fields: (\.likes, \.likes))])
        let outbox = try Outbox(directory: TemporaryDirectory().file("outbox"))
        let change = CommandPatch<Like>(lists, element: \.row) { _, card in card.likes += 1 }
        await outbox.register(
            Like.self, patching: rows, at: \.row, and: [change], patch: { _, row in row.likes += 1 },
            perform: { command, _ in Row(id: command.row, likes: 7) })
        _ = try await rows[5].requireData()
        cacher.hold(.load)
        let reading = Task { try await lists["feed"].requireData() }
        try await cacher.began(.load)
        outbox.start()
        try await outbox.submit(Like(row: 5))
        try await until("the change is saved") { await outbox.core.isEmpty }
        cacher.release()
        #expect(try await reading.value.map(\.likes) == [7])
        #expect(try await rows[5].requireData().likes == 7)
    }

    @Test(arguments: [false, true])
    func `E2: the row of a delivered command stays older than the response while an earlier command is pending`(
        _ restarts: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let time = ManualTime()
        let origin = ScriptedDeliveries<Like, Row> { request in
            let isFirst = request.command.row == 5 && request.delivery.attempt == 1
            return isFirst ? .failure(Offline()) : .success(Row(id: request.command.row, likes: 7))
        }
        func launch() async throws -> (rows: Store<Int, Row>, liked: Store<UnitParam, [Row]>, outbox: Outbox) {
            let rows = Store<Int, Row>(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("rows"))), time: time
            ) { Row(id: $0) }
            let liked = Store<UnitParam, [Row]>(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("liked"))), links: [.elements(of: rows)], time: time
            ) { _ in [] }
            let outbox = try Outbox(directory: directory.file("outbox"), time: time)
            let addition = CommandPatch<Like>(liked, at: { _ in UnitParam() }) { command, rows in
                if !rows.contains(where: { $0.id == command.row }) { rows.append(Row(id: command.row, likes: 1)) }
            }
            await outbox.register(
                Like.self, patching: rows, at: \.row, and: [addition], patch: { _, row in row.likes += 1 },
                perform: { try await origin.perform($0, $1) })
            _ = try await (rows[5].requireData(), rows[6].requireData(), liked.flowable.requireData())
            return (rows, liked, outbox)
        }
        var app = try await launch()
        app.outbox.start()
        let first = try await app.outbox.submit(Like(row: 5))
        try await until("the first attempt has failed") { await app.outbox.commands().first?.attempts == 1 }
        // Delivered at once, because it has a lane of its own.
        try await app.outbox.submit(Like(row: 6))
        try await until("the response is saved") { try await app.rows[6].requireData().likes == 7 }
        try await app.rows.waitUntilSaved()
        if restarts {
            try await app.outbox.close()
            app = try await launch()
            app.outbox.start()
        }
        time.advance(by: .seconds(60))
        try await until("both changes are saved") { await app.outbox.core.isEmpty }
        #expect(try await app.liked.flowable.requireData() == [Row(id: 5, likes: 7), Row(id: 6, likes: 7)])
        #expect(try await app.rows[6].requireData().likes == 7)
        #expect(origin.deliveries.filter { $0.delivery.id == first }.count == 2)
    }

    @Test func `E2: a row that a command adds is not newer than its entity, even if the clock was set back meanwhile`() async throws {
        let (directory, time) = (try TemporaryDirectory(), ManualTime())
        func launch() async throws -> (rows: Store<Int, Row>, liked: Store<UnitParam, [Row]>, outbox: Outbox) {
            let rows = Store<Int, Row>(cacher: MemoryCacher(), time: time) { Row(id: $0, likes: 6) }
            let liked = Store<UnitParam, [Row]>(cacher: MemoryCacher(), links: [.elements(of: rows)], time: time) { _ in [] }
            let outbox = try Outbox(directory: directory.file("outbox"), time: time)
            let addition = CommandPatch<Like>(liked, at: { _ in UnitParam() }) { $1.append(Row(id: $0.row)) }
            await outbox.register(
                Like.self, patching: rows, at: \.row, and: [addition], patch: { _, row in row.likes += 1 },
                perform: { command, _ in Row(id: command.row, likes: 7) })
            _ = try await (rows[5].requireData(), liked.flowable.requireData())
            return (rows, liked, outbox)
        }
        let (app, other) = (try await launch(), try await launch())
        time.shiftDate(by: .seconds(86_400))
        try await app.outbox.submit(Like(row: 5))
        time.shiftDate(by: .seconds(-86_400))
        try await until("the other one shows the change") { try await other.rows[5].requireData().likes == 7 }
        app.outbox.start()
        try await until("the change is saved") { await other.outbox.core.isEmpty }
        try await until("the other one has the change") { await other.outbox.core.unsettled.isEmpty }
        #expect(try await other.liked.flowable.requireData() == [Row(id: 5, likes: 7)])
        #expect(try await other.rows[5].requireData().likes == 7)
    }

    @Test func `O18: clearing the lists keeps the changes of pending commands`() async throws {
        let bench = try await Bench().registered()
        try await bench.load("feed", [5])
        try await bench.outbox.submit(Like(row: 5))
        try await bench.lists.clear()
        try await bench.load("feed", [5])
        #expect(try await bench.likes("feed") == [1])
        try await bench.load("search", [5])
        #expect(try await bench.likes("search") == [1])
        await bench.lists["feed"].update([Row(id: 5, likes: 7)])
        #expect(try await bench.likes("feed") == [8])
    }
}

extension OutboxCore {
    /// Logs a fact alone, such as a delivery without folding the change, as a process does that is killed right after it.
    func log(_ fact: OutboxEntry.Fact, of id: UUID) throws {
        _ = try transact { machine.items[id].map { [entry($0, fact)] } ?? [] }
    }
}
