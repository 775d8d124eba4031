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
    /// The newest manifest that was accepted in this process; `nil` while none is known.
    var newest: VersionManifest?
    var faults: [TextStoreError] = []

    /// What came of a call, beside what the session knows by then.
    struct Turn: Sendable {
        var increases: [VersionIncrease] = []
        var faults: [TextStoreError] = []
        /// Refused sets, and manifests worth a report.
        var events: [TextStoreEvent] = []
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
                try switchPending(&turn)
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
        // The records are a set only beside the members that this process left as they were.
        let new = Set(records.map(\.identifier))
        let isForeign = session.read { state in
            state.members(of: set).contains { identifier in
                guard !new.contains(identifier), let held = state.held[identifier], !held.isDamaged else { return false }
                let place = pointer.active[identifier]
                return held.active?.rank != place?.rank || held.active?.facts.digest != place?.digest
            }
        }
        if isForeign, set.hasPrefix("group/") {
            throw TextStoreError(
                .incompleteSet, "another process has changed or cleared other texts of the set meanwhile; the set is fetched again")
        }
        for record in records {
            guard let floor = floors.texts[record.identifier], record.rank < floor.rank else { continue }
            throw .belowFloor(record.identifier, offered: record.facts.version, floor: floor)
        }
        let found = records.map { (identifier: $0.identifier, rank: $0.rank, fileDigest: $0.facts.fileDigest) }
        if let withdrawn = withdrawal(of: set, found) { throw withdrawn }
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

    /// Activates every waiting set; drops a damaged, refused, outdated or withdrawn one whole, and reports it.
    ///
    /// A set that another process has saved since the verification stays until the next one.
    func activatePending() throws(TextStoreError) -> Turn {
        var turn = Turn()
        try locked { () throws(TextStoreError) in
            catchUp()
            try switchPending(&turn)
        }
        return publish(registered, turn)
    }

    private func switchPending(_ turn: inout Turn) throws(TextStoreError) {
        guard !pointer.pending.isEmpty else { return }
        var places: [String: Pointer.Place] = [:]
        var dropped: [String] = []
        var events: [TextStoreEvent] = []
        // A process that knows a newer manifest has dropped what that one takes back.
        let newest = isBehind ? nil : newest
        for (set, waiting) in pointer.pending.sorted(by: { $0.key < $1.key }) {
            let outdated = waiting.sorted { $0.key < $1.key }.compactMap { identifier, place in
                floors.texts[identifier].flatMap { floor in
                    place.rank < floor.rank ? TextStoreError.belowFloor(identifier, offered: place.rank.version, floor: floor) : nil
                }
            }
            let found = found(waiting), reason = outdated.first ?? newest.flatMap { withdrawal(of: set, found, by: $0) }
            if let reason {
                events.append(.refused(reason))
            } else if waiting.contains(where: { awaitsVerdict($1, of: $0) }) {
                continue
            } else if found.count == waiting.count {
                places.merge(waiting) { $1 }
            }
            dropped.append(set)
        }
        guard !dropped.isEmpty else { return }
        turn.hasSwitched = places.contains { identifier, place in
            let old = pointer.active[identifier]
            return old?.rank != place.rank || old?.digest != place.digest
        }
        try step(.switched(dropped: dropped, activated: places))
        turn.events += events
        turn.increases += activated(places)
    }

    /// Lets the session know something beside the files; bundled texts that are shown from then on raise the floor.
    func change(_ change: Change = { _ in }) -> Turn { publish([], Turn(), change) }

    /// Accepts a manifest, and drops the waiting sets that it takes back.
    ///
    /// The sets go before the edition is saved: a process that is killed in between knows neither, and asks for the manifest again.
    ///
    /// - Parameters:
    ///   - manifest: The manifest.
    ///   - policy: The highest epoch that counts without verification, and the largest jump of a revision that is not reported.
    ///   - isVerified: Whether the app's own verification has seen the manifest.
    /// - Throws: ``TextStoreError/Code/outdatedManifest`` if a higher edition was accepted before, ``TextStoreError/Code/unverifiedEpoch``,
    ///   or ``TextStoreError/Code/fileSystem``.
    func accept(_ manifest: VersionManifest, _ policy: TextStorePolicy, isVerified: Bool) throws(TextStoreError) -> Turn {
        let found = manifest.edition
        if found != nil { try makeDirectory() }
        var turn = Turn(), changed: [String] = []
        try locked { () throws(TextStoreError) in
            catchUp()
            let seen = floors.edition
            try check(found ?? Edition(), against: seen, policy, isVerified: isVerified)
            changed = try dropWithdrawn(by: manifest, &turn)
            newest = manifest
            guard let found, found != seen else { return }
            if let seen, seen.epoch < found.epoch {
                turn.events.append(.epochRaised(from: seen.epoch, to: found.epoch))
            } else if let seen, found.revision - seen.revision > policy.revisionJump {
                turn.events.append(.revisionJumped(from: seen.revision, to: found.revision))
            }
            floors.edition = found
            saveFloors([])
        }
        return publish(changed, turn)
    }

    /// Accepts a manifest in one step with the look whether it still counts.
    ///
    /// - Parameter counts: Whether the manifest counts: a fetch may be abandoned and a source replaced before their manifest is here.
    /// - Returns: `nil` if it does not count; nothing has changed then.
    func accept(
        _ manifest: VersionManifest, _ policy: TextStorePolicy, isVerified: Bool, where counts: @Sendable (SessionState) -> Bool
    ) throws(TextStoreError) -> Turn? {
        guard session.read(counts) else { return nil }
        return try accept(manifest, policy, isVerified: isVerified)
    }

    private func check(
        _ found: Edition, against seen: Edition?, _ policy: TextStorePolicy, isVerified: Bool
    ) throws(TextStoreError) {
        if let seen, found < seen {
            throw TextStoreError(
                .outdatedManifest,
                "the manifest is revision \(found.revision) of epoch \(found.epoch), and revision \(seen.revision) of epoch \(seen.epoch) "
                    + "was accepted before; a cache before the origin may be stale, and a revision published too high needs a higher epoch")
        }
        guard !isVerified, found.epoch > max(seen?.epoch ?? 0, policy.acceptedEpoch) else { return }
        throw TextStoreError(
            .unverifiedEpoch,
            "the manifest is of epoch \(found.epoch), and nothing has verified it; give the store a verification, or accept that epoch in "
                + "its policy")
    }

    /// The source of versions has changed: the newest manifest is not known.
    func forgetManifest() { newest = nil }

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
                try step(.whole(Pointer()))
            }
            sweep(evenYoung: true)
        }
        generation += 1
        newest = nil
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
