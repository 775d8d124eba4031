#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif
internal import StoreCore

/// A file on its way, beside the one it will become; unlike a `TemporaryFile` it outlives the process, so that it can be resumed.
final class PartialFile: Sendable {
    /// Its name while it is not whole.
    let path: String
    private let descriptor: Int32

    /// Opens what is there, or makes an empty file, readable and writable for this user only.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``; with `EWOULDBLOCK` where another download writes the same file.
    init(at path: String) throws(StoreError) {
        self.path = path
        while true {
            let opened = PartialFile.open(path)
            guard opened >= 0 else { throw .fileSystem("opening", path: path, errno: errno) }
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
                let reason = errno
                _ = close(opened)
                throw .fileSystem("locking", path: path, errno: reason)
            }
            if FileStatus.isNamed(path, opened) {
                descriptor = opened
                return
            }
            // Between the two calls another download finished, and gave the file its real name.
            _ = close(opened)
        }
    }

    deinit {
        // What was written is written; a file that was not committed may be resumed.
        _ = close(descriptor)
    }

    /// The number of bytes that are there.
    func length() throws(StoreError) -> Int64 {
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0 else { throw .fileSystem("examining", path: path, errno: errno) }
        return Int64(end)
    }

    /// Throws away what is there.
    func empty() throws(StoreError) {
        guard ftruncate(descriptor, 0) == 0 else { throw .fileSystem("emptying", path: path, errno: errno) }
    }

    /// Writes bytes at a place.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done, off_t(offset) + off_t(done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .fileSystem("writing", path: path, errno: count < 0 ? errno : EIO) }
            done += count
        }
    }

    /// The digest of all that is there, read piece by piece.
    func digest() throws(StoreError) -> SHA256.Digest {
        var hash = SHA256()
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var offset: off_t = 0
        while true {
            let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, offset) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .fileSystem("reading", path: path, errno: errno) }
            guard count > 0 else { return hash.digest() }
            buffer.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
            offset += off_t(count)
        }
    }

    /// Brings the bytes to the disk, and gives the file its real name in one step.
    func commit(as target: String) throws(StoreError) {
        guard fsync(descriptor) == 0 else { throw .fileSystem("synchronizing", path: path, errno: errno) }
        guard rename(path, target) == 0 else { throw .fileSystem("renaming a new file to", path: target, errno: errno) }
    }

    private static func open(_ path: String) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC
        #if canImport(Darwin)
        return Darwin.open(path, flags, mode_t(0o600))
        #elseif canImport(Glibc)
        return Glibc.open(path, flags, mode_t(0o600))
        #elseif canImport(Musl)
        return Musl.open(path, flags, mode_t(0o600))
        #endif
    }
}
