internal import StoreCore

/// Lets so many exchanges run at once; the others wait in the order in which they came.
final class ExchangeGate: Sendable {
    private struct State {
        var free: Int
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        /// The tickets of those who wait, in the order in which they came; who has left is passed over.
        var queue: ArraySlice<UInt64> = []
        var lastTicket: UInt64 = 0
        /// Whose turn has come, and who gave up before it had begun to wait.
        var admitted: Set<UInt64> = []
        var left: Set<UInt64> = []

        mutating func wait(_ ticket: UInt64, _ continuation: CheckedContinuation<Void, Never>) {
            // So that it is no longer than twice what it is good for, however many leave before their turn.
            if queue.count > 2 * waiters.count + 64 { queue.removeAll { waiters[$0] == nil } }
            queue.append(ticket)
            waiters[ticket] = continuation
        }

        /// Lets the one who came first begin; `nil` where nobody waits.
        mutating func admitNext() -> CheckedContinuation<Void, Never>? {
            while let ticket = queue.popFirst() {
                guard let continuation = waiters.removeValue(forKey: ticket) else { continue }
                admitted.insert(ticket)
                return continuation
            }
            return nil
        }
    }

    /// The right to one exchange; ends when it is let go of, or before.
    final class Permit: Sendable {
        private let gate: Lock<ExchangeGate?>

        fileprivate init(_ gate: ExchangeGate) { self.gate = Lock(gate) }

        deinit { release() }

        /// Gives the right back; further calls do nothing.
        func release() {
            gate.withLock { $0.take() }?.leave()
        }
    }

    /// Guards how many may still enter together with who waits.
    private let state: Lock<State>

    init(limit: Int) {
        state = Lock(State(free: max(1, limit)))
    }

    /// How many wait.
    var waiterCount: Int { state.withLock(\.waiters.count) }

    /// Waits for its turn.
    ///
    /// - Throws: `CancellationError` as soon as the task is cancelled.
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
                    // Somebody left between the two looks at the state.
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
                // Not waiting yet, or admitted already: then it gives its right back itself.
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

    /// Enters where there is room.
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
