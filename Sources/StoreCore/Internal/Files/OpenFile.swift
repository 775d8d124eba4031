#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#if canImport(SwiftOverlayShims)
internal import SwiftOverlayShims
#endif
#elseif canImport(Musl)
internal import Musl
#endif

/// A file opened for reading; closed when it goes out of scope.
///
/// While it is open its inode number belongs to no other file, so that ``Directory/remove(_:ifStill:)`` can tell it from a newer one.
package struct OpenFile: ~Copyable, Sendable {
    private let descriptor: Int32
    private let name: String
    /// Where the name is looked up; `nil` where it is a whole path.
    private let directory: DirectoryHandle?

    /// For messages; put together only then, for a start opens thousands of files.
    private var path: String { directory?.path(of: name) ?? name }

    /// Opens what stands at a path; a symbolic link is not followed, and a pipe is not waited for.
    ///
    /// - Parameter path: The path.
    /// - Returns: `nil` where there is nothing.
    /// - Throws: ``StoreError/Code/fileSystem``; with `ELOOP` where the name is a symbolic link.
    package init?(reading path: String) throws(StoreError) {
        let descriptor = uninterrupted { open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT { return nil }
            throw .fileSystem("opening", path: path, errno: code)
        }
        self.descriptor = descriptor
        name = path
        directory = nil
    }

    /// Opens what stands under a name in an open directory; a symbolic link is not followed, and a pipe is not waited for.
    ///
    /// - Parameters:
    ///   - name: The file's name; a single one.
    ///   - directory: The directory.
    /// - Returns: `nil` where there is nothing.
    /// - Throws: ``StoreError/Code/fileSystem``; with `ELOOP` where the name is a symbolic link.
    package init?(reading name: String, in directory: DirectoryHandle) throws(StoreError) {
        let descriptor = uninterrupted { openat(directory.descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT { return nil }
            throw .fileSystem("opening", path: directory.path(of: name), errno: code)
        }
        self.descriptor = descriptor
        self.name = name
        self.directory = directory
    }

    deinit {
        // Nothing was written, so there is nothing that closing could lose.
        _ = close(descriptor)
    }

    /// Kind, size, times and identity of the file.
    package func status() throws(StoreError) -> FileStatus {
        var info = stat()
        guard fstat(descriptor, &info) != 0 else { return FileStatus(info) }
        throw .fileSystem("examining", path: path, errno: errno)
    }

    /// Reads until the buffer is full or the file ends.
    ///
    /// - Parameters:
    ///   - buffer: Where the bytes go.
    ///   - offset: Where in the file to begin, in bytes.
    /// - Returns: The number of bytes read.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int = 0) throws(StoreError) -> Int {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let result = uninterrupted { pread(descriptor, rest.baseAddress, rest.count, off_t(offset + count)) }
            if result < 0 { throw .fileSystem("reading", path: path, errno: errno) }
            if result == 0 { break }
            count += result
        }
        return count
    }

    /// Reads from the beginning with one call: for files so small that a second one would cost more than it finds.
    ///
    /// - Parameter buffer: Where the bytes go.
    /// - Returns: The number of bytes read. Fewer than the buffer holds are the whole file, unless a signal or a network came between.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func read(atOnceInto buffer: UnsafeMutableRawBufferPointer) throws(StoreError) -> Int {
        let count = uninterrupted { pread(descriptor, buffer.baseAddress, buffer.count, 0) }
        guard count < 0 else { return count }
        throw .fileSystem("reading", path: path, errno: errno)
    }

    /// Returns whether another holder has locked the file.
    ///
    /// Closing this file causes no event for those who watch for writers, unlike closing a ``WritableFile``.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``, also if the file system has no locks.
    func isLocked() throws(StoreError) -> Bool {
        if uninterrupted({ flock(descriptor, LOCK_EX | LOCK_NB) }) == 0 {
            _ = flock(descriptor, LOCK_UN)
            return false
        }
        let code = errno
        if code == EWOULDBLOCK { return true }
        throw .fileSystem("locking", path: path, errno: code)
    }

    /// Marks the file as used now, by its modification time; where that is not allowed, nothing happens.
    package func touch() {
        // Of no interest: on a read-only disk nothing is ever swept, and only sweeping looks at the time.
        _ = futimens(descriptor, nil)
    }
}
