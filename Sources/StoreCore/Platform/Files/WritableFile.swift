package import StoreCore

/// A file open for reading and writing under its final name, such as a journal, a lock, or the received part of a download.
///
/// Unlike a ``TemporaryFile`` it outlives the process. The file is closed when the last reference ends.
package final class WritableFile: Sendable, OpenDescriptor {
    package let descriptor: Int32
    /// The path at the time of opening, for messages; the file may have lost its name since.
    package let path: String
    /// The status at the time of opening.
    package let opened: FileStatus

    private init(descriptor: Int32, path: String, opened: FileStatus) {
        self.descriptor = descriptor
        self.path = path
        self.opened = opened
    }

    /// Opens a file, or creates an empty file; links are not followed. Throws `EEXIST` if the name belongs to a pipe or a device.
    ///
    /// The system subtracts the process's umask from the permissions. The protection, on systems that encrypt each file, is that of a new
    /// file.
    package convenience init(
        _ name: String, in directory: DirectoryHandle, mode: UInt16 = 0o666, protection: FileProtection = .inherited
    ) throws(StoreError) {
        let path = directory.path(of: name)
        let parent = directory.descriptor
        let descriptor = uninterrupted { openat(parent, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode_t(mode)) }
        guard descriptor >= 0 else { throw .failedCall("opening", at: path) }
        let opened: FileStatus
        do throws(StoreError) {
            opened = try FileStatus.of(descriptor: descriptor, path: path)
            // A pipe accepts writes and keeps nothing.
            guard opened.kind == .regular else { throw .fileSystem("opening", path: path, errno: EEXIST) }
            if opened.size == 0 { try protection.apply(to: descriptor, path: path) }
        } catch {
            _ = close(descriptor)
            throw error
        }
        self.init(descriptor: descriptor, path: path, opened: opened)
    }

    /// Opens a file for changes in place, or creates an empty file; the file has no other name.
    ///
    /// A backup with hard links, or an attacker, may have given the file a second name, under which a change would be visible too. Such a
    /// file is first replaced with a copy, in one step, or, if it is not copied, with an empty file.
    package static func unshared(
        _ name: String, in directory: DirectoryHandle, isCopied: Bool, mode: UInt16 = 0o666, protection: FileProtection = .inherited
    ) throws(StoreError) -> WritableFile {
        let file = try WritableFile(name, in: directory, mode: mode, protection: protection)
        guard file.isShared else { return file }
        guard isCopied else {
            try directory.remove(name)
            return try WritableFile(name, in: directory, mode: mode, protection: protection)
        }
        let options = FileWriteOptions(durability: .power, protection: protection, mode: mode)
        try AtomicFile.write(try file.readAll(atMost: .max), as: name, in: directory, kind: replacementKind, options: options)
        return try WritableFile(name, in: directory, mode: mode)
    }

    /// The word in the temporary names of replacements. A process that is killed leaves such a file behind.
    package static let replacementKind = "replacement"

    /// Whether the file had another name when it was opened.
    package var isShared: Bool { opened.linkCount > 1 }

    deinit {
        // An error needs no handling, because an owner of important data has synchronized it.
        _ = close(descriptor)
    }

    /// Locks the file for this holder until it is closed; the kernel releases the lock when the process ends. Returns `false` if another
    /// holder has locked the file; throws on a disk without locks.
    package func lock() throws(StoreError) -> Bool { try tryLock(descriptor, LOCK_EX, path: path) }

    /// Locks the file, and blocks the calling thread for a limited time while another holder has locked it; returns `false` after the time.
    ///
    /// After a timeout, a thread waits until the other holder releases the lock. The lock then ends once this file is closed, so a caller
    /// must not use the file after a timeout. `onEnd` is called once, on any thread, when no thread waits any longer.
    package func lock(within patience: Duration, onEnd: @escaping @Sendable () -> Void) throws(StoreError) -> Bool {
        try waitForLock(descriptor, LOCK_EX, path: path, atMost: patience, onEnd: onEnd)
    }

    /// Releases the lock, even if the file stays open in this process.
    package func unlock() {
        // Closing the file releases the lock in any case, so an error needs no handling.
        _ = flock(descriptor, LOCK_UN)
    }

    /// Whether the file's path still leads to it.
    package var isNamed: Bool { sizeIfNamed != nil }

    /// The size in bytes; `nil` if the file's path no longer leads to it.
    package var sizeIfNamed: Int? { FileStatus.size(of: path, if: opened.identity) }

    package func size(ifNamed name: String, in directory: DirectoryHandle) -> Int? {
        FileStatus.size(of: name, in: directory.descriptor, if: opened.identity)
    }

    /// Writes all bytes at an offset, in several calls if necessary. An error may follow after a part of them was written.
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

    package func truncate(to size: Int) throws(StoreError) {
        guard uninterrupted({ ftruncate(descriptor, off_t(size)) }) == 0 else { throw .failedCall("shortening", at: path) }
    }

    package func synchronize() throws(StoreError) {
        guard synchronizeDescriptor(descriptor) == 0 else { throw .failedCall("synchronizing", at: path) }
    }

    package func write(_ bytes: [UInt8], at offset: Int) throws(StoreError) {
        try bytes.withUnsafeBufferPointer { bytes throws(StoreError) in try write(UnsafeRawBufferPointer(bytes), at: offset) }
    }
}
