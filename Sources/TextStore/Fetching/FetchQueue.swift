import StoreCore

/// Limits the concurrent requests to each host, and admits waiters in the order of their arrival.
///
/// The system would queue excess requests itself without reporting when one begins, so a deadline would include the time in its queue.
final class FetchQueue: Sendable {
    struct State: Sendable {
        var running: [String: Int] = [:]
        var waiting: [String: [UInt64]] = [:]
        var admitted: Set<UInt64> = []
        var lastTicket: UInt64 = 0
        var changed = ChangedParts.nothing
    }

    /// The largest number of concurrent requests to one host.
    let width: Int
    /// Guards the running and waiting tickets.
    let state = WatchedState(State()) { $0.changed.take() }

    init(width: Int) { self.width = width }

    /// Waits for a permit.
    ///
    /// - Throws: `CancellationError` as soon as the task is canceled; the permit then goes to the next waiter.
    func enter(_ host: String) async throws {
        let width = width
        let ticket = state.update { state -> UInt64? in
            guard state.running[host, default: 0] >= width else {
                state.running[host, default: 0] += 1
                return nil
            }
            state.lastTicket += 1
            state.waiting[host, default: []].append(state.lastTicket)
            return state.lastTicket
        }
        guard let ticket else { return }
        do {
            try await state.wait(for: ticket) { $0.admitted.contains(ticket) ? () : nil }
            state.update { _ = $0.admitted.remove(ticket) }
        } catch {
            let wasAdmitted = state.update { state in
                state.waiting[host]?.removeAll { $0 == ticket }
                return state.admitted.remove(ticket) != nil
            }
            if wasAdmitted { leave(host) }
            throw error
        }
    }

    /// Returns a permit, and admits the first waiter.
    func leave(_ host: String) {
        state.update { state in
            guard var waiting = state.waiting[host], !waiting.isEmpty else {
                let running = (state.running[host] ?? 1) - 1
                state.running[host] = running > 0 ? running : nil
                state.waiting[host] = nil
                return
            }
            let next = waiting.removeFirst()
            state.waiting[host] = waiting
            state.admitted.insert(next)
            state.changed.insert(next)
        }
    }
}
