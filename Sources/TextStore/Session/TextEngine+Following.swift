internal import Dispatch
import StoreCore

/// The state of following the changes of other processes.
struct Following: Sendable {
    /// Whether a pass is about to run; further events add nothing.
    var isScheduled = false
    /// Whether a pass waits for its time.
    var isDelayed = false
    /// The delay before the next attempt; `nil` while following works.
    var backOff: Duration?
}

extension TextEngine {
    /// Begins to follow other processes if texts are observed, publishes their changes, and otherwise ends following.
    ///
    /// Many calls in a row cause one pass.
    func updateFollowing() {
        let isNew = following.withLock { following in
            defer { following.isScheduled = true }
            return !following.isScheduled
        }
        guard isNew else { return }
        Task { [weak self] in await self?.follow() }
    }

    private func follow() async {
        // Cleared first: an event that arrives from here on may announce a change that this pass does not see.
        following.withLock { $0.isScheduled = false }
        do {
            let outcome = try await shelf.follow(onEvent: { [weak self] in self?.updateFollowing() })
            following.withLock { $0.backOff = nil }
            // The process that removes the directory may still be removing it, so it is made again later.
            guard let outcome else { return updateFollowing(after: .seconds(1)) }
            report(outcome)
            // Another process may have deleted an observed text.
            if outcome.isForeign { begin() }
        } catch {
            let (delay, isFirst) = following.withLock { following in
                let delay = following.backOff.map { min($0 * 2, .seconds(60)) } ?? .seconds(1)
                defer { following.backOff = delay }
                return (delay, following.backOff == nil)
            }
            if isFirst { report(.fault(.wrapping(error, .fileSystem, "cannot follow other processes"))) }
            updateFollowing(after: delay)
        }
    }

    /// Schedules a pass for later, unless one is scheduled.
    private func updateFollowing(after delay: Duration) {
        let isNew = following.withLock { following in
            defer { following.isDelayed = true }
            return !following.isDelayed
        }
        guard isNew else { return }
        DispatchQueue.global().asyncAfter(deadline: .after(delay)) { [weak self] in
            guard let self else { return }
            following.withLock { $0.isDelayed = false }
            updateFollowing()
        }
    }
}
