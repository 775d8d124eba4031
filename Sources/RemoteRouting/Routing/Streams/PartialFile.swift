internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// An incomplete download beside its target; unlike a `TemporaryFile`, it outlives the process so that a later call can resume it.
final class PartialFile: Sendable {
    private let name: String
    private let folder: DirectoryHandle
    /// The file, which is locked until the last reference to this object ends.
    private let file: WritableFile
    /// Guards the hash of the file's first bytes, and their number.
    private let hashing: Lock<Hashing>

    private struct Hashing: Sendable {
        var isWanted: Bool
        var hash = SHA256()
        var count = 0
    }

    /// Opens the file of an earlier download or creates an empty file, readable and writable for this user only.
    ///
    /// - Parameters:
    ///   - name: The name of the incomplete file.
    ///   - directory: The directory, which must exist.
    ///   - isHashed: Whether to hash the bytes as they are written, for `digest()`.
    /// - Throws: ``StoreError/Code/fileSystem``; with `EWOULDBLOCK` if another download is writing the same file.
    init(_ name: String, in directory: Directory, isHashed: Bool = false) throws(StoreError) {
        guard let folder = try DirectoryHandle(opening: directory) else {
            throw .fileSystem("opening directory", path: directory.path, errno: ENOENT)
        }
        (self.name, self.folder) = (name, folder)
        hashing = Lock(Hashing(isWanted: isHashed))
        file = try Self.open(name, in: folder)
    }

    deinit {
        // A child process that was forked a moment ago may still hold the descriptor. Closing only this copy would keep the file locked.
        file.unlock()
        // Keeps an uncommitted file, because a later download can resume it.
    }

    private static func open(_ name: String, in folder: DirectoryHandle) throws(StoreError) -> WritableFile {
        while true {
            // No lock means that another download has renamed the file to its target between opening and locking.
            guard let file = try FileLock(name, in: folder, patience: .zero).take() else { continue }
            if try file.status().linkCount <= 1 { return file }
            // The file has another hard link, such as a backup. Writing in place would change the backup too.
            try folder.remove(name)
        }
    }

    /// Returns the number of bytes in the file.
    func length() throws(StoreError) -> Int64 { Int64(try file.status().size) }

    /// Discards the content of the file.
    func empty() throws(StoreError) {
        try file.truncate(to: 0)
        hashing.withLock { $0 = Hashing(isWanted: $0.isWanted) }
    }

    /// Writes bytes at an offset, and hashes them if they follow the hashed ones.
    func write(_ bytes: UnsafeRawBufferPointer, at place: Int64) throws(StoreError) {
        guard let offset = Int(exactly: place) else { throw .fileSystem("writing", path: file.path, errno: EFBIG) }
        let isHashed = try hashing.withLock { hashing throws(StoreError) in
            guard hashing.isWanted else { return false }
            // Overwriting hashed bytes restarts the hash. Bytes of an earlier download are read from disk once.
            if hashing.count > offset { hashing = Hashing(isWanted: true) }
            try hashFile(upTo: offset, &hashing)
            return hashing.count == offset
        }
        try file.write(bytes, at: offset)
        // Hashes only complete writes, because `digest()` reads any remaining bytes from the file.
        guard isHashed else { return }
        hashing.withLock { hashing in
            hashing.hash.update(bytes)
            hashing.count += bytes.count
        }
    }

    /// Returns the digest of the whole file; reads only bytes that were not hashed while written.
    func digest() throws(StoreError) -> SHA256.Digest {
        try hashing.withLock { hashing throws(StoreError) in
            // Restarts the hash if the file has become shorter than the hashed bytes.
            if try file.status().size < hashing.count { hashing = Hashing(isWanted: hashing.isWanted) }
            try hashFile(upTo: .max, &hashing)
            return hashing.hash.digest()
        }
    }

    /// Reads and hashes the bytes after the hashed ones, up to an offset or the end of the file.
    private func hashFile(upTo end: Int, _ hashing: inout Hashing) throws(StoreError) {
        guard hashing.count < end else { return }
        // A copy, because a failed reading has hashed an unknown number of bytes.
        var hash = hashing.hash
        let count = try hash.update(file, from: hashing.count, to: end)
        hashing.hash = hash
        hashing.count += count
    }

    /// Synchronizes the file to disk, and renames it to the target in one step.
    ///
    /// - Parameter target: The name of the target, in the same directory.
    func commit(as target: String) throws(StoreError) {
        try file.synchronize()
        try folder.rename(name, to: folder, as: target)
    }
}
