internal import Foundation
import StoreCore

/// The files of a session.
///
/// An actor on a thread of its own, none of whose methods suspends: comparing with the floor, storing, and letting the session know are
/// one critical section, so that whoever looks sees changes in the order in which they were made. The session's lock makes it one beside
/// other processes too. The order on disk is records, pointer, floors, so that whatever the process dies between, the pointer names whole
/// files and the floor is never above all of them.
actor Shelf {
    let directory: Directory
    let options: FileWriteOptions
    nonisolated let session: WatchedState<SessionState>
    let lock: SessionLock
    private let executor = DiskExecutor()
    var pointer = Pointer()
    var floors = Floors()
    var pointerJournal: Journal
    var floorJournal: Journal
    nonisolated let manifestFile: KeptValue<ManifestRecord>
    /// The records of registered texts, by their files.
    var loaded: [RecordName: TextRecord] = [:]
    var registered: Set<String> = []
    /// Whether a record counts only after the app's verifier has accepted its bytes in this process.
    let verifies: Bool
    /// The verifier's verdicts on records that this store has read, by their files.
    var verdicts: [RecordName: Bool] = [:]
    /// The records without a verdict, by their files.
    var unverified: [RecordName: TextRecord] = [:]
    /// Registered texts whose active file is damaged.
    var damaged: Set<String> = []
    /// Whether another process has changed so much that all texts are to be looked at again.
    var isForeign = false
    var floorsAreWhole = false
    /// Texts whose floors have risen and could not be saved.
    var unsaved: Set<String> = []
    private(set) var isOpen = false
    /// Whether nobody has looked for what killed processes have left since this shelf was opened.
    var isUntidy = false
    /// How often everything was forgotten.
    var generation: UInt64 = 0
    var faults: [TextStoreError] = []

    /// What came of a call, beside what the session knows by then.
    struct Turn: Sendable {
        var increases: [VersionIncrease] = []
        var faults: [TextStoreError] = []
        /// Whether anything became active that was not.
        var hasSwitched = false
        /// Whether registered texts have records that wait for the verifier.
        var hasUnverified = false
    }

    /// What the session is told in the same step.
    typealias Change = @Sendable (inout SessionState) -> Void

    init(
        directory: Directory, options: FileWriteOptions, session: WatchedState<SessionState>, verifies: Bool = false,
        patience: Duration = SessionLock.usualPatience
    ) {
        self.verifies = verifies
        self.directory = directory
        self.options = options
        self.session = session
        lock = SessionLock(directory: directory, patience: patience)
        pointerJournal = Journal(name: "pointer", directory: directory, options: options)
        floorJournal = Journal(name: "floor", directory: directory, options: options)
        manifestFile = KeptValue(name: "manifest", directory: directory, copies: 1, options: options)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    // MARK: Registering

    /// Reads the records of texts; at the first call also the pointer and the floors.
    ///
    /// Costs as much as these texts, whatever was admitted before.
    ///
    /// - Parameters:
    ///   - identifiers: The texts.
    ///   - activatesPending: Whether sets that wait are activated at the first call.
    ///   - change: What else the session is told.
    func admit(_ identifiers: [String], activatesPending: Bool, _ change: Change = { _ in }) -> Turn {
        var turn = Turn()
        if !isOpen {
            isOpen = true
            do throws(TextStoreError) {
                turn = try locked { () throws(TextStoreError) in open(activatesPending: activatesPending, mayWrite: true) }
            } catch {
                // What is there can be read all the same; at worst a file goes while it is read, and is looked for again.
                faults.append(error)
                turn = open(activatesPending: false, mayWrite: false)
            }
            isUntidy = true
        }
        registered.formUnion(identifiers)
        return publish(identifiers, turn, change)
    }

    private func open(activatesPending: Bool, mayWrite: Bool) -> Turn {
        var turn = Turn()
        let floorsWereRead = catchUp()
        if activatesPending, !pointer.pending.isEmpty {
            do throws(TextStoreError) {
                let places = try switchPending()
                turn.hasSwitched = !places.isEmpty
                turn.increases = activated(places)
            } catch {
                faults.append(error)
            }
        }
        // The pointer is ahead of the floors where the process died in between: what it did not tell is told now.
        let behind = pointer.active.filter { identifier, place in
            floors.texts[identifier].map { $0.rank < place.rank } ?? (place.rank.version != nil)
        }
        if mayWrite {
            // Without a readable floor nobody knows what was told: nothing is told twice.
            if !behind.isEmpty, case let increases = activated(behind), floorsWereRead { turn.increases += increases }
        } else {
            for (identifier, place) in behind { _ = floors.activated(identifier, rank: place.rank, digest: place.digest) }
        }
        // Nothing of it has been shown yet.
        isForeign = false
        return turn
    }

    // MARK: Storing

    /// Stores a whole set of fetched texts.
    ///
    /// - Parameters:
    ///   - set: The set's key.
    ///   - records: Its texts.
    ///   - isActivated: Whether the set becomes the active one, or waits.
    ///   - begun: The generation in which the set's fetch began.
    ///   - unchanged: Texts of the set that were found unchanged, and when.
    ///   - onSaved: Called when all is saved, before anybody sees it, and not under a lock.
    ///   - change: What else the session is told; not called where nothing is stored.
    /// - Returns: `nil` where everything was forgotten since then.
    /// - Throws: ``TextStoreError/Code/belowFloor``, ``TextStoreError/Code/incompleteSet`` or ``TextStoreError/Code/fileSystem``; the old set is
    ///   then whole and active.
    func store(
        _ set: String, _ records: [TextRecord], isActivated: Bool, begun: UInt64, unchanged: ([String], Date) = ([], .distantPast),
        onSaved: @Sendable () -> Void = {}, _ change: Change = { _ in }
    ) throws(TextStoreError) -> Turn? {
        guard begun == generation else { return nil }
        var turn = Turn()
        if !records.isEmpty {
            try makeDirectory()
            turn.hasSwitched = isActivated
            turn.increases = try locked { () throws(TextStoreError) in try write(set, records, isActivated) }
        }
        if !unchanged.0.isEmpty { confirm(unchanged.0, at: unchanged.1) }
        onSaved()
        return publish(records.map(\.identifier) + unchanged.0, turn, change)
    }

    private func write(_ set: String, _ records: [TextRecord], _ isActivated: Bool) throws(TextStoreError) -> [VersionIncrease] {
        catchUp()
        // Another process has cleared meanwhile: what is fetched here is new only beside texts that are gone, and alone it is no set.
        let isGone = session.read { state in
            state.members(of: set).contains { state.held[$0]?.active != nil && pointer.active[$0] == nil }
        }
        if isGone, set.hasPrefix("group/") {
            throw TextStoreError(.incompleteSet, "another process has cleared the session meanwhile; the set is fetched again")
        }
        for record in records {
            guard let floor = floors.texts[record.identifier], record.rank < floor.rank else { continue }
            throw .belowFloor(record.identifier, offered: record.facts.version, floor: floor)
        }
        var places: [String: Pointer.Place] = [:]
        do throws(TextStoreError) {
            for record in records {
                let name = RecordName(of: record.identifier)
                places[record.identifier] = Pointer.Place(file: name, rank: record.rank, digest: record.facts.digest)
                try record.write(as: name, in: directory, options: options)
                loaded[name] = record
            }
            try step(isActivated ? .switched(dropped: [set], activated: places) : .waits(set: set, places))
        } catch {
            for place in places.values { remove(place.file) }
            throw error
        }
        return isActivated ? activated(places) : []
    }

    /// Unversioned texts were found unchanged.
    private func confirm(_ identifiers: [String], at date: Date) {
        do throws(TextStoreError) {
            try locked { () throws(TextStoreError) in
                catchUp()
                try step(.confirmed(identifiers, date))
            }
        } catch {
            // They are asked for again at the next start, no more.
            faults.append(error)
            pointer.take(.confirmed(identifiers, date))
        }
    }

    // MARK: Switching

    /// Activates every set that waits; one that is damaged or outdated meanwhile is dropped whole.
    func activatePending() throws(TextStoreError) -> Turn {
        var turn = Turn()
        let places = try locked { () throws(TextStoreError) in
            catchUp()
            let places = try switchPending()
            turn.increases = activated(places)
            return places
        }
        turn.hasSwitched = !places.isEmpty
        return publish(registered, turn)
    }

    private func switchPending() throws(TextStoreError) -> [String: Pointer.Place] {
        var places: [String: Pointer.Place] = [:]
        for (_, waiting) in pointer.pending.sorted(by: { $0.key < $1.key }) {
            let isGood = waiting.allSatisfy { identifier, place in
                record(place, of: identifier) != nil && floors.texts[identifier].map { place.rank >= $0.rank } ?? true
            }
            for (identifier, place) in waiting where !registered.contains(identifier) { loaded[place.file] = nil }
            if isGood { places.merge(waiting) { $1 } }
        }
        if !pointer.pending.isEmpty { try step(.switched(dropped: pointer.pending.keys.sorted(), activated: places)) }
        return places
    }

    /// Lets the session know something beside the files; bundled texts that are shown from then on raise the floor.
    func change(_ change: Change = { _ in }) -> Turn { publish([], Turn(), change) }

    /// A manifest has come.
    ///
    /// - Throws: ``TextStoreError/Code/outdatedManifest`` where a higher revision was there before.
    func accept(revision: UInt64?) throws(TextStoreError) -> Turn {
        if revision != nil { try makeDirectory() }
        try locked { () throws(TextStoreError) in
            catchUp()
            if let seen = floors.revision, (revision ?? 0) < seen {
                let found = revision.map { "revision \($0)" } ?? "no revision"
                throw TextStoreError(
                    .outdatedManifest,
                    "the manifest has \(found), and revision \(seen) was there before; a cache before the origin may be stale")
            }
            guard let revision, revision != floors.revision else { return }
            floors.revision = revision
            saveFloors([])
        }
        return publish([], Turn())
    }

    /// Saves the manifest that a fetch has brought, or that it failed, unless that fetch no longer counts.
    ///
    /// - Returns: Why it could not be saved.
    func keep(_ record: ManifestRecord, of ticket: UInt64) -> TextStoreError? {
        guard session.read({ $0.manifestFlight == ticket }) else { return nil }
        return keep(record)
    }

    private func keep(_ record: ManifestRecord) -> TextStoreError? {
        do throws(TextStoreError) { return try manifestFile.save(record, serial: 1).first } catch { return error }
    }

    /// Forgets all texts and the manifest; the floors stay.
    func clear(_ change: Change = { _ in }) throws(TextStoreError) -> Turn {
        try locked { () throws(TextStoreError) in
            catchUp()
            if !pointer.files.isEmpty || pointerJournal.serial > 0 {
                // The records are floors too, the last ones where those could not be saved or have been damaged since.
                faults += try floorJournal.shorten(floors.bytes(of: floors.texts.keys))
                unsaved = []
                try step(.whole(Pointer()))
            }
            sweep(evenYoung: true)
        }
        generation += 1
        // An empty record is as good as none: its address is nobody's.
        if let fault = keep(ManifestRecord(url: "")) { faults.append(fault) }
        return publish(registered, Turn(), change)
    }
}

extension TextStoreError {
    static func belowFloor(_ identifier: String, offered: SemanticVersion?, floor: Floor) -> TextStoreError {
        let version = offered.map { "version \($0)" } ?? "a text without version"
        let highest = floor.rank.version.map { "\($0)" } ?? "a newer one"
        return TextStoreError(
            .belowFloor, identifier: identifier,
            "the origin offers \(version), and \(highest) was active before; to go back, let a manifest of a higher revision say “rollback”"
        )
    }
}
