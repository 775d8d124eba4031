internal import Dispatch
internal import Foundation
import StoreCore
internal import StorePlatform

/// Serializes the writers of a session's directory in all processes; the kernel releases the lock when a process ends.
///
/// A holder reads the changes of other processes before it writes, so that a floor is never overwritten by a lower one.
struct SessionLock {
    /// The locked file, which is empty.
    static let fileName = "lock"
    /// The default patience, which is longer than any save takes.
    static let usualPatience = Duration.seconds(5)

    let directory: Directory
    /// The time to wait for another process that holds the lock.
    var patience = Self.usualPatience

    /// Takes the lock; releasing the result releases it.
    ///
    /// Blocks the calling thread. Every holder releases the lock after writing a few files.
    ///
    /// - Returns: The holder of the lock; `nil` if the directory does not exist or the disk supports no locks.
    /// - Throws: ``TextStoreError/Code/fileSystem``, for example if another process holds the lock for too long.
    func take() throws(TextStoreError) -> WritableFile? {
        do throws(StoreError) {
            guard let handle = try DirectoryHandle(opening: directory) else { return nil }
            let file = try WritableFile(Self.fileName, in: handle)
            guard try isLocked(file) else { return nil }
            return file
        } catch {
            throw TextStoreError(.fileSystem, "cannot lock the session: \(error.message)", underlyingError: error)
        }
    }

    /// Locks the open file; returns `false` if the disk supports no locks.
    private func isLocked(_ file: WritableFile) throws(StoreError) -> Bool {
        let isMine: Bool
        do throws(StoreError) { isMine = try file.lock(within: patience) } catch {
            // Opening fails with one of these too, on Apple's systems for a socket, and that is no disk without locks.
            if let code = error.fileSystemErrno, [ENOLCK, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL].contains(code) { return false }
            throw error
        }
        guard isMine else {
            throw StoreError(
                .fileSystem, "another process has held \(directory.path(of: Self.fileName)) for \(patience); end that process")
        }
        return true
    }
}

/// Runs jobs that block on the disk on a queue of their own, because another process may hold the session's lock for seconds. The shared
/// threads of the concurrency runtime stay free.
final class DiskExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "TextStore.disk")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
