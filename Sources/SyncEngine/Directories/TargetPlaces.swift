internal import StoreCore

/// The open directories of a target: the root, the target's own directory in it, and there the one of all parts.
final class TargetPlaces: Sendable {
    let root: DirectoryHandle
    let own: DirectoryHandle
    let parts: DirectoryHandle
    let durability: Durability
    /// The permissions of directories that are made; `nil` leaves them to the umask.
    private let directoryMode: UInt16?
    /// The permissions of each file that gets a name.
    let fileMode: UInt16
    private let directory: Directory
    /// Told of each step just before it happens; for tests.
    let probe: (@Sendable (TargetStep) throws -> Void)?
    /// Directories below the root in which names were made, changed or removed since they were last brought to the disk.
    private let touched = Lock<Set<PathKey>>([])
    /// Directories below the root that were made.
    private let made = Lock<Set<PathKey>>([])

    static let partsName = "parts"

    /// Opens the directories and makes those that are missing.
    init(
        _ directory: Directory, durability: Durability, modes: FileModes = FileModes(),
        probe: (@Sendable (TargetStep) throws -> Void)? = nil
    ) throws {
        let isNew = try DirectoryHandle(opening: directory) == nil
        if isNew { try directory.create(durability: durability, mode: 0o777) }
        guard let root = try DirectoryHandle(opening: directory) else { throw SyncError.vanished(directory.path) }
        if isNew, let mode = modes.directories { try root.setPermissions(mode) }
        own = try root.makeDirectory(RelativePath.reserved, durability: durability, mode: modes.directories)
        parts = try own.makeDirectory(Self.partsName, durability: durability, mode: modes.directories)
        // No call reads the umask without setting it for the whole process, but a new file shows it.
        fileMode = try modes.files ?? own.modeOfNewFiles()
        self.root = root
        self.directory = directory
        directoryMode = modes.directories
        self.durability = durability
        self.probe = probe
    }

    /// Checks that the target's path still leads to the directory that was opened, and that the target's own directories are in it.
    ///
    /// - Throws: ``SyncError/Code/targetVanished`` if the directory was removed or moved, or its disk unmounted.
    func verify(after error: (any Error)? = nil) throws {
        // The own directories go first if a program removes everything, and without them each item would fail by itself.
        guard root.isReached(by: directory), !own.isRemoved, !parts.isRemoved else {
            throw SyncError.vanished(directory.path, underlyingError: error)
        }
    }

    /// Does something in the target; a failure that comes of the target being gone is reported as that one.
    func whileThere<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            try verify(after: error)
            throw error
        }
    }

    /// Does something in the directory of a path.
    ///
    /// - Parameters:
    ///   - path: The path; each of its directories is opened by itself, so that no link is followed.
    ///   - isMaking: Whether missing directories are made.
    ///   - body: Gets the directory.
    /// - Returns: What `body` returned; `nil` where a directory is missing.
    /// - Throws: ``SyncError/Code/nameTaken`` where something else is in the place of a directory.
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
            guard error.fileSystemErrno == notDirectory else { throw error }
            let kind = try current.status(of: part)?.kind ?? .other
            throw SyncError.taken(path.key, by: "“\(part.shownSafely)” must be a directory, but \(kind.words)")
        }
    }

    /// Remembers that a name is about to change in the directory of a path, or in one above it.
    ///
    /// A name lasts from the next flush on, at the latest from the end of the pass: until then, a loss of power may leave the old name or the
    /// new one, each of a whole file. To bring each of them to the disk by itself would cost more than the file.
    func touch(_ path: RelativePath, depth: Int? = nil) {
        guard durability == .power else { return }
        touched.withLock { _ = $0.insert(path.directory(depth ?? path.parts.count - 1)) }
    }

    /// Brings all names that have changed to the disk and, where the system can, all files.
    func synchronize() throws {
        // What changes from here on is brought there by the next call.
        let paths = touched.withLock { touched in
            defer { touched = [] }
            return touched
        }
        do {
            if try root.synchronizeFileSystem() { return }
            for path in paths {
                // A directory that was removed is a name that has changed in the one above.
                try inDirectory(of: RelativePath(trusting: path.parts + [""]), isMaking: false) { directory, _ in
                    try directory.synchronize()
                }
            }
        } catch {
            touched.withLock { $0.formUnion(paths) }
            throw error
        }
    }

    /// Removes the directory in which a transfer has worked, with everything in it.
    func removeWorkingDirectory(_ name: String) throws {
        guard let directory = try parts.directory(name) else { return }
        try directory.removeEverything()
        try parts.removeDirectory(name)
    }

    /// Removes the directories that were made for files which then did not get their names.
    ///
    /// - Precondition: Nobody is about to put a file into one of them.
    func removeEmptyMadeDirectories() throws {
        // Those within come behind the one they are in.
        for directory in made.withLock({ $0 }).sorted().reversed() {
            let parts = directory.parts
            try removeEmptyDirectories(above: RelativePath(trusting: parts + [""]), upTo: parts.count)
        }
    }

    /// Removes the directories above a file that was removed, for as long as they are empty.
    ///
    /// - Parameter depth: How deep the last of them is that may go.
    func removeEmptyDirectories(above path: RelativePath, upTo depth: Int = 1) throws {
        var names = path.parts.dropLast()
        // Few directories are open at a time, and a deep path is not walked once for each of its levels.
        while names.count >= depth {
            let first = max(names.count - DirectoryWalk.mostOpen, depth - 1)
            var parent: DirectoryHandle? = root
            for name in names.prefix(first) { parent = try parent?.existingDirectory(name) }
            var parents: [DirectoryHandle] = []
            for name in names.dropFirst(first) {
                guard let next = parent else { break }
                parents.append(next)
                parent = try next.existingDirectory(name)
            }
            for (offset, parent) in parents.enumerated().reversed() {
                let directory = first + offset
                touch(path, depth: directory)
                // One that is missing already keeps none above it.
                let wasRemoved = try parent.removeDirectory(names[directory])
                guard try wasRemoved || parent.status(of: names[directory]) == nil else { return }
            }
            names = names.prefix(first)
        }
    }
}

extension DirectoryHandle {
    /// The permissions that the umask leaves to a new file here.
    fileprivate func modeOfNewFiles() throws(StoreError) -> UInt16 {
        let name = "mode"
        // One that a killed process has left was made under another umask.
        try remove(name)
        let mode = try WritableFile(name, in: self).status().permissions
        try remove(name)
        return mode & 0o777
    }
}
