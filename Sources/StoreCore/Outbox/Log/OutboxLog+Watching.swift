internal import Dispatch
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

// Follows the appends of other processes through file system events, and does no work between two events.

extension OutboxLog {
    struct Watching: Sendable {
        /// Called on the queue; `nil` while the log is not followed.
        var onNews: (@Sendable () -> Void)?
        /// The watch on the log; `nil` if the log cannot be watched.
        var watch: FileWatch?
        /// Whether an event waits on the queue to be handled, so that further events need no handling of their own.
        var isScheduled = false
        /// The time of the last look at the log.
        var lookedAt = DispatchTime(uptimeNanoseconds: 0)
        /// The log that was open before the watch began. If it has lost its name, the watch may be on a file that was replaced.
        var watchedLog: WritableFile?
        /// Whether the log is checked once a second, because it cannot be watched.
        var isPolling = false
    }

    /// Begins to follow the log, and replaces an earlier closure.
    ///
    /// - Parameter onNews: Called after appends and replacements, at least once after the last; runs on a queue of the log.
    package func observe(_ onNews: @escaping @Sendable () -> Void) {
        watching.withLock { $0.onNews = onNews }
        schedule()
    }

    /// Ends following; a call that is already scheduled may still happen.
    package func endObserving() {
        // Released outside the lock, because the end of a watch takes the lock of all watches.
        let ended = watching.withLock { watching in
            defer { watching = Watching() }
            return (watching.onNews, watching.watch)
        }
        _ = ended
    }

    private func schedule() {
        let due = watching.withLock { watching -> DispatchTime? in
            defer { watching.isScheduled = true }
            return !watching.isScheduled && watching.onNews != nil ? watching.lookedAt + .milliseconds(2) : nil
        }
        guard let due else { return }
        // Appends of this process cause events, too: a look after each one would compete with the next append for the lock.
        if due <= .now() {
            queue.async { [weak self] in self?.handleEvent() }
        } else {
            queue.asyncAfter(deadline: due) { [weak self] in self?.handleEvent() }
        }
    }

    private func handleEvent() {
        // Cleared first: an event that arrives from here on may announce an append that this call does not see.
        let (isValid, watchedLog) = watching.withLock { watching in
            (watching.isScheduled, watching.lookedAt) = (false, .now())
            return (watching.watch?.isValid == true, watching.watchedLog)
        }
        if !isValid || watchedLog?.isNamed != true { watch() }
        if !isUpToDate { watching.withLock { $0.onNews }?() }
    }

    private func watch() {
        let log = openLog
        // Without a watch, such as beyond the system's limit, polling takes its place.
        let watch = try? FileWatch(logPath, for: .content) { [weak self] _ in self?.schedule() }
        let (ended, polls) = watching.withLock { watching in
            let ended = watching.watch
            watching.watch = watching.onNews == nil ? nil : watch
            watching.watchedLog = log
            let polls = watch == nil && watching.onNews != nil && !watching.isPolling
            if polls { watching.isPolling = true }
            return (ended, polls)
        }
        _ = ended
        guard polls else { return }
        queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
            guard let self else { return }
            watching.withLock { $0.isPolling = false }
            schedule()
        }
    }
}
