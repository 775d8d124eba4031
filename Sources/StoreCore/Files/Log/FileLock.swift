package import StoreCore
package import StorePlatform

/// The lock that several processes share: an advisory lock on a file of its own, which the system releases when the holder ends.
///
/// A holder that is stopped blocks the others for a limited time. After that time, a call throws and changes nothing. The change is then
/// lost unless the caller repeats it, as a store does with a failed save. Later calls fail at once while the other process still holds the
/// lock.
package final class FileLock: Sendable {
    /// The open file. It loses its name when it is removed, for example with its directory.
    package let file: WritableFile
    private let name: String
    private let folder: DirectoryHandle
    private let patience: Duration
    private let mode: UInt16
    private let protection: FileProtection
    /// Whether a thread still waits after a timeout. One thread waits, however many changes fail.
    private let isBlocked = Lock(false)

    /// Opens the file of a lock, and creates a missing one; does not take the lock.
    ///
    /// `patience` is the longest wait for another holder. Mode and protection are those of a new file; the protection decides when the lock
    /// can be taken, on systems that encrypt each file.
    package init(
        _ name: String, in folder: DirectoryHandle, patience: Duration = .seconds(5), mode: UInt16 = 0o600,
        protection: FileProtection = .inherited
    ) throws(StoreError) {
        file = try WritableFile(name, in: folder, mode: mode, protection: protection)
        (self.name, self.folder, self.patience, self.mode, self.protection) = (name, folder, patience, mode, protection)
    }

    /// Runs a change under the lock, and blocks the calling thread until then. Returns `nil` if the file has lost its name, so that its
    /// lock excludes no other process.
    package func withLock<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result? {
        guard let held = try take() else { return nil }
        // A process forked meanwhile has the descriptor too, so that closing it would not release the lock.
        defer { held.unlock() }
        return try body()
    }

    /// Takes the lock, and blocks the calling thread until then. Returns the file, which holds the lock until it is unlocked; `nil` if it
    /// has lost its name.
    ///
    /// Throws on a disk without locks, or if another holder keeps the lock for longer than the patience; `EWOULDBLOCK` if the lock has no
    /// patience.
    package func take() throws(StoreError) -> WritableFile? {
        guard let held = try file.lock() ? file : wait() else { return nil }
        if held.isNamed { return held }
        held.unlock()
        return nil
    }

    private func wait() throws(StoreError) -> WritableFile? {
        // The holder may be stopped in a directory that was removed.
        guard file.isNamed else { return nil }
        guard patience > .zero else { throw .fileSystem("locking", path: file.path, errno: EWOULDBLOCK) }
        if !isBlocked.withLock({ $0 }) {
            // Opened again, because the waiting thread keeps the file after a timeout.
            let file = try WritableFile(name, in: folder, mode: mode, protection: protection)
            isBlocked.withLock { $0 = true }
            if try file.lock(within: patience, onEnd: { [weak self] in self?.isBlocked.withLock { $0 = false } }) { return file }
        }
        let path = file.path.escapedForDisplay()
        throw StoreError(.fileSystem, "another process has held \(path) for \(patience); continue or end that process")
    }
}
