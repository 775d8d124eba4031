package import StoreCore

/// A directory in which calls use names: a path, or an open directory.
package protocol FilePlace: Sendable {
    /// The path of the directory; of an open directory, the one at which it was opened.
    var path: String { get }
    /// The descriptor of the open directory to which references are relative.
    var base: Int32 { get }

    /// Returns a name as the system's calls use it.
    func reference(_ name: String) -> String

    /// Flushes added, changed and removed names to the disk.
    func synchronize() throws(StoreError)
}

extension FilePlace {
    package func path(of name: String) -> String { path == "/" ? "/" + name : path + "/" + name }

    /// Returns the status of the file with this name; `nil` if there is none.
    package func status(of name: String) throws(StoreError) -> FileStatus? {
        try FileStatus.of(reference(name), in: base, path: path(of: name))
    }

    /// Removes the file with this name, and returns whether it existed; for a symbolic link, removes the link.
    @discardableResult
    package func remove(_ name: String) throws(StoreError) -> Bool {
        guard unlinkat(base, reference(name), 0) != 0 else { return true }
        // A missing directory has no such file either.
        if errno == ENOENT { return false }
        throw .failedCall("removing", at: path(of: name))
    }

    /// Changes the directory's names under an advisory lock that holds between processes and between threads.
    ///
    /// The system releases the lock if the process ends. On network volumes without such locks the body runs unlocked. The call waits at
    /// most five seconds for a lock of another process. A lock that is not exclusive excludes only exclusive locks.
    func withLock<Result>(exclusively isExclusive: Bool, _ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        let descriptor = uninterrupted { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            // Without the lock, a removal could hit the file of another process's commit.
            if errno == EMFILE || errno == ENFILE { throw .failedCall("opening directory", at: path) }
            // Without a directory there is no name to protect, and the body reports the failure.
            return try body()
        }
        defer { _ = close(descriptor) }
        let kind = isExclusive ? LOCK_EX : LOCK_SH
        // A volume without locks.
        guard let isMine = try? tryLock(descriptor, kind, path: path) else { return try body() }
        // Another process may be stopped while it holds the lock.
        if !isMine, try !waitForLock(descriptor, kind, path: path, atMost: .seconds(5)) {
            throw .fileSystem("locking", path: path, errno: EWOULDBLOCK)
        }
        // A child process forked meanwhile inherits the descriptor, so closing it would not release the lock.
        defer { _ = flock(descriptor, LOCK_UN) }
        return try body()
    }
}

/// A directory, identified by its path.
///
/// It calls the system directly, because Foundation's file manager costs ten times as much.
package struct Directory: Hashable, FilePlace {
    /// The absolute path, without a slash at its end.
    package let path: String

    /// Creates a reference to a directory, which need not exist, by its absolute path.
    package init(path: String) {
        var path = path[...]
        while path.count > 1, path.last == "/" { path = path.dropLast() }
        self.path = String(path)
    }

    package var base: Int32 { AT_FDCWD }

    package func reference(_ name: String) -> String { path(of: name) }

    /// Creates the directory and its missing parents.
    ///
    /// - Parameters:
    ///   - durability: With ``Durability/power`` the parents are synchronized, so that the new directories survive.
    ///   - mode: The permissions of each new directory, from which the system subtracts the process's umask.
    package func create(durability: Durability = .crash, mode: UInt16 = 0o700) throws(StoreError) {
        let result = uninterrupted { mkdir(path, mode_t(mode)) }
        guard result != 0 else {
            if durability == .power { try parent?.synchronize() }
            return
        }
        let code = errno
        switch code {
        case EEXIST:
            // Accepts a link to a directory: its creator has the right to place one.
            var info = stat()
            guard stat(path, &info) == 0, FileKind(mode: info.st_mode) == .directory else {
                throw .fileSystem("making directory", path: path, errno: ENOTDIR)
            }
        case ENOENT:
            guard let parent else { throw .fileSystem("making directory", path: path, errno: code) }
            try parent.create(durability: durability, mode: mode)
            let second = uninterrupted { mkdir(path, mode_t(mode)) }
            // Another process may have created the directory first.
            guard second == 0 || errno == EEXIST else { throw .failedCall("making directory", at: path) }
            if durability == .power { try parent.synchronize() }
        default:
            throw .fileSystem("making directory", path: path, errno: code)
        }
    }

    /// The parent directory; `nil` for the root and for a path of one part.
    package var parent: Directory? {
        // By bytes, because a slash and a combining accent after it form one character.
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), path != "/" else { return nil }
        return Directory(path: slash == path.startIndex ? "/" : String(path[..<slash]))
    }

    package func synchronize() throws(StoreError) {
        guard let opened = try DirectoryHandle(opening: self) else { throw .fileSystem("opening directory", path: path, errno: ENOENT) }
        try opened.synchronize()
    }

    /// Opens the directory for listing; returns `nil` if it does not exist.
    package func list() throws(StoreError) -> DirectoryListing? { try DirectoryListing(self) }

    /// Returns the status of the directory itself; `nil` if it does not exist.
    package func status() throws(StoreError) -> FileStatus? { try FileStatus.of(path: path) }

    /// Removes the file with this name unless another file than the known one has taken the name, and returns whether it did.
    ///
    /// The check and the removal are one step for each process that commits its files with ``FileWriteOptions/locksNames``: a commit waits
    /// for the removal, and the removal waits for a commit.
    package func remove(_ name: String, ifStill known: FileStatus) throws(StoreError) -> Bool {
        try withLock(exclusively: true) { () throws(StoreError) in
            guard try status(of: name) == known else { return false }
            return try remove(name)
        }
    }
}
