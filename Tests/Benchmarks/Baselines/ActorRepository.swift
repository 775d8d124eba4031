/// The same as ``MutexRepository``, based on an actor.
actor ActorRepository<Key: Hashable & Sendable, Value: Sendable> {
    private struct Entry {
        var value: Value
        var expires: ContinuousClock.Instant?
    }

    private var entries: [Key: Entry] = [:]
    private var flights: [Key: Task<Value, any Error>] = [:]
    private var observers: [Key: [Int: AsyncStream<Value>.Continuation]] = [:]
    private var lastObserver = 0
    private let lifetime: Duration?
    private let fetch: @Sendable (Key) async throws -> Value

    init(lifetime: Duration? = nil, fetch: @escaping @Sendable (Key) async throws -> Value) {
        self.lifetime = lifetime
        self.fetch = fetch
    }

    func value(for key: Key) async throws -> Value {
        if let entry = entries[key] {
            guard let expires = entry.expires else { return entry.value }
            if ContinuousClock.now < expires { return entry.value }
        }
        if let flight = flights[key] { return try await flight.value }
        let flight = Task {
            defer { flights[key] = nil }
            let value = try await fetch(key)
            update(key, value)
            return value
        }
        flights[key] = flight
        return try await flight.value
    }

    func update(_ key: Key, _ value: Value) {
        entries[key] = Entry(value: value, expires: lifetime.map { ContinuousClock.now + $0 })
        guard let observers = observers[key] else { return }
        for observer in observers.values { observer.yield(value) }
    }

    func observe(_ key: Key) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        lastObserver += 1
        let id = lastObserver
        observers[key, default: [:]][id] = continuation
        if let entry = entries[key] { continuation.yield(entry.value) }
        continuation.onTermination = { [weak self] _ in Task { await self?.leave(key, id) } }
        return stream
    }

    private func leave(_ key: Key, _ id: Int) { observers[key]?[id] = nil }
}
