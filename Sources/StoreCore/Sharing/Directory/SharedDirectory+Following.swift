internal import Dispatch

// Following the changes of others: an event of the file system for each batch of changes, and no work between two events.

extension SharedDirectory {
    /// How the directory is followed.
    struct Following: Sendable {
        /// Whether changes are wanted.
        var isWanted = false
        var target = Target.nothing
        var watches: [FileWatch] = []
        /// The number of events after which the watched path may lead elsewhere.
        var lossCount = 0
        /// Whether an event waits on the queue to be handled; further events add nothing.
        var isScheduled = false
        /// The delay before the next attempt; `nil` while following works.
        var backOff: Duration?

        enum Target: Sendable {
            case nothing
            /// The ring: its events announce changes.
            case ring
            /// A directory above the ring: its events announce that the ring may exist now.
            case ancestor
        }
    }

    /// Begins to follow the changes at the first call; runs on the queue.
    func follow() {
        let isFirst = state.withLock { state in
            defer { state.following.isWanted = true }
            return !state.following.isWanted
        }
        if isFirst { update() }
    }

    /// Ends following; events that are under way have no effect.
    func unfollow() {
        state.withLock { state in
            state.following.isWanted = false
            state.following.watches = []
            state.following.target = .nothing
        }
    }

    /// Watches what exists, and delivers the changes made before.
    private func update() {
        do throws(StoreError) {
            // The watch comes first, so that a change made meanwhile causes an event.
            for _ in 0..<16 {
                try beginWatch()
                let exists = try catchUp()
                let isRing = state.withLock { if case .ring = $0.following.target { true } else { false } }
                if exists == isRing { break }
            }
            state.withLock { $0.following.backOff = nil }
        } catch {
            retry(after: error)
        }
    }

    private func beginWatch() throws(StoreError) {
        let (isCurrent, losses) = state.withLock { state in
            let isRing = if case .ring = state.following.target { true } else { false }
            return (isRing && !state.following.watches.isEmpty && state.following.watches.allSatisfy(\.isValid), state.following.lossCount)
        }
        if isCurrent, state.withLock({ $0.files?.ring.isNamed == true }) { return }
        let onEvent: @Sendable (FileWatch.Event) -> Void = { [weak self] event in
            guard let self else { return }
            // Ends the watch even if the file that was opened last has its name: the watch may be on an older file, which other processes
            // keep open.
            if event.mayHaveLostPath { endWatches() }
            schedule()
        }
        if let watch = try FileWatch(ringPath, for: .content, onEvent) {
            return set([watch], .ring, losses)
        }
        var missing = Directory(path: ringPath)
        while let place = missing.parent {
            // First the parent: a directory that a process keeps open reports its removal only there.
            let parent = try place.parent.flatMap { (parent) throws(StoreError) in try FileWatch(parent.path, for: .names, onEvent) }
            if let watch = try FileWatch(place.path, for: .names, onEvent) {
                set([watch] + (parent.map { [$0] } ?? []), .ancestor, losses)
                // It may have appeared before the watch began; then it is the one to watch.
                guard try missing.status() != nil else { return }
                return try beginWatch()
            }
            missing = place
        }
    }

    /// Keeps watches, unless their path has been lost since they began.
    private func set(_ watches: [FileWatch], _ target: Following.Target, _ losses: Int) {
        // Released outside the lock, because the end of a watch takes the lock of all watches.
        let ended = state.withLock { state in
            let ended = state.following.watches
            state.following.target = target
            state.following.watches = state.following.isWanted && state.following.lossCount == losses ? watches : []
            return ended
        }
        _ = ended
    }

    private func endWatches() {
        let ended = state.withLock { state in
            defer { state.following.watches = [] }
            state.following.lossCount += 1
            return state.following.watches
        }
        _ = ended
    }

    /// Handles an event on the queue; many events in a row are handled once.
    private func schedule() {
        let isNew = state.withLock { state in
            defer { state.following.isScheduled = true }
            return !state.following.isScheduled && state.following.isWanted
        }
        guard isNew else { return }
        queue.async { [weak self] in
            guard let self else { return }
            // Cleared first: an event that arrives from here on may announce a change that this pass does not see.
            state.withLock { $0.following.isScheduled = false }
            update()
        }
    }

    /// Reports that the directory cannot be followed, and tries again later.
    private func retry(after error: StoreError) {
        let (delay, isFirst) = state.withLock { state in
            let delay = state.following.backOff.map { min($0 * 2, .seconds(60)) } ?? .seconds(1)
            defer { state.following.backOff = delay }
            return (delay, state.following.backOff == nil)
        }
        // Counted from here on, so that nothing is missed between the loads that follow and the next attempt.
        if state.withLock({ $0.position == nil }), (try? catchUp()) == nil {
            state.withLock { $0.position = Revision.none }
        }
        if isFirst { onNotice(.lost(error)) }
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(delay.saturatedNanoseconds))) { [weak self] in
            guard let self, state.withLock({ $0.following.isWanted }) else { return }
            update()
        }
    }
}
