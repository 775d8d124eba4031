import StoreCore
internal import StoreFiles
internal import StorePlatform

// Follows the changes of other processes, see `FileFollower`: an event for each step of the pointer. A pass compares the journals with what
// was read.

extension Shelf {
    /// Causes an event for each process that follows this session.
    ///
    /// Precedes the step, because a process killed in between would otherwise announce nothing. A follower waits for the session's lock, so
    /// it sees the whole step.
    func announce() { lockFile?.touch() }

    /// Watches the session's lock file while texts are observed, and publishes the changes of other processes.
    ///
    /// - Parameter onEvent: Called after each event; another pass is then due.
    /// - Returns: The outcome; `nil` if the directory was removed and another pass has to make it again.
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the lock file cannot be locked or watched.
    func follow(onEvent: @escaping @Sendable () -> Void) throws(TextStoreError) -> Outcome? {
        guard isOpen, session.read({ !$0.observers.isEmpty }) else {
            follower.endWatch()
            return Outcome()
        }
        do throws(TextStoreError) {
            // While the directory is followed, it exists, so there is always a file to watch. A directory that has just been removed is
            // made again later, because a new file would make its removal fail.
            if !follower.hasWatch { try directory.make(options) }
            // Repeated, because another process may replace the lock file before the watch begins.
            var hasLocks = true
            for _ in 0..<8 {
                let isCurrent = try locked { () throws(TextStoreError) -> Bool? in
                    guard let lockFile else { return nil }
                    if !follower.isWatching { try watch(onEvent) }
                    // The watch comes first, so that a change made meanwhile causes an event.
                    catchUp()
                    return follower.isWatching && lockFile.isNamed
                }
                if isCurrent == true { return isForeign ? publish([], Outcome(isForeign: true)) : Outcome() }
                follower.endWatch()
                hasLocks = isCurrent != nil
                // A directory that exists now may have been made again a moment ago, so only repeated attempts show a disk without locks.
                if !hasLocks, try !exists() { return nil }
            }
            if !hasLocks { return Outcome() }
        } catch {
            follower.endWatch()
            throw error
        }
        throw TextStoreError(
            .fileSystem,
            "cannot follow other processes: \(directory.path(of: SessionLock.fileName)) is replaced again and again; let only stores use "
                + "the directory")
    }

    private func exists() throws(TextStoreError) -> Bool {
        do throws(StoreError) { return try directory.status() != nil } catch { throw .disk("follow other processes", error) }
    }

    private func watch(_ onEvent: @escaping @Sendable () -> Void) throws(TextStoreError) {
        do throws(StoreError) { try follower.watch(onEvent) } catch { throw .disk("follow other processes", error) }
    }
}
