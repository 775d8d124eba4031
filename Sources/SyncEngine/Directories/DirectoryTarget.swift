public import Foundation
public import StoreCore

/// A directory as the target of a sync: its files become those of a remote list.
///
/// ```swift
/// let target = DirectoryTarget(directory: url, transfer: HTTPTransfer()) { ListedSource(try await api.files()) }
/// let report = try await OneWaySynchronizer(processor: target).sync()
/// ```
///
/// Each file arrives beside the others, in a directory `.storehouse` of the target's own, is checked by size and digest, and takes its name in
/// one step: whoever opens a file has the old one or the new one, whole, also after the process was killed. A journal remembers what was
/// put in place. What broke off is resumed. One process at a time may work in a directory. Names that would lead out of the directory are
/// refused, and symbolic links are never followed.
///
/// A file that no sync has put there is left alone, unless ``foreignFiles`` says otherwise or the list has one of that name; it then counts as
/// edited, and ``SyncOptions/localEdits`` decides. An edit that keeps size, time and file number of a file is not noticed.
public final class DirectoryTarget<Source: SourceList, Transfer: FileTransfer<Source.Item>>: SyncProcessor where Source.Item: FileItem {
    /// A file of the list.
    public typealias Item = Source.Item

    /// The directory.
    public let directory: URL
    /// What the files survive.
    ///
    /// With `.power` each file is on the disk before it has its name, so that a loss of power too leaves no torn file: one of a megabyte or
    /// more is brought there by itself, smaller ones wait together for a flush of the file system, while others are transferred. The names
    /// follow with later flushes, at the latest at the end of the pass; until then a loss of power may leave the old file under a name, whole.
    /// With `.crash` nothing is brought to the disk by force.
    public let durability: Durability
    /// What becomes of files that no sync has put there.
    public let foreignFiles: ForeignFiles
    /// The permissions of the files and directories that a pass makes.
    public let modes: FileModes

    private let transfer: Transfer
    private let makeList: @Sendable () async throws -> Source
    /// What the disk takes for one name; `nil` lets it be found out.
    private let folding: NameFolding?
    private let probe: (@Sendable (TargetStep) throws -> Void)?
    private let state = Lock(State())

    private struct State: Sendable {
        var session: TargetSession?
        /// The marks of passes that could not begin and have not ended.
        var failedBegins: [Set<PassMark>] = []
        /// Files and directories that the last inventory could not look into.
        var unreadable = UnreadablePaths()
    }

    private var place: Directory { Directory(path: directory.path(percentEncoded: false)) }

    /// Makes a target; nothing happens to the directory until a pass begins, which makes it where it is missing.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - transfer: Brings the files' bytes.
    ///   - durability: What the files survive.
    ///   - foreignFiles: What becomes of files that no sync has put there.
    ///   - modes: The permissions of the files and directories that a pass makes; by default as the umask leaves them.
    ///   - list: The remote list.
    public convenience init(
        directory: URL, transfer: Transfer, durability: Durability = .power, foreignFiles: ForeignFiles = .keep,
        modes: FileModes = FileModes(), list: @escaping @Sendable () async throws -> Source
    ) {
        self.init(
            directory: directory, transfer: transfer, durability: durability, foreignFiles: foreignFiles, modes: modes, folding: nil,
            list: list)
    }

    init(
        directory: URL, transfer: Transfer, durability: Durability, foreignFiles: ForeignFiles, modes: FileModes = FileModes(),
        folding: NameFolding?, probe: (@Sendable (TargetStep) throws -> Void)? = nil, list: @escaping @Sendable () async throws -> Source
    ) {
        self.directory = directory
        self.transfer = transfer
        self.durability = durability
        self.foreignFiles = foreignFiles
        self.modes = modes
        self.folding = folding
        self.probe = probe
        makeList = list
    }

    // MARK: The pass

    /// Takes the directory for this pass alone, and reads the journal.
    ///
    /// - Throws: ``SyncError/Code/targetLocked`` where another synchronizer works there; `StoreError` where the disk fails.
    @concurrent
    public func syncWillBegin() async throws {
        do {
            let session = try TargetSession(place, durability: durability, modes: modes, folding: folding, probe: probe)
            state.withLock { $0.session = session }
        } catch {
            state.withLock { $0.failedBegins.append(PassMark.all) }
            throw error
        }
    }

    /// Ends the pass, and releases the directory if the pass has it.
    @concurrent
    public func syncDidEnd(_ report: SyncReport) async {
        let session = state.withLock { state -> TargetSession? in
            // Another synchronizer's pass may have the session of a target that they share.
            if let failed = state.failedBegins.firstIndex(of: PassMark.all) {
                state.failedBegins.remove(at: failed)
                return nil
            }
            defer { state.session = nil }
            return state.session
        }
        // A complete pass was flushed by `syncWillEnd()`, which reports a failure. After any other the caller has an error already, and the
        // journal vouches for nothing that was not flushed. A journal that was not compacted is as true as before.
        try? await session?.end(isComplete: report.isComplete)
    }

    /// The remote list.
    public func sourceList() async throws -> Source { try await makeList() }

    /// The files in the directory, with the versions that the journal remembers.
    ///
    /// Costs a look at each file; only files whose time is another one than remembered are read.
    ///
    /// - Throws: `StoreError` where the disk fails; ``SyncError/Code/targetVanished`` where the directory is removed meanwhile.
    @concurrent
    public func localInventory() async throws -> LocalInventory<Item> {
        let session = callingSession
        guard let root = try session?.places.root ?? DirectoryHandle(opening: place) else { return LocalInventory([]) }
        let journal = try session?.journal ?? journal(in: root)
        let scan = try DirectoryScan(of: root, journal: journal, folding: try knownFolding(), probe: probe)
        let unreadable = UnreadablePaths(scan.unreadable)
        state.withLock { $0.unreadable = unreadable }
        // With a session the journal goes on changing, and a second owner would make each change copy it.
        let shown = session == nil ? journal : nil
        // A directory whose disk was taken away looks empty; no item of it is missing.
        try session?.places.verify()
        try session?.saw(scan)
        let isRebuilding = journal.isRebuilding
        // While a lost journal is built up again, a file without a record may be ours: it is compared, and never removed.
        let mayRemove = foreignFiles == .remove && !isRebuilding
        var inventory = LocalInventory<Item>(order: .unsorted) {
            var rows = scan.unchanged
            var rest: [DirectoryScan.Entry]? = scan.entries
            return {
                // Page by page from the journal: for files that are as it says, no list is kept.
                let page = session?.unchanged(&rows) ?? shown?.unchanged(&rows) ?? []
                if !page.isEmpty {
                    return page.map { LocalEntry($0.path, version: $0.version, byteCount: Int64($0.size)) }
                }
                defer { rest = nil }
                return rest?.map { entry in
                    let isForeign = entry.version == nil && !entry.isTorn
                    let isComparable = isForeign && !entry.isUnreadable && (mayRemove || isRebuilding)
                    return LocalEntry(
                        entry.path, version: entry.version, byteCount: Int64(entry.size), isEdited: entry.isEdited && !isComparable,
                        isForeign: isForeign && (!mayRemove || entry.isUnreadable))
                }
            }
        }
        inventory.skipped = unreadable.all.map { SyncRefusal($0.path, because: SyncError.unreadable($0.path, underlyingError: $0.error)) }
        return inventory
    }

    private func journal(in root: DirectoryHandle) throws -> TargetJournal {
        var lost = TargetJournal()
        lost.apply(.rebuilding)
        guard let own = try root.directory(RelativePath.reserved), try own.status(of: TargetSession.journalName) != nil else { return lost }
        let reading = try TargetJournal.read(try WritableFile(TargetSession.journalName, in: own))
        return reading.isWhole ? reading.journal : lost
    }

    /// Names the items whose path is unsafe or clashes with another one, and those that are not well-formed.
    public func refusals(among items: [Item]) async throws -> [SyncRefusal<PathKey>] {
        var refused: [SyncRefusal<PathKey>] = []
        var clashes = NameClashes(try knownFolding())
        let keys = Set(items.lazy.map(\.key))
        let unreadable = state.withLock { $0.unreadable }
        for item in items {
            do {
                let path = try RelativePath(item.key)
                try Self.check(item)
                if let (place, cause) = unreadable.cause(of: item.key) { throw SyncError.unreadable(place, underlyingError: cause) }
                if let other = clashes.insert(path) { throw SyncError.clash(item.key, with: other) }
                if let file = path.ancestors.first(where: { keys.contains($0) }) {
                    throw SyncError.taken(item.key, by: "the list has a file “\(file.shownSafely)”, which would have to be a directory")
                }
            } catch {
                refused.append(SyncRefusal(item.key, because: error))
            }
        }
        return refused
    }

    /// Without a pass nothing is written: then it is only known from the second pass on what the disk takes for one name.
    private func knownFolding() throws -> NameFolding {
        if let folding { return folding }
        if let session = callingSession { return session.folding }
        return try DirectoryHandle(opening: place)?.directory(RelativePath.reserved).map { try NameFolding.observe($0) } ?? []
    }

    private static func check(_ item: Item) throws {
        if let size = item.byteCount, size < 0 {
            throw SyncError(
                .invalidItem, "reading the item “\(item.key.shownSafely)”: its size is \(size); it is not downloaded. Correct the list")
        }
        if item.sha256 != nil, digest(of: item) == nil {
            throw SyncError(
                .invalidItem,
                "reading the item “\(item.key.shownSafely)”: its digest is not 64 hexadecimal digits; it is not downloaded. Correct the list"
            )
        }
    }

    private static func digest(of item: Item) -> SHA256.Digest? {
        item.sha256.flatMap { SHA256.Digest(hex: Array($0.lowercased().utf8)) }
    }

    /// Whether the content really is another one: a file that has the digest of the list already is taken as it is.
    @concurrent
    public func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool {
        let wanted = item.byteCount.map { $0 == local.byteCount } ?? true ? Self.digest(of: item) : nil
        guard wanted != nil || local.isForeign, let path = try? RelativePath(existing: local.key)  // The refusals report the reason.
        else { return true }
        if state.withLock({ $0.unreadable.cause(of: local.key) != nil }) { return true }
        let session = callingSession
        guard var current = try session?.places.root ?? DirectoryHandle(opening: place) else { return true }
        for part in path.parts.dropLast() {
            guard let next = try current.directory(part) else { return true }
            current = next
        }
        guard let name = path.parts.last, let status = try current.status(of: name) else { return true }
        do {
            try probe?(.reads(local.key.path))
            // Only a file that may have the content is read; a foreign one is left alone if the process may not.
            guard let wanted else {
                _ = try OpenFile(reading: name, in: current)
                return true
            }
            guard try DirectoryScan.digest(of: name, in: current) == wanted else { return true }
            try session?.adopt(item.key, version: item.version, digest: wanted, stamp: FileStamp(status))
            return false
        } catch  where error.isDenial {
            // It is in the way of one item, which the refusals then report; all others go on.
            state.withLock { $0.unreadable.add(local.key, error) }
            return true
        }
    }

    /// Throws away parts of files that are no longer wanted, and remembers what may make way for others.
    @concurrent
    public func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download] {
        if plan.isDryRun { return plan.downloads }
        let session = try session()
        try session.places.verify()
        session.willRemove(plan.removals.lazy.map(\.local))
        session.removeEmptyDirectoriesOfVanished()
        try session.prune(keeping: plan.downloads.lazy.map(\.item.key))
        session.willStage(plan.updates.lazy.map(\.item).filter { $0.sha256 == nil && $0.byteCount == nil }.map(\.key))
        return plan.downloads
    }

    /// Whether a file is still as the plan has seen it.
    @concurrent
    public func isUnchanged(_ key: PathKey, since entry: LocalEntry<Item>?) async throws -> Bool {
        let session = try session()
        let path = try RelativePath(existing: key)
        return try session.places.whileThere { try session.isUnchanged(path, key: key, since: entry) }
    }

    /// Downloads a file, or what is missing of it, and puts it in place.
    @concurrent
    public func downloadContent(of item: Item) async throws {
        let session = try session()
        let path = try RelativePath(item.key)
        let digest = Self.digest(of: item)
        do {
            let part = try FilePart(of: item, in: session.places)
            if try !part.isWholeAlready(digest: digest) {
                try await transfer.transfer(item, into: part)
                try Task.checkCancellation()
            }
            let whole = try part.finish(digest: digest)
            if session.isStaged(item.key) { return try session.stage(part.stage(whole), of: item, as: path) }
            do {
                try await session.commit(whole, as: path, of: item)
            } catch  where session.flushes.hasFailed {
                // Nobody knows what of it is on the disk, though it may look whole until it is read from there again. Where it cannot be
                // thrown away either, the flush's failure is the one to tell.
                try? part.discard()
                throw error
            }
            try part.cleanUp()
            try session.places.verify()
        } catch {
            // Without its directory the item fails with any error; the missing directory is the reason.
            if (error as? SyncError)?.code != .targetVanished { try session.places.verify(after: error) }
            throw error
        }
    }

    /// Installs the updates that nothing in the list could check, unless most of them would get one content.
    ///
    /// - Returns: The files that were not replaced. Where more than half of at least 20 changed files share one digest that is not that of
    ///   emptiness, and that they did not share before, these are all of them, each with ``SyncError/Code/sharedContent``.
    @concurrent
    public func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<PathKey>] {
        try await session().installStaged(overriding: overrides)
    }

    /// Removes files, and directories that are empty then.
    @concurrent
    public func remove(_ keys: Set<PathKey>) async throws {
        let session = try session()
        try session.places.verify()
        try session.places.whileThere {
            for key in keys.sorted() { try session.remove(try RelativePath(existing: key), key: key) }
        }
        try session.places.verify()
    }

    /// Checks that the directory is still the one in which the pass has worked, and brings all files and names to the disk as `durability`
    /// says.
    ///
    /// - Throws: ``SyncError/Code/targetVanished`` if the directory was moved or removed, or its disk unmounted; `StoreError` if the disk
    ///   fails: the journal then vouches for no file that was not flushed, and the next pass compares those files by digest.
    @concurrent
    public func syncWillEnd() async throws {
        let session = try session()
        try session.places.verify()
        try await session.settle(isComplete: true)
    }

    /// The session of the pass that calls.
    ///
    /// A plan has none: the pass beside which it may be made must not take what the plan sees for what it has seen itself.
    private var callingSession: TargetSession? { DryRun.isOn ? nil : state.withLock { $0.session } }

    private func session() throws -> TargetSession {
        guard let session = state.withLock({ $0.session }) else {
            throw SyncError(.targetLocked, "working in \(place.path): no pass has begun; a synchronizer calls syncWillBegin() first")
        }
        return session
    }
}

/// What becomes of files in a target's directory that no sync has put there and the list does not have.
public enum ForeignFiles: Hashable, Sendable {
    /// They are left alone.
    case keep
    /// They are removed, from the second complete pass on: as long as there is no journal to rely on, nothing is.
    case remove
}
