internal import StoreCore

extension Exchange {
    /// Ensures that a task wakes no later than the next deadline; the task ends with the exchange.
    func watch() {
        guard !source.keepsDeadlines else { return }
        let late: Task<Void, Never>? = state.withLock { state in
            guard !state.isOver, let next = state.deadlines.next else { return nil }
            // Arriving bytes postpone deadlines. Only the head can introduce a nearer deadline.
            guard state.watcher == nil || next.instant < state.watched else { return nil }
            let late = state.watcher
            state.watched = next.instant
            state.watcher = Task { await self.keepDeadlines() }
            return late
        }
        late?.cancel()
    }

    private func keepDeadlines() async {
        while let next = nextDeadline() {
            do {
                try await limits.time.sleep(until: next)
            } catch {
                // Canceled: the exchange has ended.
                return
            }
        }
    }

    /// Returns the next deadline to wait for; `nil` after the end. Stops the exchange if that deadline has passed.
    ///
    /// Not inlined: its temporaries would otherwise enlarge the frame of every watcher.
    @inline(never)
    private func nextDeadline() -> MonotonicInstant? {
        let next = state.withLock { state in
            let next = state.isOver || Task.isCancelled ? nil : state.deadlines.next
            state.watched = next?.instant ?? state.watched
            return next
        }
        guard let next else { return nil }
        if next.instant > limits.time.now { return next.instant }
        stop(TransportFailure(next.part, limits))
        return nil
    }
}
