#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// A pass in a directory: its lock, its journal, and its changes.
final class TargetSession: Sendable {
    let places: TargetPlaces
    let folding: NameFolding
    /// Receives the files that the pass replaces or removes; `nil` without a backup.
    private let backup: BackupPlace?
    private let lockFile: WritableFile
    let state: Lock<State>
    let flushes = GroupedFlush()
    /// Held while files in the way of another are removed.
    let makingWay = Lock(())

    struct State: Sendable {
        var journal: TargetJournal
        var log: LogFile<TargetJournal.Change>
        var clashes: NameClashes
        /// The stamp of each file just before its download, so that no newer file is replaced.
        var expected: [PathKey: FileStamp?] = [:]
        /// The journal's changes of files that are being renamed.
        var renaming: Set<Int> = []
        /// The stamps of edited files in the inventory.
        var edited: [PathKey: FileStamp] = [:]
        /// Recorded files that are missing, although no pass has removed them.
        var vanished: [PathKey] = []
        /// The files that the plan removes; `replaced` contains those already removed because they were in the way.
        var removable: Set<PathKey> = []
        /// The keys of updates that cannot be checked; `staged` contains those already downloaded.
        var stageable: Set<PathKey> = []
        var staged: [PathKey: StagedUpdate] = [:]
        var replaced: Set<PathKey> = []
        /// The files with a second name in the directory of parts, by their new keys.
        var held: [PathKey: HeldFile] = [:]
        /// The old keys of the files that have their new names.
        var moved: Set<PathKey> = []
        /// Whether a moved file has a new name that may not be on the disk yet.
        var hasUnflushedMoves = false
        /// The number of planned downloads and moves that have not succeeded. In a pass that downloads no contents, no download succeeds.
        var openCount = 0
        /// Whether the journal records everything that the pass has done as flushed.
        var isSettled = false
        /// Whether every file that an earlier pass has left unsettled was compared. Until then, a record may describe a torn file.
        var mayVouch = false
    }

    static let journalName = "journal"
    static let lockName = "lock"

    /// Locks the directory for this pass, unless another pass has locked it.
    init(
        _ directory: Directory, durability: Durability, modes: FileModes = FileModes(), metadata: MetadataOptions = [],
        folding: NameFolding?, backup: URL? = nil, probe: (@Sendable (TargetStep) throws -> Void)? = nil
    ) throws {
        let places = try TargetPlaces(directory, durability: durability, modes: modes, metadata: metadata, probe: probe)
        self.places = places
        lockFile = try Self.takeLock(places, of: directory)
        try lockFile.truncate(to: 0)
        try Array("\(ProcessInfo.processInfo.processIdentifier)".utf8).withUnsafeBytes { [lockFile] in try lockFile.write($0, at: 0) }
        self.backup = try backup.map { try BackupPlace($0, of: places, modes: modes) }
        try places.findLeftovers()
        let folding = try folding ?? NameFolding.probe(places.own)
        self.folding = folding
        try LogFile<TargetJournal.Change>.removeOrphans(in: places.own)
        var log = LogFile<TargetJournal.Change>(Self.journalName, .mirror, mode: 0o666)
        let isFirst = try places.own.status(of: Self.journalName) == nil
        let journal: TargetJournal
        if !isFirst, let found = try TargetJournal.read(&log, in: places.own) {
            journal = found
        } else {
            // The journal gets its name when it is complete. An incomplete one would count as lost, and the user's files not as edits.
            let beginning: TargetJournal.Change = isFirst ? .beginning : .rebuilding
            try log.replace(by: [beginning], durability: durability, in: places.own)
            journal = TargetJournal(beginning)
        }
        state = Lock(State(journal: journal, log: log, clashes: NameClashes(folding)))
    }

    /// Takes the lock on a file without other links; the file contains the process identifier.
    private static func takeLock(_ places: TargetPlaces, of directory: Directory) throws -> WritableFile {
        for _ in 0..<8 {
            let lock = try FileLock(lockName, in: places.own, patience: .zero, mode: 0o666)
            do throws(StoreError) {
                if let file = try lock.take() {
                    guard file.isShared else { return file }
                    // The next file has no other name, under which a change would be visible too.
                    try places.own.remove(lockName)
                }
            } catch {
                // Another pass has locked the file.
                guard error.fileSystemErrno == EAGAIN else { throw error }
                let holder = String(decoding: try lock.file.readAll(atMost: 20), as: UTF8.self)
                throw SyncError.locked(directory.path, holder: Int(holder).map { "\($0)" })
            }
            try places.verify()
        }
        // The target's own directory was moved, so that the path of the lock leads elsewhere.
        throw SyncError.vanished(directory.path)
    }

    var journal: TargetJournal { state.withLock { $0.journal } }

    // MARK: The inventory

    /// Stores the state of the files for the checks before each change. Excluded files that are missing keep their records.
    func saw(_ scan: DirectoryScan, excludes: (@Sendable (PathKey) -> Bool)? = nil) throws {
        state.withLock { state in
            if state.clashes.isNeeded { state.clashes.insert(scan.paths(state.journal)) }
            state.edited = scan.edited
            state.vanished = scan.vanished.filter { !(excludes?($0) ?? false) }
            state.mayVouch = !scan.missesUnsettled
        }
        try write(scan.confirmed.map { .put($0.key, $0.value) } + scan.uninstalled.map { .removed($0) })
        state.withLock { state in for path in scan.confirmed.keys { state.journal.settle(path) } }
    }

    /// Returns whether a file is still as the plan recorded it, and stores its stamp for the installation.
    func isUnchanged(_ path: RelativePath, since entry: LocalEntry<some FileItem>?) throws -> Bool {
        let key = path.key
        if entry != nil, state.withLock({ $0.replaced.contains(key) }) { return true }
        if makesWay(for: path) {
            // A file has the name of one of its directories, so nothing can exist here.
            state.withLock { $0.expected[key] = .some(nil) }
            return entry == nil
        }
        let found = try places.inDirectory(of: path, isMaking: false) { try $0.status(of: $1) } ?? nil
        if entry == nil, let found, found.kind == .directory {
            guard makesWay(below: key) else { throw SyncError.taken(key, by: found.kind.words) }
            // The directory will be removed with its content before the installation.
            state.withLock { $0.expected[key] = .some(nil) }
            return true
        }
        let stamp = found.map { FileStamp($0) }
        return try state.withLock { state throws -> Bool in
            if entry == nil, stamp != nil, let other = state.clashes.otherSpelling(of: key) {
                // The existing file has another spelling, and will be removed before the installation.
                guard state.removable.contains(other) else { throw SyncError.clash(key, with: other) }
                state.expected[key] = .some(nil)
                return state.knows(stamp, of: other)
            }
            state.expected[key] = .some(stamp)
            guard entry != nil else { return found == nil || found?.kind != .regular }
            return state.knows(stamp, of: key)
        }
    }

    // MARK: Changes

    /// Records an existing file as the one in the list.
    func adopt(_ key: PathKey, version: String, digest: SHA256.Digest, stamp: FileStamp) throws {
        try write([.put(key, FileRecord(version: version, digest: digest, stamp: stamp))])
        state.withLock { $0.journal.settle(key) }
    }

    /// Installs a complete download: flushes its bytes, writes the journal, and renames the file. The wait for the flush can be canceled.
    func commit(_ whole: FilePart.Whole, as path: RelativePath, version: String) async throws {
        let key = path.key
        let other = state.withLock { $0.clashes.insert(path) }
        if let other, !state.withLock({ $0.removable.contains(other) }) { throw SyncError.clash(key, with: other) }
        try await settle(whole, of: key)
        try makeWay(for: path, insteadOf: other)
        if try !install(whole, as: path, version: version, isMaking: false) {
            // Recorded before its directory is made: if the process ends in between, the next pass misses the file, and removes the empty
            // directory.
            try write([.put(key, FileRecord(version: version, digest: whole.digest, stamp: whole.stamp))])
            do {
                try install(whole, as: path, version: version, isMaking: true)
            } catch {
                // If the disk refuses this line, the next pass finds no file of the record.
                try? write([.removed(key)])
                throw error
            }
        }
        state.withLock { state in
            state.journal.settle(key)
            state.expected[key] = nil
        }
        // Large files need no shared flush. Without any flush, the journal would record no name as flushed before the end of the pass.
        if places.durability == .power, state.withLock({ $0.journal.unsettledCount }) >= Self.mostUnsettled { try await flush() }
    }

    /// Gives a complete file its name, if that is still as the plan recorded it; returns `false` if a directory is missing and is not made.
    @discardableResult
    private func install(_ whole: FilePart.Whole, as path: RelativePath, version: String, isMaking: Bool) throws -> Bool {
        try places.inDirectory(of: path, isMaking: isMaking) { directory, name in
            try rename(whole, to: directory, as: name, path, version: version)
            places.touch(path)
            return true
        } ?? false
    }

    /// Throws unless a name is as the plan recorded it.
    private func verify(_ name: String, in directory: DirectoryHandle, key: PathKey) throws {
        let found = try directory.status(of: name)
        if let found, found.kind != .regular { throw SyncError.taken(key, by: found.kind.words) }
        if let expected = state.withLock({ $0.expected[key] }), expected != found.map({ FileStamp($0) }) {
            throw SyncError.changedLocally(.contents)
        }
    }

    private func rename(
        _ whole: FilePart.Whole, to directory: DirectoryHandle, as name: String, _ path: RelativePath, version: String
    ) throws {
        let key = path.key
        let record = FileRecord(version: version, digest: whole.digest, stamp: whole.stamp)
        let (before, number) = try state.withLock { state throws in
            let before = state.journal.records[key]
            try write([.put(key, record)], &state)
            state.renaming.insert(state.journal.count)
            return (before, state.journal.count)
        }
        defer { state.withLock { _ = $0.renaming.remove(number) } }
        do {
            try places.probe?(.renames(key.path))
            // Checked last, because writing the journal may have waited for the disk.
            try verify(name, in: directory, key: key)
            if let backup {
                try backup.store(name, in: directory, as: path)
                // A copy may have taken minutes.
                try verify(name, in: directory, key: key)
            }
            if whole.file == nil, try places.parts.status(of: whole.name).map({ FileStamp($0) }) != whole.stamp {
                throw SyncError.changedLocally(.moves)
            }
            try (whole.directory ?? places.parts).rename(whole.name, to: directory, as: name)
            try places.probe?(.renamed(key.path))
        } catch {
            // The rename failed, so the previous record is valid again.
            do {
                try write([before.map { .put(key, $0) } ?? .removed(key)])
            } catch {
                // The record describes no file, and the next pass must compare it.
                state.withLock { $0.mayVouch = false }
                throw error
            }
            throw (error as? StoreError)?.fileSystemErrno == EXDEV ? SyncError.elsewhere(key, underlyingError: error) : error
        }
    }

    /// Removes a file that is still as the inventory found it, and the directories that this leaves empty, but none above a depth.
    ///
    /// Throws ``SyncError/Code/changedLocally`` with the stage if the file has changed.
    func remove(_ path: RelativePath, upTo depth: Int = 1, in stage: SyncStage = .removals) throws {
        let key = path.key
        if state.withLock({ $0.replaced.contains(key) }) { return }
        _ = try places.inDirectory(of: path, isMaking: false) { directory, name in
            func verify() throws {
                guard let found = try directory.status(of: name) else { return }
                guard found.kind == .regular else { throw SyncError.taken(key, by: found.kind.words) }
                guard state.withLock({ $0.knows(FileStamp(found), of: key) }) else { throw SyncError.changedLocally(stage) }
            }
            try places.probe?(.removes(key.path))
            // The engine has checked a whole batch before, and a user may have saved the file since.
            try verify()
            // The content of a moved file is under its new name.
            if let backup, !state.withLock({ $0.moved.contains(key) }) {
                try backup.store(name, in: directory, as: path)
                try verify()
            }
            places.touch(path)
            try directory.remove(name)
        }
        // The record goes last: if the process ends before, the next pass removes the directories of the missing file.
        if stage == .removals {
            // The file is removed, and a directory that the process may not remove counts as any other.
            try? places.removeEmptyDirectories(above: path, upTo: depth)
        } else {
            try places.removeEmptyDirectories(above: path, upTo: depth)
        }
        try write([.removed(key)])
        state.withLock { state in
            state.clashes.remove(key)
            // The name may already belong to a directory, so the key is no longer removable.
            state.removable.remove(key)
        }
    }

    /// Removes empty directories above missing files, and then the files' records.
    ///
    /// A directory left by a killed process would block a file of its name.
    func forgetVanished() throws {
        let vanished = state.withLock { exchange(&$0.vanished, with: []) }
        for path in vanished {
            // A failure is harmless, because the directory then counts as any other.
            if let path = try? RelativePath(existing: path) { try? places.removeEmptyDirectories(above: path) }
        }
        try write(vanished.map { .removed($0) })
    }

    /// Discards the parts of files that are not about to be downloaded.
    func prune(keeping paths: some Sequence<PathKey>) throws {
        var names: Set<String> = []
        for path in paths {
            let own = PartNames(path: path.path)
            names.formUnion([own.bytes, own.memory, own.directory])
        }
        var stale: [DirectoryListing.Entry] = []
        var listing = try places.parts.list()
        while let entry = try listing.next() {
            // A file with a second name was held for a move by a killed pass. A download could not use it, nor write to it.
            let isHeld = try places.parts.status(of: entry.name).map { $0.kind == .regular && $0.linkCount > 1 } ?? false
            if isHeld || !names.contains(entry.name) { stale.append(entry) }
        }
        for entry in stale {
            if try places.parts.status(of: entry.name)?.kind == .directory {
                try places.removeWorkingDirectory(entry.name)
            } else {
                try places.parts.remove(entry.name)
            }
        }
    }

    /// Stores the files that the plan removes, the updates that are staged, and the number of planned downloads and moves.
    func willChange(removing removals: Set<PathKey>, staging updates: Set<PathKey>, installing count: Int) {
        state.withLock { ($0.removable, $0.stageable, $0.openCount) = (removals, updates, count) }
    }

    /// Records that a planned download or move has succeeded.
    func hasInstalled() { state.withLock { $0.openCount -= 1 } }

    /// Flushes everything that the pass has done and records it in the journal; a second call does nothing.
    ///
    /// - Parameter isComplete: Whether the pass has ended without a failure.
    /// - Throws: `StoreError` if the disk fails; the journal then relies on no unflushed file.
    func settle(isComplete: Bool) async throws {
        guard !state.withLock({ $0.isSettled }) else { return }
        if isComplete {
            try forgetVanished()
            // A pass that downloads nothing has discarded no parts. Those that cannot be removed now are left to the next pass.
            if places.mayHaveMemories.withLock({ $0 }), state.withLock({ $0.openCount <= 0 }) { try? prune(keeping: []) }
        }
        // A pass over an empty list has recorded nothing, and a pass without downloads has not made the directory equal to the source.
        // After both, and after a failed flush, the existing files keep their protection.
        let isEqual =
            isComplete
            && state.withLock { state in
                state.journal.unfinished != nil && !state.journal.records.isEmpty && state.openCount <= 0
            }
        let power = places.durability == .power && (isEqual || !isFlushed)
        // With `.crash` nothing is flushed, so the journal relies on the state that the system reports.
        if power {
            do {
                // Runs in a task that is never canceled, because a late flush would write its line into the next pass's journal.
                try await Task { try await flush(isLast: true) }.value
            } catch {
                // Bytes that the system failed to write may look intact until they are read from the disk again, so the next pass cannot
                // use them. The flush's error is reported, whether or not the parts can be removed.
                if flushes.hasFailed { try? prune(keeping: []) }
                throw error
            }
        }
        if isEqual { try write([.rebuilt]) }
        if state.withLock({ $0.mayVouch ? $0.journal.unsettledCount : 0 }) > 0 { try write([.synchronized]) }
        if power {
            try state.withLock { state throws in try state.log.synchronize() }
            try places.own.synchronize()
        }
        state.withLock { $0.isSettled = true }
    }

    /// Whether an earlier pass has flushed everything, and this one has changed nothing since.
    private var isFlushed: Bool { state.withLock { $0.journal.isFlushed } && !places.hasTouched }

    /// Ends the pass, which is complete if the directory equals the source, and unlocks the directory.
    func end(isComplete: Bool) async throws {
        defer { lockFile.unlock() }
        // A failure is harmless, because the directory then counts as any other.
        if !isComplete { try? places.removeEmptyMadeDirectories() }
        // The next pass discards what cannot be removed now.
        try? releaseHeld()
        try await settle(isComplete: isComplete)
        try state.withLock { state throws in
            guard state.journal.isMostlyStale else { return }
            var fresh = TargetJournal()
            let changes = state.journal.changes.map { change in
                fresh.apply(change)
                return change
            }
            try state.log.replace(by: changes, durability: places.durability, in: places.own)
            state.journal = fresh
        }
        // Last, and not flushed itself: if it is lost, the next pass only flushes once more.
        let isMarked = places.durability == .crash || places.hasTouched || state.withLock { $0.journal.isFlushed || !$0.mayVouch }
        if !isMarked { try write([TargetJournal.flushMark]) }
    }

    func write(_ changes: [TargetJournal.Change]) throws {
        guard !changes.isEmpty else { return }
        try state.withLock { state throws in try write(changes, &state) }
    }

    func write(_ changes: [TargetJournal.Change], _ state: inout State) throws {
        // A pass may confirm all files at once, and a reader needs memory for the whole of an append that counts as one.
        try state.log.append(changes, asOne: false, durability: .crash, in: places.own)
        for change in changes { state.journal.apply(change) }
    }
}
