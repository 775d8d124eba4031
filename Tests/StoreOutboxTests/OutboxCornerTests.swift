import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreOutbox

/// A note that is saved at each keystroke, also before the origin knows it.
private struct NoteDraft: Command, Hashable {
    static let name = "note-draft"
    var id: String
    var text: String

    func supersedes(_ earlier: NoteDraft) -> Bool { earlier.id == id }
}

/// Moves a card to the end of a column.
private struct MoveCard: Command, Hashable {
    static let name = "move-card"
    var card: String
    var from: Int
    var to: Int
}

/// Temporary keys beside superseding, refreshes, triggers and reentrant fetches; commands with several patches; full outboxes.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxCornerTests {
    private let directory: TemporaryDirectory
    private let fetcher = ScriptedFetcher<String, String> { _ in .failure(Offline()) }
    private let store: Store<String, String>
    private let outbox: Outbox

    init() throws {
        directory = try TemporaryDirectory()
        store = Store(cacher: MemoryCacher<String, String>(), fetcher: fetcher)
        outbox = try Outbox(directory: directory.file("outbox"))
    }

    private func registerDrafts() async {
        await outbox.register(
            NoteDraft.self, creating: store, at: \.id, content: { $0.text }, perform: { draft, _ in Created("real-\(draft.id)") })
    }

    @Test func `O8, O9: a creation that supersedes a creation of the same entity shows its own content, and leaves no patch behind`()
        async throws
    {
        await registerDrafts()
        try await outbox.submit(NoteDraft(id: "t", text: "a"))
        #expect(try await store["t"].requireData() == "a")
        try await outbox.submit(NoteDraft(id: "t", text: "ab"))
        #expect(try await store["t"].requireData() == "ab")
        outbox.start()
        try await until { await outbox.core.isEmpty }
        #expect(try await store["real-t"].requireData() == "ab")
        try await until("no key is in use") { store.engine.state.withLock { $0.live.values.isEmpty } }
    }

    @Test func `O8: a refresh that waits for a key ends when a command creates its entity`() async throws {
        await registerDrafts()
        fetcher.hold()
        let refresh = Task { await store["t"].refresh() }
        try await fetcher.started(count: 1, timeout: .seconds(600))
        try await outbox.submit(NoteDraft(id: "t", text: "a"))
        await refresh.value
    }

    enum Request: CaseIterable { case trigger, refresh, invalidate, forceRefresh, origin }

    @Test(arguments: Request.allCases)
    func `O8: a temporary key is never fetched`(_ request: Request) async throws {
        await registerDrafts()
        try await outbox.submit(NoteDraft(id: "t", text: "a"))
        let observer = RecordingObserver(store["t"].publish(forceRefresh: request == .forceRefresh))
        _ = try await observer.next(timeout: .seconds(600)) { $0.content == "a" }
        let (elements, trigger) = AsyncStream.makeStream(of: Void.self)
        let revalidation = store.revalidate(on: elements)
        switch request {
        case .trigger: trigger.yield()
        case .refresh: await store["t"].refresh()
        case .invalidate: await store["t"].invalidate()
        case .origin: #expect(try await store["t"].requireData(from: .origin) == "a")
        case .forceRefresh: break
        }
        await store["t"].update("b")
        _ = try await observer.next(timeout: .seconds(600)) { $0.content == "b" }
        #expect(try await store["t"].requireData() == "b")
        #expect(fetcher.startedCount == 0)
        #expect(observer.states.allSatisfy { $0.isCompleted })
        withExtendedLifetime(revalidation) {}
    }

    @Test func `O8: a fetch that waits for its own key under the former temporary key fails`() async throws {
        let own = Lock<Store<String, String>?>(nil)
        let store = Store(cacher: MemoryCacher<String, String>()) { (_: String) async throws -> String in
            guard let store = own.withLock({ $0 }) else { throw Offline() }
            return try await store["t"].requireData(from: .origin)
        }
        own.withLock { $0 = store }
        defer { own.withLock { $0 = nil } }
        await outbox.register(
            NoteDraft.self, creating: store, at: \.id, content: { $0.text }, perform: { draft, _ in Created("real-\(draft.id)") })
        outbox.start()
        try await outbox.submit(NoteDraft(id: "t", text: "a"))
        try await until { await outbox.core.isEmpty }
        let fetch = Task { try await store["real-t"].requireData(from: .origin) }
        let error = await #expect(throws: StoreError.self) { try await fetch.value }
        #expect(error?.code == .reentrantFetch)
    }

    @Test func `O2, O7: a command with two changes of one content shows and folds both`() async throws {
        let columns = Store(cacher: MemoryCacher<Int, [String]>()) { (_: Int) in ["a", "b"] }
        _ = try await columns[1].requireData()
        let append = CommandPatch<MoveCard>(columns, at: \.to) { $1.append($0.card) }
        await outbox.register(
            MoveCard.self, patching: columns, at: \.from, and: [append], patch: { move, column in column.removeAll { $0 == move.card } },
            perform: { _, _ in })
        try await outbox.submit(MoveCard(card: "a", from: 1, to: 1))
        #expect(try await columns[1].requireData() == ["b", "a"])
        outbox.start()
        try await until { await outbox.core.isEmpty }
        #expect(try await columns[1].requireData() == ["b", "a"])
    }

    @Test func `O9, O12: a command supersedes the one before it in a full outbox`() async throws {
        let outbox = try Outbox(directory: directory.file("small"), policy: OutboxPolicy { $0.countLimit = 1 })
        await outbox.register(NoteDraft.self) { _, _ in }
        try await outbox.submit(NoteDraft(id: "t", text: "a"))
        let newer = try await outbox.submit(NoteDraft(id: "t", text: "ab"))
        #expect(await outbox.commands().map(\.id) == [newer])
        await #expect(throws: StoreError.self) { try await outbox.submit(NoteDraft(id: "u", text: "a")) }
    }

    @Test func `O15: the commands for a key do not include those for the same key of another store`() async throws {
        let titles = Store(cacher: MemoryCacher<String, String>(), fetcher: fetcher)
        await registerDrafts()
        try await outbox.submit(NoteDraft(id: "t", text: "a"))
        #expect(await outbox.pending(for: store["t"]).first { _ in true }?.pendingCount == 1)
        #expect(await outbox.pending(for: titles["t"]).first { _ in true }?.pendingCount == 0)
    }

    @Test func `O7, O18: a list that is loaded after another process has saved the change does not get it again`() async throws {
        let directory = try TemporaryDirectory()
        let former = try OutboxElementTests.Bench(in: directory)
        try await former.load("feed", [5])
        try await former.lists.close()
        let bench = try await OutboxElementTests.Bench(in: directory).registered()
        let id = try await bench.outbox.submit(OutboxElementTests.Like(row: 5))
        let other = former.outbox.core
        try await until("the other process knows the command") { await other.machine.items[id] != nil }
        try await other.log(.delivered(replacement: nil, hasContent: false), of: id)
        try await until("the change waits for a list") { await bench.outbox.core.unsettled[id] != nil }
        try await other.log(.retired, of: id)
        try await until("nothing waits") { await bench.outbox.core.unsettled.isEmpty }
        #expect(try await bench.likes("feed") == [0])
    }

    @Test func `O7, O18: a page that arrives during a delivery may contain the change, and the list is fetched again`() async throws {
        let bench = try await OutboxElementTests.Bench().registered()
        try await bench.load("feed", [4], nextKey: "2")
        bench.origin.hold()
        bench.outbox.start()
        try await bench.outbox.submit(OutboxElementTests.Like(row: 5))
        try await bench.origin.started(count: 1)
        // The origin has performed the like, and its response is under way.
        bench.pages.enqueue(.page([OutboxElementTests.Row(id: 5, likes: 1)]))
        #expect(await bench.lists["feed"].requestNextData() == .loaded)
        bench.pages.enqueue(.page([OutboxElementTests.Row(id: 4)], nextKey: "2"))
        bench.pages.enqueue(.page([OutboxElementTests.Row(id: 5, likes: 1)]))
        bench.origin.release()
        try await bench.settled()
        #expect(try await bench.likes("feed") == [0, 1])
    }

    @Test func `O7, E3: a row that a list brings during a delivery may contain the change, and its entity is fetched again`() async throws {
        let rows = Store<Int, OutboxElementTests.Row>(cacher: MemoryCacher()) { OutboxElementTests.Row(id: $0, likes: 1) }
        let bench = try await OutboxElementTests.Bench(links: [.elements(of: rows)]).registered()
        await rows[5].update(OutboxElementTests.Row(id: 5))
        bench.origin.hold()
        bench.outbox.start()
        try await bench.outbox.submit(OutboxElementTests.Like(row: 5))
        try await bench.origin.started(count: 1)
        // The origin has performed the like, and its response is under way.
        bench.pages.enqueue(.page([OutboxElementTests.Row(id: 5, likes: 1)]))
        _ = try await bench.lists["feed"].requireData()
        bench.origin.release()
        try await bench.settled()
        #expect(try await rows[5].requireData().likes == 1)
        #expect(try await bench.likes("feed") == [1])
    }

    @Test func `O8, O14: after a compaction, a replaced command still waits for a creator that comes later`() {
        let (poisoned, creator) = (UUID(), UUID())
        var machine = OutboxMachine()
        machine.apply(poisoned, .submitted(OutboxEntry.Submission("new", version: 2, subject: "new")), in: "x")
        machine.apply(creator, .submitted(OutboxEntry.Submission("create", subject: "create", creates: "t")), in: "y")
        machine.apply(poisoned, .replaced(OutboxEntry.Submission("old", subject: "old", references: ["t"])), in: "x")
        var reloaded = OutboxMachine()
        for entry in machine.entries() { reloaded.apply(entry, date: entryDate) }
        #expect(reloaded.items[poisoned] == machine.items[poisoned])
        #expect(reloaded.items[poisoned]?.status == .pending)
    }

    @Test func `O8, O17: a command that refers to a failed creation after its replacement fails, and is retried with it`() {
        let (creator, id) = (UUID(), UUID())
        var machine = OutboxMachine()
        machine.apply(id, .submitted(OutboxEntry.Submission(subject: "other")), in: "x")
        machine.apply(creator, .submitted(OutboxEntry.Submission("create", subject: "create", creates: "t")), in: "y")
        machine.apply(creator, .failed(OutboxEntry.Failure(attempts: 1, date: entryDate, error: "refused")), in: "y")
        machine.apply(id, .replaced(OutboxEntry.Submission(subject: "other", references: ["t"])), in: "x")
        #expect(machine.items[id]?.status == .failed)
        var reloaded = OutboxMachine()
        for entry in machine.entries() { reloaded.apply(entry, date: entryDate) }
        #expect(reloaded.items[id] == machine.items[id])
        machine.apply(creator, .retried, in: "y")
        #expect(machine.items[id]?.status == .pending)
    }

    @Test func `O7, O14: the change of a delivered command that only a compacted log has is shown before it is settled`() throws {
        let id = UUID()
        var (machine, other) = (OutboxMachine(), OutboxMachine())
        other.apply(id, .submitted(OutboxEntry.Submission("add", subject: "x")), in: "x")
        other.apply(id, .delivered(replacement: nil), in: "x")
        machine.replaceAll(other.entries(), date: entryDate)
        let item = try #require(machine.items[id])
        #expect(machine.takeActions() == [.show(id, insteadOf: nil), .settle(item)])
    }

    // MARK: Rows of created entities

    private struct Entry: Hashable, Codable, Identifiable, Sendable {
        var id: String
        var text: String
    }

    /// A list whose rows are entities of a store.
    private func listed() -> (entries: Store<String, Entry>, all: Store<UnitParam, [Entry]>) {
        let entries = Store<String, Entry>(cacher: MemoryCacher()) { _ in throw Offline() }
        return (entries, Store<UnitParam, [Entry]>(cacher: MemoryCacher(), links: [.elements(of: entries)]) { _ in [] })
    }

    private func row(in all: Store<UnitParam, [Entry]>) -> CommandPatch<CreateNote> {
        CommandPatch(all, at: { _ in UnitParam() }) { command, rows in
            if !rows.contains(where: { $0.id == command.id }) { rows.append(Entry(id: command.id, text: command.text)) }
        }
    }

    @Test func `E2, O8: a row that a creation adds to a linked list late does not take back later changes of its entity`() async throws {
        let (entries, all) = listed()
        let isReachable = WatchedState(false)
        await outbox.register(
            CreateNote.self, creating: entries, at: \.id, and: [row(in: all)], content: { Entry(id: $0.id, text: $0.text) },
            perform: { command, _ in
                if command.id == "t" { try await isReachable.wait { $0 ? () : nil } }
                return Created(command.id)
            })
        await outbox.register(AppendText.self, patching: entries, at: \.note, patch: { $1.text += $0.text }, perform: { _, _ in })
        _ = try await all.flowable.requireData()
        try await outbox.submit(CreateNote(id: "t", text: "a"))
        try await outbox.submit(CreateNote(id: "u", text: "b"))
        try await outbox.submit(AppendText(note: "u", text: "!"))
        outbox.start()
        try await until("the change is delivered") { await outbox.commands().count == 1 }
        isReachable.update { $0 = true }
        try await until("all is saved") { await outbox.core.isEmpty }
        #expect(try await entries["u"].requireData() == Entry(id: "u", text: "b!"))
        #expect(try await all.flowable.requireData() == [Entry(id: "t", text: "a"), Entry(id: "u", text: "b!")])
    }

    @Test func `E1, O8: a row that a creation adds to a linked list shows its entity, even while an earlier creation is pending`()
        async throws
    {
        let (entries, all) = listed()
        await outbox.register(
            CreateNote.self, creating: entries, at: \.id, and: [row(in: all)], content: { Entry(id: $0.id, text: $0.text) },
            perform: { command, _ in
                if command.id == "t" { throw Offline() }
                return Created("real-\(command.id)", content: Entry(id: "real-\(command.id)", text: command.text))
            })
        await outbox.register(
            AppendText.self, patching: entries, at: \.note, patch: { $1.text += $0.text }, perform: { (_, _) -> Void in throw Offline() })
        _ = try await all.flowable.requireData()
        let observer = RecordingObserver(all.flowable.publish())
        try await outbox.submit(CreateNote(id: "t", text: "a"))
        try await outbox.submit(CreateNote(id: "u", text: "b"))
        try await outbox.submit(AppendText(note: "u", text: "!"))
        try await observer.next { $0.content == [Entry(id: "t", text: "a"), Entry(id: "u", text: "b!")] }
        outbox.start()
        try await observer.next { $0.content == [Entry(id: "t", text: "a"), Entry(id: "real-u", text: "b!")] }
        await all.flowable.update([Entry(id: "real-u", text: "b")])
        #expect(try await all.flowable.requireData() == [Entry(id: "real-u", text: "b!"), Entry(id: "t", text: "a")])
    }

    @Test func `E2, O8: an entity that another process has created takes the row that the origin has of it`() async throws {
        let (entries, all) = listed()
        await outbox.register(CreateNote.self, creating: entries, at: \.id) {
            Entry(id: $0.id, text: $0.text)
        } perform: { _, _ in
            throw Offline()
        }
        let id = try await outbox.submit(CreateNote(id: "t", text: "draft"))
        let observer = RecordingObserver(entries["t"].publish())
        try await observer.next { $0.content?.text == "draft" }
        await all.flowable.update([Entry(id: "42", text: "final")])
        try await outbox.core.log(.delivered(replacement: IdentifierReplacement.text(of: "42"), hasContent: true), of: id)
        await outbox.core.carryOut()
        try await observer.next { $0.content == Entry(id: "42", text: "final") }
        #expect(try await all.flowable.requireData() == [Entry(id: "42", text: "final")])
    }
}
