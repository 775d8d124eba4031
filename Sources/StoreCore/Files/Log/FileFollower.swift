package import Dispatch
package import StoreCore
package import StorePlatform

/// Follows a file that other processes change: watches it, and runs a pass for each batch of events.
///
/// An event carries no information. A pass compares the watched file with the path, and the content with what was read. So a superfluous
/// event costs one comparison, and the order of events has no effect. Between two events, a follower does no work.
package final class FileFollower: Sendable {
    package struct State: Sendable {
        fileprivate var watches: [FileWatch] = []
        /// The number of the watched file; `nil` if no file is watched, or if another file took the path meanwhile.
        package fileprivate(set) var inode: UInt64?
        /// Whether a pass is about to run, so that further events need no pass of their own.
        package var isScheduled = false
        /// The time for which a pass waits.
        fileprivate var due: DispatchTime?
        /// The time of the last pass.
        fileprivate var passedAt = DispatchTime(uptimeNanoseconds: 0)
        /// The delay before the next attempt; `nil` while following works.
        package fileprivate(set) var backOff: Duration?
    }

    package let state = Lock(State())
    private let path: String
    /// A directory whose loss of its name causes an event too, because the file does not notice that.
    private let directory: Directory?
    /// The shortest time between two passes.
    private let pace: Duration
    /// The longest delay between two attempts to follow.
    private let longestDelay: Duration
    /// The queue on which passes begin.
    private let queue: DispatchQueue

    package init(
        _ path: String, in directory: Directory? = nil, pace: Duration = .zero, longestDelay: Duration = .seconds(60),
        on queue: DispatchQueue
    ) {
        (self.path, self.directory, self.pace, self.longestDelay, self.queue) = (path, directory, pace, longestDelay, queue)
    }

    // MARK: Watching

    /// Whether there is a watch, even if it has ended by itself.
    package var hasWatch: Bool { state.withLock { !$0.watches.isEmpty } }

    /// Whether the file at the path is watched.
    package var isWatching: Bool {
        let (watches, inode) = state.withLock { ($0.watches, $0.inode) }
        guard let inode, watches.allSatisfy(\.isValid), let status = try? FileStatus.of(path: path) else { return false }
        return status.inode == inode
    }

    /// Watches the file at the path in place of the one that was watched. The closure is called on any thread.
    package func watch(_ onEvent: @escaping @Sendable () -> Void) throws(StoreError) {
        var places: [(path: String, interest: FileWatch.Interest)] = [(path, .content)]
        if let directory { places.append((directory.path, .location)) }
        let before = try FileStatus.of(path: path)?.inode
        var watches: [FileWatch] = []
        for place in places {
            if let watch = try FileWatch(place.path, for: place.interest, { _ in onEvent() }) { watches.append(watch) }
        }
        // If the file was replaced meanwhile, the watch may be on the old file, and the next attempt replaces it.
        let after = try FileStatus.of(path: path)?.inode
        setWatches(watches, inode: before == after && watches.count == places.count ? after : nil)
    }

    package func endWatch() { setWatches([], inode: nil) }

    private func setWatches(_ watches: [FileWatch], inode: UInt64?) {
        var watches = watches
        state.withLock { state in
            swap(&state.watches, &watches)
            state.inode = inode
        }
        // The older ones are released here, because the end of a watch takes the lock of all watches.
    }

    // MARK: Passes

    /// Schedules a pass; many events in quick succession cause one.
    package func schedule(_ pass: @escaping @Sendable () -> Void) {
        let due = state.withLock { state -> DispatchTime? in
            guard !state.isScheduled else { return nil }
            state.isScheduled = true
            // Changes of this process cause events, too: a look after each one would compete with the next change for the lock. So does an
            // attempt that fails, and it must not cause the next one at once.
            return state.passedAt + (max(pace, min(state.backOff ?? .zero, .seconds(1))) / .seconds(1))
        }
        guard let due else { return }
        if due <= .now() { queue.async { pass() } } else { queue.asyncAfter(deadline: due) { pass() } }
    }

    /// Schedules a pass for later, unless one is due sooner.
    package func schedule(after delay: Duration, _ pass: @escaping @Sendable () -> Void) {
        let due = DispatchTime.after(delay)
        let isFirst = state.withLock { state in
            guard due < state.due ?? .distantFuture else { return false }
            state.due = due
            return true
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: due) { [weak self] in
            let isDue = self?.state.withLock { state in
                guard state.due == due else { return false }
                state.due = nil
                return true
            }
            if isDue == true { pass() }
        }
    }

    /// Notes the beginning of a pass: an event that arrives from here on may announce a change that the pass does not see.
    package func passBegan() { state.withLock { ($0.isScheduled, $0.passedAt) = (false, .now()) } }

    /// Notes that following works.
    package func passSucceeded() { state.withLock { $0.backOff = nil } }

    /// Notes that following does not work, schedules the next attempt, and returns whether following worked before.
    package func passFailed(then pass: @escaping @Sendable () -> Void) -> Bool {
        let (delay, isFirst) = state.withLock { state in
            let delay = min(state.backOff.map { $0 * 2 } ?? Duration.seconds(1), longestDelay)
            defer { state.backOff = delay }
            return (delay, state.backOff == nil)
        }
        schedule(after: delay, pass)
        return isFirst
    }
}
