internal import StoreCore
internal import SyncEngine
internal import Testing

// The examples of SyncEngine's articles.

struct Note: SyncItem, Hashable {
    var id: Int
    var revision: Int

    var key: Int { id }
    var version: Int { revision }
}

/// The origin of the notes.
actor NoteOrigin {
    var notes = [Note(id: 1, revision: 1), Note(id: 2, revision: 1)]

    private var failures = 0

    func text(of note: Note) throws -> String {
        if failures > 0 {
            failures -= 1
            throw Busy()
        }
        return "note \(note.id)"
    }

    func fail(_ times: Int) { failures = times }

    func edit(_ id: Int) { notes = notes.map { $0.id == id ? Note(id: id, revision: $0.revision + 1) : $0 } }

    func delete(_ id: Int) { notes.removeAll { $0.id == id } }

    func page(_ number: Int) -> (notes: [Note], next: Int?) { (number == 0 ? notes : [], number == 0 ? 1 : nil) }

    func empty() { notes = [] }
}

/// A transient error of the origin.
struct Busy: Error, FailureAdvising {
    var failureKind: FailureKind { .transient }
}

/// The local side of the notes.
actor NoteShelf {
    private var texts: [Int: (revision: Int, text: String)] = [:]

    var versions: [Int: Int] { texts.mapValues(\.revision) }

    func put(_ note: Note, _ text: String) { texts[note.id] = (note.revision, text) }

    func remove(_ ids: Set<Int>) { for id in ids { texts[id] = nil } }
}

struct NoteProcessor: SyncProcessor {
    let origin: NoteOrigin
    let shelf: NoteShelf

    func sourceList() async throws -> ListedSource<Note> {
        ListedSource(await origin.notes)
    }
    func localInventory() async throws -> LocalInventory<Note> {
        LocalInventory(versions: await shelf.versions)
    }
    func downloadContent(of note: Note) async throws {
        await shelf.put(note, try await origin.text(of: note))
    }
    func remove(_ keys: Set<Int>) async throws { await shelf.remove(keys) }
}

extension Story {
    /// Runs a first pass, and makes a plan after it.
    @Sendable static func synchronizing() async throws -> [[String]] {
        try await tell { printed in
            let (origin, shelf) = (NoteOrigin(), NoteShelf())
            let synchronizer = OneWaySynchronizer(
                processor: NoteProcessor(origin: origin, shelf: shelf))
            let report = try await synchronizer.sync()
            print(report.summary)
            let plan = try await synchronizer.plan()
            let (added, updated) = (plan.additions.count, plan.updates.count)
            print("\(added) to add, \(updated) to update, \(plan.removals.count) to remove")
            return printed.lines.map { [$0] }
        }
    }
}

struct SynchronizingTests {
    @Test func `an empty list is refused unless it is overridden`() async throws {
        let (origin, shelf) = (NoteOrigin(), NoteShelf())
        let synchronizer = OneWaySynchronizer(processor: NoteProcessor(origin: origin, shelf: shelf))
        try await synchronizer.sync()
        await origin.empty()
        await #expect(throws: SyncError.self) { try await synchronizer.sync() }
        #expect(await shelf.versions.count == 2)
        try await synchronizer.sync(overriding: .emptySource)
        #expect(await shelf.versions.isEmpty)
    }

    @Test func `sorted pages are compared as a stream`() async throws {
        let origin = NoteOrigin()
        let list = PagedSource(order: .sortedByKey) { (cursor: Int?) in
            let page = await origin.page(cursor ?? 0)
            return PagedSource.Step(
                page.notes, then: page.next.map { .page($0) } ?? .end(.complete()))
        }
        var reader = list.makeReader()
        #expect(try await reader.next()?.items.count == 2)
        #expect(try await reader.next()?.end == .complete())
    }
}

// Compiled only.

private func watching(_ synchronizer: OneWaySynchronizer<NoteProcessor>) async throws {
    for await state in synchronizer.publish() {
        switch state {
        case .loading(let report):
            guard let progress = report?.progress else { continue }
            print(progress.stage, progress.doneItems, "of", progress.totalItems)
        case .completed(let report, next: _, prev: _): print(report.summary)
        case .error(let error, content: _): print(error)
        }
    }
    do {
        try await synchronizer.sync()
    } catch let error as SyncError {
        for failure in error.report?.failures ?? [] { print(failure) }
    }
}
