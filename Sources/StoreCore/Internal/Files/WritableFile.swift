#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A file open for reading and writing that keeps its name: a journal, a lock, the part of a file that has arrived.
///
/// Unlike a ``TemporaryFile`` it outlives the process. Closed when nobody holds it any more.
package final class WritableFile: Sendable {
    private let descriptor: Int32
    /// Its path, for messages.
    package let path: String

    /// Opens what is there, or makes an empty file with the rights that the process gives to new files.
    ///
    /// - Parameters:
    ///   - name: The file's name; a link is not followed.
    ///   - directory: The directory.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package init(_ name: String, in directory: DirectoryHandle) throws(StoreError) {
        path = directory.path(of: name)
        let parent = directory.descriptor
        descriptor = uninterrupted { openat(parent, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode_t(0o666)) }
        guard descriptor >= 0 else { throw .fileSystem("opening", path: path, errno: errno) }
    }

    deinit {
        // Where closing may lose something, the owner has synchronized before.
        _ = close(descriptor)
    }

    /// Kind, size, times and identity of the file.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func status() throws(StoreError) -> FileStatus {
        try FileStatus.of(descriptor: descriptor, path: path)
    }

    /// Takes the file for this holder alone, until it is closed; the kernel sees to that when the process ends, however it ends.
    ///
    /// - Returns: Whether it was to be had: `false` where another holder, of this process or another one, has it.
    /// - Throws: ``StoreError/Code/fileSystem``; on a disk that knows no locks too.
    package func lock() throws(StoreError) -> Bool {
        if uninterrupted({ flock(descriptor, LOCK_EX | LOCK_NB) }) == 0 { return true }
        let code = errno
        if code == EWOULDBLOCK { return false }
        throw .fileSystem("locking", path: path, errno: code)
    }

    /// Lets others have the file that `lock()` has taken, also while somebody here still holds it open.
    package func unlock() {
        // Whatever goes wrong, closing the file lets it go too.
        _ = flock(descriptor, LOCK_UN)
    }

    /// Writes all bytes at a place.
    ///
    /// - Parameters:
    ///   - bytes: The bytes; all of them are written, in as many calls as it takes.
    ///   - offset: Where in the file.
    /// - Throws: ``StoreError/Code/fileSystem``; some of the bytes may then be there.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            // Darwin refuses more than 2 GB in one call.
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...].prefix(1 << 30))
            let count = uninterrupted { pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset + done)) }
            if count <= 0 { throw .fileSystem("writing", path: path, errno: count < 0 ? errno : EIO) }
            done += count
        }
    }

    /// Reads until the buffer is full or the file ends.
    ///
    /// - Parameters:
    ///   - buffer: Where the bytes go.
    ///   - offset: Where in the file to begin, in bytes.
    /// - Returns: The number of bytes read.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StoreError) -> Int {
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

    /// Reads the file from its beginning.
    ///
    /// - Parameter limit: How much is read at most, in bytes.
    /// - Returns: The bytes.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func readAll(atMost limit: Int) throws(StoreError) -> [UInt8] {
        let size = min(try status().size, limit)
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try bytes.withUnsafeMutableBufferPointer { buffer throws(StoreError) in
            try read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
        }
        bytes.removeLast(size - count)
        return bytes
    }

    /// Cuts the file off.
    ///
    /// - Parameter size: Its size afterwards.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func truncate(to size: Int) throws(StoreError) {
        guard uninterrupted({ ftruncate(descriptor, off_t(size)) }) == 0 else { throw .fileSystem("shortening", path: path, errno: errno) }
    }

    /// Brings the content to the disk.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func synchronize() throws(StoreError) {
        guard synchronizeDescriptor(descriptor) == 0 else { throw .fileSystem("synchronizing", path: path, errno: errno) }
    }
}
