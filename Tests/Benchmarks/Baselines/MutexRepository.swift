internal import Synchronization

/// A typical handwritten repository: one lock, a dictionary, a task per fetch, and a stream per observer. It does less than a store: an
/// older fetch overwrites a newer update, and a caller's wait cannot be canceled.
final class MutexRepository<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        var value: Value
        var expires: ContinuousClock.Instant?
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var flights: [Key: Task<Value, any Error>] = [:]
        var observers: [Key: [Int: AsyncStream<Value>.Continuation]] = [:]
        var lastObserver = 0
    }

    private enum Lookup {
        case value(Value)
        case flight(Task<Value, any Error>)
    }

    private let state = Mutex(State())
    private let lifetime: Duration?
    private let fetch: @Sendable (Key) async throws -> Value

    init(lifetime: Duration? = nil, fetch: @escaping @Sendable (Key) async throws -> Value) {
        self.lifetime = lifetime
        self.fetch = fetch
    }

    func value(for key: Key) async throws -> Value {
        let lookup = state.withLock { state -> Lookup in
            if let entry = state.entries[key] {
                guard let expires = entry.expires else { return .value(entry.value) }
                if ContinuousClock.now < expires { return .value(entry.value) }
            }
            if let flight = state.flights[key] { return .flight(flight) }
            let flight = Task { [self] in
                defer { self.state.withLock { $0.flights[key] = nil } }
                let value = try await fetch(key)
                update(key, value)
                return value
            }
            state.flights[key] = flight
            return .flight(flight)
        }
        switch lookup {
        case .value(let value): return value
        case .flight(let flight): return try await flight.value
        }
    }

    func update(_ key: Key, _ value: Value) {
        let expires = lifetime.map { ContinuousClock.now + $0 }
        state.withLock { state in
            state.entries[key] = Entry(value: value, expires: expires)
            guard let observers = state.observers[key] else { return }
            for observer in observers.values { observer.yield(value) }
        }
    }

    func observe(_ key: Key) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            state.lastObserver += 1
            state.observers[key, default: [:]][state.lastObserver] = continuation
            if let entry = state.entries[key] { continuation.yield(entry.value) }
            return state.lastObserver
        }
        continuation.onTermination = { [weak self] _ in self?.leave(key, id) }
        return stream
    }

    private func leave(_ key: Key, _ id: Int) {
        // Released outside the lock, because the last reference to a stream ends it.
        _ = state.withLock { $0.observers[key]?.removeValue(forKey: id) }
    }
}
