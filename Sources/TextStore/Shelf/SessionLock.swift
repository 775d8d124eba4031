internal import Foundation
import StoreCore

/// One writer at a time in a session's directory, of this process or another one; the kernel lets go when a process ends, however it ends.
///
/// Whoever has it reads what others have written before he writes, so that nothing that only rises is overwritten by something lower.
struct SessionLock {
    /// The file that is locked; there is nothing in it.
    static let fileName = "lock"
    /// How long another process may usually have it: longer than any save takes.
    static let usualPatience = Duration.seconds(5)

    let directory: Directory
    /// How long another process may have it.
    var patience = Self.usualPatience

    /// Takes the lock until what is returned is let go of.
    ///
    /// Blocks its thread as the disk does; nobody holds the lock longer than it takes to write a few files.
    ///
    /// - Returns: What holds the lock; `nil` where the directory is missing or the disk knows no locks.
    /// - Throws: ``TextStoreError/Code/fileSystem``, also where another process does not let go of it.
    func take() throws(TextStoreError) -> WritableFile? {
        do throws(StoreError) {
            guard let handle = try DirectoryHandle(opening: directory) else { return nil }
            let file = try WritableFile(Self.fileName, in: handle)
            var waited = Duration.zero
            while try !file.lock() {
                guard waited < patience else {
                    throw StoreError(
                        .fileSystem,
                        "locking \(directory.path(of: Self.fileName)): another process has had it for \(patience); end that process")
                }
                Thread.sleep(forTimeInterval: 0.001)
                waited += .milliseconds(1)
            }
            return file
        } catch {
            if let code = error.fileSystemErrno, [ENOLCK, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL].contains(code) { return nil }
            throw TextStoreError(.fileSystem, "taking the session for this process: \(error.message)", underlyingError: error)
        }
    }
}
