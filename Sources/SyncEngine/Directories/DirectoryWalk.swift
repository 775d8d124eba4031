internal import StoreCore
internal import StorePlatform

/// Visits a directory and all directories below it with a bounded number of open files at any depth.
///
/// Each directory is opened through its parent, and no symbolic link is followed. A directory that was closed is reopened by the same steps
/// from an open ancestor.
struct DirectoryWalk {
    /// The number of directories that stay open on the way down; deeper walks reopen the others on return.
    static let mostOpen = 32

    private struct Level {
        var handle: DirectoryHandle?
        var name: String
        /// The directory's path with a trailing slash; empty for the root.
        var prefix: String
        /// The names of its subdirectories that are not visited yet.
        var inner: [String]
    }

    private var levels: [Level] = []

    /// Visits all directories, each before the subdirectories that `enter` returns for its path, which ends with a slash.
    ///
    /// The path of the root is empty. `refuse` receives a directory that cannot be opened, and throws to end the walk. `leave` receives a
    /// directory and the name of a subdirectory after everything below that was visited.
    static func visit(
        _ root: DirectoryHandle, enter: (DirectoryHandle, _ prefix: String) throws -> [String],
        refuse: (_ path: String, any Error) throws -> Void = { throw $1 },
        leave: ((DirectoryHandle, _ name: String) throws -> Void)? = nil
    ) throws {
        var walk = DirectoryWalk()
        walk.levels.append(Level(handle: root, name: "", prefix: "", inner: try enter(root, "")))
        while let last = walk.levels.indices.last {
            guard let name = walk.levels[last].inner.popLast() else {
                let done = walk.levels.removeLast()
                if let leave, last > 0, let parent = try walk.openLast() { try leave(parent, done.name) }
                continue
            }
            try Task.checkCancellation()
            let path = walk.levels[last].prefix + name
            do {
                // Skips a directory that was removed or replaced during the walk.
                guard let next = try walk.openLast()?.existingDirectory(name) else { continue }
                let prefix = path + "/"
                walk.levels.append(Level(handle: next, name: name, prefix: prefix, inner: try enter(next, prefix)))
                if last >= mostOpen { walk.levels[last].handle = nil }
            } catch {
                try refuse(path, error)
            }
        }
    }

    /// Returns the innermost directory, reopened if necessary; `nil` if it no longer exists.
    private mutating func openLast() throws -> DirectoryHandle? {
        guard let last = levels.indices.last else { return nil }
        if let handle = levels[last].handle { return handle }
        guard let open = levels.lastIndex(where: { $0.handle != nil }) else { return nil }
        levels[last].handle = try levels[open].handle?.existingDirectory(at: levels[(open + 1)...].map(\.name))
        return levels[last].handle
    }
}

extension DirectoryHandle {
    /// Opens a subdirectory; `nil` if none has this name.
    func existingDirectory(_ name: String) throws(StoreError) -> DirectoryHandle? {
        do throws(StoreError) {
            return try directory(name)
        } catch  where error.fileSystemErrno == ENOTDIR {
            return nil
        }
    }

    /// Opens the directory to which names lead from here; `nil` if none has one of these names.
    func existingDirectory(at names: some Sequence<String>) throws(StoreError) -> DirectoryHandle? {
        var current = self
        for name in names {
            guard let next = try current.existingDirectory(name) else { return nil }
            current = next
        }
        return current
    }

    /// Removes the directory's content; symbolic links are removed, not followed.
    func removeEverything() throws {
        try DirectoryWalk.visit(self) { directory, _ in
            var (inner, files): ([String], [String]) = ([], [])
            var listing = try directory.list()
            while let entry = try listing.next() {
                let isDirectory = try (entry.kind == .unknown ? directory.status(of: entry.name)?.kind : entry.kind) == .directory
                if isDirectory { inner.append(entry.name) } else { files.append(entry.name) }
            }
            for name in files { try directory.remove(name) }
            return inner
        } leave: { parent, name in
            try parent.removeDirectory(name)
        }
    }
}
