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
    /// call of `perform`, the store performs the attempt afterward. An error of `perform` fails the attempt even if the closure catches it.
    /// The closure must call `perform` at most once.
    ///
    /// A connection of a ``LiveFetcher`` counts as one attempt, which lasts as long as the connection. Hits do not call the closure. A
    /// later closure runs around the earlier ones. Cost for a store without a closure: one load of a flag in each attempt.
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
        let number = engine.nextID()
        engine.fetches.interceptor.add(number) { key, target, perform in
            try await intercept(key.value(as: Param.self), target, perform)
        }
        return FetchInterception { [weak engine] in engine?.fetches.interceptor.remove(number) }
    }
}

/// A closure around the fetches of a store. It stays in place if this value is discarded.
public struct FetchInterception: Sendable {
    let end: @Sendable () -> Void

    /// Removes the closure; attempts that it has begun continue.
    public func cancel() { end() }
}

/// The closures around a store's fetches, innermost first.
final class FetchInterceptor: Sendable {
    typealias Intercept =
        @Sendable (
            _ key: BoxedKey, _ target: StoreEventKind.Target, _ perform: () async throws -> StoreEventKind.FetchOutcome
        ) async throws -> Void

    /// Whether there is a closure; read in each attempt, without the lock.
    private let hasClosure = Atomic(false)
    private let closures = Lock<[(number: CallerID, intercept: Intercept)]>([])

    var isSet: Bool { hasClosure.load(ordering: .relaxed) }

    func add(_ number: CallerID, _ intercept: @escaping Intercept) {
        closures.withLock { closures in
            closures.append((number, intercept))
            hasClosure.store(true, ordering: .relaxed)
        }
    }

    func remove(_ number: CallerID) {
        // The closure is released outside the lock, because it may hold user objects.
        let old = closures.withLock { closures -> Intercept? in
            guard let index = closures.firstIndex(where: { $0.number == number }) else { return nil }
            defer { hasClosure.store(!closures.isEmpty, ordering: .relaxed) }
            return closures.remove(at: index).intercept
        }
        withExtendedLifetime(old) {}
    }

    func run<Value>(
        _ key: BoxedKey, _ target: StoreEventKind.Target, outcome: (Value) -> StoreEventKind.FetchOutcome,
        _ perform: () async throws -> Value
    ) async throws -> Value {
        let closures = closures.withLock { closures in closures.map { $0.intercept } }
        return try await run(closures[...], key, target, outcome: outcome, perform)
    }

    private func run<Value>(
        _ closures: ArraySlice<Intercept>, _ key: BoxedKey, _ target: StoreEventKind.Target,
        outcome: (Value) -> StoreEventKind.FetchOutcome, _ perform: () async throws -> Value
    ) async throws -> Value {
        guard let outermost = closures.last else { return try await perform() }
        var result: Result<Value, any Error>?
        try await outermost(key, target) {
            do {
                let value = try await run(closures.dropLast(), key, target, outcome: outcome, perform)
                result = .success(value)
                return outcome(value)
            } catch {
                result = .failure(error)
                throw error
            }
        }
        if let result { return try result.get() }
        return try await run(closures.dropLast(), key, target, outcome: outcome, perform)
    }
}
