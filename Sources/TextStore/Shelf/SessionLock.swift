internal import Dispatch
internal import Foundation
import StoreCore
internal import StoreFiles
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
            // Repeated, because another process may remove the lock's file at any moment.
            for _ in 0..<8 {
                guard let handle = try DirectoryHandle(opening: directory) else { return nil }
                let lock = try FileLock(Self.fileName, in: handle, patience: patience, mode: 0o666)
                do throws(StoreError) {
                    if let held = try lock.take() { return held }
                } catch {
                    let missing = [ENOLCK, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL]
                    guard let code = error.fileSystemErrno, missing.contains(code) else { throw error }
                    return nil
                }
            }
            throw .fileSystem("locking", path: directory.path(of: Self.fileName), errno: ESTALE)
        } catch {
            throw .disk("lock the session", error)
        }
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
