internal import StoreCore

/// Limits the number of concurrent exchanges; waiters enter in the order of arrival.
final class ExchangeGate: Sendable {
    private struct State {
        var free: Int
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        /// The tickets of the waiters in order of arrival; canceled tickets are skipped.
        var queue: ArraySlice<UInt64> = []
        var lastTicket: UInt64 = 0
        /// Tickets that were admitted, and tickets that were canceled before they waited.
        var admitted: Set<UInt64> = []
        var left: Set<UInt64> = []

        mutating func wait(_ ticket: UInt64, _ continuation: CheckedContinuation<Void, Never>) {
            // Bounds the queue at twice the number of waiters, even if many are canceled before their turn.
            if queue.count > 2 * waiters.count + 64 { queue.removeAll { waiters[$0] == nil } }
            queue.append(ticket)
            waiters[ticket] = continuation
        }

        /// Admits the first waiter; `nil` if there is none.
        mutating func admitNext() -> CheckedContinuation<Void, Never>? {
            while let ticket = queue.popFirst() {
                guard let continuation = waiters.removeValue(forKey: ticket) else { continue }
                admitted.insert(ticket)
                return continuation
            }
            return nil
        }
    }

    /// The right to one exchange, until it is released or deallocated.
    final class Permit: Sendable {
        private let gate: Lock<ExchangeGate?>

        fileprivate init(_ gate: ExchangeGate) { self.gate = Lock(gate) }

        deinit { release() }

        /// Releases the right; further calls do nothing.
        func release() {
            gate.withLock { $0.take() }?.leave()
        }
    }

    /// Guards the number of free permits together with the waiters.
    private let state: Lock<State>

    init(limit: Int) {
        state = Lock(State(free: max(1, limit)))
    }

    /// The number of waiters.
    var waiterCount: Int { state.withLock(\.waiters.count) }

    /// Waits for a permit.
    ///
    /// - Throws: `CancellationError` as soon as the task is canceled.
    func enter() async throws -> Permit {
        try Task.checkCancellation()
        if let permit = tryToEnter() { return permit }
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isSettled = state.withLock { state in
                    if state.left.remove(ticket) != nil { return true }
                    // A permit became free between the two accesses to the state.
                    if state.free > 0 {
                        state.free -= 1
                        state.admitted.insert(ticket)
                        return true
                    }
                    state.wait(ticket, continuation)
                    return false
                }
                if isSettled { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: ticket)
                // A missing waiter is not waiting yet, or was admitted. An admitted one releases its permit itself.
                if waiter == nil, !state.admitted.contains(ticket) { state.left.insert(ticket) }
                return waiter
            }
            waiter?.resume()
        }
        let isAdmitted = state.withLock { state in
            state.left.remove(ticket)
            return state.admitted.remove(ticket) != nil
        }
        guard isAdmitted else { throw CancellationError() }
        let permit = Permit(self)
        try Task.checkCancellation()
        return permit
    }

    /// Enters without waiting; `nil` if there is no free permit.
    func tryToEnter() -> Permit? {
        let hasRoom = state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
        return hasRoom ? Permit(self) : nil
    }

    private func leave() {
        let next = state.withLock { state in
            let next = state.admitNext()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
