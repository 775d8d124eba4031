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
    /// The hash of the file's first bytes, and how many they are.
    private let hashing: Lock<Hashing>

    private struct Hashing: Sendable {
        var isWanted: Bool
        var hash = SHA256()
        var count: Int64 = 0
    }

    /// Opens the part of an earlier download, or makes an empty file, readable and writable for this user only.
    ///
    /// - Parameters:
    ///   - path: The path of the part.
    ///   - isHashed: Whether `digest()` will be called: the bytes are then hashed as they are written.
    /// - Throws: ``StoreError/Code/fileSystem``; with `EWOULDBLOCK` where another download writes the same file.
    init(at path: String, isHashed: Bool = false) throws(StoreError) {
        self.path = path
        hashing = Lock(Hashing(isWanted: isHashed))
        while true {
            let opened = PartialFile.open(path)
            guard opened >= 0 else { throw .fileSystem("opening", path: path, errno: errno) }
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
                let reason = errno
                _ = close(opened)
                throw .fileSystem("locking", path: path, errno: reason)
            }
            if FileStatus.isNamed(path, opened) {
                if FileStatus.linkCount(opened) <= 1 {
                    descriptor = opened
                    return
                }
                // Another name shares the file, such as a backup by hard links: writing in place would change it there too.
                guard unlink(path) == 0 || errno == ENOENT else {
                    let reason = errno
                    _ = close(opened)
                    throw .fileSystem("removing", path: path, errno: reason)
                }
            }
            // Otherwise another download finished between the two calls, and gave the file its real name.
            _ = close(opened)
        }
    }

    deinit {
        // A child process that was forked a moment ago may still have the descriptor, and closing this one alone would leave the lock to it.
        _ = flock(descriptor, LOCK_UN)
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
        hashing.withLock { $0 = Hashing(isWanted: $0.isWanted) }
    }

    /// Writes bytes at a place.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError) {
        let isHashed = try hashing.withLock { hashing throws(StoreError) in
            guard hashing.isWanted else { return false }
            // Hashed bytes that are written again are hashed again; bytes of an earlier download are read once.
            if hashing.count > offset { hashing = Hashing(isWanted: true) }
            try hashFile(upTo: offset, &hashing)
            return hashing.count == offset
        }
        var done = 0
        while done < bytes.count {
            let count = pwrite(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done, off_t(offset) + off_t(done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .fileSystem("writing", path: path, errno: count < 0 ? errno : EIO) }
            done += count
        }
        // Only whole writes are hashed: the rest is what `digest()` finds in the file behind them.
        guard isHashed else { return }
        hashing.withLock { hashing in
            hashing.hash.update(bytes)
            hashing.count += Int64(bytes.count)
        }
    }

    /// The digest of the whole file; reads only bytes that were not hashed while they were written.
    func digest() throws(StoreError) -> SHA256.Digest {
        try hashing.withLock { hashing throws(StoreError) in
            // Without the hash's own reading there is nothing of a file that became shorter meanwhile.
            if try length() < hashing.count { hashing = Hashing(isWanted: hashing.isWanted) }
            try hashFile(upTo: .max, &hashing)
            return hashing.hash.digest()
        }
    }

    /// Reads and hashes the bytes behind the hashed ones, up to an offset or the file's end.
    private func hashFile(upTo end: Int64, _ hashing: inout Hashing) throws(StoreError) {
        guard hashing.count < end else { return }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while hashing.count < end {
            let size = Int(min(Int64(buffer.count), end - hashing.count))
            let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, size, off_t(hashing.count)) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .fileSystem("reading", path: path, errno: errno) }
            guard count > 0 else { return }
            buffer.withUnsafeBytes { hashing.hash.update(UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
            hashing.count += Int64(count)
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
