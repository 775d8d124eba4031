internal import Dispatch
package import StoreCore
internal import StorePlatform

// Follows the changes of others through file system events, one for each batch of changes, and does no work between two events.
//
// An event carries no information. It causes a pass, which compares the watched file with the path, and the position with the log. So a
// superfluous event costs one comparison, and the order of events has no effect.

extension SharedLog {
    /// Receives the occasion to read.
    ///
    /// - Parameter creating: Whether to create a missing log. A followed log exists, so that there is always a file to watch.
    package typealias NewsHandler = @Sendable (_ creating: Bool) throws(StoreError) -> Void

    /// How the log is followed. Only the queue watches and ends a watch.
    struct Following: Sendable {
        /// Called on the queue; `nil` while the log is not followed.
        var onNews: NewsHandler?
        var onLost: (@Sendable (StoreError) -> Void)?
        var watch: FileWatch?
        /// The watch on the directory, because the log does not notice that its directory is renamed.
        var directoryWatch: FileWatch?
        /// The inode of the watched log.
        var inode: UInt64 = 0
        /// Whether a pass waits on the queue, so that further events need no pass of their own.
        var isScheduled = false
        /// Whether a pass waits for its time.
        var isDelayed = false
        /// The time of the last pass.
        var passedAt = DispatchTime(uptimeNanoseconds: 0)
        /// The delay before the next attempt; `nil` while following works.
        var backOff: Duration?
    }

    /// Begins to follow the log.
    ///
    /// - Parameters:
    ///   - isImmediate: Whether the first pass is part of this call, which the queue then makes. The pass creates a missing log.
    ///   - onLost: Receives the reason why the log cannot be followed; called once, until following works again.
    ///   - onNews: Called on the queue after appends and replacements, at least once after the last.
    package func follow(
        isImmediate: Bool = false, onLost: (@Sendable (StoreError) -> Void)? = nil, _ onNews: @escaping NewsHandler
    ) {
        following.withLock { following in
            (following.onNews, following.onLost) = (onNews, onLost)
        }
        if isImmediate { pass(creating: true) } else { schedule() }
    }

    /// Ends following; a call that is already scheduled may still happen.
    package func unfollow() {
        // Released outside the lock, because the end of a watch takes the lock of all watches.
        let ended = following.withLock { following in
            defer {
                (following.onNews, following.onLost) = (nil, nil)
                (following.watch, following.directoryWatch) = (nil, nil)
            }
            return (following.onNews, following.onLost, following.watch, following.directoryWatch)
        }
        _ = ended
    }

    package var isFollowed: Bool { following.withLock { $0.onNews != nil } }

    /// Schedules a pass on the queue; many events in quick succession cause one pass.
    func schedule() {
        let due = following.withLock { following -> DispatchTime? in
            guard following.onNews != nil, !following.isScheduled else { return nil }
            following.isScheduled = true
            // Appends of this process cause events, too: a look after each one would compete with the next append for the lock.
            return following.passedAt + (options.pace / .seconds(1))
        }
        guard let due else { return }
        if due <= .now() {
            queue.async { [weak self] in self?.pass(creating: false) }
        } else {
            queue.asyncAfter(deadline: due) { [weak self] in self?.pass(creating: false) }
        }
    }

    /// Watches the log and announces the changes made before.
    private func pass(creating: Bool) {
        // Cleared first: an event that arrives from here on may announce a change that this pass does not see.
        let onNews = following.withLock { following in
            (following.isScheduled, following.passedAt) = (false, .now())
            return following.onNews
        }
        guard let onNews else { return }
        do throws(StoreError) {
            var isNew = creating
            // Repeated, because another process may replace the log before the watch begins.
            for _ in 0..<8 {
                if !isWatched { try beginWatch() }
                // The watch comes first, so that a change made meanwhile causes an event.
                if isNew || !isUpToDate { try onNews(creating) }
                isNew = false
                if isWatched { return following.withLock { $0.backOff = nil } }
                // A new file would make a removal that is still running fail.
                guard try FileStatus.of(path: path) != nil else { return pass(after: .seconds(1)) }
            }
            throw .fileSystem("following", path: path, errno: ESTALE)
        } catch {
            retry(after: error, onNews)
        }
    }

    /// Whether the file at the path of the log is watched.
    package var isWatched: Bool {
        let (isValid, inode) = following.withLock { ($0.watch?.isValid == true, $0.inode) }
        guard isValid, let status = try? FileStatus.of(path: path) else { return false }
        return status.inode == inode
    }

    private func beginWatch() throws(StoreError) {
        let before = try FileStatus.of(path: path)?.inode
        let watch = try FileWatch(path, for: .content) { [weak self] _ in self?.schedule() }
        // If the log was replaced meanwhile, the watch may be on the old file, and the next attempt replaces it.
        let after = try FileStatus.of(path: path)?.inode
        let inode = before == after ? after ?? 0 : 0
        let directoryWatch = try FileWatch(directory.path, for: .location) { [weak self] _ in self?.schedule() }
        let ended = following.withLock { following in
            let ended = (following.watch, following.directoryWatch)
            // Following may have ended meanwhile.
            guard following.onNews != nil else { return ended }
            (following.watch, following.directoryWatch, following.inode) = (watch, directoryWatch, inode)
            return ended
        }
        _ = ended
    }

    /// Reports that the log cannot be followed, and tries again later.
    private func retry(after error: StoreError, _ onNews: NewsHandler) {
        let (delay, onLost) = following.withLock { following in
            let isFirst = following.backOff == nil
            let delay = following.backOff.map { min($0 * 2, options.longestDelay) } ?? min(.seconds(1), options.longestDelay)
            following.backOff = delay
            return (delay, isFirst ? following.onLost : nil)
        }
        onLost?(error)
        // The changes themselves may be readable. Their error was reported, or has the same reason.
        if !isUpToDate { try? onNews(false) }
        pass(after: delay)
    }

    /// Schedules a pass for later, unless one is scheduled.
    private func pass(after delay: Duration) {
        let isNew = following.withLock { following in
            defer { following.isDelayed = true }
            return !following.isDelayed
        }
        guard isNew else { return }
        queue.asyncAfter(deadline: .after(delay)) { [weak self] in
            guard let self else { return }
            following.withLock { $0.isDelayed = false }
            pass(creating: true)
        }
    }
}
