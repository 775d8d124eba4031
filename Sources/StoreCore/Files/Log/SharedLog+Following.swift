package import StoreCore
internal import StorePlatform

// Follows the changes of others, see ``FileFollower``. A pass reads the entries behind the position.

extension SharedLog {
    /// Receives the occasion to read.
    ///
    /// - Parameter creating: Whether to create a missing log. A followed log exists, so that there is always a file to watch.
    package typealias NewsHandler = @Sendable (_ creating: Bool) throws(StoreError) -> Void

    /// The receivers of a followed log.
    struct Following: Sendable {
        /// Called on the queue.
        let onNews: NewsHandler
        let onLost: (@Sendable (StoreError) -> Void)?
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
        following.withLock { $0 = Following(onNews: onNews, onLost: onLost) }
        if isImmediate { pass(creating: true) } else { schedule() }
    }

    /// Ends following; a call that is already scheduled may still happen.
    package func unfollow() {
        // Released outside the lock, because a receiver may hold the last reference to its owner.
        _ = following.withLock { $0.take() }
        follower.endWatch()
        // The log may be followed again meanwhile, and the watch that has just ended may be the new one.
        schedule()
    }

    package var isFollowed: Bool { following.withLock { $0 != nil } }

    /// Whether the file at the path of the log is watched.
    package var isWatched: Bool { follower.isWatching }

    func schedule() {
        guard isFollowed else { return }
        follower.schedule { [weak self] in self?.pass(creating: false) }
    }

    /// Watches the log and announces the changes made before.
    private func pass(creating: Bool) {
        follower.passBegan()
        guard let onNews = following.withLock({ $0?.onNews }) else { return }
        let again: @Sendable () -> Void = { [weak self] in self?.pass(creating: true) }
        do throws(StoreError) {
            var isNew = creating
            // Repeated, because another process may replace the log before the watch begins.
            for _ in 0..<8 {
                if !isWatched { try beginWatch() }
                // The watch comes first, so that a change made meanwhile causes an event.
                if isNew || !isUpToDate { try onNews(creating) }
                isNew = false
                if isWatched { return follower.passSucceeded() }
                // A new file would make a removal that is still running fail.
                guard try FileStatus.of(path: path) != nil else { return follower.schedule(after: .seconds(1), again) }
            }
            throw .fileSystem("following", path: path, errno: ESTALE)
        } catch {
            if follower.passFailed(then: again) { following.withLock { $0?.onLost }?(error) }
            // The changes themselves may be readable. Their error was reported, or has the same reason.
            if !isUpToDate { try? onNews(false) }
        }
    }

    private func beginWatch() throws(StoreError) {
        try follower.watch { [weak self] in self?.schedule() }
        // Following may have ended meanwhile.
        if !isFollowed { follower.endWatch() }
    }
}
