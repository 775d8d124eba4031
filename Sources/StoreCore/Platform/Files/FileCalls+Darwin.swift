#if canImport(Darwin)
package import Foundation
package import StoreCore

// The calls that differ between Apple's systems and Linux; FileCalls+Linux.swift has the same ones.

/// The C library's handle of a listed directory.
typealias DirectoryStream = UnsafeMutablePointer<DIR>

/// Flushes a file's content to the disk, through the drive's cache too.
func synchronizeDescriptor(_ descriptor: Int32) -> Int32 {
    // `fsync` stops at the drive's cache. Some network volumes do not support the stronger call.
    if fcntl(descriptor, F_FULLFSYNC) == 0 { return 0 }
    // Bytes are lost, which the other call may not report again.
    let code = errno
    if code == EIO || code == ENOSPC || code == EDQUOT { return -1 }
    return uninterrupted { fsync(descriptor) }
}

/// Returns the largest number of descriptors that the process may have; `nil` if it is unknown.
func descriptorLimit() -> UInt64? {
    var limit = rlimit()
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? UInt64(limit.rlim_cur) : nil
}

extension FileStatus {
    static func modificationTime(of info: stat) -> timespec { info.st_mtimespec }
}

extension FileProtection {
    /// Sets the protection of an open file that is still empty.
    package func apply(to descriptor: Int32, path: String) throws(StoreError) {
        let level: Int32
        // The classes A to D of the system's data protection.
        switch self {
        case .inherited: return
        case .complete: level = 1
        case .completeUnlessOpen: level = 2
        case .untilFirstUnlock: level = 3
        case .none: level = 4
        }
        guard fcntl(descriptor, F_SETPROTECTIONCLASS, level) != 0 else { return }
        let code = errno
        // Volumes without file-level encryption, such as those of a Mac or the simulator, do not support protection classes.
        guard code == ENOTSUP || code == EINVAL || code == ENOTTY else { throw .fileSystem("protecting", path: path, errno: code) }
    }
}

extension Directory {
    /// Excludes the directory from the system's backups.
    package func excludeFromBackup() throws {
        var url = URL(filePath: path, directoryHint: .isDirectory)
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try url.setResourceValues(values)
    }

    /// The directory for the state of this program, which no other program uses: in Application Support, with the bundle identifier,
    /// because all programs outside a sandbox share Application Support. A program without a bundle identifier uses its process's name.
    package static var ofProgramState: URL {
        let name = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        return URL.applicationSupportDirectory.appending(path: "\(name)/Storehouse", directoryHint: .isDirectory)
    }
}

extension DirectoryHandle {
    /// Paths that may lead to the directory while it is open.
    var lastingPaths: [String] {
        // An open directory has a status; without it, there is no such path.
        guard let status = try? status() else { return [] }
        return [status.volumePath]
    }

    /// Whether the system can flush a whole file system to the disk.
    package static var synchronizesFileSystems: Bool { true }

    /// Returns whether the system can flush the directory's file system as a whole, which depends on the file system; the call flushes it.
    package func canSynchronizeFileSystem() throws(StoreError) -> Bool { try synchronizeFileSystem() }

    /// Flushes all writes to the directory's file system, including those of other processes, to the disk; returns `false` if the system
    /// cannot do that for this file system. Each file and directory must then be synchronized separately.
    package func synchronizeFileSystem() throws(StoreError) -> Bool {
        guard uninterrupted({ fsync_volume_np(descriptor, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT) }) != 0 else { return true }
        let code = errno
        // A network volume may not support it.
        if [ENOTSUP, EOPNOTSUPP, ENOTTY, ENOSYS, EINVAL].contains(code) { return false }
        throw .fileSystem("synchronizing the file system of", path: path, errno: code)
    }
}
#endif
