internal import StoreCore
internal import StorePlatform

/// The open directories of a target: the root, the target's own directory, and the directory of parts in it.
final class TargetPlaces: Sendable {
    let root: DirectoryHandle
    let own: DirectoryHandle
    let parts: DirectoryHandle
    let durability: Durability
    /// The result of `flushesFileSystem()`; `nil` before its first call.
    private let knownToFlush = Lock<Bool?>(nil)
    /// The permissions of new directories; `nil` applies the umask.
    private let directoryMode: UInt16?
    /// The permissions of installed files; without a mode of its own, a target uses those of a new file under the umask.
    let fileMode: UInt16
    private let directory: Directory
    let metadata: MetadataOptions
    /// Directories that the list names or earlier passes have made; they stay even if they are empty.
    let named = Lock<Set<PathKey>>([])
    /// Receives each step just before it happens; for tests.
    let probe: (@Sendable (TargetStep) throws -> Void)?
    /// Directories below the root with entries that have changed since the last flush.
    private let touched = Lock<Set<PathKey>>([])
    /// The denials of access to directories below the root, by the directory of the item.
    private let denials = Lock<[PathKey: SyncError]>([:])
    /// Directories below the root that this pass created.
    private let made = Lock<Set<PathKey>>([])

    /// Whether the directory of parts may contain validators. Until a pass has looked, it may.
    let mayHaveMemories = Lock(true)

    static let partsName = "parts"

    init(
        _ directory: Directory, durability: Durability, modes: FileModes = FileModes(), metadata: MetadataOptions = [],
        probe: (@Sendable (TargetStep) throws -> Void)? = nil
    ) throws {
        let isNew = try DirectoryHandle(opening: directory) == nil
        if isNew { try directory.create(durability: durability, mode: 0o777) }
        guard let root = try DirectoryHandle(opening: directory) else { throw SyncError.vanished(directory.path) }
        if isNew, let mode = modes.directories { try root.setPermissions(mode) }
        own = try root.makeDirectory(RelativePath.reserved, durability: durability, mode: modes.directories)
        // Another user could exchange everything in a directory that belongs to that user.
        try own.verifyOwner(beside: own)
        parts = try own.makeDirectory(Self.partsName, durability: durability, mode: modes.directories)
        try parts.verifyOwner(beside: own)
        // The umask can only be read by setting it for the whole process, but the mode of a new file shows it.
        fileMode = try modes.files ?? own.newFile().permissions & 0o777
        self.root = root
        self.directory = directory
        self.metadata = metadata
        directoryMode = modes.directories
        self.durability = durability
        self.probe = probe
    }

    /// Looks whether an earlier pass left anything in the directory of parts; under the lock, no other pass stores validators.
    func findLeftovers() throws {
        var leftovers = try parts.list()
        let isEmpty = try leftovers.next() == nil
        mayHaveMemories.withLock { $0 = !isEmpty }
    }

    /// Throws unless the target's path still leads to the opened directory, and the target's own directories still exist.
    ///
    /// After the error of an operation for a file, throws ``SyncError/Code/targetDenied`` if the process may not change names in the
    /// directory, or in that of the file.
    func verify(after error: (any Error)? = nil, at path: RelativePath? = nil) throws {
        // A program that removes everything may remove these first. Without this check, each item would then fail on its own.
        guard root.isReached(by: directory), !own.isRemoved, !parts.isRemoved else {
            throw SyncError.vanished(directory.path, underlyingError: error)
        }
        guard let error, error.isDenial, let path, let first = path.parts.first else { return }
        // Without this check, each file of the root would fail on its own, too.
        if !root.isWritable, try path.parts.count == 1 || root.status(of: first) == nil {
            throw SyncError.denied(directory.path, underlyingError: error)
        }
        // Below the root, all files of such a directory share one failure, and files of other directories do not fail.
        guard let place = deniedDirectory(of: path) else { return }
        let denial = SyncError.denied(place, underlyingError: error)
        denials.withLock { $0[path.directory(path.parts.count - 1)] = denial }
        throw denial
    }

    /// Throws if an earlier operation has shown that the process may not change names in the directory of a path.
    func verifyAccess(to path: RelativePath) throws {
        if let denial = denials.withLock({ $0.isEmpty ? nil : $0[path.directory(path.parts.count - 1)] }) { throw denial }
    }

    /// Returns the innermost existing directory of a path below the root if the process may not change names in it; otherwise `nil`.
    private func deniedDirectory(of path: RelativePath) -> PathKey? {
        var (current, depth) = (root, 0)
        for part in path.parts.dropLast() {
            do {
                guard let next = try current.directory(part) else { break }
                (current, depth) = (next, depth + 1)
            } catch {
                return error.isDenial ? path.directory(depth + 1) : nil
            }
        }
        return depth > 0 && !current.isWritable ? path.directory(depth) : nil
    }

    /// Returns the error that `verify(after:at:)` throws after the error of an operation, or else that error.
    ///
    /// If the directory is missing, any error may occur; the missing directory is the one to report.
    func reason(for error: any Error, at path: RelativePath?) -> any Error {
        if (error as? SyncError)?.code == .targetVanished { return error }
        do { try verify(after: error, at: path) } catch { return error }
        return error
    }

    /// Performs an operation in the target; if it fails because the target vanished, throws that error.
    func whileThere<Result>(at path: RelativePath, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch { throw reason(for: error, at: path) }
    }

    /// Performs an operation in the directory of a path, with the name of the file; returns `nil` if a directory is missing.
    ///
    /// Opens each directory separately, so that no symbolic link is followed. Throws ``SyncError/Code/nameTaken`` if something
    /// other than a directory has the name of one.
    @discardableResult
    func inDirectory<Result>(
        of path: RelativePath, isMaking: Bool, _ body: (DirectoryHandle, _ name: String) throws -> Result
    ) throws -> Result? {
        guard let name = path.parts.last else { return nil }
        var current = root
        for (depth, part) in path.parts.dropLast().enumerated() {
            guard let next = try step(from: current, to: part, at: depth, isMaking: isMaking, path) else { return nil }
            current = next
        }
        return try body(current, name)
    }

    private func step(
        from current: DirectoryHandle, to part: String, at depth: Int, isMaking: Bool, _ path: RelativePath
    ) throws -> DirectoryHandle? {
        do {
            if let next = try current.directory(part) { return next }
            guard isMaking else { return nil }
            touch(path, depth: depth)
            made.withLock { _ = $0.insert(path.directory(depth + 1)) }
            return try current.makeDirectory(part, mode: directoryMode)
        } catch {
            guard error.fileSystemErrno == ENOTDIR else { throw error }
            let kind = try current.status(of: part)?.kind ?? .other
            throw SyncError.taken(path.key, by: "“\(part.shownSafely)” must be a directory, but \(kind.words)")
        }
    }

    /// Records that a name is about to change in the directory of a path, or in a directory above.
    ///
    /// The next flush makes the name durable, at the latest the flush at the end of the pass. Until then, a power loss may leave the old or
    /// the new name, each with a complete file. Flushing each name separately would cost more than the file.
    func touch(_ path: RelativePath, depth: Int? = nil) {
        guard durability == .power else { return }
        touched.withLock { _ = $0.insert(path.directory(depth ?? path.parts.count - 1)) }
    }

    /// Whether a name has changed since the last flush.
    var hasTouched: Bool { touched.withLock { !$0.isEmpty } }

    /// Returns whether one call flushes all writes of a pass, so that small files need no flush of their own.
    ///
    /// The first call may flush the file system, so a pass without downloads makes none.
    func flushesFileSystem() throws -> Bool {
        try knownToFlush.withLock { known throws in
            let flushes = try known ?? root.canSynchronizeFileSystem()
            known = flushes
            return flushes
        }
    }

    /// Flushes all changed names and, if the system can, all files.
    func synchronize() throws {
        // The next call flushes later changes.
        let paths = touched.withLock { exchange(&$0, with: []) }
        do {
            if try root.synchronizeFileSystem() { return }
            for path in paths {
                // The removal of a directory is a change of its parent.
                try inDirectory(of: RelativePath(trusting: path.parts + [""]), isMaking: false) { directory, _ in
                    try directory.synchronize()
                }
            }
        } catch {
            touched.withLock { $0.formUnion(paths) }
            throw error
        }
    }

    /// Removes the working directory of a transfer with its content.
    func removeWorkingDirectory(_ name: String) throws {
        guard let directory = try parts.directory(name) else { return }
        try directory.removeEverything()
        try parts.removeDirectory(name)
    }

    /// Removes empty directories that this pass created for files that were not installed.
    ///
    /// - Precondition: No file is being installed in one of them.
    func removeEmptyMadeDirectories() throws {
        // In reverse order, subdirectories come before their parents.
        for directory in made.withLock({ $0 }).sorted().reversed() {
            let parts = directory.parts
            try removeEmptyDirectories(above: RelativePath(trusting: parts + [""]), upTo: parts.count)
        }
    }

    /// Removes the directories above a removed file as long as they are empty, but none above a depth.
    func removeEmptyDirectories(above path: RelativePath, upTo depth: Int = 1) throws {
        var names = path.parts.dropLast()
        // Works in sections, so that few directories are open at a time and a deep path is not walked once per level.
        while names.count >= depth {
            let first = max(names.count - DirectoryWalk.mostOpen, depth - 1)
            var parent = try root.existingDirectory(at: names.prefix(first))
            var parents: [DirectoryHandle] = []
            for name in names.dropFirst(first) {
                guard let next = parent else { break }
                parents.append(next)
                parent = try next.existingDirectory(name)
            }
            for (offset, parent) in parents.enumerated().reversed() {
                let directory = first + offset
                if named.withLock({ !$0.isEmpty && $0.contains(path.directory(directory + 1)) }) { return }
                touch(path, depth: directory)
                // A missing directory does not keep its parent.
                let wasRemoved = try parent.removeDirectory(names[directory])
                guard try wasRemoved || parent.status(of: names[directory]) == nil else { return }
            }
            names = names.prefix(first)
        }
    }
}

extension DirectoryHandle {
    /// Returns the status of a new file here: its permissions are those that the umask leaves.
    fileprivate func newFile() throws(StoreError) -> FileStatus {
        let name = "mode"
        // A file left by a killed process may have been created under another umask.
        try remove(name)
        let status = try WritableFile(name, in: self).opened
        try remove(name)
        return status
    }

    /// Throws unless the directory belongs to the user that owns the files which this process makes in the target's own directory.
    func verifyOwner(beside own: DirectoryHandle) throws {
        let owner = try status().owner
        // Some file systems give all files another owner, such as the user of the mount.
        // A process that may not make a file here does not own the directory either.
        guard owner != FileStatus.ownUser, (try? own.newFile().owner) != owner else { return }
        throw SyncError.foreign(path, owner: owner)
    }
}
