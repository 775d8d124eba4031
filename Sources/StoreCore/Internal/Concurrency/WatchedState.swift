/// State behind one lock, and tasks that wait until something is true of it.
///
/// No polling, and a cancelled waiter returns at once.
@usableFromInline
package final class WatchedState<State: Sendable>: Sendable {
    /// A task that waits.
    @usableFromInline struct Watcher {
        let ticket: UInt64
        /// Resumed outside the lock, when the watcher has been taken out.
        let continuation: CheckedContinuation<Void, Never>
        /// Whether the state is as the task wants it; what it then returns is kept by whoever asks.
        let isSatisfied: @Sendable (State) -> Bool
    }

    @usableFromInline struct Guarded {
        @usableFromInline var state: State
        /// In the order in which they began to wait.
        var watchers: [Watcher] = []
        var lastTicket: UInt64 = 0

        /// Takes out everybody whose condition holds, and returns what resumes them.
        mutating func takeSatisfied() -> [CheckedContinuation<Void, Never>] {
            var satisfied: [CheckedContinuation<Void, Never>] = []
            watchers.removeAll { watcher in
                guard watcher.isSatisfied(state) else { return false }
                satisfied.append(watcher.continuation)
                return true
            }
            return satisfied
        }
    }

    /// The lock holds the state and those who wait on it: a change and the look at their conditions are one step.
    @usableFromInline let guarded: Lock<Guarded>

    /// Makes the state.
    package init(_ state: State) {
        guarded = Lock(Guarded(state: state))
    }

    /// The state as it is now.
    package var current: State { guarded.withLock { $0.state } }

    /// Looks at the state, or a part of it, without copying all of it.
    @inlinable
    package func read<Result: Sendable>(_ body: (borrowing State) -> Result) -> Result {
        guarded.withLock { body($0.state) }
    }

    /// Changes the state, then wakes every waiter whose condition has come true.
    ///
    /// - Parameter body: Runs under the lock: no user code, no resuming.
    /// - Returns: What `body` returned.
    @discardableResult
    package func update<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, satisfied) = guarded.withLock { guarded in
            let result = body(&guarded.state)
            return (result, guarded.takeSatisfied())
        }
        for continuation in satisfied { continuation.resume() }
        return result
    }

    /// Waits until `condition` returns a value.
    ///
    /// - Parameters:
    ///   - isolation: The caller's actor, which is not left.
    ///   - condition: Looks at the state after each change; runs under the lock, so no user code.
    /// - Returns: The value that `condition` returned first.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    package func wait<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, until condition: @escaping @Sendable (State) -> Value?
    ) async throws -> Value {
        let ticket = guarded.withLock { guarded in
            guarded.lastTicket += 1
            return guarded.lastTicket
        }
        // The value comes under a lock and not with the continuation, whose way the thread sanitizer cannot follow.
        let found = Lock<Value?>(nil)
        await withTaskCancellationHandler {
            // Captured, for else the closure runs on no actor: two hops for every wait of an actor.
            _ = isolation
            await withCheckedContinuation { continuation in
                let waits = guarded.withLock { guarded in
                    // A task is marked cancelled before its handlers run: either this sees the mark, or `cancel` finds the watcher.
                    if Task.isCancelled { return false }
                    if let value = condition(guarded.state) {
                        found.withLock { $0 = value }
                        return false
                    }
                    guarded.watchers.append(
                        Watcher(ticket: ticket, continuation: continuation) { state in
                            guard let value = condition(state) else { return false }
                            found.withLock { $0 = value }
                            return true
                        })
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            cancel(ticket)
        }
        guard let value = found.withLock({ $0 }) else { throw CancellationError() }
        return value
    }

    private func cancel(_ ticket: UInt64) {
        let watcher = guarded.withLock { guarded -> Watcher? in
            guard let index = guarded.watchers.firstIndex(where: { $0.ticket == ticket }) else { return nil }
            return guarded.watchers.remove(at: index)
        }
        watcher?.continuation.resume()
    }
}
