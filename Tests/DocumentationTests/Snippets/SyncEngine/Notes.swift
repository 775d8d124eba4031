internal import StoreCore
internal import SyncEngine
internal import Testing

// The examples of SyncEngine's articles.

//: SyncEngine.docc/GettingStarted.md: struct Note: SyncItem

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

//: SyncEngine.docc/GettingStarted.md: struct NoteProcessor

extension Story {
    /// Runs a first pass, and makes a plan after it.
    @Sendable static func synchronizing() async throws -> [[String]] {
        try await tell { printed in
            let (origin, shelf) = (NoteOrigin(), NoteShelf())
            //: SyncEngine.docc/GettingStarted.md: let synchronizer
            //: SyncEngine.docc/GettingStarted.md: let plan = try
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
        //: WhatIsRemoved.md
        #expect(await shelf.versions.isEmpty)
    }

    @Test func `sorted pages are compared as a stream`() async throws {
        let origin = NoteOrigin()
        //: LargeCollections.md
        var reader = list.makeReader()
        #expect(try await reader.next()?.items.count == 2)
        #expect(try await reader.next()?.end == .complete())
    }
}

// Compiled only.

private func watching(_ synchronizer: OneWaySynchronizer<NoteProcessor>) async throws {
    //: SyncEngine.docc/GettingStarted.md: for await state
    //: SyncEngine.docc/ErrorsAndRetries.md
}
