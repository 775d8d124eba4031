package import StoreCore

/// A file opened for reading; closed when the value goes out of scope.
///
/// While the file is open, no other file gets its inode number, so ``Directory/remove(_:ifStill:)`` can distinguish it from a newer file.
package struct OpenFile: ~Copyable, Sendable {
    private let descriptor: Int32
    private let name: String
    /// The directory of the name; `nil` if the name is a whole path.
    private let directory: DirectoryHandle?

    /// For messages; computed on demand, because loading opens thousands of files.
    private var path: String { directory?.path(of: name) ?? name }

    /// Opens a file by its name in a directory, or by its path; `nil` if the file does not exist.
    ///
    /// Does not follow a symbolic link, for which it throws `ELOOP`, and does not wait for a pipe.
    package init?(reading name: String, in directory: DirectoryHandle? = nil) throws(StoreError) {
        let base = directory?.descriptor ?? AT_FDCWD
        let descriptor = uninterrupted { openat(base, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT { return nil }
            throw .fileSystem("opening", path: directory?.path(of: name) ?? name, errno: code)
        }
        self.descriptor = descriptor
        self.name = name
        self.directory = directory
    }

    deinit {
        // Nothing was written, so an error needs no handling.
        _ = close(descriptor)
    }

    package func status() throws(StoreError) -> FileStatus { try FileStatus.of(descriptor: descriptor, path: path) }

    /// Gives the owner read and write access, unless the file has another name.
    package func grantOwnerAccess() throws(StoreError) {
        let status = try status()
        guard status.linkCount == 1 else { return }
        try FileStatus.setPermissions(status.permissions | 0o600, of: descriptor, path: path)
    }

    /// Sets the permissions of the file, and its modification time in seconds since 1970; `nil` changes nothing.
    package func describe(mode: UInt16?, modified: Int64?) throws(StoreError) {
        if let mode { try FileStatus.setPermissions(mode, of: descriptor, path: path) }
        if let modified { try FileStatus.setModificationTime(modified, of: descriptor, path: path) }
    }

    /// Reads from an offset until the buffer is full or the file ends, and returns the number of bytes.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int = 0) throws(StoreError) -> Int {
        try readWhole(descriptor, into: buffer, at: offset, path: path)
    }

    /// Reads from the beginning with one system call, for small files, and returns the number of bytes. If the buffer is not full, that is
    /// the whole file, unless a signal or a network interrupted.
    package func read(atOnceInto buffer: UnsafeMutableRawBufferPointer) throws(StoreError) -> Int {
        let count = uninterrupted { pread(descriptor, buffer.baseAddress, buffer.count, 0) }
        guard count < 0 else { return count }
        throw .fileSystem("reading", path: path, errno: errno)
    }

    /// Returns whether another holder has locked the file; throws if the file system has no locks.
    ///
    /// Closing this file causes no event for processes that watch for writers, unlike closing a ``WritableFile``.
    package func isLocked() throws(StoreError) -> Bool {
        guard try tryLock(descriptor, LOCK_EX, path: path) else { return true }
        _ = flock(descriptor, LOCK_UN)
        return false
    }

    /// Marks the file as used now through its modification time; has no effect if that is not permitted.
    package func touch() {
        // An error needs no handling: only eviction reads the time, and a read-only disk evicts nothing.
        _ = futimens(descriptor, nil)
    }
}

/// Reads from an open file until the buffer is full or the file ends.
func readWhole(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: @autoclosure () -> String
) throws(StoreError) -> Int {
    var count = 0
    while count < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
        let result = uninterrupted { pread(descriptor, rest.baseAddress, rest.count, off_t(offset + count)) }
        if result < 0 {
            let code = errno
            throw .fileSystem("reading", path: path(), errno: code)
        }
        if result == 0 { break }
        count += result
    }
    return count
}
