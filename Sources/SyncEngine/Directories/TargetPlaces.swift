internal import StoreCore

/// The open directories of a target: the root, the target's own directory in it, and there the one of all parts.
final class TargetPlaces: Sendable {
    let root: DirectoryHandle
    let own: DirectoryHandle
    let parts: DirectoryHandle
    let durability: Durability
    /// Told of each step just before it happens; for tests.
    let probe: (@Sendable (TargetStep) throws -> Void)?
    /// Directories below the root in which names were made, changed or removed since they were last brought to the disk.
    private let touched = Lock<Set<String>>([])
    /// Directories below the root that were made.
    private let made = Lock<Set<String>>([])

    static let partsName = "parts"

    /// Opens the directories and makes those that are missing.
    init(_ directory: Directory, durability: Durability, probe: (@Sendable (TargetStep) throws -> Void)? = nil) throws {
        if try DirectoryHandle(opening: directory) == nil { try directory.create(durability: durability) }
        guard let root = try DirectoryHandle(opening: directory) else { throw SyncError.vanished(directory.path) }
        own = try root.makeDirectory(RelativePath.reserved, durability: durability)
        parts = try own.makeDirectory(Self.partsName, durability: durability)
        self.root = root
        self.durability = durability
        self.probe = probe
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
            made.withLock { _ = $0.insert(path.parts.prefix(depth + 1).joined(separator: "/")) }
            return try current.makeDirectory(part)
        } catch {
            if root.isRemoved { throw SyncError.vanished(root.path, underlyingError: error) }
            guard error.fileSystemErrno == notDirectory else { throw error }
            let kind = try current.status(of: part)?.kind ?? .other
            throw SyncError.taken(path.parts.joined(separator: "/"), by: "“\(part)” must be a directory, but \(kind.words)")
        }
    }

    /// Remembers that a name is about to change in the directory of a path, or in one above it.
    ///
    /// A name lasts from the next flush on, at the latest from the end of the pass: until then, a loss of power may leave the old name or the
    /// new one, each of a whole file. To bring each of them to the disk by itself would cost more than the file.
    func touch(_ path: RelativePath, depth: Int? = nil) {
        guard durability == .power else { return }
        let directory = path.parts.prefix(depth ?? path.parts.count - 1).joined(separator: "/")
        touched.withLock { _ = $0.insert(directory) }
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
                let parts = path.split(separator: "/").map(String.init)
                // A directory that was removed is a name that has changed in the one above.
                try inDirectory(of: RelativePath(trusting: parts + [""]), isMaking: false) { directory, _ in try directory.synchronize() }
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
            let parts = directory.split(separator: "/").map(String.init)
            try removeEmptyDirectories(above: RelativePath(trusting: parts + [""]), upTo: parts.count)
        }
    }

    /// Removes the directories above a file that was removed, for as long as they are empty.
    ///
    /// - Parameter depth: How deep the last of them is that may go.
    func removeEmptyDirectories(above path: RelativePath, upTo depth: Int = 1) throws {
        var parts = path.parts
        while parts.count > depth {
            parts.removeLast()
            let directory = RelativePath(trusting: parts)
            touch(directory)
            let wasRemoved = try inDirectory(of: directory, isMaking: false) { try $0.removeDirectory($1) }
            guard wasRemoved == true else { return }
        }
    }
}

extension DirectoryHandle {
    /// Removes all that is in the directory, links themselves and not what they point to.
    func removeEverything() throws(StoreError) {
        var entries: [DirectoryListing.Entry] = []
        var listing = try list()
        while let entry = try listing.next() { entries.append(entry) }
        for entry in entries {
            if try status(of: entry.name)?.kind == .directory, let inner = try directory(entry.name) {
                try inner.removeEverything()
                try removeDirectory(entry.name)
            } else {
                try remove(entry.name)
            }
        }
    }
}
