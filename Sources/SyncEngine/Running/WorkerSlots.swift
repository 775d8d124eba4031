internal import StoreCore

/// A counting semaphore for items being transferred; further workers stand by for slots that are given up.
///
/// A worker gives up its slot while its item only waits for the disk, so that another item can be transferred.
final class WorkerSlots: Sendable {
    /// The number of items that may wait for the disk in addition to those being transferred; each holds an open file.
    static let standbyCount = 64

    private struct State: Sendable {
        var free: Int
        var hasEnded = false
        var lastTicket: UInt64 = 0
        var waiting: [(ticket: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
        /// The tickets of workers that were given a slot and have not resumed yet.
        var given: Set<UInt64> = []
    }

    private let state: Lock<State>

    init(_ count: Int) {
        state = Lock(State(free: count))
    }

    /// Waits for a slot.
    ///
    /// - Returns: Whether the worker has a slot: `false` if there are no more items, or if the task is canceled.
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
                    // A task is marked as canceled before its handlers run, so either this check succeeds or `leave` finds the ticket.
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

    /// Gives a slot to another worker.
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

    /// Resumes all waiting workers, because there are no more items.
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
