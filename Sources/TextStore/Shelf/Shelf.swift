internal import Dispatch
internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// The files of a session.
///
/// The actor has a queue of its own, and none of its methods suspends. Comparing with the floor, storing, and publishing to the session are
/// therefore one critical section, and observers see changes in order. The session's lock extends this to other processes.
///
/// Pointer and floors follow from the entries of their journals, and one entry of the pointer's journal switches a whole set. The session
/// holds what was published last.
///
/// The order on disk is records, pointer, floors. Wherever a process is killed, the pointer names whole files, and no floor is above every
/// saved version.
actor Shelf {
    let directory: Directory
    let options: FileWriteOptions
    nonisolated let session: WatchedState<SessionState>
    let lock: SessionLock
    /// The locked file during an operation under the session's lock.
    var lockFile: WritableFile?
    nonisolated let follower: FileFollower
    private let executor = DiskExecutor()
    var pointer = Pointer()
    var floors = Floors()
    var pointerJournal: Journal
    var floorJournal: Journal
    nonisolated let manifestFile: KeptValue<ManifestRecord>
    /// The records of registered texts, by their files.
    var loaded: [RecordName: TextRecord] = [:]
    /// Whether a record counts only after the app's verifier has accepted its bytes in this process.
    let verifies: Bool
    /// The verifier's verdicts on records that this store has read, by their files.
    var verdicts: [RecordName: Bool] = [:]
    /// The records without a verdict, by their files.
    var unverified: [RecordName: TextRecord] = [:]
    /// Registered texts with a damaged active file.
    var damaged: Set<String> = []
    /// Whether changes of another process require that all texts be read again.
    var isForeign = false
    var floorsAreWhole = false
    /// Texts with raised floors that could not be saved.
    var unsaved: Set<String> = []
    private(set) var isOpen = false
    /// Whether the leftovers of killed processes have not been removed since this shelf was opened.
    var isUntidy = false
    var faults: [TextStoreError] = []
    /// The device's random number, by which shares of devices are drawn; `nil` until it is needed.
    var deviceNumber: UInt64?

    /// The result of a call, apart from the session's change.
    struct Outcome: Sendable {
        var increases: [VersionIncrease] = []
        var faults: [TextStoreError] = []
        /// Events about refused sets and unusual manifests.
        var events: [TextStoreEvent] = []
        /// Whether the call activated another text.
        var hasSwitched = false
        /// Whether registered texts have records without a verdict.
        var hasUnverified = false
        /// Whether a pass has published changes of other processes.
        var isForeign = false
    }

    /// A change of the session in the same step.
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
        follower = FileFollower(directory.path(of: SessionLock.fileName), on: .global())
        pointerJournal = Journal(name: "pointer", directory: directory, options: options)
        floorJournal = Journal(name: "floor", directory: directory, options: options)
        manifestFile = KeptValue(name: "manifest", directory: directory, copies: 1, options: options)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    // MARK: Registering

    /// Reads the records of texts, which the session counts as loaded from now on. The first call also reads the pointer and the floors.
    ///
    /// The cost depends on these texts only, not on those admitted before.
    func admit(
        _ identifiers: [String], _ bundled: [String: Result<SessionState.BundledText, TextStoreError>] = [:], activatesPending: Bool
    ) -> Outcome {
        var outcome = Outcome()
        if !isOpen {
            isOpen = true
            do throws(TextStoreError) {
                outcome = try locked { () throws(TextStoreError) in open(activatesPending: activatesPending, mayWrite: true) }
            } catch {
                // Reading works without the lock. If a file is removed meanwhile, it is looked up again.
                faults.append(error)
                outcome = open(activatesPending: false, mayWrite: false)
            }
            isUntidy = true
        }
        return publish(identifiers, outcome) { $0.load(identifiers, bundled) }
    }

    private func open(activatesPending: Bool, mayWrite: Bool) -> Outcome {
        var outcome = Outcome()
        catchUp()
        if activatesPending, !pointer.pending.isEmpty {
            do throws(TextStoreError) {
                try switchPending(&outcome)
            } catch {
                faults.append(error)
            }
        }
        // A process that dies between pointer and floors reports no increase, so the increase is reported now.
        let behind = pointer.active.filter { identifier, place in
            floors.texts[identifier].map { $0.rank < place.rank } ?? (place.rank.version != nil)
        }
        if mayWrite {
            // Without readable floors, it is unknown which increases were reported, so none is reported.
            if !behind.isEmpty, case let increases = activated(behind), floorsAreWhole { outcome.increases += increases }
        } else {
            for (identifier, place) in behind { _ = floors.activated(identifier, rank: place.rank, digest: place.digest) }
        }
        // The session has not shown any of it yet.
        isForeign = false
        return outcome
    }

    // MARK: Storing

    /// Stores a whole set of fetched texts, which becomes active or waits.
    ///
    /// - Parameters:
    ///   - unchanged: Active records of the set that were found unchanged, with the time of the check.
    ///   - waiting: The digests of the unversioned texts that waited when the check began. They are removed if no text has changed and no
    ///     other text of the set waits, because the origin has taken them back.
    ///   - counts: Whether the set still counts; its fetch may be abandoned before it arrives.
    ///   - onSaved: Called after the save, before the texts become visible, and not under a lock.
    ///   - change: A change of the session in the same step; not called if nothing is stored.
    /// - Returns: `nil` if the set does not count; the shelf remains unchanged.
    /// - Throws: ``TextStoreError/Code/belowFloor``, ``TextStoreError/Code/incompleteSet``, ``TextStoreError/Code/withdrawn``, or
    ///   ``TextStoreError/Code/fileSystem``; the old set then remains whole and active.
    func store(
        _ set: String, _ records: [TextRecord], isActivated: Bool, unchanged: ([TextRecord], Date) = ([], .distantPast),
        replacing waiting: [String: SHA256.Digest] = [:],
        where counts: @Sendable (SessionState) -> Bool = { _ in true }, onSaved: @Sendable () -> Void = {}, _ change: Change = { _ in }
    ) throws(TextStoreError) -> Outcome? {
        guard session.read(counts) else { return nil }
        var outcome = Outcome()
        if !records.isEmpty {
            try directory.make(options)
            outcome.increases = try locked { () throws(TextStoreError) in try write(set, records, isActivated) }
        }
        if !unchanged.0.isEmpty { confirm(unchanged.0, of: set, at: unchanged.1, replacing: records.isEmpty ? waiting : [:]) }
        onSaved()
        return publish((records + unchanged.0).map(\.identifier), outcome, change)
    }

    private func write(_ set: String, _ records: [TextRecord], _ isActivated: Bool) throws(TextStoreError) -> [VersionIncrease] {
        catchUp()
        // The records form a set only together with the other members as this process knows them.
        let new = Set(records.map(\.identifier))
        let isForeign = session.read { state in
            state.members(of: set).contains { name in
                !new.contains(name) && !state.damaged.contains(name) && state.held[name].map { !isActive($0.active, name) } ?? false
            }
        }
        if isForeign, set.isGroup {
            throw TextStoreError(
                .incompleteSet, "cannot store the set: another process has changed other texts of it; the set is fetched again")
        }
        for record in records {
            guard let floor = floors.texts[record.identifier], record.rank < floor.rank else { continue }
            throw .belowFloor(record.identifier, offered: record.facts.version, floor: floor)
        }
        let found = records.map { (identifier: $0.identifier, rank: $0.rank, fileDigest: $0.facts.fileDigest) }
        if let withdrawn = withdrawal(of: set, found) { throw withdrawn }
        // Texts that wait in the set for another process, and that this one does not register, would otherwise be fetched again there.
        let members = session.read { Set($0.members(of: set)).union(new) }
        var others = isActivated ? [:] : pointer.pending[set]?.filter { !members.contains($0.key) } ?? [:]
        if !others.isEmpty, case let all = found + self.found(others),
            all.count < found.count + others.count || withdrawal(of: set, all) != nil
        {
            others = [:]
        }
        var places: [String: Pointer.Place] = [:]
        do throws(TextStoreError) {
            for record in records {
                let name = RecordName(of: record.identifier)
                places[record.identifier] = Pointer.Place(file: name, rank: record.rank, digest: record.facts.digest)
                try record.write(as: name, in: directory, options: options)
                loaded[name] = record
            }
            try step(isActivated ? .switched(dropped: [set], activated: places) : .waits(set: set, places.merging(others) { $1 }))
        } catch {
            for place in places.values { remove(place.file) }
            throw error
        }
        return isActivated ? activated(places) : []
    }

    /// Records that texts were found unchanged, except those that another process or an activation has replaced during the check.
    private func confirm(_ records: [TextRecord], of set: String, at date: Date, replacing waiting: [String: SHA256.Digest]) {
        func change() -> Pointer.Change? {
            let active = records.filter { isActive($0, $0.identifier) }.map(\.identifier)
            return active.isEmpty ? nil : .confirmed(active, date)
        }
        do throws(TextStoreError) {
            try locked { () throws(TextStoreError) in
                catchUp()
                if let change = change() { try step(change) }
                // Another process may have fetched its waiting texts after this check.
                if pointer.pending[set]?.mapValues(\.digest) == waiting { try step(.switched(dropped: [set], activated: [:])) }
            }
        } catch {
            // Without this record, the next start only checks these texts again.
            faults.append(error)
            if let change = change() { pointer.take(change) }
        }
    }

    /// Returns whether a text has no other active record than this one.
    private func isActive(_ record: TextRecord?, _ identifier: String) -> Bool {
        let place = pointer.active[identifier]
        return record?.rank == place?.rank && record?.facts.digest == place?.digest
    }

    // MARK: Switching

    /// Activates every waiting set; removes a damaged, refused, outdated, or withdrawn one whole, and reports it.
    ///
    /// A set that another process has saved since the verification stays until the next verification.
    func activatePending() throws(TextStoreError) -> Outcome {
        var outcome = Outcome()
        try locked { () throws(TextStoreError) in
            catchUp()
            try switchPending(&outcome)
        }
        return publish(Array(registered), outcome)
    }

    private func switchPending(_ outcome: inout Outcome) throws(TextStoreError) {
        guard !pointer.pending.isEmpty else { return }
        var places: [String: Pointer.Place] = [:]
        var dropped: [String] = []
        var events: [TextStoreEvent] = []
        // A process that knows a newer manifest has already removed the sets that it withdraws.
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
        outcome.hasSwitched = places.contains { identifier, place in
            let old = pointer.active[identifier]
            return old?.rank != place.rank || old?.digest != place.digest
        }
        try step(.switched(dropped: dropped, activated: places))
        outcome.events += events
        outcome.increases += activated(places)
    }

    /// Accepts a manifest if it still counts, and removes the waiting sets that it withdraws, in one step.
    ///
    /// The sets are removed before the edition is saved, so a process killed in between fetches the manifest again.
    ///
    /// - Parameter counts: Whether the manifest counts; its fetch may be abandoned, and its source replaced, before it arrives.
    /// - Returns: `nil` if it does not count; the shelf remains unchanged.
    /// - Throws: ``TextStoreError/Code/outdatedManifest`` if a higher edition was accepted before, ``TextStoreError/Code/unverifiedEpoch``,
    ///   or ``TextStoreError/Code/fileSystem``.
    func accept(
        _ manifest: VersionManifest, _ policy: TextStorePolicy, isVerified: Bool,
        where counts: @Sendable (SessionState) -> Bool = { _ in true }
    ) throws(TextStoreError) -> Outcome? {
        guard session.read(counts) else { return nil }
        let found = manifest.edition
        if found != nil { try directory.make(options) }
        var outcome = Outcome(), changed: [String] = []
        try locked { () throws(TextStoreError) in
            catchUp()
            let seen = floors.edition
            try check(found ?? Edition(), against: seen, policy, isVerified: isVerified)
            changed = try dropWithdrawn(by: manifest, &outcome)
            session.update { $0.accepted = manifest }
            guard let found, found != seen else { return }
            outcome.events += Self.events(from: seen, to: found, policy.revisionJump)
            floors.edition = found
            saveFloors([])
        }
        return publish(changed.filter(registered.contains), outcome)
    }

    /// Checks that no process has accepted a newer manifest than one that the origin confirms.
    func checkOrder(of manifest: VersionManifest, _ policy: TextStorePolicy) throws(TextStoreError) {
        catchUp()
        // It was verified when it was accepted.
        try check(manifest.edition ?? Edition(), against: floors.edition, policy, isVerified: true)
    }

    private func check(
        _ found: Edition, against seen: Edition?, _ policy: TextStorePolicy, isVerified: Bool
    ) throws(TextStoreError) {
        if let seen, found < seen {
            throw TextStoreError(
                .outdatedManifest,
                "cannot accept the manifest: revision \(found.revision) of epoch \(found.epoch) is older than the accepted "
                    + "revision \(seen.revision) of epoch \(seen.epoch); check for a stale cache in front of the origin, or raise the epoch after a "
                    + "revision published too high")
        }
        guard !isVerified, found.epoch > max(seen?.epoch ?? 0, policy.acceptedEpoch) else { return }
        throw TextStoreError(
            .unverifiedEpoch,
            "cannot accept the manifest: nothing has verified its epoch \(found.epoch); pass a verifier to the store, or accept that epoch "
                + "in its policy")
    }

    /// Carries out the epoch and the rollbacks of the bundled manifest (T16), which is part of the app and needs no verification.
    ///
    /// The order counts if its edition is above every accepted one: an older app, or a bundle older than the origin's manifest, orders
    /// nothing. A bundle without a higher epoch and without an effective rollback changes nothing, so the origin's manifests of its epoch
    /// remain acceptable. The session learns of the new floors by the next ``publish(_:_:_:)``.
    ///
    /// - Returns: The registered texts whose floors have changed, and the events.
    func carryOut(_ manifest: VersionManifest) -> (changed: [String], Outcome) {
        guard let edition = manifest.edition, edition.epoch > 0 || manifest.entries.contains(where: { $0.value.isRollback }) else {
            return ([], Outcome())
        }
        let (seen, changed) = changeFloors {
            let (seen, changed) = (floors.edition, floors.carryOut(manifest, edition, pointer.active))
            return ((seen, changed), saving: floors.edition == seen ? nil : changed)
        }
        let events = seen == floors.edition ? [] : Self.events(from: seen, to: edition, .max)
        return (changed.filter(registered.contains), Outcome(events: events))
    }

    /// Returns the events of a higher edition; an increase of the revision by a jump or less causes none.
    static func events(from seen: Edition?, to found: Edition, _ jump: UInt64) -> [TextStoreEvent] {
        var events: [TextStoreEvent] = []
        if let seen, seen.epoch < found.epoch { events.append(.epochRaised(from: seen.epoch, to: found.epoch)) }
        if let seen, seen.epoch == found.epoch {
            if found.revision - seen.revision > jump { events.append(.revisionJumped(from: seen.revision, to: found.revision)) }
        } else if found.revision > Edition.highestFirstRevision {
            // The first revision of an epoch may be any number that leaves room for later ones.
            events.append(.revisionJumped(from: 0, to: found.revision))
        }
        return events
    }

    /// Saves the manifest's record after a fetch, unless that was abandoned, or another process has saved a newer manifest.
    ///
    /// - Parameter began: When the fetch began. A failed one replaces no record that another process has saved since.
    func keep(_ record: ManifestRecord, of ticket: UInt64, since began: Date) -> TextStoreError? {
        guard session.read({ $0.manifestFlight == ticket }) else { return nil }
        if record.failures > 0, let endedAt = record.attemptedAt, let saved = manifestFile.load().copies.first?.value,
            saved.url == record.url, saved.failures == 0, let checkedAt = saved.attemptedAt, began < checkedAt, checkedAt <= endedAt
        {
            return nil
        }
        catchUp()
        return isBehind ? nil : keep(record)
    }

    private func keep(_ record: ManifestRecord) -> TextStoreError? {
        do throws(TextStoreError) { return try manifestFile.save(record, serial: 1).first } catch { return error }
    }

    /// Deletes all texts and the manifest; the floors stay.
    func clear(_ change: Change = { _ in }) throws(TextStoreError) -> Outcome {
        // Another process may have removed the directory.
        try directory.make(options)
        try locked { () throws(TextStoreError) in
            catchUp()
            if !pointer.files.isEmpty || pointerJournal.serial > 0 || pointerJournal.isRefused {
                // The records also serve as floors if the floor files could not be saved or were damaged since, so the floors are saved
                // first.
                faults += try floorJournal.shorten(floors.bytes(of: floors.texts.keys))
                try step(.whole(Pointer()))
            }
            sweep(evenYoung: true)
        }
        // An empty record replaces the saved one; its address matches no source.
        if let fault = keep(ManifestRecord(url: "")) { faults.append(fault) }
        return publish(Array(registered), Outcome(), change)
    }
}

extension TextStoreError {
    static func belowFloor(_ identifier: String, offered: SemanticVersion?, floor: Floor) -> TextStoreError {
        let version = offered.map { "version \($0)" } ?? "unversioned text"
        let highest = floor.rank.version.map { "version \($0)" } ?? "a newer one"
        return TextStoreError(
            .belowFloor, identifier: identifier,
            "cannot use the offered \(version): \(highest) was active before; to go back, publish a rollback with a higher revision"
        )
    }
}
