internal import Dispatch
import StoreCore
internal import StoreFiles
internal import StorePlatform

extension Shelf {
    // MARK: Coordination with other processes

    /// Runs a closure while no other process writes.
    func locked<Result>(_ body: () throws(TextStoreError) -> Result) throws(TextStoreError) -> Result {
        lockFile = try lock.take()
        defer { lockFile = nil }
        let result = try body()
        if isUntidy { tidy() }
        return result
    }

    /// Removes the leftovers of killed processes, and rewrites each journal in which history dominates as one entry with the whole state.
    ///
    /// Runs after the first operation that needs the session's lock anyway, rather than at opening, so that the first texts do not wait for
    /// it.
    private func tidy() {
        isUntidy = false
        sweep()
        do throws(TextStoreError) {
            if pointerJournal.isLong { faults += try pointerJournal.shorten(Pointer.Change.whole(pointer).bytes) }
            if floorJournal.isLong { faults += try floorJournal.shorten(floors.bytes(of: floors.texts.keys)) }
        } catch {
            // The journals keep their history; nothing is lost.
            faults.append(error)
        }
    }

    /// Reads the changes of other stores of this session; floors only rise.
    func catchUp() {
        if let reading = pointerJournal.read() {
            // Files that cannot be read change nothing that is known.
            var newest = reading.entries.isEmpty && pointerJournal.isRefused ? pointer : Pointer()
            for change in values(reading, of: pointerJournal, Pointer.Change.init(reading:)) { newest.take(change) }
            pointer = newest
            isForeign = true
            // Another process has removed the other files.
            let files = newest.files
            loaded = loaded.filter { files.contains($0.key) }
            verdicts = verdicts.filter { files.contains($0.key) }
            unverified = unverified.filter { files.contains($0.key) }
        }
        if let reading = floorJournal.read() {
            floorsAreWhole = reading.faults.isEmpty && !reading.entries.isEmpty
            for found in values(reading, of: floorJournal, Floors.init(reading:)) { floors.formMaximum(found) }
        }
    }

    private func values<Value>(
        _ reading: Journal.Reading, of journal: Journal, _ body: (UnsafeRawBufferPointer) throws(ByteReader.Foreign) -> Value
    ) -> [Value] {
        faults += reading.faults
        var values: [Value] = []
        for entry in reading.entries {
            let read = entry.content.withUnsafeBytes { bytes in Result { () throws(ByteReader.Foreign) in try body(bytes) } }
            if case .success(let value) = read {
                values.append(value)
                continue
            }
            let path = directory.path(of: journal.file(0))
            faults.append(
                TextStoreError(.damagedFile, "cannot read a part of \(path): another version of the framework wrote it; use one version"))
        }
        return values
    }

    // MARK: Publishing

    /// The texts that the session shows.
    var registered: Set<String> { session.read { $0.loaded } }

    /// Publishes the records of registered texts to the session, in one step with another change of it; bundled texts that become visible
    /// raise their floors.
    func publish(_ identifiers: [String] = [], _ outcome: Outcome = Outcome(), _ change: Change = { _ in }) -> Outcome {
        var identifiers = identifiers
        var outcome = outcome
        var change = change
        repeat {
            var hadDamage = !damaged.isEmpty
            var texts = held(identifiers)
            // Another process may have changed any text. A damaged text may restore the previous set, so all records are read again. If
            // that read finds further damage, it is repeated.
            while isForeign || hadDamage != !damaged.isEmpty {
                isForeign = false
                hadDamage = !damaged.isEmpty
                texts = held(Array(registered.union(identifiers)))
            }
            let (published, also, unreadable, groups) = (texts, change, damaged, pointer.groups)
            let risen = session.update { session in
                also(&session)
                session.take(published, damaged: unreadable, of: groups)
                return session.resolve()
            }
            change = { _ in }
            identifiers = risen.map(\.identifier)
            if !risen.isEmpty { outcome.increases += changeFloors { (self.risen(risen), identifiers) } }
        } while !identifiers.isEmpty
        // Reading the other texts of a set repeats the fault of a damaged one, which is reported once.
        var reported: Set<String> = []
        outcome.hasUnverified = unverified.values.contains { registered.contains($0.identifier) }
        outcome.faults += exchange(&faults, with: []).filter { reported.insert("\($0.identifier ?? "") \($0.message)").inserted }
        return outcome
    }

    /// Changes floors as the bundle requires, and saves those of the texts that the closure returns; nothing is saved for `nil`.
    func changeFloors<Result>(_ change: () -> (Result, saving: [String]?)) -> Result {
        do throws(TextStoreError) {
            try directory.make(options)
            return try locked { () throws(TextStoreError) in
                catchUp()
                let (result, identifiers) = change()
                if let identifiers { saveFloors(identifiers) }
                return result
            }
        } catch {
            // The change counts in memory, and the next save or the same bundle at the next start repeats it.
            faults.append(error)
            let (result, identifiers) = change()
            unsaved.formUnion(identifiers ?? [])
            return result
        }
    }

    private func risen(_ bundled: [SessionState.Risen]) -> [VersionIncrease] {
        bundled.compactMap { floors.activated($0.identifier, rank: $0.rank, digest: $0.digest) }
    }

    /// Reads the records of texts, registered or not.
    @discardableResult
    func held(_ identifiers: [String]) -> [(identifier: String, held: SessionState.Held)] {
        preload(identifiers)
        var awaiting = groupsAwaitingVerdict
        return identifiers.map { ($0, held($0, &awaiting)) }
    }

    /// Reads the active records of several texts concurrently, because a start waits for all of them.
    private func preload(_ identifiers: [String]) {
        guard identifiers.count > 1 else { return }
        let missing = identifiers.compactMap { identifier in
            pointer.active[identifier].flatMap { place in loaded[place.file] == nil ? (identifier, place) : nil }
        }
        let portion = 64
        let found = Lock<[(RecordName, TextRecord)]>([])
        DispatchQueue.concurrentPerform(iterations: (missing.count + portion - 1) / portion) { [directory] number in
            // A record that cannot be read here is read again on its own, which reports the fault.
            guard var reader = try? SealedFile.reader(directory) else { return }
            let records = missing[number * portion..<min(missing.count, (number + 1) * portion)].compactMap { identifier, place in
                (try? TextRecord.read(place, of: identifier, in: directory, with: &reader)).map { (place.file, $0) }
            }
            found.withLock { $0 += records }
        }
        let records = found.withLock { $0 }
        loaded.reserveCapacity(loaded.count + records.count)
        for (file, record) in records { _ = count(record, file) }
    }

    private func held(_ identifier: String, _ awaiting: inout Set<String>) -> SessionState.Held {
        damaged.remove(identifier)
        var active: TextRecord?
        let known = unverified.count
        defer { if unverified.count != known { awaiting = groupsAwaitingVerdict } }
        if let place = pointer.active[identifier] {
            active = record(place, of: identifier)
            if unverified[place.file] != nil || pointer.groupsByText[identifier].map({ awaiting.contains($0) }) == true {
                // Another process has saved it. Until the verdict, the session keeps the whole set that it shows.
                active = session.read { $0.held[identifier]?.active }
            } else {
                if active == nil { active = recordAnew(place, of: identifier) { $0.active[identifier] } }
                if active == nil, pointer.active[identifier] != nil { damaged.insert(identifier) }
            }
        }
        var previous: TextRecord?
        if let place = pointer.previous[identifier] {
            if damaged.isEmpty { loaded[place.file] = nil } else { previous = record(place, of: identifier) }
        }
        // A text waits in one set at most, which may be that of a process with another group for the text.
        let waiting = pointer.waiting(identifier).flatMap { place in
            record(place, of: identifier) ?? recordAnew(place, of: identifier) { $0.waiting(identifier) }
        }
        return SessionState.Held(
            active: active, previous: previous, waiting: waiting, group: pointer.groupsByText[identifier],
            floor: floors.texts[identifier], checked: pointer.checked[identifier])
    }

    /// Returns the record of a place, and reports a fault once.
    func record(_ place: Pointer.Place, of identifier: String) -> TextRecord? {
        if let record = loaded[place.file] { return record }
        if verdicts[place.file] == false || unverified[place.file] != nil { return nil }
        do throws(TextStoreError) {
            var reader = try SealedFile.reader(directory)
            return count(try TextRecord.read(place, of: identifier, in: directory, with: &reader), place.file)
        } catch {
            faults.append(error)
            return nil
        }
    }

    /// Returns the active or waiting record after its file was not found, because another process may have replaced it meanwhile.
    private func recordAnew(
        _ place: Pointer.Place, of identifier: String, _ newest: (Pointer) -> Pointer.Place?
    ) -> TextRecord? {
        guard verdicts[place.file] == nil, unverified[place.file] == nil else { return nil }
        let count = faults.count
        // Without the lock, the text stays damaged, as reported above.
        return
            (try? locked { () throws(TextStoreError) in
                catchUp()
                guard case let found = newest(pointer), found != place else { return nil }
                // A switch removed the file, so the fault reported above is no fault.
                if count > 0 { faults.remove(at: count - 1) }
                return found.flatMap { record($0, of: identifier) }
            }) ?? nil
    }

    // MARK: Writing

    /// Raises and saves the floors of places that have become active.
    func activated(_ places: [String: Pointer.Place]) -> [VersionIncrease] {
        let increases = risen(places.sorted { $0.key < $1.key }.map { ($0.key, $0.value.rank, $0.value.digest) })
        if !places.isEmpty { saveFloors(Array(places.keys)) }
        return increases
    }

    /// Saves a step of the pointer, and removes files that have lost their last reference.
    func step(_ change: Pointer.Change) throws(TextStoreError) {
        announce()
        faults += try pointerJournal.add(change.bytes) {
            var next = pointer
            next.take(change)
            return Pointer.Change.whole(next).bytes
        }
        for file in pointer.take(change) { remove(file) }
    }

    func saveFloors(_ identifiers: [String]) {
        unsaved.formUnion(identifiers)
        do throws(TextStoreError) {
            faults += try floorJournal.add(floors.bytes(of: unsaved)) { floors.bytes(of: floors.texts.keys) }
            unsaved = []
        } catch {
            // The next save writes these floors again. Each record also has its version, from which its floor can be restored.
            faults.append(error)
        }
    }

    func remove(_ file: RecordName) {
        loaded[file] = nil
        verdicts[file] = nil
        unverified[file] = nil
        remove(file.text)
    }

    private func remove(_ file: String) {
        do throws(StoreError) { try directory.remove(file) } catch { faults.append(.disk("remove an old file", error)) }
    }

    /// Removes unreferenced records, and temporary files of killed processes.
    ///
    /// Keeps files younger than an hour, because another process may be about to reference them.
    func sweep(evenYoung: Bool = false) {
        let files = pointer.files
        // If the pointer cannot be read, its records are unknown, and any record may be referenced.
        let removesRecords = !pointerJournal.isRefused
        do throws(StoreError) {
            guard var listing = try directory.list() else { return }
            var found: [(name: String, isRecord: Bool)] = []
            while let entry = try listing.next() {
                if let record = RecordName(entry.name) {
                    if removesRecords, !files.contains(record) { found.append((entry.name, true)) }
                } else if TemporaryFile.isName(entry.name, kind: SealedFile.session.temporaryKind) {
                    found.append((entry.name, false))
                }
            }
            for (name, isRecord) in found {
                guard let status = try directory.status(of: name) else { continue }
                let isOld = FileStatus.now() - status.modified > TemporaryFile.orphanAge.saturatedNanoseconds
                if isOld || (evenYoung && isRecord) { remove(name) }
            }
        } catch {
            faults.append(.disk("list old files", error))
        }
    }
}
