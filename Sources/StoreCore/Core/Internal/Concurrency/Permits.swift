/// A counting semaphore; tasks receive permits in the order in which they asked.
package final class Permits: Sendable {
    private struct State {
        var free: Int
        var hasEnded = false
        var waiters = WaiterList<Void>()

        mutating func takeFree() -> Bool {
            guard !hasEnded, free > 0 else { return false }
            free -= 1
            return true
        }
    }

    /// The right to one unit, until it is released or deallocated.
    package final class Permit: Sendable {
        private let permits: Lock<Permits?>

        fileprivate init(_ permits: Permits) { self.permits = Lock(permits) }

        deinit { release() }

        /// Releases the right; further calls do nothing.
        package func release() {
            permits.withLock { $0.take() }?.giveBack()
        }
    }

    private let state: Lock<State>
    private let count: Int

    /// Creates a semaphore; a count below one counts as one.
    package init(_ count: Int) {
        self.count = max(1, count)
        state = Lock(State(free: max(1, count)))
    }

    package var takenCount: Int { count - state.withLock(\.free) }

    package var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Waits for a permit; throws `CancellationError` as soon as the task is canceled, and after ``end()``.
    package func take(isolation: isolated (any Actor)? = #isolation) async throws -> Permit {
        try Task.checkCancellation()
        let ticket = state.withLock { state -> WaiterList<Void>.Ticket? in
            state.takeFree() || state.hasEnded ? nil : state.waiters.join(())
        }
        if let ticket {
            let isResumed = await WaiterList<Void>.wait { suspension in
                state.withLock { $0.waiters.suspend(ticket, suspension) }
            } onCancel: {
                state.withLock { $0.waiters.remove(ticket) }
            }
            guard isResumed else { throw CancellationError() }
        }
        let permit = Permit(self)
        // A permit that arrives together with the cancellation or the end is released by its deinitializer.
        try Task.checkCancellation()
        guard !state.withLock(\.hasEnded) else { throw CancellationError() }
        return permit
    }

    package func takeIfFree() -> Permit? {
        state.withLock { $0.takeFree() } ? Permit(self) : nil
    }

    /// Resumes all waiting tasks without a permit, and gives out no more permits.
    package func end() {
        let waiters = state.withLock { state in
            state.hasEnded = true
            return state.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    private func giveBack() {
        let next = state.withLock { state in
            let next = state.waiters.removeFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
