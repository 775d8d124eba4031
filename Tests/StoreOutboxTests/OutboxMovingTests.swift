import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// Replaces the text of a note.
private struct Rename: Command, Hashable {
    static let name = "rename"
    var note: String
    var text: String

    func replacing(_ identifiers: IdentifierReplacement) -> Rename { Rename(note: identifiers[note], text: text) }
}

/// Notes that are created by one outbox, with a cacher that holds the move from a temporary key to the real one.
private final class NoteMover: Sendable {
    let directory: TemporaryDirectory
    let time = ManualTime()
    let cacher: GatedCacher<String, String>
    let fetcher = ScriptedFetcher<String, String> { .success("fetched \($0.param)") }
    let store: Store<String, String>
    let outbox: Outbox
    let events = OutboxEvents()
    /// The changes in the order in which the origin has performed them.
    let performed = WatchedState<[String]>([])

    convenience init(in directory: TemporaryDirectory? = nil) throws {
        let cacher = GatedCacher<String, String>()
        try self.init(in: directory, cacher: cacher, gate: cacher)
    }

    init(in directory: TemporaryDirectory? = nil, cacher: some Cacher<String, String>, gate: GatedCacher<String, String> = .init()) throws {
        let directory = try directory ?? TemporaryDirectory()
        self.directory = directory
        self.cacher = gate
        store = Store(cacher: cacher, fetcher: fetcher, time: time)
        outbox = try Outbox(directory: directory.file("outbox"), time: time, onEvent: events.append)
    }

    func registerCreations(content: String? = nil) async {
        await outbox.register(
            CreateNote.self, creating: store, at: \.id, content: { $0.text },
            perform: { command, _ in Created("real-\(command.id)", content: content) })
    }

    func registerAppends(lane: (@Sendable (AppendText) -> String)? = nil) async {
        await outbox.register(
            AppendText.self, patching: store, at: \.note, lane: lane, patch: { $1 += $0.text },
            perform: { [performed] command, _ in performed.update { $0.append("\(command.note) \(command.text)") } })
    }

    func registerRenames() async {
        await outbox.register(
            Rename.self, patching: store, at: \.note, patch: { $1 = $0.text },
            perform: { [performed] command, _ in performed.update { $0.append("\(command.note) \(command.text)") } })
    }

    func register(lane: (@Sendable (AppendText) -> String)? = nil) async {
        await registerCreations()
        await registerAppends(lane: lane)
    }

    func registered() async -> NoteMover {
        await register()
        return self
    }

    /// Makes two outboxes of one directory, of which the other one gets the content of the origin.
    static func pair() async throws -> (app: NoteMover, other: NoteMover) {
        let app = try NoteMover()
        let other = try NoteMover(in: app.directory)
        await app.registerCreations()
        await other.registerCreations(content: "of the origin")
        return (app, other)
    }
}

/// The time between the delivery of a creation and the move of its entity to the real key.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxMovingTests {
    // MARK: Order

    @Test(arguments: ["t", "real-t"])
    func `O3, O8: a change that is submitted while its entity moves is delivered after the earlier ones`(_ name: String) async throws {
        let notes = try await NoteMover().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        for text in ["1", "2"] { try await notes.outbox.submit(AppendText(note: "t", text: text)) }
        notes.cacher.hold(.load)
        notes.outbox.start()
        try await notes.events.first("delivered")
        try await notes.cacher.began(.load)
        try await notes.outbox.submit(AppendText(note: name, text: "3"))
        // Another lane shows that deliveries continue.
        try await notes.outbox.submit(AppendText(note: "other", text: "4"))
        try await notes.performed.wait { $0.isEmpty ? nil : () }
        notes.cacher.release()
        try await until { await notes.outbox.core.isEmpty }
        #expect(notes.performed.current.filter { $0 != "other 4" } == ["real-t 1", "real-t 2", "real-t 3"])
        #expect(try await notes.store["t"].requireData() == "a123")
    }

    @Test(arguments: [false, true])
    func `O3, O8: a change that another process submits while the entity moves is delivered after the earlier ones`(
        _ namesLane: Bool
    ) async throws {
        let notes = try NoteMover()
        let other = try NoteMover(in: notes.directory)
        for notes in [notes, other] { if namesLane { await notes.register { "note \($0.note)" } } else { await notes.register() } }
        for round in 1...10 {
            let id = "t\(round)"
            try await notes.outbox.submit(CreateNote(id: id, text: "a"))
            for text in ["1", "2"] { try await notes.outbox.submit(AppendText(note: id, text: text)) }
            if round == 1 { notes.outbox.start() }
            try await notes.events.first("delivered", count: 4 * round - 3)
            try await other.outbox.submit(AppendText(note: "real-\(id)", text: "3"))
            try await notes.performed.wait { $0.count == 3 * round ? () : nil }
            #expect(notes.performed.current.suffix(3) == ["real-\(id) 1", "real-\(id) 2", "real-\(id) 3"])
        }
    }

    @Test func `O3, O6, O8: a change waits for an earlier one of an unregistered type after the entity has moved`() async throws {
        let first = try await NoteMover().registered()
        try await first.outbox.submit(CreateNote(id: "t", text: "a"))
        try await first.outbox.submit(AppendText(note: "t", text: "1"))
        await first.outbox.core.shutDown()
        let notes = try NoteMover(in: first.directory)
        await notes.registerCreations()
        await notes.registerRenames()
        notes.outbox.start()
        try await notes.outbox.submit(Rename(note: "t", text: "2"))
        try await notes.events.first("delivered")
        try await notes.outbox.submit(Rename(note: "real-t", text: "3"))
        try await notes.outbox.submit(Rename(note: "other", text: "4"))
        try await notes.events.first("delivered", count: 2)
        #expect(notes.performed.current == ["other 4"])
        await notes.registerAppends()
        try await until { await notes.outbox.core.isEmpty }
        #expect(notes.performed.current == ["other 4", "real-t 1", "real-t 2", "real-t 3"])
    }

    @Test func `O8, O15: the changes of a moving entity are pending under both keys`() async throws {
        let first = try await NoteMover().registered()
        try await first.outbox.submit(CreateNote(id: "t", text: "a"))
        try await first.outbox.submit(AppendText(note: "t", text: "1"))
        await first.outbox.core.shutDown()
        let notes = try NoteMover(in: first.directory)
        await notes.registerCreations()
        notes.outbox.start()
        try await notes.events.first("delivered")
        for key in ["t", "real-t"] {
            #expect(await notes.outbox.pending(for: notes.store[key]).first { _ in true }?.commands.map(\.name) == ["append"])
        }
    }

    @Test func `O8, O17: a change waits for the move of its own entity only`() async throws {
        let cacher = SlowKeyCacher(slow: "real-slow")
        let notes = try await NoteMover(cacher: cacher).registered()
        for id in ["slow", "fast"] {
            try await notes.outbox.submit(CreateNote(id: id, text: id))
            try await notes.outbox.submit(AppendText(note: id, text: "!"))
        }
        notes.outbox.start()
        try await notes.performed.wait { $0.isEmpty ? nil : () }
        #expect(notes.performed.current == ["real-fast !"])
        #expect(try await notes.store["fast"].requireData() == "fast!")
        #expect(try await notes.store["slow"].requireData() == "slow!")
        cacher.gate.update { $0 = true }
        try await until { await notes.outbox.core.isEmpty }
        #expect(notes.performed.current == ["real-fast !", "real-slow !"])
    }

    /// A cacher that loads one key only after its gate has opened.
    private struct SlowKeyCacher: Cacher {
        let slow: String
        let gate = WatchedState(false)
        var expiry: Expiry { .never }

        func load(param: String) async throws -> CacheRecord<String>? {
            if param == slow { try await gate.wait { $0 ? () : nil } }
            return nil
        }

        func save(_ record: CacheRecord<String>, param: String) async throws {}
        func remove(param: String) async throws {}
        func removeAll() async throws {}
    }

    // MARK: Content

    @Test func `O8: the first content of an entity is out of date if another process has received its content`() async throws {
        let (app, other) = try await NoteMover.pair()
        try await app.outbox.submit(CreateNote(id: "t", text: "first"))
        // Later than the submission, so that no fetch of the temporary key replaces the first content.
        let observer = RecordingObserver(app.store["t"].publish())
        _ = try await observer.next { $0.isCompleted && $0.content == "first" }
        app.fetcher.hold()
        other.outbox.start()
        try await until { await app.outbox.core.isEmpty }
        // The observer sees the first content until the content of the origin is fetched.
        _ = try await observer.next { $0.isLoading && $0.content == "first" }
        #expect(await app.store["real-t"].getData(from: .cache) == nil)
        app.fetcher.release()
        _ = try await observer.next { $0.isCompleted && $0.content == "fetched real-t" }
        #expect(try await app.store["t"].requireData() == "fetched real-t")
        try await app.store.waitUntilSaved()
        #expect(app.cacher.calls(.save).map(\.content) == ["fetched real-t"])
        #expect(app.cacher.calls(.remove).allSatisfy { $0.param == "t" })
        // The app may have forgotten the command before the other process has begun to save the content.
        try await until("the other process has the content") { other.cacher.record(of: "real-t") != nil }
        #expect(try await other.store["real-t"].requireData() == "of the origin")
    }

    @Test(arguments: [false, true], [false, true])
    func `O8: a temporary key leads to the entity that another process has created, shown here or not, in any log`(
        _ isShown: Bool, _ compacts: Bool
    ) async throws {
        let (app, other) = try await NoteMover.pair()
        if isShown { try await app.outbox.submit(CreateNote(id: "t", text: "first")) }
        // The app learns of everything else at once, when the other process has forgotten the command. A look at the log that is under way
        // would find the command earlier.
        try await until("the app follows the log") { await app.outbox.core.log.isWatched }
        await app.outbox.core.log.unfollow()
        await otherTasksRun()
        if !isShown { try await other.outbox.submit(CreateNote(id: "t", text: "first")) }
        let observer = RecordingObserver(app.store["t"].publish())
        try await observer.next { $0.isCompleted && $0.content == (isShown ? "first" : "fetched t") }
        try await until("the other process has the command") { await other.outbox.core.machine.pendingCount == 1 }
        other.outbox.start()
        try await until("the other process has forgotten the command") { await other.outbox.core.isEmpty }
        if compacts { try await other.outbox.core.compact() }
        await app.outbox.core.refresh()
        try await observer.next { $0.isCompleted && $0.content == "fetched real-t" }
        #expect(try await app.store["t"].requireData() == "fetched real-t")
        #expect(app.fetcher.requests.map(\.param) == (isShown ? ["real-t"] : ["t", "real-t"]))
        try await until { await app.outbox.core.isEmpty }
    }

    /// Opens another outbox over the store and the log of an app.
    private func nextOutbox(over app: NoteMover) async throws -> Outbox {
        let next = try Outbox(directory: app.directory.file("outbox"), time: app.time)
        await next.register(
            CreateNote.self, creating: app.store, at: \.id, content: { $0.text }, perform: { command, _ in Created("real-\(command.id)") })
        return next
    }

    @Test func `C15, O8: the next outbox over a store replaces a temporary key that a former one has shown`() async throws {
        let (app, other) = try await NoteMover.pair()
        try await app.outbox.submit(CreateNote(id: "t", text: "first"))
        #expect(try await app.store["t"].requireData() == "first")
        await app.outbox.core.shutDown()
        try await until("the other process has the command") { await other.outbox.core.machine.pendingCount == 1 }
        other.outbox.start()
        try await until("the other process has forgotten the command") { await other.outbox.core.isEmpty }
        let next = try await nextOutbox(over: app)
        defer { withExtendedLifetime(next) {} }
        #expect(try await app.store["t"].requireData() == "fetched real-t")
        let engine = app.store.engine
        try await until("no key is live") { engine.state.withLock { $0.live.isEmpty } }
    }

    @Test func `C15, O8: the next outbox over a store drops the changes of a temporary key that a former one has shown`() async throws {
        let app = try NoteMover()
        let other = try NoteMover(in: app.directory)
        await app.registerAppends()
        await other.register()
        try await other.outbox.submit(CreateNote(id: "t", text: "first"))
        try await until("the app knows the creation") { await app.outbox.core.machine.pendingCount == 1 }
        try await app.outbox.submit(AppendText(note: "t", text: " and more"))
        #expect(try await app.store["t"].requireData() == "fetched t and more")
        await app.outbox.core.shutDown()
        try await until("the other process knows the change") { await other.outbox.core.machine.pendingCount == 2 }
        other.outbox.start()
        try await until("the other process has forgotten the commands") { await other.outbox.core.isEmpty }
        let next = try await nextOutbox(over: app)
        defer { withExtendedLifetime(next) {} }
        // A patch would keep the key live for good.
        let engine = app.store.engine
        #expect(engine.state.withLock { $0.live[BoxedKey("t")]?.value.machine.book.patches.isEmpty ?? true })
        #expect(try await app.store["t"].requireData() == "fetched real-t")
        try await until("no key is live") { engine.state.withLock { $0.live.isEmpty } }
    }

    @Test func `C6, O8: a save of a temporary key that runs while the key is replaced ends its callers`() async throws {
        let app = try NoteMover()
        let other = try NoteMover(in: app.directory)
        await other.registerCreations()
        try await other.outbox.submit(CreateNote(id: "t", text: "first"))
        other.outbox.start()
        try await until("the other process has forgotten the command") { await other.outbox.core.isEmpty }
        await app.outbox.core.refresh()
        app.cacher.hold(.save)
        let save = Task<Void, any Error> { await app.store["t"].update("own") }
        try await app.cacher.began(.save)
        await app.registerCreations()
        app.cacher.release()
        try await save.value(of: "the save of the temporary key ends")
        #expect(try await app.store["t"].requireData() == "fetched real-t")
    }

    @Test func `O8: after a restart between delivery and move, the first content is no valid content of the entity`() async throws {
        let former = try NoteMover()
        await former.registerCreations(content: "of the origin")
        try await former.outbox.submit(CreateNote(id: "t", text: "first"))
        former.cacher.hold(.load)
        former.outbox.start()
        try await former.events.first("delivered")
        try await former.cacher.began(.load)
        await former.outbox.core.shutDown()
        let app = try NoteMover(in: former.directory)
        await app.registerCreations()
        try await until { await app.outbox.core.isEmpty }
        #expect(await app.store["real-t"].getData(from: .cache) == nil)
        #expect(try await app.store["real-t"].requireData() == "fetched real-t")
        former.cacher.release()
    }

    /// The moment at which another process saves the content that the origin has returned.
    enum SaveMoment: CaseIterable, Sendable {
        /// Before this process reads the record, during the read, and after the entity has moved here.
        case beforeRead, duringRead, afterMove
    }

    @Test(arguments: SaveMoment.allCases, [false, true])
    func `O8: content that another process saves into a shared directory takes the place of the first content`(
        _ moment: SaveMoment, _ restarts: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        func cacher() -> GatedFiles { GatedFiles(directory.file("notes")) }
        let (files, others) = (cacher(), cacher())
        let other = try NoteMover(in: directory, cacher: others)
        await other.registerCreations(content: "of the origin")
        var app = try NoteMover(in: directory, cacher: files)
        var gate = files
        await app.registerCreations()
        try await app.outbox.submit(CreateNote(id: "t", text: "first"))
        #expect(try await app.store["t"].requireData() == "first")
        if restarts {
            await app.outbox.core.shutDown()
            gate = cacher()
        }
        gate.holdsLoads.update { $0 = moment == .beforeRead ? .before : moment == .duringRead ? .after : nil }
        others.holdsSaves.update { $0 = true }
        other.outbox.start()
        try await other.events.first("delivered")
        if restarts {
            app = try NoteMover(in: directory, cacher: gate)
            await app.registerCreations()
        }
        if moment == .afterMove {
            try await until("the entity has moved") { app.store.engine.isReplaced(BoxedKey("t")) && app.fetcher.startedCount == 0 }
            try await app.store.waitUntilSaved()
            // The first content is shown as out of date at most, and is on no disk.
            #expect(await app.store["real-t"].getData(from: .cache) == nil)
            #expect(try await gate.files.load(param: "real-t") == nil)
        } else {
            try await gate.loads.wait { $0.contains("real-t") ? () : nil }
        }
        others.holdsSaves.update { $0 = false }
        try await other.store.waitUntilSaved()
        try await until("the other process has saved") { try await gate.files.load(param: "real-t") != nil }
        gate.holdsLoads.update { $0 = nil }
        try await until("both outboxes are empty") {
            let (here, there) = (await app.outbox.core.isEmpty, await other.outbox.core.isEmpty)
            return here && there
        }
        try await app.store.waitUntilSaved()
        #expect(try await app.store["real-t"].requireData() == "of the origin")
        #expect(try await app.store["t"].requireData() == "of the origin")
        #expect(app.fetcher.startedCount == 0)
        #expect(try await gate.files.load(param: "real-t")?.content == "of the origin")
    }

    /// Files in a directory that processes share; the test holds loads, before or after they have read, and saves.
    private final class GatedFiles: SharedCacher {
        enum Hold: Sendable { case before, after }

        let files: FileCacher<String, String>
        let holdsLoads = WatchedState<Hold?>(nil)
        let holdsSaves = WatchedState(false)
        /// The keys whose loads have begun.
        let loads = WatchedState<[String]>([])

        init(_ directory: URL) { files = FileCacher(directory: directory, sharing: .processes) }

        var expiry: Expiry { files.expiry }
        var position: Revision { files.position }

        func load(param: String) async throws -> CacheRecord<String>? {
            loads.update { $0.append(param) }
            try await holdsLoads.wait { $0 == .before ? nil : () }
            let record = try await files.load(param: param)
            try await holdsLoads.wait { $0 == .after ? nil : () }
            return record
        }

        func save(_ record: CacheRecord<String>, param: String) async throws {
            try await holdsSaves.wait { $0 ? nil : () }
            try await files.save(record, param: param)
        }

        func save(_ record: CacheRecord<String>, param: String, over base: Revision) async throws -> SaveOutcome<String> {
            try await holdsSaves.wait { $0 ? nil : () }
            return try await files.save(record, param: param, over: base)
        }

        func remove(param: String) async throws { try await files.remove(param: param) }

        func remove(param: String, over base: Revision) async throws -> SaveOutcome<String> {
            try await files.remove(param: param, over: base)
        }

        func removeAll() async throws { try await files.removeAll() }
        func keys() async throws -> [String]? { try await files.keys() }
        func lease(_ param: String, for duration: Duration) async throws -> LeaseOutcome { try await files.lease(param, for: duration) }

        func observeChanges(_ observer: @escaping @Sendable (CacherChange<String>) -> Void) -> ChangeObservation {
            files.observeChanges(observer)
        }
    }

    @Test func `O8: the first content of an entity does not replace the content that another process has saved`() async throws {
        let directory = try TemporaryDirectory()
        func cacher() -> FileCacher<String, String> { FileCacher(directory: directory.file("notes"), sharing: .processes) }
        for round in 1...10 {
            let app = try NoteMover(in: directory, cacher: cacher())
            let other = try NoteMover(in: directory, cacher: cacher())
            await app.registerCreations()
            await other.registerCreations(content: "of the origin")
            let id = "t\(round)"
            try await app.outbox.submit(CreateNote(id: id, text: "first"))
            #expect(try await app.store[id].requireData() == "first")
            other.outbox.start()
            try await until { await app.outbox.core.isEmpty }
            try await until { await other.outbox.core.isEmpty }
            // The app may have forgotten the command before the other process has begun to save the content.
            try await until("content is saved") { try await cacher().load(param: "real-\(id)") != nil }
            try await app.store.waitUntilSaved()
            try await other.store.waitUntilSaved()
            let saved = try await cacher().load(param: "real-\(id)")?.content
            #expect(saved == "of the origin")
            await app.outbox.core.shutDown()
            await other.outbox.core.shutDown()
        }
    }
}
