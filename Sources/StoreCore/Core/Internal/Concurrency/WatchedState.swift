/// State behind one lock, and tasks that wait for a condition on it, without polling.
///
/// A state with many parts, each with its own waiters, reports the parts that have changed; only their waiters are checked.
@usableFromInline
package final class WatchedState<State: Sendable>: Sendable {
    /// Returns whether the state satisfies a waiter, and then keeps the value for it.
    @usableFromInline typealias Condition = @Sendable (State) -> Bool

    @usableFromInline struct Guarded {
        @usableFromInline var state: State
        var watchers = WaiterList<Condition>()
        /// The waiters for a part, by its hash value; a collision only costs a check.
        var partWatchers: [Int: WaiterList<Condition>] = [:]
        /// A list ends with its last waiter. No ticket of it may be given out again, because its waiters may be about to suspend.
        var lastTicket: WaiterList<Condition>.Ticket = 0

        mutating func takeSatisfied(_ changes: ChangedParts) -> [WaiterList<Condition>.Waiter] {
            var satisfied = watchers.isEmpty ? [] : watchers.removeAll { $0(state) }
            guard !partWatchers.isEmpty else { return satisfied }
            for part in changes.parts ?? Set(partWatchers.keys) {
                satisfied += partWatchers[part]?.removeAll { $0(state) } ?? []
                if partWatchers[part]?.isEmpty == true { partWatchers[part] = nil }
            }
            return satisfied
        }

        mutating func join(_ part: Int?, _ condition: @escaping Condition) -> WaiterList<Condition>.Ticket {
            lastTicket += 1
            let ticket = lastTicket
            change(part) { $0.join(condition, as: ticket) }
            return ticket
        }

        /// Changes the waiters for a part; `nil` for the waiters for the whole state.
        mutating func change<Result>(_ part: Int?, _ body: (inout WaiterList<Condition>) -> Result) -> Result {
            guard let part else { return body(&watchers) }
            defer { if partWatchers[part]?.isEmpty == true { partWatchers[part] = nil } }
            return body(&partWatchers[part, default: WaiterList()])
        }
    }

    /// Guards the state together with the waiters, so that a change and the check of their conditions are one step.
    @usableFromInline let guarded: Lock<Guarded>
    private let takeChanges: @Sendable (inout State) -> ChangedParts

    /// Creates a watched state; after each change, `takeChanges` returns the parts that have changed since its last call.
    package init(_ state: State, takeChanges: @escaping @Sendable (inout State) -> ChangedParts = { _ in .everything }) {
        guarded = Lock(Guarded(state: state))
        self.takeChanges = takeChanges
    }

    /// A copy of the state; `read(_:)` copies only a part.
    package var current: State { guarded.withLock { $0.state } }

    /// Reads a part of the state without copying the whole.
    @inlinable
    package func read<Result: Sendable>(_ body: (borrowing State) -> Result) -> Result {
        guarded.withLock { body($0.state) }
    }

    /// Changes the state, and then resumes the waiters with a fulfilled condition.
    ///
    /// - Parameter body: Runs under the lock; it must not call user code or resume tasks.
    @discardableResult
    package func update<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, satisfied) = guarded.withLock { guarded in
            let result = body(&guarded.state)
            return (result, guarded.takeSatisfied(takeChanges(&guarded.state)))
        }
        for waiter in satisfied { waiter.resume() }
        return result
    }

    /// Waits until `condition` returns a value, at most for `timeout` in real time.
    ///
    /// The condition reads the state now and after each change of the part, or of any for `nil`. It runs under the lock and must not call
    /// user code.
    ///
    /// - Throws: `CancellationError` as soon as the task is canceled, ``WaitTimedOut`` after the timeout.
    package func wait<Value: Sendable>(
        for part: (some Hashable & Sendable)? = String?.none, timeout: Duration? = nil,
        isolation: isolated (any Actor)? = #isolation, until condition: @escaping @Sendable (State) -> Value?
    ) async throws -> Value {
        try Task.checkCancellation()
        let part = part?.hashValue
        // The value does not travel with the continuation, because the thread sanitizer cannot follow it.
        let found = Lock<Value?>(nil)
        let (value, ticket) = guarded.withLock { guarded -> (Value?, WaiterList<Condition>.Ticket) in
            if let value = condition(guarded.state) { return (value, 0) }
            let isSatisfied: Condition = { state in
                guard let value = condition(state) else { return false }
                found.withLock { $0 = value }
                return true
            }
            return (nil, guarded.join(part, isSatisfied))
        }
        if let value { return value }
        let timer = timeout.map { startTimer($0, ticket, part) }
        defer { timer?.cancel() }
        await suspend { suspension in
            let isWaiting = guarded.withLock { $0.change(part) { $0.suspend(ticket, suspension) } }
            if !isWaiting { suspension.resume() }
        } onCancel: {
            leave(ticket, part)
        }
        if let value = found.withLock({ $0 }) { return value }
        // The timer ends the wait without a value and without a cancellation.
        try Task.checkCancellation()
        throw WaitTimedOut()
    }

    private func startTimer(_ timeout: Duration, _ ticket: UInt64, _ part: Int?) -> Task<Void, Never> {
        Task {
            // At most a century, because the runtime traps for a sleep that its clock cannot count.
            let timeout = min(timeout, .seconds(100 * 366 * 86_400))
            // The suspending clock stops while the machine sleeps. A canceled sleep means that the wait has ended.
            guard (try? await Task.sleep(for: timeout, clock: .suspending)) != nil else { return }
            leave(ticket, part)
        }
    }

    private func leave(_ ticket: UInt64, _ part: Int?) {
        guarded.withLock { $0.change(part) { $0.remove(ticket) } }?.resume()
    }
}

package struct WaitTimedOut: Error {}

/// The parts of a state that have changed.
package struct ChangedParts: Sendable {
    /// The hash values of the parts; `nil` for all parts.
    fileprivate var parts: Set<Int>?

    package static let everything = ChangedParts(parts: nil)
    package static let nothing = ChangedParts(parts: [])

    /// Adds a part, unless all parts count as changed already.
    package mutating func insert(_ part: some Hashable) { parts?.insert(part.hashValue) }

    package mutating func take() -> ChangedParts {
        defer { self = .nothing }
        return self
    }
}
