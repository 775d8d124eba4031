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

    /// Opens the file of a name, or makes an empty one.
    ///
    /// - Parameters:
    ///   - name: The file's name; a link is not followed.
    ///   - directory: The directory.
    ///   - mode: The permissions of a new file, from which the system subtracts the process's umask.
    /// - Throws: ``StoreError/Code/fileSystem``; with `EEXIST` where the name is that of a pipe or a device.
    package init(_ name: String, in directory: DirectoryHandle, mode: UInt16 = 0o666) throws(StoreError) {
        path = directory.path(of: name)
        let parent = directory.descriptor
        descriptor = uninterrupted { openat(parent, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode_t(mode)) }
        guard descriptor >= 0 else { throw .fileSystem("opening", path: path, errno: errno) }
        // A pipe accepts writes and keeps nothing.
        guard try status().kind == .regular else { throw .fileSystem("opening", path: path, errno: EEXIST) }
    }

    /// Opens the file of a name for changing it in place, or makes an empty one: never a file that has other names too.
    ///
    /// A backup by hard links, or an attacker, may have given the file a second name. What is written in place would change there too, so
    /// such a file is first replaced: by a copy in one step, or by an empty file.
    ///
    /// - Parameters:
    ///   - name: The file's name; a link is not followed.
    ///   - directory: The directory.
    ///   - isCopied: Whether the replacement keeps the content.
    ///   - mode: The permissions of a new file, from which the system subtracts the process's umask.
    /// - Returns: The open file, which has no other name.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package static func unshared(
        _ name: String, in directory: DirectoryHandle, isCopied: Bool, mode: UInt16 = 0o666
    ) throws(StoreError) -> WritableFile {
        let file = try WritableFile(name, in: directory, mode: mode)
        guard file.isShared else { return file }
        guard isCopied else {
            try directory.remove(name)
            return try WritableFile(name, in: directory, mode: mode)
        }
        return try replacement(for: name, in: directory, mode: mode) { copy throws(StoreError) in
            let content = try file.readAll(atMost: .max)
            try content.withUnsafeBufferPointer { content throws(StoreError) in
                try copy.write(UnsafeRawBufferPointer(content), at: 0)
            }
            try copy.synchronize()
        }
    }

    /// Makes a new file and gives it a name in one step, in place of the file that has the name.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - directory: The directory.
    ///   - mode: The permissions of the new file, from which the system subtracts the process's umask.
    ///   - prepare: Called with the new file before it has the name; the old file stays if it throws.
    /// - Returns: The new file.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package static func replacement(
        for name: String, in directory: DirectoryHandle, mode: UInt16 = 0o666, prepare: (WritableFile) throws(StoreError) -> Void
    ) throws(StoreError) -> WritableFile {
        let temporary = TemporaryFile.makeName(kind: "replacement")
        let file = try WritableFile(temporary, in: directory, mode: mode)
        do throws(StoreError) {
            try prepare(file)
            try directory.rename(temporary, to: directory, as: name)
        } catch {
            // The first failure is the one to throw; nothing ever reads a file of the temporary name.
            _ = try? directory.remove(temporary)
            throw error
        }
        return file
    }

    /// Whether the file has another name too.
    package var isShared: Bool { FileStatus.linkCount(descriptor) > 1 }

    /// Whether a name in the directory it was opened in still leads to this file.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func isNamed(_ name: String, in directory: DirectoryHandle) throws(StoreError) -> Bool {
        try directory.status(of: name)?.inode == status().inode
    }

    /// Gives the file these permissions, regardless of the umask.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func setPermissions(_ mode: UInt16) throws(StoreError) {
        try FileStatus.setPermissions(mode, of: descriptor, path: path)
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

    /// Runs a change under an exclusive lock, for which the call blocks its thread.
    ///
    /// - Parameter body: The change.
    /// - Throws: ``StoreError/Code/fileSystem`` if the file system has no locks; the error of `body`.
    func withLock<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        guard uninterrupted({ flock(descriptor, LOCK_EX) }) == 0 else { throw .fileSystem("locking", path: path, errno: errno) }
        // A process forked meanwhile has the descriptor too, so that closing it would not release the lock.
        defer { unlock() }
        return try body()
    }

    /// Whether the file's path still leads to it.
    var isNamed: Bool { FileStatus.isNamed(path, descriptor) }

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
