import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// Links two notes. No command can be encoded while the switch is on.
private struct LinkNotes: Command, Hashable {
    static let name = "link"
    static let isBroken = Lock(false)
    var from: String
    var to: String

    private enum CodingKeys: String, CodingKey { case from, to }

    func replacing(_ identifiers: IdentifierReplacement) -> LinkNotes { LinkNotes(from: identifiers[from], to: identifiers[to]) }

    func encode(to encoder: any Encoder) throws {
        if Self.isBroken.withLock({ $0 }) { throw Offline() }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(from, forKey: .from)
        try container.encode(to, forKey: .to)
    }
}

/// Entities that are created under a temporary identifier.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxCreationTests {
    private final class Notes: Sendable {
        let directory: TemporaryDirectory
        let time = ManualTime()
        let creating: ScriptedDeliveries<CreateNote, Created<String, String>>
        let appending: ScriptedDeliveries<AppendText, Void>
        let fetcher = ScriptedFetcher<String, String> { _ in .failure(Offline()) }
        let store: Store<String, String>
        let outbox: Outbox
        let events = OutboxEvents()

        init(
            in directory: TemporaryDirectory? = nil,
            creating: ScriptedDeliveries<CreateNote, Created<String, String>> = ScriptedDeliveries {
                .success(Created("42-\($0.command.id)"))
            },
            appending: ScriptedDeliveries<AppendText, Void> = ScriptedDeliveries { _ in .success(()) }
        ) throws {
            let directory = try directory ?? TemporaryDirectory()
            self.directory = directory
            self.creating = creating
            self.appending = appending
            store = Store(cacher: TieredCacher(over: FileCacher(directory: directory.file("notes"))), fetcher: fetcher, time: time)
            outbox = try Outbox(directory: directory.file("outbox"), time: time, onEvent: events.append)
        }

        func register() async {
            await outbox.register(
                CreateNote.self, creating: store, at: \.id, content: { $0.text },
                perform: { [creating] in try await creating.perform($0, $1) })
            await outbox.register(
                AppendText.self, patching: store, at: \.note, patch: { $1 += $0.text },
                perform: { [appending] in try await appending.perform($0, $1) })
        }

        /// Registers both commands.
        func registered() async -> Notes {
            await register()
            return self
        }

        func settled() async throws {
            try await until("the outbox is empty") { await self.outbox.core.isEmpty }
            try await store.waitUntilSaved()
        }

        func saved(_ id: String) async throws -> String? {
            try await FileCacher<String, String>(directory: directory.file("notes")).load(param: id)?.content
        }
    }

    @Test func `O8: the content of a temporary key is not saved`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        #expect(try await notes.store["t"].requireData() == "a")
        try await notes.store.waitUntilSaved()
        #expect(try await notes.saved("t") == nil)
        await notes.store["t"].update("b")
        try await notes.store.waitUntilSaved()
        #expect(try await notes.saved("t") == nil)
    }

    @Test func `O8: an entity is shown under its temporary key, and moves with its observers to the real one`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        #expect(try await notes.store["t"].requireData() == "ab")
        let observer = RecordingObserver(notes.store["t"].publish())
        _ = try await observer.next { $0.content == "ab" }
        notes.appending.hold()
        notes.outbox.start()
        try await notes.appending.started(count: 1, timeout: .seconds(600))
        #expect(notes.appending.commands == [AppendText(note: "42-t", text: "b")])
        #expect(try await notes.store["42-t"].requireData() == "ab")
        try await notes.outbox.submit(AppendText(note: "t", text: "c"))
        _ = try await observer.next { $0.content == "abc" }
        notes.appending.release()
        try await notes.settled()
        #expect(notes.appending.commands.map(\.note) == ["42-t", "42-t"])
        await notes.store["42-t"].update { $0 += "d" }
        _ = try await observer.next { $0.content == "abcd" }
        #expect(try await notes.saved("42-t") == "abcd")
        #expect(try await notes.saved("t") == nil)
        #expect(observer.states.compactMap(\.content).allSatisfy { ["ab", "abc", "abcd"].contains($0) })
    }

    @Test func `O8: a command that could not be rewritten after one creation gets both keys after the next one`() async throws {
        let notes = try Notes(
            creating: ScriptedDeliveries { delivery in
                let (id, attempt) = (delivery.command.id, delivery.delivery.attempt)
                return id == "u" && attempt == 1 ? .failure(Offline()) : .success(Created("42-\(id)"))
            })
        await notes.register()
        let links = WatchedState<[LinkNotes]>([])
        await notes.outbox.register(LinkNotes.self) { command, _ in links.update { $0.append(command) } }
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(CreateNote(id: "u", text: "b"))
        try await notes.outbox.submit(LinkNotes(from: "t", to: "u"))
        LinkNotes.isBroken.withLock { $0 = true }
        notes.outbox.start()
        for event in ["delivered", "log failed", "attempt 1 failed"] { try await notes.events.first(event) }
        LinkNotes.isBroken.withLock { $0 = false }
        // Ends the delay of the second creation before the command is rewritten again.
        await notes.outbox.core.update { $0.triggered() }
        try await notes.settled()
        #expect(links.current == [LinkNotes(from: "42-t", to: "42-u")])
    }

    @Test func `O8: the temporary key and its replacement survive restarts`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        await notes.store["t"].clear()
        #expect(try await notes.store["t"].requireData() == "ab")
        // Two running processes would need a shared directory for their records.
        await notes.outbox.core.shutDown()
        let again = try await Notes(in: notes.directory).registered()
        #expect(try await again.store["t"].requireData() == "ab")
        again.appending.hold()
        again.outbox.start()
        try await again.appending.started(count: 1, timeout: .seconds(600))
        await again.outbox.core.shutDown()
        // A save ends with its process; that of the former launch must not overwrite the record of the next one.
        try await again.store.waitUntilSaved()
        let third = try await Notes(in: notes.directory).registered()
        #expect(try await third.store["t"].requireData() == "ab")
        #expect(try await third.store["42-t"].requireData() == "ab")
        try await third.outbox.submit(AppendText(note: "t", text: "c"))
        third.outbox.start()
        try await third.settled()
        #expect(third.appending.commands.map(\.note) == ["42-t", "42-t"])
        #expect(third.creating.startedCount == 0)
        #expect(try await third.saved("42-t") == "abc")
    }

    @Test func `O8, O14: the replacement of a temporary key outlives its command, a compaction and a restart`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        notes.outbox.start()
        try await notes.settled()
        try await notes.outbox.core.compact()
        await notes.outbox.core.shutDown()
        let again = try await Notes(in: notes.directory).registered()
        #expect(try await again.store["t"].requireData() == "a")
        try await again.outbox.submit(AppendText(note: "t", text: "b"))
        again.outbox.start()
        try await again.settled()
        #expect(again.appending.commands == [AppendText(note: "42-t", text: "b")])
        #expect(try await again.saved("42-t") == "ab")
    }

    @Test func `C9, O8: observers and callers of a replaced key that come before the registration move to the real key`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        notes.outbox.start()
        try await notes.settled()
        await notes.outbox.core.shutDown()
        let again = try Notes(in: notes.directory)
        again.fetcher.hold()
        let observer = RecordingObserver(again.store["t"].publish())
        let callers = [GettingFrom.both, .both, .origin].map { source in Task { try await again.store["t"].requireData(from: source) } }
        let engine = again.store.engine
        try await until("all wait") {
            engine.state.withLock { state in
                guard let key = state.live[BoxedKey("t")]?.value else { return false }
                return key.callers.count + (key.callerGroup?.result.count ?? 0) == 3 && key.observers.count == 1
            }
        }
        try await again.fetcher.started(count: 1, timeout: .seconds(600))
        await again.register()
        try await observer.next { $0.content == "a" }
        for caller in callers.prefix(2) { #expect(try await caller.value(of: "a caller of the temporary key has content") == "a") }
        // A caller that waits for the origin waits for the fetch of the real key, and its cancellation is prompt.
        try await again.fetcher.started(count: 2, timeout: .seconds(600))
        callers[2].cancel()
        await #expect(throws: CancellationError.self) { try await callers[2].value }
        #expect(again.fetcher.requests.map(\.param) == ["t", "42-t"])
        again.fetcher.release()
        try await observer.next { $0.error != nil && $0.content == "a" }
        try await until("the temporary key is idle") { engine.state.withLock { $0.live.count } == 1 }
    }

    @Test(arguments: [String?.none, "A"], [false, true])
    func `O3, O8: an entity that keeps its temporary key at the origin is changed, saved and fetched like any other`(
        _ content: String?, _ restarts: Bool
    ) async throws {
        func origin() -> ScriptedDeliveries<CreateNote, Created<String, String>> {
            ScriptedDeliveries { .success(Created($0.command.id, content: content)) }
        }
        let first = try await Notes(creating: origin()).registered()
        try await first.outbox.submit(CreateNote(id: "t", text: "a"))
        try await first.outbox.submit(AppendText(note: "t", text: "b"))
        first.appending.hold()
        first.outbox.start()
        try await first.appending.started(count: 1, timeout: .seconds(600))
        #expect(try await first.store["t"].requireData() == (content ?? "a") + "b")
        var notes = first
        if restarts {
            await first.outbox.core.shutDown()
            // A save ends with its process.
            try await first.store.waitUntilSaved()
            notes = try Notes(in: first.directory, creating: origin())
            await notes.register()
            notes.outbox.start()
        }
        notes.appending.release()
        try await notes.settled()
        #expect(notes.appending.commands == [AppendText(note: "t", text: "b")])
        #expect(try await notes.saved("t") == (content ?? "a") + "b")
        let engine = notes.store.engine
        try await until("the key is idle") { engine.state.withLock { $0.live.values.isEmpty } }
        #expect(notes.fetcher.startedCount == 0)
        await notes.store["t"].refresh()
        #expect(notes.fetcher.requests.map(\.param) == ["t"])
    }

    @Test func `O8: commands that refer to a created entity are rewritten for its real key, and not for a kept one`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        let core = notes.outbox.core
        let texts = ["t", "42-t"].map { IdentifierReplacement.text(of: $0) }
        let commands = await core.machine.commands()
        let creator = try #require(commands.first { $0.submission.creates == texts[0] })
        #expect(await core.rewrites(after: creator, texts[0]).isEmpty)
        #expect(await core.rewrites(after: creator, texts[1]).count == 1)
    }

    @Test func `O4, O8, O13: another process that learns of a replaced identifier keeps the identity of the deliveries`() async throws {
        let notes = try await Notes(appending: ScriptedDeliveries(.failure(Offline()), .success(()))).registered()
        let other = try await Notes(in: notes.directory).registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        try await until { await other.outbox.core.machine.pendingCount == 2 }
        let observer = RecordingObserver(other.store["t"].publish())
        _ = try await observer.next { $0.content == "ab" }
        // The other process learns of the creation and of the first attempt at once.
        await other.outbox.core.log.unfollow()
        await otherTasksRun()
        notes.outbox.start()
        try await notes.events.first("attempt 1 failed")
        await other.outbox.core.refresh()
        try await until { await other.outbox.core.moving.isEmpty }
        #expect(try await other.store["42-t"].requireData() == "ab")
        #expect(try await other.store["t"].requireData() == "ab")
        await other.store["42-t"].update { $0 += "c" }
        _ = try await observer.next { $0.content == "acb" }
        #expect(observer.states.compactMap(\.content).allSatisfy { ["ab", "acb"].contains($0) })
        notes.time.advance(by: .seconds(300))
        try await notes.settled()
        #expect(notes.appending.commands.map(\.note) == ["42-t", "42-t"])
        #expect(Set(notes.appending.deliveries.map(\.delivery.id)).count == 1)
    }

    @Test func `O8: commands fail if the creation of their entity fails, and are retried with it`() async throws {
        let notes = try await Notes(creating: ScriptedDeliveries(.failure(Refusal()), .success(Created("7", content: "A")))).registered()
        let creation = try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        let append = try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        notes.outbox.start()
        try await notes.events.first("failed")
        #expect(await notes.outbox.commands().map(\.status) == [.failed, .failed])
        #expect(await notes.outbox.commands().map(\.id) == [creation, append])
        #expect(notes.appending.startedCount == 0)
        #expect(await notes.store["t"].getData(from: .cache) == nil)
        #expect(try await notes.outbox.retry(creation))
        try await notes.settled()
        #expect(notes.appending.commands == [AppendText(note: "7", text: "b")])
        #expect(try await notes.store["7"].requireData() == "Ab")
        #expect(try await notes.saved("7") == "Ab")
    }

    /// Creates a note, in place of one that was not created yet.
    private struct Sketch: Command, Hashable {
        static let name = "sketch"
        var id: String

        func supersedes(_ earlier: Sketch) -> Bool { true }
    }

    @Test func `O8, O9: commands fail if the creation of their entity is superseded by that of another entity`() async throws {
        let notes = try await Notes().registered()
        let sketches = ScriptedDeliveries<Sketch, Created<String, String>> { .success(Created("real-\($0.command.id)")) }
        await notes.outbox.register(
            Sketch.self, creating: notes.store, at: \.id, lane: { _ in "sketches" }, content: { _ in "" },
            perform: { try await sketches.perform($0, $1) })
        try await notes.outbox.submit(Sketch(id: "a"))
        let toFormer = try await notes.outbox.submit(AppendText(note: "a", text: "x"))
        try await notes.outbox.submit(Sketch(id: "b"))
        try await notes.outbox.submit(AppendText(note: "b", text: "y"))
        #expect(await notes.outbox.commands().filter { $0.status == .failed }.map(\.id) == [toFormer])
        notes.outbox.start()
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(sketches.commands == [Sketch(id: "b")])
        #expect(notes.appending.commands == [AppendText(note: "real-b", text: "y")])
    }

    /// Creates a note below another one.
    private struct CreateChild: Command, Hashable {
        static let name = "child"
        var id: String
        var parent: String

        func replacing(_ identifiers: IdentifierReplacement) -> CreateChild { CreateChild(id: id, parent: identifiers[parent]) }
    }

    @Test(arguments: [false, true])
    func `O17: a command cannot be replaced by one that would wait for itself`(_ sharesLane: Bool) async throws {
        let notes = try Notes()
        await notes.outbox.register(CreateChild.self, creating: notes.store, at: \.id, lane: { sharesLane ? "notes" : $0.id }) {
            $0.parent
        } perform: { command, _ in
            Created("42-\(command.id)")
        }
        let first = try await notes.outbox.submit(CreateChild(id: "a", parent: "0"))
        let second = try await notes.outbox.submit(CreateChild(id: "b", parent: sharesLane ? "0" : "a"))
        let third = try await notes.outbox.submit(CreateChild(id: "c", parent: "b"))
        for parent in ["b", "c"] {
            let error = await #expect(throws: StoreError.self) {
                try await notes.outbox.replace(first, with: CreateChild(id: "a", parent: parent))
            }
            #expect(error?.code == .entityNotCreated && error?.message.contains("neither would be delivered") == true)
        }
        #expect(try await notes.outbox.replace(third, with: CreateChild(id: "c", parent: "a")).isDone)
        notes.outbox.start()
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(await notes.outbox.commands().allSatisfy { $0.id != first && $0.id != second && $0.id != third })
    }

    @Test func `O8, O17: a pending creation with a new payload shows and saves its new content`() async throws {
        let notes = try await Notes().registered()
        await notes.outbox.register(
            CreateChild.self, creating: notes.store, at: \.id, content: { $0.parent },
            perform: { command, _ in Created("42-\(command.id)") })
        let id = try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "!"))
        try await notes.outbox.submit(CreateChild(id: "c", parent: "t"))
        #expect(try await notes.outbox.replace(id, with: CreateNote(id: "t", text: "b")) == .discarded)
        #expect(try await notes.store["t"].requireData() == "b!")
        notes.outbox.start()
        try await notes.settled()
        #expect(try await notes.saved("42-t") == "b!")
        // The key of the parent was temporary, too.
        #expect(try await notes.saved("42-c") == "42-t")
    }

    @Test func `O5, O8: a replaced creation takes the commands of its entity along, and another entity gets none of them`() async throws {
        let notes = try Notes(
            creating: ScriptedDeliveries(
                .failure(Refusal()), .failure(Refusal()), .success(Created("7")), .success(Created("8")), .success(Created("9"))))
        await notes.register()
        let kept = try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        let other = try await notes.outbox.submit(CreateNote(id: "u", text: "a"))
        let orphan = try await notes.outbox.submit(AppendText(note: "u", text: "b"))
        notes.outbox.start()
        try await notes.events.first("failed", count: 2)
        #expect(try await notes.outbox.replace(kept, with: CreateNote(id: "t", text: "A")) == .discarded)
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(notes.appending.commands == [AppendText(note: "7", text: "b")])
        #expect(try await notes.store["7"].requireData() == "Ab")
        #expect(try await notes.outbox.replace(other, with: CreateNote(id: "v", text: "B")) == .discarded)
        try await notes.outbox.submit(AppendText(note: "v", text: "c"))
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(notes.appending.commands.map(\.note) == ["7", "8"])
        #expect(await notes.outbox.commands().map(\.id) == [orphan])
        #expect(try await notes.outbox.retry(orphan))
        #expect(await notes.outbox.commands().map(\.status) == [.failed])
    }

    @Test func `O8, O15: the commands of a created entity are found under its temporary key, too`() async throws {
        let notes = try await Notes().registered()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        #expect(await notes.outbox.pending(for: notes.store["t"]).first { _ in true }?.pendingCount == 1)
        notes.appending.hold()
        notes.outbox.start()
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        try await notes.appending.started(count: 1, timeout: .seconds(600))
        #expect(notes.appending.commands == [AppendText(note: "42-t", text: "b")])
        for key in ["t", "42-t"] {
            #expect(await notes.outbox.pending(for: notes.store[key]).first { _ in true }?.commands.map(\.name) == ["append"])
        }
        notes.appending.release()
        try await notes.settled()
    }

    // MARK: Creations that have failed or were taken back

    private func isNotCreated(_ error: (any Error)?) -> Bool { (error as? StoreError)?.code.rawValue == "entityNotCreated" }

    /// The end of a creation before its delivery succeeds.
    enum Ending: CaseIterable { case failed, discarded, canceled, cleared, replaced }

    @Test(arguments: Ending.allCases)
    func `O8: a temporary key is not fetched after its creation has ended without an entity`(_ ending: Ending) async throws {
        let notes = try await Notes(creating: ScriptedDeliveries { _ in .failure(Refusal()) }).registered()
        let creation = try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        let observer = RecordingObserver(notes.store["t"].publish())
        try await observer.next { $0.content == "a" }
        switch ending {
        case .failed:
            notes.outbox.start()
            try await notes.events.first("failed", count: 1)
        case .discarded: #expect(try await notes.outbox.discard(creation) == .discarded)
        case .canceled: #expect(try await notes.outbox.cancel(creation) == .canceled)
        case .cleared: try await notes.outbox.clear()
        case .replaced: _ = try await notes.outbox.replace(creation, with: CreateNote(id: "u", text: "a"))
        }
        let state = try await observer.next { $0.error != nil }
        #expect(state.content == nil && isNotCreated(state.error))
        for source in [GettingFrom.both, .origin] {
            let error = await #expect(throws: (any Error).self) { try await notes.store["t"].requireData(from: source) }
            #expect(isNotCreated(error))
        }
        await notes.store["t"].refresh()
        await notes.store["t"].invalidate()
        await notes.store["t"].clear()
        #expect(notes.fetcher.startedCount == 0)
        // Another creation may use the key.
        guard ending != .failed else { return }
        try await notes.outbox.submit(CreateNote(id: "t", text: "b"))
        try await observer.next { $0.content == "b" && $0.error == nil }
    }

    @Test func `O8: the key of a failed creation is not fetched in the next launch, and has content after a retry`() async throws {
        let notes = try await Notes(creating: ScriptedDeliveries { _ in .failure(Refusal()) }).registered()
        let creation = try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        notes.outbox.start()
        try await notes.events.first("failed", count: 1)
        await notes.outbox.core.shutDown()
        let again = try await Notes(in: notes.directory).registered()
        let observer = RecordingObserver(again.store["t"].publish())
        let state = try await observer.next { $0.error != nil }
        #expect(state.content == nil && isNotCreated(state.error))
        #expect(try await again.outbox.retry(creation))
        try await observer.next { $0.content == "a" && $0.error == nil }
        #expect(again.fetcher.startedCount == 0)
    }

    @Test func `O8: a command is refused if the creation of its entity was taken back`() async throws {
        let notes = try await Notes(creating: ScriptedDeliveries { _ in .failure(Refusal()) }).registered()
        let canceled = try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        #expect(try await notes.outbox.cancel(canceled) == .canceled)
        let failed = try await notes.outbox.submit(CreateNote(id: "u", text: "a"))
        notes.outbox.start()
        try await notes.events.first("failed", count: 1)
        let orphan = try await notes.outbox.submit(AppendText(note: "u", text: "b"))
        #expect(try await notes.outbox.discard(failed) == .discarded)
        for id in ["t", "u"] {
            let error = await #expect(throws: (any Error).self) { try await notes.outbox.submit(AppendText(note: id, text: "b")) }
            #expect(isNotCreated(error))
        }
        let error = await #expect(throws: (any Error).self) {
            try await notes.outbox.replace(orphan, with: AppendText(note: "t", text: "b"))
        }
        #expect(isNotCreated(error))
        // The log knows the key in the next launch.
        await notes.outbox.core.shutDown()
        let again = try await Notes(in: notes.directory).registered()
        await #expect(throws: StoreError.self) { try await again.outbox.submit(AppendText(note: "t", text: "b")) }
        // Another creation may use the key.
        try await again.outbox.submit(CreateNote(id: "t", text: "c"))
        try await again.outbox.submit(AppendText(note: "t", text: "d"))
        again.outbox.start()
        #expect(await again.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(again.appending.commands == [AppendText(note: "42-t", text: "d")])
        #expect(notes.appending.commands == [])
    }
}
