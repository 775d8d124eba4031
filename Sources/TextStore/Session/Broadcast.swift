import StoreCore

/// Sends each element to the streams that are open at that time.
final class Broadcast<Element: Sendable>: Sendable {
    private struct State {
        var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
        var last: UInt64 = 0
    }

    /// Guards the continuations of the streams.
    private let state = Lock(State())

    func makeStream() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream<Element>.makeStream()
        let number = state.withLock { state in
            state.last += 1
            state.listeners[state.last] = continuation
            return state.last
        }
        continuation.onTermination = { [weak self] _ in
            // The continuation outlives the critical section, because releasing it may run code of the stream's consumer.
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    func send(_ element: Element) {
        let listeners = state.withLock { state in state.listeners.sorted { $0.key < $1.key }.map(\.value) }
        for listener in listeners { listener.yield(element) }
    }

    deinit {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.finish() }
    }
}
