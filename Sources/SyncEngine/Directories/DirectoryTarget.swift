#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

public import StoreCore
internal import StorePlatform

/// A directory that a sync makes equal to a remote list of files.
///
/// ```swift
/// let target = DirectoryTarget(directory: url, transfer: HTTPTransfer()) {
///     ListedSource(try await api.files())
/// }
/// let report = try await OneWaySynchronizer(processor: target).sync()
/// ```
///
/// Each file is downloaded into the target's own directory `.storehouse` and checked by size and digest. It is then renamed to its final
/// name in one step. A reader finds the complete old file or the complete new file, even after a crash. A journal records each installed
/// file. Interrupted downloads are resumed. One process at a time can synchronize a directory. Paths that would lead out of the directory
/// are refused, and symbolic links are never followed.
///
/// A *foreign file* is a file that no sync has installed. A pass keeps it unless ``foreignFiles`` says otherwise. If the list contains its
/// name, the file counts as edited and ``SyncOptions/localEdits`` decides. An edit that keeps a file's size, modification time and inode
/// goes unnoticed.
///
/// The calls of a pass throw `StoreError` if the disk fails, and ``SyncError/Code/targetVanished`` if the directory was moved, removed or
/// unmounted.
///
/// <doc:MirrorsOfFiles> explains the list, the guarantees and existing files.
public final class DirectoryTarget<Source: SourceList, Transfer: FileTransfer<Source.Item>>: SyncProcessor where Source.Item: FileItem {
    /// A file of the remote list; its key is its path in the directory.
    public typealias Item = Source.Item

    /// The directory that a pass makes equal to the list.
    public let directory: URL
    /// The failures that installed files survive.
    ///
    /// With `.power`, the bytes of each file are flushed before the file gets its name, so a power loss leaves no torn file.
    /// Files of 1 MiB or more are flushed one by one. Smaller files share a flush of the file system while other transfers continue. The
    /// names are flushed later, at the latest when the pass ends. Until then, a power loss may restore the complete old file. With
    /// `.crash`, nothing is flushed explicitly.
    public let durability: Durability
    /// The treatment of files that no sync has installed; kept by default.
    public let foreignFiles: ForeignFiles
    /// The permissions of the files and directories that a pass creates.
    public let modes: FileModes
    /// The parts of a mirror that are off by default: a filter, a backup, a reserve of space, and a check of all contents.
    public let layers: MirrorLayers

    private let transfer: Transfer
    private let makeList: @Sendable () async throws -> Source
    /// The name variants that the disk treats as equal; `nil` means that a pass detects them.
    private let folding: NameFolding?
    let probe: (@Sendable (TargetStep) throws -> Void)?
    private let state = Lock(State())

    private struct State: Sendable {
        var session: TargetSession?
        /// The marks of passes that failed to begin and have not ended yet.
        var failedBegins: [Set<PassMark>] = []
        /// The unreadable paths of the pass.
        var unreadable: [PathKey: any Error] = [:]
    }

    /// Files and directories that the calling pass or plan had no permission to read. A plan beside a pass keeps its own.
    private var unreadable: [PathKey: any Error] {
        get {
            guard let plan = DryRun.current else { return state.withLock { $0.unreadable } }
            return plan.kept.withLock { $0[ObjectIdentifier(self)] } as? [PathKey: any Error] ?? [:]
        }
        set {
            guard let plan = DryRun.current else { return state.withLock { $0.unreadable = newValue } }
            plan.kept.withLock { $0[ObjectIdentifier(self)] = newValue }
        }
    }

    var place: Directory { Directory(path: directory.path(percentEncoded: false)) }

    /// Creates a target without touching the directory; a pass creates a missing directory when it begins.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - transfer: Downloads the bytes of each file.
    ///   - durability: The failures that installed files survive.
    ///   - foreignFiles: The treatment of foreign files.
    ///   - modes: The permissions of the files and directories that a pass creates; by default, the umask decides.
    ///   - layers: The filter, the backup, the reserve of space and the check of contents; all of them are off by default.
    ///   - list: Returns the remote list.
    public convenience init(
        directory: URL, transfer: Transfer, durability: Durability = .power, foreignFiles: ForeignFiles = .keep,
        modes: FileModes = FileModes(), layers: MirrorLayers = MirrorLayers(), list: @escaping @Sendable () async throws -> Source
    ) {
        self.init(
            directory: directory, transfer: transfer, durability: durability, foreignFiles: foreignFiles, modes: modes, layers: layers,
            folding: nil, list: list)
    }

    init(
        directory: URL, transfer: Transfer, durability: Durability, foreignFiles: ForeignFiles, modes: FileModes = FileModes(),
        layers: MirrorLayers = MirrorLayers(), folding: NameFolding?, probe: (@Sendable (TargetStep) throws -> Void)? = nil,
        list: @escaping @Sendable () async throws -> Source
    ) {
        self.directory = directory
        self.transfer = transfer
        self.durability = durability
        self.foreignFiles = foreignFiles
        self.modes = modes
        self.layers = layers
        self.folding = folding
        self.probe = probe
        makeList = list
    }

    // MARK: The pass

    /// Locks the directory for this pass and reads the journal.
    ///
    /// - Throws: ``SyncError/Code/targetLocked`` if another synchronizer has locked the directory; `StoreError` if the disk fails.
    @concurrent
    public func syncWillBegin() async throws {
        do {
            let session = try TargetSession(
                place, durability: durability, modes: modes, metadata: layers.metadata, folding: folding, backup: layers.backup,
                probe: probe)
            state.withLock { $0.session = session }
        } catch {
            state.withLock { $0.failedBegins.append(PassMark.all) }
            throw error
        }
    }

    /// Ends the pass, and unlocks the directory if this pass holds the lock.
    @concurrent
    public func syncDidEnd(_ report: SyncReport) async {
        let session = state.withLock { state -> TargetSession? in
            // The session may belong to another synchronizer's pass that shares this target.
            if let failed = state.failedBegins.firstIndex(of: PassMark.all) {
                state.failedBegins.remove(at: failed)
                return nil
            }
            return state.session.take()
        }
        // A complete pass was already flushed by `syncWillEnd()`, which reports failures. After any other pass the caller already has an
        // error, and the journal relies on no unflushed file. A journal that was not compacted remains valid.
        try? await session?.end(isComplete: report.isComplete)
    }

    /// Returns a new list from the closure that the target was created with.
    public func sourceList() async throws -> Source { try await makeList() }

    /// The files in the directory, with the versions that the journal records.
    ///
    /// Reads the status of each file, but the content only if the stamp differs from the journal.
    ///
    /// - Throws: `StoreError` if the disk fails; ``SyncError/Code/targetVanished`` if the directory is removed during the scan.
    @concurrent
    public func localInventory() async throws -> LocalInventory<Item> {
        let session = callingSession
        guard let root = try session?.places.root ?? DirectoryHandle(opening: place) else { return LocalInventory([]) }
        let journal = try session?.journal ?? journal(in: root)
        var scan = try DirectoryScan(
            of: root, journal: journal, folding: try knownFolding(), keepsForeign: foreignFiles == .keep,
            acceptsLoss: layers.verification.readsAll, probe: probe)
        let denied = try await verifyContents(of: &scan, journal, in: root)
        unreadable = scan.unreadable
        // With a session, the journal keeps changing, and a second reference would make each change copy it.
        let shown = session == nil ? journal : nil
        // An unmounted directory looks empty, but its items are not missing.
        try session?.places.verify()
        let excludes = excludes
        try session?.saw(scan, excludes: excludes)
        let isRebuilding = journal.unfinished == .rebuilding
        // While a lost journal is rebuilt, a file without a record may come from an earlier sync. It is compared but never removed. In a
        // first run it is the user's: it counts as edited, and is not removed either.
        let mayRemove = foreignFiles == .remove && journal.unfinished == nil
        var inventory = LocalInventory<Item>(order: .unsorted) { [scan] in
            var rows = scan.unchanged
            var rest: [DirectoryScan.Entry]? = scan.entries
            return {
                // Pages through the journal, so that files matching their records need no list in memory.
                let page = session?.unchanged(&rows) ?? shown?.unchanged(&rows) ?? []
                if !page.isEmpty {
                    return page.map { LocalEntry($0.path, version: $0.version, byteCount: Int64($0.size)) }
                }
                return rest.take()?.map { entry in
                    let isForeign = entry.version == nil && !entry.isTorn
                    let isReadable = isForeign && !entry.isUnreadable
                    var local = LocalEntry<Item>(
                        entry.path, version: entry.version, byteCount: Int64(entry.size),
                        isEdited: entry.isEdited && !(isReadable && isRebuilding), isForeign: isForeign)
                    local.isRemovable = isReadable && mayRemove
                    return local
                }
            }
        }
        inventory.skipped = (scan.unreadable.sorted { $0.key < $1.key } + denied).map { path, error in
            SyncRefusal(path, because: SyncError.unreadable(path, underlyingError: error))
        }
        inventory.skipped += scan.unremovable.sorted { $0.path < $1.path }.map {
            SyncRefusal($0.path, because: SyncError.unremovable($0.path, $0.reason))
        }
        // Patterns of directories end with a slash.
        if let excludes { inventory.skipped.removeAll { excludes($0.key) || excludes(PathKey($0.key.path + "/")) } }
        return inventory
    }

    func journal(in root: DirectoryHandle) throws -> TargetJournal {
        guard let own = try root.directory(RelativePath.reserved), let file = try OpenFile(reading: TargetSession.journalName, in: own)
        else { return TargetJournal(.beginning) }
        return try TargetJournal.read(file) ?? TargetJournal(.rebuilding)
    }

    /// Refuses items that are malformed, and items with an unsafe or clashing path.
    public func refusals(among items: [Item]) async throws -> [SyncRefusal<PathKey>] {
        var refused: [SyncRefusal<PathKey>] = []
        var clashes = NameClashes(try knownFolding())
        let keys = Set(items.lazy.map(\.key))
        let unreadable = unreadable
        for item in items {
            do {
                let path = try RelativePath(item.key)
                try Self.check(item)
                if let (place, cause) = unreadable.cause(of: item.key) { throw SyncError.unreadable(place, underlyingError: cause) }
                if let other = clashes.insert(path) { throw SyncError.clash(item.key, with: other) }
                if let file = path.ancestors.first(where: { keys.contains($0) }) {
                    throw SyncError.taken(
                        item.key, by: "the list has a file “\(file.shownSafely)”, but this path needs a directory of that name")
                }
            } catch {
                refused.append(SyncRefusal(item.key, because: error))
            }
        }
        return refused
    }

    /// Detects the folding of the disk; without a pass nothing is written, so the result is known only after the first pass.
    func knownFolding() throws -> NameFolding {
        if let folding { return folding }
        if let session = callingSession { return session.folding }
        return try DirectoryHandle(opening: place)?.directory(RelativePath.reserved).map { try NameFolding.observe($0) } ?? []
    }

    private static func check(_ item: Item) throws {
        if let size = item.byteCount, size < 0 { throw SyncError.ofItem(.invalidItem, item.key, "its size in the list is \(size)") }
        if item.sha256 != nil, digest(of: item) == nil {
            throw SyncError.ofItem(.invalidItem, item.key, "its digest in the list is not 64 hexadecimal digits")
        }
    }

    private static func digest(of item: Item) -> SHA256.Digest? {
        item.sha256.flatMap { SHA256.Digest(hex: Array($0.lowercased().utf8)) }
    }

    /// Returns whether the content differs; a file that already has the listed digest is adopted as it is.
    @concurrent
    public func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool {
        let wanted = item.byteCount.map { $0 == local.byteCount } ?? true ? Self.digest(of: item) : nil
        guard wanted != nil || local.isForeign, let path = try? RelativePath(existing: local.key)  // `refusals(among:)` reports the reason.
        else { return true }
        if unreadable.cause(of: local.key) != nil { return true }
        let session = callingSession
        guard let root = try session?.places.root ?? DirectoryHandle(opening: place) else { return true }
        do {
            // A link or something else may have taken a name since the inventory. The check before the change reports it.
            guard let directory = try root.existingDirectory(at: path.parts.dropLast()), let name = path.parts.last,
                let status = try directory.status(of: name), status.kind == .regular
            else { return true }
            try probe?(.reads(local.key.path))
            // Reads only files that may have the wanted content. A foreign file without read permission is skipped.
            guard let wanted else {
                _ = try OpenFile(reading: name, in: directory)
                return true
            }
            guard try DirectoryScan.digest(of: name, in: directory) == wanted else { return true }
            try session?.adopt(item.key, version: item.version, digest: wanted, stamp: FileStamp(status))
            return false
        } catch  where error.isLoss {
            // The download replaces the part that the disk has lost.
            return true
        } catch  where error.isDenial {
            // The error concerns one item, and `refusals(among:)` reports it; the others continue.
            // In place, because many files may be unreadable.
            if DryRun.current == nil { state.withLock { $0.unreadable[local.key] = error } } else { unreadable[local.key] = error }
            return true
        }
    }

    /// Discards parts of files that are no longer wanted, and notes which names the removals will free.
    @concurrent
    public func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download] {
        if plan.isDryRun { return plan.downloads }
        let session = try session()
        try session.places.verify()
        session.willChange(
            removing: Set((plan.removals + plan.moves.compactMap(\.removal)).lazy.map(\.local.key)),
            staging: Set(plan.updates.lazy.map(\.item).filter { $0.sha256 == nil && $0.byteCount == nil }.map(\.key)),
            installing: plan.downloads.count + plan.moves.count)
        // Here, where no worker has to wait for it.
        if durability == .power, !plan.downloads.isEmpty { _ = try session.places.flushesFileSystem() }
        try session.forgetVanished()
        try session.prune(keeping: plan.downloads.lazy.map(\.item.key))
        return plan.downloads
    }

    /// Returns whether a file is still as the plan recorded it.
    @concurrent
    public func isUnchanged(_ key: PathKey, since entry: LocalEntry<Item>?) async throws -> Bool {
        let session = try session()
        let path = try RelativePath(existing: key)
        return try session.places.whileThere(at: path) { try session.isUnchanged(path, since: entry) }
    }

    /// Downloads a file, or its missing bytes, and installs it.
    ///
    /// - Throws: Any error of the transfer; ``SyncError/Code/wrongContent`` if size or digest differ from the list.
    @concurrent
    public func downloadContent(of item: Item) async throws {
        let session = try session()
        let path = try RelativePath(item.key)
        let digest = Self.digest(of: item)
        try session.places.verifyAccess(to: path)
        do {
            let part = try FilePart(of: item, in: session.places)
            let whole: FilePart.Whole
            do {
                if try !part.isWholeAlready(digest: digest) {
                    try await transfer.transfer(item, into: part)
                    try Task.checkCancellation()
                }
                whole = try part.finish(digest: digest)
            } catch  where error.isLoss {
                // A part that the disk cannot read would fail every attempt. If discarding fails too, the first error is the one to report.
                try? part.discard()
                throw error
            }
            if session.isStaged(item.key) {
                try session.stage(part.stage(whole), of: item, as: path)
                try session.places.verify()
                session.hasInstalled()
                return
            }
            do {
                try await session.commit(whole, as: path, version: item.version)
            } catch  where session.flushes.hasFailed {
                // After a failed flush the content on disk is unknown, even if it reads back intact from memory. If discarding fails too,
                // the flush's error is the one to report.
                try? part.discard()
                throw error
            }
            try part.cleanUp()
            try session.places.verify()
            // Counts last: if an earlier step fails, the download is repeated and must not count twice.
            session.hasInstalled()
        } catch {
            throw session.places.reason(for: error, at: path)
        }
    }

    /// Returns the downloads whose digest and size a file of another path has, as far as the journal records it.
    ///
    /// - Throws: `StoreError` if the disk fails.
    @concurrent
    public func moves(in plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Move] {
        guard !plan.removals.isEmpty || !plan.updates.isEmpty else { return [] }
        let session = callingSession
        guard let root = try session?.places.root ?? DirectoryHandle(opening: place) else { return [] }
        return try (session?.journal ?? journal(in: root)).moves(in: plan, digest: Self.digest)
    }

    /// Gives a file a second name in the target's own directory, unless the file has changed or the disk has no hard links.
    @concurrent
    public func holdContent(of move: SyncPlan<Item>.Move) async throws -> Bool {
        try session().hold(move.from.key, for: move.item.key)
    }

    /// Gives a held file its new name.
    @concurrent
    public func move(_ move: SyncPlan<Item>.Move) async throws {
        let session = try session()
        let path = try RelativePath(move.item.key)
        do {
            try await session.installHeld(path, version: move.item.version)
            try session.places.verify()
            session.hasInstalled()
        } catch {
            throw session.places.reason(for: error, at: path)
        }
    }

    /// Installs the staged updates, unless most of them would receive the same content.
    ///
    /// - Returns: The files that were not replaced. If more than half of at least 20 changed files share one digest, all of them are
    ///   returned with ``SyncError/Code/sharedContent``. The digest of empty content does not count, nor does a digest that those files
    ///   shared before.
    @concurrent
    public func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<PathKey>] {
        try await session().installStaged(overriding: overrides)
    }

    /// Removes files, and the directories that this leaves empty.
    ///
    /// - Throws: ``SyncError/Code/changedLocally`` for a file that has changed since the plan.
    @concurrent
    public func remove(_ keys: Set<PathKey>) async throws {
        let session = try session()
        try session.places.verify()
        try await session.flushMoves()
        for key in keys.sorted() {
            let path = try RelativePath(existing: key)
            try session.places.whileThere(at: path) { try session.remove(path) }
        }
        try session.places.verify()
    }

    /// Checks that the pass still works in the same directory, and flushes all files and names as `durability` requires.
    ///
    /// - Throws: ``SyncError/Code/targetVanished`` if the directory was moved, removed or unmounted; `StoreError` if the disk fails. After
    ///   a failed flush, the journal relies on no unflushed file, and the next pass compares those files by digest.
    @concurrent
    public func syncWillEnd() async throws {
        let session = try session()
        try session.places.verify()
        try await session.settle(isComplete: true)
    }

    /// The session of the calling pass; `nil` for a plan.
    ///
    /// A plan may run beside a pass, and the pass must not use the plan's observations as its own.
    var callingSession: TargetSession? { DryRun.current == nil ? state.withLock { $0.session } : nil }

    func session() throws -> TargetSession {
        guard let session = state.withLock({ $0.session }) else {
            throw SyncError(
                .targetLocked, "cannot work in \(place.path): no pass has begun; call syncWillBegin() first, as a synchronizer does")
        }
        return session
    }
}

/// The treatment of files that no sync has installed and that the list does not contain.
public enum ForeignFiles: Hashable, Sendable {
    /// Foreign files are kept and counted in the report.
    case keep
    /// Foreign files are removed, beginning with the second complete pass. In a first run and without a valid journal, none is removed.
    case remove
}

/// A step of a pass in a directory, reported to a test just before it happens; a test that throws makes the step fail.
enum TargetStep: Hashable, Sendable {
    /// A directory below the root is listed, or an existing file is read for comparison.
    case lists(String), reads(String)
    /// Bytes are written to the part of a file, or a file is flushed on its own.
    case writes(String), synchronizes(String)
    /// A flush of all writes begins, or has ended.
    case flushBegins, flushEnds
    /// A complete download is renamed to its final name, or was renamed.
    case renames(String), renamed(String)
    /// A file that the list no longer has is removed.
    case removes(String)
    /// A file of another path gets a second name, or the backup of a file gets its name.
    case holds(String), backsUp(String)
    /// The time or the permissions of a file change, or a link is made or removed.
    case describes(String)
}
