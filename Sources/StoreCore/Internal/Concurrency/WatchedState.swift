/// State behind one lock, and tasks that wait until something is true of it.
///
/// No polling, and a cancelled waiter returns at once. Where a state has many parts, each with somebody who waits for it, the state says
/// which of them have changed, and only those who wait for these are looked at.
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
        /// Those who wait for the whole, in the order in which they began to.
        var watchers: [Watcher] = []
        /// Those who wait for a part, by its hash value: at worst somebody is looked at in vain.
        var partWatchers: [Int: [Watcher]] = [:]
        var lastTicket: UInt64 = 0

        /// Takes out everybody whose condition holds, and returns what resumes them.
        mutating func takeSatisfied(_ changes: ChangedParts) -> [CheckedContinuation<Void, Never>] {
            var satisfied: [CheckedContinuation<Void, Never>] = []
            if !watchers.isEmpty { Self.take(from: &watchers, state, &satisfied) }
            guard !partWatchers.isEmpty else { return satisfied }
            for part in changes.parts ?? Set(partWatchers.keys) { take(part, &satisfied) }
            return satisfied
        }

        private mutating func take(_ part: Int, _ satisfied: inout [CheckedContinuation<Void, Never>]) {
            guard let index = partWatchers.index(forKey: part) else { return }
            Self.take(from: &partWatchers.values[index], state, &satisfied)
            if partWatchers.values[index].isEmpty { partWatchers.remove(at: index) }
        }

        private static func take(from watchers: inout [Watcher], _ state: State, _ satisfied: inout [CheckedContinuation<Void, Never>]) {
            watchers.removeAll { watcher in
                guard watcher.isSatisfied(state) else { return false }
                satisfied.append(watcher.continuation)
                return true
            }
        }
    }

    /// The lock holds the state and those who wait on it: a change and the look at their conditions are one step.
    @usableFromInline let guarded: Lock<Guarded>
    private let takeChanges: @Sendable (inout State) -> ChangedParts

    /// Makes the state.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - takeChanges: Asked after each change which parts have changed since it was asked last.
    package init(_ state: State, takeChanges: @escaping @Sendable (inout State) -> ChangedParts = { _ in .everything }) {
        guarded = Lock(Guarded(state: state))
        self.takeChanges = takeChanges
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
            return (result, guarded.takeSatisfied(takeChanges(&guarded.state)))
        }
        for continuation in satisfied { continuation.resume() }
        return result
    }

    /// Waits until `condition` returns a value.
    ///
    /// - Parameters:
    ///   - part: What the condition looks at; `nil` where it may be anything.
    ///   - timeout: The longest wait, in real time; `nil` waits without a limit.
    ///   - isolation: The caller's actor, which is not left.
    ///   - condition: Looks at the state after each change of the part; runs under the lock, so no user code.
    /// - Returns: The value that `condition` returned first.
    /// - Throws: `CancellationError` as soon as the task is canceled, ``WaitTimedOut`` when the timeout has passed.
    package func wait<Value: Sendable>(
        for part: (some Hashable & Sendable)? = String?.none, timeout: Duration? = nil,
        isolation: isolated (any Actor)? = #isolation, until condition: @escaping @Sendable (State) -> Value?
    ) async throws -> Value {
        let ticket = guarded.withLock { guarded in
            guarded.lastTicket += 1
            return guarded.lastTicket
        }
        let part = part?.hashValue
        // The value comes under a lock and not with the continuation, whose way the thread sanitizer cannot follow.
        let found = Lock<Value?>(nil)
        var timer: Task<Void, Never>?
        defer { timer?.cancel() }
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
                    let watcher = Watcher(ticket: ticket, continuation: continuation) { state in
                        guard let value = condition(state) else { return false }
                        found.withLock { $0 = value }
                        return true
                    }
                    if let part { guarded.partWatchers[part, default: []].append(watcher) } else { guarded.watchers.append(watcher) }
                    return true
                }
                guard waits else { return continuation.resume() }
                if let timeout { timer = startTimer(timeout, ticket, part) }
            }
        } onCancel: {
            cancel(ticket, part)
        }
        if let value = found.withLock({ $0 }) { return value }
        // The timer resumes the wait without a value and without a cancellation.
        if Task.isCancelled { throw CancellationError() }
        throw WaitTimedOut()
    }

    private func startTimer(_ timeout: Duration, _ ticket: UInt64, _ part: Int?) -> Task<Void, Never> {
        Task {
            // Bounded, because the runtime traps for a sleep that its clock cannot count.
            let timeout = min(timeout, .longestTimeout)
            // The suspending clock stops while the machine sleeps. A canceled sleep means that the wait has ended.
            guard (try? await Task.sleep(for: timeout, clock: .suspending)) != nil else { return }
            cancel(ticket, part)
        }
    }

    private func cancel(_ ticket: UInt64, _ part: Int?) {
        func remove(from watchers: inout [Watcher]) -> Watcher? {
            watchers.firstIndex { $0.ticket == ticket }.map { watchers.remove(at: $0) }
        }
        let watcher = guarded.withLock { guarded -> Watcher? in
            guard let part else { return remove(from: &guarded.watchers) }
            guard let index = guarded.partWatchers.index(forKey: part) else { return nil }
            defer { if guarded.partWatchers.values[index].isEmpty { guarded.partWatchers.remove(at: index) } }
            return remove(from: &guarded.partWatchers.values[index])
        }
        watcher?.continuation.resume()
    }
}

extension Duration {
    /// The longest timeout of a wait: a century.
    fileprivate static var longestTimeout: Duration { .seconds(100 * 366 * 86_400) }
}

/// The error of a wait whose timeout has passed.
package struct WaitTimedOut: Error {}

/// Which parts of a state have changed.
package struct ChangedParts: Sendable {
    /// The hash values of the parts; `nil` for all parts.
    fileprivate var parts: Set<Int>?

    /// All parts.
    package static let everything = ChangedParts(parts: nil)
    /// No part.
    package static let nothing = ChangedParts(parts: [])

    /// Adds a part.
    package mutating func insert(_ part: some Hashable) { parts?.insert(part.hashValue) }

    /// Hands over what has changed, and begins anew with nothing.
    package mutating func take() -> ChangedParts {
        defer { self = .nothing }
        return self
    }
}
