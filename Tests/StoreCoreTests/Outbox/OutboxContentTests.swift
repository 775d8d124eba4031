import Foundation
import Testing
import Trials

@testable import StoreCore

/// What stores show between the submission of a command and the content that contains its change.
@Suite(.timeLimit(.minutes(20)))
struct OutboxContentTests {
    private func submission(_ command: Add) throws -> OutboxEntry.Submission {
        OutboxEntry.Submission(
            name: "add", version: 1, subject: "Int \(command.key)", references: [], creates: nil, supersedes: nil, delivery: UUID(),
            date: Date(timeIntervalSince1970: 1_000_000_000), payload: try JSONEncoder().encode(command))
    }

    /// A directory as a process leaves it that dies after the origin has performed an addition of five to ten.
    private func directory(saved: Int?, isNamed: Bool) async throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let id = UUID()
        if let saved {
            var record = CacheRecord(content: saved, fetchedAt: Date(timeIntervalSince1970: 1_000_000_000))
            if isNamed { record.fields.commands = [id] }
            try await FileCacher<Int, Int>(directory: directory.file("numbers")).save(record, param: 1)
        }
        let log = try OutboxLog(directory: directory.file("outbox"))
        let facts: [OutboxEntry.Fact] = [
            .submitted(try submission(Add(key: 1, amount: 5))), .attempted, .delivered(replacement: nil),
        ]
        _ = try log.append(facts.map { OutboxEntry(id: id, lane: "Int 1", fact: $0).record }, durability: .crash)
        return directory
    }

    @Test func `O7: a delivered command is folded after a restart if the record does not name it`() async throws {
        let bench = try await OutboxBench(in: directory(saved: 10, isNamed: false))
        await bench.register()
        #expect(try await bench.value() == 15)
        try await bench.settled()
        #expect(try await bench.saved()?.content == 15)
        let again = try OutboxBench(in: bench.directory)
        await again.register()
        #expect(try await again.value() == 15)
        #expect(again.origin.startedCount == 0)
    }

    @Test func `O7: a delivered command is not applied to a record that names it`() async throws {
        let bench = try await OutboxBench(in: directory(saved: 15, isNamed: true))
        let observer = RecordingObserver(bench.store[1].publish())
        await bench.register()
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.value() == 15)
        _ = try await observer.next { $0.content == 15 }
        await bench.store[1].update { $0 += 100 }
        #expect(try await bench.saved()?.content == 115)
        #expect(bench.origin.startedCount == 0)
    }

    @Test func `O7: a delivered command without a record is forgotten, because fetched content contains it`() async throws {
        let bench = try await OutboxBench(in: directory(saved: nil, isNamed: false), fetcher: ScriptedFetcher { _ in .success(15) })
        await bench.register()
        try await bench.settled()
        #expect(try await bench.value() == 15)
    }

    @Test func `O7: the names of old commands do not accumulate in a record`() async throws {
        let directory = try TemporaryDirectory()
        for launch in 1...5 {
            let bench = try OutboxBench(in: directory)
            if launch == 1 { await bench.fill() }
            await bench.register()
            bench.outbox.start()
            try await bench.outbox.submit(Add(key: 1, amount: 5))
            try await bench.settled()
            #expect(try await bench.value() == 5 * launch)
            #expect(try await bench.saved()?.fields.commands?.count ?? 0 <= 1)
        }
    }

    /// Raises a number, which a repetition does not change.
    private struct Raise: Command, Hashable {
        static let name = "raise"
        var key: Int
        var value: Int
    }

    @Test func `O7: no observer sees the value without the change, even if content is fetched meanwhile`() async throws {
        let origin = WatchedState(0)
        let bench = try OutboxBench(fetcher: ScriptedFetcher { _ in .success(origin.current) })
        let raising = ScriptedDeliveries<Raise, Void> { delivery in
            origin.update { $0 = max($0, delivery.command.value) }
            return .success(())
        }
        #expect(try await bench.value() == 0)
        await bench.outbox.register(Raise.self, patching: bench.store, at: \.key) {
            $1 = max($1, $0.value)
        } perform: {
            try await raising.perform($0, $1)
        }
        let observer = RecordingObserver(bench.store[1].publish())
        _ = try await observer.next { $0.content == 0 }
        raising.hold()
        bench.outbox.start()
        for value in 1...20 {
            try await bench.outbox.submit(Raise(key: 1, value: value))
            #expect(try await bench.value() == value)
            async let refreshed: Void = bench.store[1].refresh()
            try await raising.release(next: 1, timeout: .seconds(600))
            await refreshed
            #expect(try await bench.value() == value)
        }
        raising.release()
        try await bench.settled()
        _ = try await observer.next { $0.isCompleted && $0.content == 20 }
        let contents = observer.states.compactMap(\.content)
        #expect(contents == contents.sorted())
        #expect(try await bench.saved()?.content == 20)
    }

    @Test func `O7: content that was fetched during a delivery may contain the change, and is fetched again`() async throws {
        let origin = WatchedState(0)
        let bench = try OutboxBench(fetcher: ScriptedFetcher { _ in .success(origin.current) })
        await bench.register()
        #expect(try await bench.value() == 0)
        bench.origin.hold()
        bench.outbox.start()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.origin.started(count: 1, timeout: .seconds(600))
        // The origin has performed the addition, and its response is under way.
        origin.update { $0 = 5 }
        await bench.store[1].refresh()
        bench.origin.release()
        try await bench.settled()
        #expect(try await bench.value() == 5)
    }

    @Test(arguments: [true, false])
    func `O7: content that was pushed during a delivery may contain the change, and is pushed again`(_ isWhole: Bool) async throws {
        let feed = ScriptedLiveFetcher<Int, Int>()
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: feed, time: ManualTime())
        let origin = ScriptedDeliveries<Add, Void> { _ in .success(()) }
        let outbox = try Outbox(directory: TemporaryDirectory().file("outbox"), time: ManualTime())
        await outbox.register(Add.self, patching: store, at: \.key) {
            $1 += $0.amount
        } perform: {
            try await origin.perform($0, $1)
        }
        let observer = RecordingObserver(store[1].publish())
        try await feed.send(.content(10), timeout: .seconds(600))
        origin.hold()
        outbox.start()
        try await outbox.submit(Add(key: 1, amount: 5))
        try await origin.started(count: 1, timeout: .seconds(600))
        // The origin has performed the addition, and its response is under way.
        try await feed.send(isWhole ? .content(15) : .change { $0 = 15 }, timeout: .seconds(600))
        origin.release()
        try await until { feed.connections.count == 2 }
        try await feed.send(.content(15), timeout: .seconds(600))
        _ = try await observer.next(timeout: .seconds(600)) { $0.isCompleted && $0.content == 15 }
        try await until { await outbox.core.isEmpty }
        #expect(try await store[1].requireData() == 15)
    }

    @Test func `O7: content that the origin responds with replaces the change, and nothing is fetched`() async throws {
        let bench = try OutboxBench()
        await bench.store[1].update(10)
        await bench.outbox.register(Add.self, patching: bench.store, at: \.key) {
            $1 += $0.amount
        } perform: { _, _ in
            1_000
        }
        let observer = RecordingObserver(bench.store[1].publish())
        _ = try await observer.next { $0.content == 10 }
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        bench.outbox.start()
        _ = try await observer.next { $0.isCompleted && $0.content == 1_000 }
        try await bench.settled()
        #expect(try await bench.saved()?.content == 1_000)
        #expect(bench.fetcher.startedCount == 0)
        #expect(observer.states.compactMap(\.content).allSatisfy { [10, 15, 1_000].contains($0) })
    }

    @Test func `O2, O7: a command changes the content of several stores`() async throws {
        let bench = try OutboxBench()
        let totals = Store(
            cacher: FileCacher<Int, Int>(directory: bench.directory.file("totals")),
            fetcher: ScriptedFetcher<Int, Int> { _ in .success(100) })
        let patch = CommandPatch<Add>(totals, at: { _ in 0 }) { $1 += $0.amount }
        await bench.outbox.register(Add.self, patching: bench.store, at: \.key, and: [patch]) {
            $1 += $0.amount
        } perform: { _, _ in
        }
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        #expect(try await bench.value() == 5)
        #expect(try await totals[0].requireData() == 105)
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.saved()?.content == 5)
        #expect(try await FileCacher<Int, Int>(directory: bench.directory.file("totals")).load(param: 0)?.content == 105)
    }

    @Test func `O7: a cleared key drops the change of a delivered command, and keeps that of a pending one`() async throws {
        let bench = try OutboxBench(
            origin: ScriptedDeliveries(.success(()), .failure(Offline())), fetcher: ScriptedFetcher { .success($0.number * 1_000) })
        await bench.store[1].update(10)
        await bench.register()
        bench.outbox.start()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.settled()
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        try await bench.events.first("attempt 1 failed")
        #expect(try await bench.value() == 22)
        await bench.store[1].clear()
        #expect(try await bench.value() == 1_007)
    }

    @Test func `O8: a refresh that waits for the cacher while the entity is created does not fetch the temporary key later`() async throws {
        let cacher = GatedCacher<String, String>()
        let fetcher = ScriptedFetcher<String, String> { _ in .success("fetched") }
        let store = Store(cacher: cacher, fetcher: fetcher, time: ManualTime())
        let directory = try TemporaryDirectory()
        let outbox = try Outbox(directory: directory.file("outbox"), time: ManualTime())
        await outbox.register(CreateNote.self, creating: store, at: \.id) {
            $0.text
        } perform: { _, _ in
            Created("42")
        }
        cacher.hold(.load)
        fetcher.hold()
        let observer = RecordingObserver(store["t"].publish(forceRefresh: true))
        try await cacher.began(.load)
        try await outbox.submit(CreateNote(id: "t", text: "a"))
        #expect(try await observer.next { $0.content == "a" }.isLoading == false)
        // The update waits for the cacher, too.
        let update = Task { await store["t"].update("b") }
        #expect(try await observer.next { $0.content == "b" }.isLoading == false)
        cacher.release()
        await update.value
        #expect(fetcher.startedCount == 0)
    }
}

// MARK: - Temporary identifiers

/// Creates a note under a temporary identifier.
struct CreateNote: Command, Hashable {
    static let name = "create"
    var id: String
    var text: String
}

/// Appends to a note.
struct AppendText: Command, Hashable {
    static let name = "append"
    var note: String
    var text: String

    func replacing(_ identifiers: IdentifierReplacement) -> AppendText {
        AppendText(note: identifiers[note], text: text)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct OutboxCreationTests {
    private final class Notes: Sendable {
        let directory: TemporaryDirectory
        let time = ManualTime()
        let creating: ScriptedDeliveries<CreateNote, Created<String, String>>
        let appending: ScriptedDeliveries<AppendText, Void>
        let fetcher = ScriptedFetcher<String, String> { .failure(NoNote(id: $0.param)) }
        let store: Store<String, String>
        let outbox: Outbox
        let events = OutboxEvents()

        struct NoNote: Error { var id: String }

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
            store = Store(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("notes"))), fetcher: fetcher, time: time)
            outbox = try Outbox(directory: directory.file("outbox"), time: time, onEvent: events.append)
        }

        func register() async {
            await outbox.register(CreateNote.self, creating: store, at: \.id) {
                $0.text
            } perform: { [creating] in
                try await creating.perform($0, $1)
            }
            await outbox.register(AppendText.self, patching: store, at: \.note) {
                $1 += $0.text
            } perform: { [appending] in
                try await appending.perform($0, $1)
            }
        }

        func settled() async throws {
            try await until { await self.outbox.core.isEmpty }
            try await store.waitUntilSaved()
        }

        func saved(_ id: String) async throws -> String? {
            try await FileCacher<String, String>(directory: directory.file("notes")).load(param: id)?.content
        }
    }

    @Test func `O8: an entity is shown under its temporary key, and moves with its observers to the real one`() async throws {
        let notes = try Notes()
        await notes.register()
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

    @Test func `O8: the temporary key and its replacement survive restarts`() async throws {
        let notes = try Notes()
        await notes.register()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        await notes.store["t"].clear()
        #expect(try await notes.store["t"].requireData() == "ab")
        // Two running processes would need a shared directory for their records.
        await notes.outbox.core.shutDown()
        let again = try Notes(in: notes.directory)
        await again.register()
        #expect(try await again.store["t"].requireData() == "ab")
        again.appending.hold()
        again.outbox.start()
        try await again.appending.started(count: 1, timeout: .seconds(600))
        await again.outbox.core.shutDown()
        // A save ends with its process; that of the former launch must not overwrite the record of the next one.
        try await again.store.waitUntilSaved()
        let third = try Notes(in: notes.directory)
        await third.register()
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
        let notes = try Notes()
        await notes.register()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        notes.outbox.start()
        try await notes.settled()
        try await notes.outbox.core.compact()
        await notes.outbox.core.shutDown()
        let again = try Notes(in: notes.directory)
        await again.register()
        #expect(try await again.store["t"].requireData() == "a")
        try await again.outbox.submit(AppendText(note: "t", text: "b"))
        again.outbox.start()
        try await again.settled()
        #expect(again.appending.commands == [AppendText(note: "42-t", text: "b")])
        #expect(try await again.saved("42-t") == "ab")
    }

    @Test func `O4, O8, O13: another process that learns of a replaced identifier keeps the identity of the deliveries`() async throws {
        let notes = try Notes(appending: ScriptedDeliveries(.failure(Offline()), .success(())))
        await notes.register()
        let other = try Notes(in: notes.directory)
        await other.register()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        try await until { await other.outbox.core.machine.pendingCount == 2 }
        let observer = RecordingObserver(other.store["t"].publish())
        _ = try await observer.next { $0.content == "ab" }
        // The other process learns of the creation and of the first attempt at once.
        await other.outbox.core.log.endObserving()
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
        let notes = try Notes(creating: ScriptedDeliveries(.failure(Refusal()), .success(Created("7", content: "A"))))
        await notes.register()
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
        let notes = try Notes()
        await notes.register()
        let sketches = ScriptedDeliveries<Sketch, Created<String, String>> { .success(Created("real-\($0.command.id)")) }
        await notes.outbox.register(Sketch.self, creating: notes.store, at: \.id, lane: { _ in "sketches" }) { _ in
            ""
        } perform: {
            try await sketches.perform($0, $1)
        }
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
        #expect(try await notes.outbox.replace(kept, with: CreateNote(id: "t", text: "A")))
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(notes.appending.commands == [AppendText(note: "7", text: "b")])
        #expect(try await notes.store["7"].requireData() == "Ab")
        #expect(try await notes.outbox.replace(other, with: CreateNote(id: "v", text: "B")))
        try await notes.outbox.submit(AppendText(note: "v", text: "c"))
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(notes.appending.commands.map(\.note) == ["7", "8"])
        #expect(await notes.outbox.commands().map(\.id) == [orphan])
        #expect(try await notes.outbox.retry(orphan))
        #expect(await notes.outbox.commands().map(\.status) == [.failed])
    }

    @Test func `O8, O15: the commands of a created entity are found under its temporary key, too`() async throws {
        let notes = try Notes()
        await notes.register()
        try await notes.outbox.submit(CreateNote(id: "t", text: "a"))
        let temporary = notes.outbox.pending(for: notes.store["t"])
        var states = temporary.makeAsyncIterator()
        #expect(await states.next()?.pendingCount == 1)
        notes.appending.hold()
        notes.outbox.start()
        #expect(await notes.outbox.drain(until: .seconds(3_600)) == .drained)
        try await notes.outbox.submit(AppendText(note: "t", text: "b"))
        try await notes.appending.started(count: 1, timeout: .seconds(600))
        #expect(notes.appending.commands == [AppendText(note: "42-t", text: "b")])
        for key in ["t", "42-t"] {
            var states = notes.outbox.pending(for: notes.store[key]).makeAsyncIterator()
            #expect(await states.next()?.commands.map(\.name) == ["append"])
        }
        notes.appending.release()
        try await notes.settled()
    }
}
