internal import Dispatch
internal import StoreCore
internal import StorePlatform

// Follows the changes of others through file system events, one for each batch of changes, and does no work between two events.
//
// An event carries no information. It causes a pass, which compares the open files with the path and the position with the ring. So a
// superfluous event costs one comparison, and the order of events has no effect.

extension SharedDirectory {
    /// How the directory is followed. Only the queue watches and ends a watch.
    struct Following: Sendable {
        /// Whether changes are to be delivered: from the first call of `follow()` to `unfollow()`.
        var isWanted = false
        /// Whether a pass waits on the queue, so that further events need no pass of their own.
        var isScheduled = false
        /// Whether a pass waits for its time.
        var isDelayed = false
        /// The delay before the next attempt; `nil` while following works.
        var backOff: Duration?
    }

    /// The delay before a removed directory is created again, because a new file would make a removal that is still running fail.
    private static var removalTime: Duration { .seconds(1) }

    /// Begins to follow the changes at the first call; runs on the queue.
    func follow() {
        let isFirst = state.withLock { state in
            defer { state.following.isWanted = true }
            return !state.following.isWanted
        }
        if isFirst { update(creating: true) }
    }

    /// Ends following; events that are under way have no effect.
    func unfollow() {
        state.withLock { $0.following.isWanted = false }
        queue.async { [weak self] in
            self?.state.withLock { state in
                guard !state.following.isWanted else { return }
                state.files?.watch = nil
                state.files?.directoryWatch = nil
            }
        }
    }

    /// Schedules a pass on the queue; many events in quick succession cause one pass.
    func schedule() {
        let isNew = state.withLock { state in
            guard state.following.isWanted, !state.following.isScheduled else { return false }
            state.following.isScheduled = true
            return true
        }
        guard isNew else { return }
        queue.async { [weak self] in
            guard let self else { return }
            // Cleared first: an event that arrives from here on may announce a change that this pass does not see.
            state.withLock { $0.following.isScheduled = false }
            update(creating: false)
        }
    }

    /// Watches the ring and delivers the changes made before.
    ///
    /// - Parameter creating: Whether to create the directory and the ring. They exist while the directory is followed, so there is always
    ///   a file to watch.
    private func update(creating: Bool) {
        guard state.withLock({ $0.following.isWanted }) else { return }
        do throws(StoreError) {
            // Repeated, because another process may replace the ring before the watch begins.
            for _ in 0..<8 {
                guard let files = try open(creating: creating) else { return update(after: Self.removalTime) }
                if files.watch?.isValid != true { try beginWatch(files) }
                // The watch comes first, so that a change made meanwhile causes an event.
                guard try catchUp(), isWatched else { continue }
                return state.withLock { $0.following.backOff = nil }
            }
            throw .fileSystem("following", path: ringPath, errno: ESTALE)
        } catch {
            retry(after: error)
        }
    }

    /// Whether the file at the path of the ring is watched.
    private var isWatched: Bool {
        guard let files = state.withLock({ $0.files }) else { return false }
        return files.watch?.isValid == true && files.ring.isNamed
    }

    private func beginWatch(_ files: Files) throws(StoreError) {
        let watch = try FileWatch(ringPath, for: .content) { [weak self] _ in self?.schedule() }
        let directoryWatch = try FileWatch(directory.path, for: .location) { [weak self] _ in self?.schedule() }
        // The watches may be on other files than the opened ones. The ring then has lost its name, and is opened again.
        state.withLock { state in
            guard state.files?.ring === files.ring else { return }
            state.files?.watch = watch
            state.files?.directoryWatch = directoryWatch
        }
    }

    /// Reports that the directory cannot be followed, and tries again later.
    private func retry(after error: StoreError) {
        let (delay, isFirst) = state.withLock { state in
            let delay = state.following.backOff.map { min($0 * 2, .seconds(60)) } ?? .seconds(1)
            defer { state.following.backOff = delay }
            return (delay, state.following.backOff == nil)
        }
        // The position counts from here on, so that no change between the following loads and the next attempt is missed.
        if state.withLock({ $0.position == nil }), (try? catchUp()) == nil {
            state.withLock { $0.position = Revision.none }
        }
        if isFirst { onNotice(.lost(error)) }
        update(after: delay)
    }

    /// Schedules a pass for later, unless one is scheduled.
    private func update(after delay: Duration) {
        let isNew = state.withLock { state in
            defer { state.following.isDelayed = true }
            return !state.following.isDelayed
        }
        guard isNew else { return }
        queue.asyncAfter(deadline: .after(delay)) { [weak self] in
            guard let self else { return }
            state.withLock { $0.following.isDelayed = false }
            update(creating: true)
        }
    }
}
