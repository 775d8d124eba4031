internal import StoreCore

/// How many workers may be in the middle of an item: more workers than that stand by, for whoever gives up its slot.
///
/// A worker gives up its slot while its item waits for nothing but the disk, so that another one's transfer goes on meanwhile.
final class WorkerSlots: Sendable {
    /// How many items may wait for the disk beside those that are transferred; each holds an open file.
    static let standbyCount = 64

    private struct State: Sendable {
        var free: Int
        var hasEnded = false
        var lastTicket: UInt64 = 0
        var waiting: [(ticket: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
        /// Who was given a slot, and does not know it yet.
        var given: Set<UInt64> = []
    }

    private let state: Lock<State>

    init(_ count: Int) {
        state = Lock(State(free: count))
    }

    /// Waits for a slot.
    ///
    /// - Returns: Whether there was one: `false` where there is no more to do, or the task is cancelled.
    func take() async -> Bool {
        let (isMine, ticket) = state.withLock { state -> (Bool?, UInt64) in
            if state.hasEnded { return (false, 0) }
            if state.free > 0 {
                state.free -= 1
                return (true, 0)
            }
            state.lastTicket += 1
            return (nil, state.lastTicket)
        }
        if let isMine { return isMine }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waits = state.withLock { state in
                    // A task is marked cancelled before its handlers run: either this sees the mark, or `leave` finds the ticket.
                    if state.hasEnded || Task.isCancelled { return false }
                    if state.free > 0 {
                        state.free -= 1
                        state.given.insert(ticket)
                        return false
                    }
                    state.waiting.append((ticket, continuation))
                    return true
                }
                if !waits { continuation.resume() }
            }
        } onCancel: {
            leave(ticket)
        }
        return state.withLock { $0.given.remove(ticket) != nil }
    }

    /// Lets another worker have a slot.
    func giveBack() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let last = state.waiting.popLast() else {
                state.free += 1
                return nil
            }
            state.given.insert(last.ticket)
            return last.continuation
        }
        next?.resume()
    }

    /// There is no more to do: nobody waits any longer.
    func end() {
        let waiting = state.withLock { state in
            state.hasEnded = true
            defer { state.waiting = [] }
            return state.waiting.map(\.continuation)
        }
        for continuation in waiting { continuation.resume() }
    }

    private func leave(_ ticket: UInt64) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let index = state.waiting.firstIndex(where: { $0.ticket == ticket }) else { return nil }
            return state.waiting.remove(at: index).continuation
        }
        continuation?.resume()
    }
}
