internal import Synchronization

/// A gate that opens after the expected number of arrivals.
final class Gate: Sendable {
    private struct State {
        var missing: Int
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(expecting count: Int) { state = Mutex(State(missing: count)) }

    func arrive() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.missing -= 1
            return state.missing == 0 ? state.waiting.take() : nil
        }
        waiting?.resume()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if state.missing > 0 { state.waiting = continuation }
                return state.missing <= 0
            }
            if isOpen { continuation.resume() }
        }
    }
}
