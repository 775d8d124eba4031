internal import StoreCore

/// The open directories of a target: the root, the target's own directory in it, and there the one of all parts.
final class TargetPlaces: Sendable {
    let root: DirectoryHandle
    let own: DirectoryHandle
    let parts: DirectoryHandle
    let durability: Durability

    static let partsName = "parts"

    /// Opens the directories and makes those that are missing.
    init(_ directory: Directory, durability: Durability) throws {
        if try DirectoryHandle(opening: directory) == nil { try directory.create(durability: durability) }
        guard let root = try DirectoryHandle(opening: directory) else { throw SyncError.vanished(directory.path) }
        own = try root.makeDirectory(RelativePath.reserved, durability: durability)
        parts = try own.makeDirectory(Self.partsName, durability: durability)
        self.root = root
        self.durability = durability
    }

    /// Does something in the directory of a path.
    ///
    /// - Parameters:
    ///   - path: The path; each of its directories is opened by itself, so that no link is followed.
    ///   - isMaking: Whether missing directories are made.
    ///   - body: Gets the directory.
    /// - Returns: What `body` returned; `nil` where a directory is missing.
    /// - Throws: ``SyncError/Code/nameTaken`` where something else is in the place of a directory.
    func inDirectory<Result>(
        of path: RelativePath, isMaking: Bool, _ body: (DirectoryHandle, _ name: String) throws -> Result
    ) throws -> Result? {
        guard let name = path.parts.last else { return nil }
        var current = root
        for part in path.parts.dropLast() {
            guard let next = try step(from: current, to: part, isMaking: isMaking, path) else { return nil }
            current = next
        }
        return try body(current, name)
    }

    private func step(from current: DirectoryHandle, to part: String, isMaking: Bool, _ path: RelativePath) throws -> DirectoryHandle? {
        do {
            if isMaking { return try current.makeDirectory(part, durability: durability) }
            return try current.directory(part)
        } catch {
            if root.isRemoved { throw SyncError.vanished(root.path, underlyingError: error) }
            guard error.fileSystemErrno == notDirectory else { throw error }
            let kind = try current.status(of: part)?.kind ?? .other
            throw SyncError.taken(path.parts.joined(separator: "/"), by: "“\(part)” must be a directory, but \(kind.words)")
        }
    }

    /// Removes the directory in which a transfer has worked, with everything in it.
    func removeWorkingDirectory(_ name: String) throws {
        guard let directory = try parts.directory(name) else { return }
        try directory.removeEverything()
        try parts.removeDirectory(name)
    }

    /// Removes the directories above a file that was removed, for as long as they are empty.
    func removeEmptyDirectories(above path: RelativePath) throws {
        var parts = path.parts
        while parts.count > 1 {
            parts.removeLast()
            let wasRemoved = try inDirectory(of: RelativePath(trusting: parts), isMaking: false) { try $0.removeDirectory($1) }
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
