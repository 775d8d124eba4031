package import StoreCore

/// A file opened for reading; closed when the value goes out of scope.
///
/// While the file is open, no other file gets its inode number, so ``Directory/remove(_:ifStill:)`` can distinguish it from a newer file.
package struct OpenFile: ~Copyable, Sendable, OpenDescriptor {
    package let descriptor: Int32
    private let name: String
    /// The directory of the name; `nil` if the name is a whole path.
    private let directory: DirectoryHandle?

    /// For messages; computed on demand, because loading opens thousands of files.
    package var path: String { directory?.path(of: name) ?? name }

    /// Opens a file by its name in a directory, or by its path; `nil` if the file does not exist.
    ///
    /// Does not follow a symbolic link, for which it throws `ELOOP`, and does not wait for a pipe.
    package init?(reading name: String, in directory: DirectoryHandle? = nil) throws(StoreError) {
        let base = directory?.descriptor ?? AT_FDCWD
        let descriptor = uninterrupted { openat(base, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .failedCall("opening", at: directory?.path(of: name) ?? name)
        }
        self.descriptor = descriptor
        self.name = name
        self.directory = directory
    }

    deinit {
        // Nothing was written, so an error needs no handling.
        _ = close(descriptor)
    }

    /// Gives the owner read and write access, unless the file has another name.
    package func grantOwnerAccess() throws(StoreError) {
        let status = try status()
        guard status.linkCount == 1 else { return }
        try setPermissions(status.permissions | 0o600)
    }

    /// Reads from the beginning with one system call, for small files, and returns the number of bytes. If the buffer is not full, that is
    /// the whole file, unless a signal or a network interrupted.
    package func read(atOnceInto buffer: UnsafeMutableRawBufferPointer) throws(StoreError) -> Int {
        let count = uninterrupted { pread(descriptor, buffer.baseAddress, buffer.count, 0) }
        guard count < 0 else { return count }
        throw .failedCall("reading", at: path)
    }

    /// Returns whether another holder has locked the file; throws if the file system has no locks.
    ///
    /// Closing this file causes no event for processes that watch for writers, unlike closing a ``WritableFile``.
    package func isLocked() throws(StoreError) -> Bool {
        guard try tryLock(descriptor, LOCK_EX, path: path) else { return true }
        _ = flock(descriptor, LOCK_UN)
        return false
    }
}

/// An open file or directory, with the calls that need only its descriptor.
package protocol OpenDescriptor: ~Copyable {
    var descriptor: Int32 { get }
    /// The path at the time of opening, for messages.
    var path: String { get }
}

extension OpenDescriptor where Self: ~Copyable {
    package func status() throws(StoreError) -> FileStatus { try FileStatus.of(descriptor: descriptor, path: path) }

    /// Sets the permissions, regardless of the umask.
    package func setPermissions(_ mode: UInt16) throws(StoreError) {
        guard uninterrupted({ fchmod(descriptor, mode_t(mode)) }) == 0 else { throw .failedCall("changing the permissions of", at: path) }
    }

    /// Sets the modification time to a number of seconds since 1970, and the time of the last use to now.
    package func setModificationTime(_ seconds: Int64) throws(StoreError) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let times = [now, timespec(tv_sec: time_t(clamping: seconds), tv_nsec: 0)]
        guard uninterrupted({ futimens(descriptor, times) }) == 0 else { throw .failedCall("changing the time of", at: path) }
    }

    /// Sets the modification time to now, which marks the file as used, and causes an event for each watch on it; has no effect if that is
    /// not permitted.
    package func touch() {
        // An error needs no handling: the next change causes the event, only eviction reads the time, and a read-only disk evicts nothing.
        _ = futimens(descriptor, nil)
    }

    /// Reads from an offset until the buffer is full or the file ends, and returns the number of bytes.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int = 0) throws(StoreError) -> Int {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let result = uninterrupted { pread(descriptor, rest.baseAddress, rest.count, off_t(offset + count)) }
            if result < 0 { throw .failedCall("reading", at: path) }
            if result == 0 { break }
            count += result
        }
        return count
    }

    package func read(_ count: Int, at offset: Int) throws(StoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = try bytes.withUnsafeMutableBufferPointer { buffer throws(StoreError) in
            try self.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
        bytes.removeLast(count - read)
        return bytes
    }

    /// Reads the file from its beginning, up to a number of bytes.
    package func readAll(atMost limit: Int) throws(StoreError) -> [UInt8] { try read(min(status().size, limit), at: 0) }
}
