internal import StoreCore
internal import StorePlatform

/// An incomplete download beside its target; unlike a `TemporaryFile`, it outlives the process so that a later call can resume it.
final class PartialFile: Sendable {
    /// The path of the incomplete file.
    let path: String
    private let descriptor: Int32
    /// Guards the hash of the file's first bytes, and their number.
    private let hashing: Lock<Hashing>

    private struct Hashing: Sendable {
        var isWanted: Bool
        var hash = SHA256()
        var count: Int64 = 0
    }

    /// Opens the file of an earlier download or creates an empty file, readable and writable for this user only.
    ///
    /// - Parameters:
    ///   - path: The path of the incomplete file.
    ///   - isHashed: Whether to hash the bytes as they are written, for `digest()`.
    /// - Throws: ``StoreError/Code/fileSystem``; with `EWOULDBLOCK` if another download is writing the same file.
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
                // The file has another hard link, such as a backup. Writing in place would change the backup too.
                guard unlink(path) == 0 || errno == ENOENT else {
                    let reason = errno
                    _ = close(opened)
                    throw .fileSystem("removing", path: path, errno: reason)
                }
            }
            // Otherwise another download renamed the file to its target between open and flock.
            _ = close(opened)
        }
    }

    deinit {
        // A child process that was forked a moment ago may still hold the descriptor. Closing only this copy would keep the file locked.
        _ = flock(descriptor, LOCK_UN)
        // Keeps an uncommitted file, because a later download can resume it.
        _ = close(descriptor)
    }

    /// Returns the number of bytes in the file.
    func length() throws(StoreError) -> Int64 {
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0 else { throw .fileSystem("examining", path: path, errno: errno) }
        return Int64(end)
    }

    /// Discards the content of the file.
    func empty() throws(StoreError) {
        guard ftruncate(descriptor, 0) == 0 else { throw .fileSystem("emptying", path: path, errno: errno) }
        hashing.withLock { $0 = Hashing(isWanted: $0.isWanted) }
    }

    /// Writes bytes at an offset, and hashes them if they follow the hashed ones.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError) {
        let isHashed = try hashing.withLock { hashing throws(StoreError) in
            guard hashing.isWanted else { return false }
            // Overwriting hashed bytes restarts the hash. Bytes of an earlier download are read from disk once.
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
        // Hashes only complete writes, because `digest()` reads any remaining bytes from the file.
        guard isHashed else { return }
        hashing.withLock { hashing in
            hashing.hash.update(bytes)
            hashing.count += Int64(bytes.count)
        }
    }

    /// Returns the digest of the whole file; reads only bytes that were not hashed while written.
    func digest() throws(StoreError) -> SHA256.Digest {
        try hashing.withLock { hashing throws(StoreError) in
            // Restarts the hash if the file has become shorter than the hashed bytes.
            if try length() < hashing.count { hashing = Hashing(isWanted: hashing.isWanted) }
            try hashFile(upTo: .max, &hashing)
            return hashing.hash.digest()
        }
    }

    /// Reads and hashes the bytes after the hashed ones, up to an offset or the end of the file.
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

    /// Synchronizes the file to disk, and renames it to the target in one step.
    func commit(as target: String) throws(StoreError) {
        guard synchronizeDescriptor(descriptor) == 0 else { throw .fileSystem("synchronizing", path: path, errno: errno) }
        guard rename(path, target) == 0 else { throw .fileSystem("renaming a new file to", path: target, errno: errno) }
    }

    private static func open(_ path: String) -> Int32 {
        openFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, permissions: mode_t(0o600))
    }
}
