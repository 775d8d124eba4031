internal import Foundation
import StoreCore

/// The files of a session.
///
/// An actor none of whose methods suspends: comparing with the floor and storing are one critical section. The order on disk is records,
/// pointer, floors, so that whatever the process dies between, the pointer names whole files and the floor is never above all of them.
actor Shelf {
    private let directory: Directory
    private let options: FileWriteOptions
    private let pointerFile: KeptValue<Pointer>
    private let floorFile: KeptValue<Floors>
    private var pointer = Pointer()
    private var floors = Floors()
    private var pointerSerial: UInt64 = 0
    private var floorSerial: UInt64 = 0
    /// The records of registered texts by their files.
    private var loaded: [String: TextRecord] = [:]
    private var registered: Set<String> = []
    private var isOpen = false
    /// Rises with each answer, so that whoever gets two can tell which is newer.
    private var number: UInt64 = 0
    /// How often everything was forgotten.
    private var generation: UInt64 = 0
    private var faults: [TextStoreError] = []

    /// What is on the shelf.
    struct Contents: Sendable {
        var number: UInt64 = 0
        /// How often everything was forgotten; what was begun before belongs to what is gone.
        var generation: UInt64 = 0
        var active: [String: TextRecord] = [:]
        /// Read only where an active file is damaged.
        var previous: [String: TextRecord] = [:]
        /// Texts whose active file is damaged.
        var damaged: Set<String> = []
        var pending: [String: [String: TextRecord]] = [:]
        var floors = Floors()
        var checked: [String: Date] = [:]
    }

    /// What came of a call.
    struct Turn: Sendable {
        var contents: Contents
        var increases: [VersionIncrease] = []
        var faults: [TextStoreError] = []
        /// Whether anything became active that was not.
        var hasSwitched = false
    }

    init(directory: Directory, options: FileWriteOptions) {
        self.directory = directory
        self.options = options
        pointerFile = KeptValue(name: "pointer", directory: directory, options: options)
        floorFile = KeptValue(name: "floor", directory: directory, options: options)
    }

    // MARK: Reading

    /// Reads the records of texts; at the first call also the pointer and the floors.
    ///
    /// - Parameter activatesPending: Whether sets that wait are activated at the first call.
    func admit(_ identifiers: [String], activatesPending: Bool) -> Turn {
        var increases: [VersionIncrease] = []
        var hasSwitched = false
        if !isOpen {
            isOpen = true
            let floorsWereRead = catchUp()
            if activatesPending, !pointer.pending.isEmpty {
                do throws(TextStoreError) {
                    let turn = try activatePending()
                    increases += turn.increases
                    hasSwitched = turn.hasSwitched
                } catch {
                    faults.append(error)
                }
            }
            // The pointer is ahead of the floors where the process died in between: what it did not tell is told now.
            var behind: [VersionIncrease] = []
            for (identifier, place) in pointer.active.sorted(by: { $0.key < $1.key }) where floors.texts[identifier]?.rank != place.rank {
                guard let record = record(place, of: identifier) else { continue }
                if let increase = floors.activated(identifier, rank: place.rank, digest: record.facts.digest) { behind.append(increase) }
            }
            if !behind.isEmpty {
                saveFloors()
                // Without a readable floor nobody knows what was told: nothing is told twice.
                if floorsWereRead { increases += behind }
            }
            sweep()
        }
        registered.formUnion(identifiers)
        return turn(increases, hasSwitched: hasSwitched)
    }

    /// Takes over what another store of this session has written; floors only rise.
    ///
    /// - Returns: Whether a floor file could be read.
    @discardableResult
    private func catchUp() -> Bool {
        let pointers = pointerFile.load()
        faults += pointers.faults
        if let newest = pointers.copies.first, newest.serial > pointerSerial {
            pointer = newest.value
            pointerSerial = newest.serial
        }
        let found = floorFile.load()
        faults += found.faults
        for copy in found.copies {
            floors.formMaximum(copy.value)
            floorSerial = max(floorSerial, copy.serial)
        }
        return !found.copies.isEmpty
    }

    private func record(_ place: Pointer.Place, of identifier: String) -> TextRecord? {
        if let record = loaded[place.file] { return record }
        do throws(TextStoreError) {
            let record = try TextRecord.read(place.file, of: identifier, in: directory)
            loaded[place.file] = record
            return record
        } catch {
            faults.append(error)
            return nil
        }
    }

    private func turn(_ increases: [VersionIncrease] = [], hasSwitched: Bool = false) -> Turn {
        number += 1
        var contents = Contents(number: number, generation: generation, floors: floors, checked: pointer.checked)
        var kept: Set<String> = []
        for identifier in registered {
            guard let place = pointer.active[identifier] else { continue }
            if let record = record(place, of: identifier) {
                contents.active[identifier] = record
                kept.insert(place.file)
            } else {
                contents.damaged.insert(identifier)
            }
        }
        // A damaged text may take its whole set back to the previous one, so the others' are needed too.
        if !contents.damaged.isEmpty {
            for identifier in registered {
                guard let place = pointer.previous[identifier], let record = record(place, of: identifier) else { continue }
                contents.previous[identifier] = record
                kept.insert(place.file)
            }
        }
        for (set, places) in pointer.pending {
            for (identifier, place) in places where registered.contains(identifier) {
                guard let record = record(place, of: identifier) else { continue }
                contents.pending[set, default: [:]][identifier] = record
                kept.insert(place.file)
            }
        }
        loaded = loaded.filter { kept.contains($0.key) }
        defer { faults = [] }
        return Turn(contents: contents, increases: increases, faults: faults, hasSwitched: hasSwitched)
    }

    // MARK: Writing

    /// Stores a whole set of fetched texts.
    ///
    /// - Parameters:
    ///   - set: The set's key.
    ///   - records: Its texts.
    ///   - isActivated: Whether the set becomes the active one, or waits.
    ///   - begun: The generation in which the set's fetch began.
    /// - Returns: `nil` where everything was forgotten since then.
    /// - Throws: ``TextStoreError/Code/belowFloor`` or ``TextStoreError/Code/fileSystem``; the old set is then whole and active.
    func store(_ set: String, _ records: [TextRecord], isActivated: Bool, begun: UInt64) throws(TextStoreError) -> Turn? {
        guard begun == generation else { return nil }
        catchUp()
        for record in records {
            guard let floor = floors.texts[record.identifier], record.rank < floor.rank else { continue }
            throw .belowFloor(record.identifier, offered: record.facts.version, floor: floor)
        }
        try makeDirectory()
        var places: [String: Pointer.Place] = [:]
        var next = pointer
        do throws(TextStoreError) {
            for record in records {
                let name = TextRecord.makeName(record.identifier)
                places[record.identifier] = Pointer.Place(file: name, rank: record.rank)
                try record.write(as: name, in: directory, options: options)
                loaded[name] = record
            }
            if isActivated {
                next.pending[set] = nil
                next.activate(places)
            } else {
                next.pending[set] = places
            }
            try switchTo(next)
        } catch {
            for place in places.values { remove(place.file) }
            throw error
        }
        return turn(isActivated ? activated(places) : [], hasSwitched: isActivated)
    }

    /// Activates every set that waits; one that is damaged or outdated meanwhile is dropped whole.
    func activatePending() throws(TextStoreError) -> Turn {
        catchUp()
        var next = pointer
        var places: [String: Pointer.Place] = [:]
        for (set, waiting) in pointer.pending.sorted(by: { $0.key < $1.key }) {
            next.pending[set] = nil
            let isGood = waiting.allSatisfy { identifier, place in
                record(place, of: identifier) != nil && floors.texts[identifier].map { place.rank >= $0.rank } ?? true
            }
            guard isGood else { continue }
            next.activate(waiting)
            places.merge(waiting) { $1 }
        }
        guard !pointer.pending.isEmpty else { return turn() }
        try switchTo(next)
        return turn(activated(places), hasSwitched: !places.isEmpty)
    }

    /// Bundled texts have become the active ones.
    func raise(_ bundled: [(identifier: String, rank: Rank, digest: String)]) -> Turn {
        var increases: [VersionIncrease] = []
        let before = floors
        for text in bundled {
            if let increase = floors.activated(text.identifier, rank: text.rank, digest: text.digest) { increases.append(increase) }
        }
        if floors != before { saveFloors() }
        return turn(increases)
    }

    /// An unversioned text was found unchanged.
    func confirm(_ identifiers: [String], at date: Date) -> Turn {
        catchUp()
        var next = pointer
        for identifier in identifiers { next.checked[identifier] = date }
        do throws(TextStoreError) { try switchTo(next) } catch {
            // It is asked for again at the next start, no more.
            faults.append(error)
        }
        return turn()
    }

    /// A manifest has come.
    ///
    /// - Throws: ``TextStoreError/Code/outdatedManifest`` where a higher revision was there before.
    func accept(revision: UInt64?) throws(TextStoreError) -> Turn {
        catchUp()
        if let seen = floors.revision, (revision ?? 0) < seen {
            let found = revision.map { "revision \($0)" } ?? "no revision"
            throw TextStoreError(
                .outdatedManifest,
                "the manifest has \(found), and revision \(seen) was there before; a cache before the origin may be stale")
        }
        if let revision, revision != floors.revision {
            floors.revision = revision
            saveFloors()
        }
        return turn()
    }

    /// Forgets all texts; the floors stay.
    func clear() throws(TextStoreError) -> Turn {
        catchUp()
        try switchTo(Pointer())
        generation += 1
        sweep(evenYoung: true)
        return turn()
    }

    private func activated(_ places: [String: Pointer.Place]) -> [VersionIncrease] {
        var increases: [VersionIncrease] = []
        for (identifier, place) in places.sorted(by: { $0.key < $1.key }) {
            guard let digest = record(place, of: identifier)?.facts.digest else { continue }
            if let increase = floors.activated(identifier, rank: place.rank, digest: digest) { increases.append(increase) }
        }
        saveFloors()
        return increases
    }

    /// Writes the pointer, and removes what the old one referred to and the new one does not.
    private func switchTo(_ next: Pointer) throws(TextStoreError) {
        faults += try pointerFile.save(next, serial: pointerSerial + 1)
        let released = pointer.files.subtracting(next.files)
        pointerSerial += 1
        pointer = next
        for file in released { remove(file) }
    }

    private func saveFloors() {
        do throws(TextStoreError) {
            faults += try floorFile.save(floors, serial: floorSerial + 1)
            floorSerial += 1
        } catch {
            // The record itself carries its version: the floor is found again from it.
            faults.append(error)
        }
    }

    private func makeDirectory() throws(TextStoreError) {
        do throws(StoreError) { try directory.create(durability: options.durability) } catch {
            throw TextStoreError(.fileSystem, "making the session's directory: \(error.message)", underlyingError: error)
        }
    }

    private func remove(_ file: String) {
        loaded[file] = nil
        do throws(StoreError) { try directory.remove(file) } catch {
            faults.append(TextStoreError(.fileSystem, "removing an old file: \(error.message)", underlyingError: error))
        }
    }

    /// Removes records that nothing refers to, and what killed processes have left of files that they were writing.
    ///
    /// Only after an hour, because another process may be about to refer to them.
    private func sweep(evenYoung: Bool = false) {
        let files = pointer.files
        do throws(StoreError) {
            guard var listing = try directory.list() else { return }
            var found: [String] = []
            while let entry = try listing.next() {
                let isOrphan = TextRecord.isName(entry.name) && !files.contains(entry.name)
                if isOrphan || TemporaryFile.isName(entry.name, kind: SealedFile.temporaryKind) { found.append(entry.name) }
            }
            for name in found {
                guard let status = try directory.status(of: name) else { continue }
                let isOld = FileStatus.now() - status.modified > TemporaryFile.orphanAge.saturatedNanoseconds
                let isRecord = TextRecord.isName(name)
                if isOld || (evenYoung && isRecord) { remove(name) }
            }
        } catch {
            faults.append(TextStoreError(.fileSystem, "looking for old files: \(error.message)", underlyingError: error))
        }
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
