internal import Synchronization

extension Store {
    /// Calls a closure around each attempt of a fetch, for tools that show, delay or fail the fetches of a running store.
    ///
    /// ```swift
    /// let interception = users.interceptFetches { id, target, perform in
    ///     let outcome = try await perform()
    ///     print("fetched \(target) of \(id): \(outcome)")
    /// }
    /// interception.cancel()
    /// ```
    ///
    /// The closure may wait before it calls `perform`. If it throws instead, the attempt fails with that error. If it returns without a
    /// call of `perform`, the store performs the attempt afterward. The closure must call `perform` at most once.
    ///
    /// A connection of a ``LiveFetcher`` counts as one attempt, which lasts as long as the connection. Hits do not call the closure. A
    /// later closure replaces an earlier one. Cost for a store without a closure: one load of a flag in each attempt.
    ///
    /// - Parameter intercept: Receives the key, the fetched part of it, and the attempt; runs outside all locks.
    /// - Returns: A handle that removes the closure. The closure stays if the handle is discarded.
    @discardableResult
    public func interceptFetches(
        by intercept:
            @escaping @Sendable (
                _ param: Param, _ target: StoreEventKind.Target, _ perform: () async throws -> StoreEventKind.FetchOutcome
            ) async throws -> Void
    ) -> FetchInterception {
        let slot = engine.fetches.interceptor
        let number = slot.set { key, target, perform in try await intercept(key.value(as: Param.self), target, perform) }
        return FetchInterception { [weak engine] in engine?.fetches.interceptor.remove(number) }
    }
}

/// A closure around the fetches of a store. It stays in place if this value is discarded.
public struct FetchInterception: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    /// Removes the closure; attempts that it has begun continue.
    public func cancel() { end() }
}

/// The place for the closure around a store's fetches.
final class FetchInterceptor: Sendable {
    typealias Intercept =
        @Sendable (
            _ key: BoxedKey, _ target: StoreEventKind.Target, _ perform: () async throws -> StoreEventKind.FetchOutcome
        ) async throws -> Void

    /// Whether there is a closure; read in each attempt, without the lock.
    private let hasClosure = Atomic(false)
    /// Guards the closure and the number of the last one.
    private let state = Lock<(number: Int, intercept: Intercept?)>((0, nil))

    var isSet: Bool { hasClosure.load(ordering: .relaxed) }

    /// Replaces the closure; returns its number.
    func set(_ intercept: @escaping Intercept) -> Int {
        // The older closure is released outside the lock, because it may hold user objects.
        let (number, old) = state.withLock { state in
            defer { state = (state.number + 1, intercept) }
            hasClosure.store(true, ordering: .relaxed)
            return (state.number + 1, state.intercept)
        }
        withExtendedLifetime(old) {}
        return number
    }

    func remove(_ number: Int) {
        let old = state.withLock { state -> Intercept? in
            guard state.number == number else { return nil }
            hasClosure.store(false, ordering: .relaxed)
            defer { state.intercept = nil }
            return state.intercept
        }
        withExtendedLifetime(old) {}
    }

    /// Runs an attempt within the closure.
    func run<Value>(
        _ key: BoxedKey, _ target: StoreEventKind.Target, outcome: (Value) -> StoreEventKind.FetchOutcome,
        _ perform: () async throws -> Value
    ) async throws -> Value {
        guard let intercept = state.withLock(\.intercept) else { return try await perform() }
        var value: Value?
        try await intercept(key, target) {
            let performed = try await perform()
            value = performed
            return outcome(performed)
        }
        if let value { return value }
        return try await perform()
    }
}
