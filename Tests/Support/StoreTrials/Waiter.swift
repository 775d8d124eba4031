import StoreCore

/// A call in progress, and whether it has returned.
package final class Waiter: Sendable {
    package let task: Task<Void, any Error>
    private let hasReturned = WatchedState(false)

    package init(_ call: @escaping @Sendable () async throws -> Void) {
        task = Task { [hasReturned] in
            defer { hasReturned.update { $0 = true } }
            try await call()
        }
    }

    package var isWaiting: Bool { !hasReturned.current }
    package var outcome: String { get async { await task.outcome } }
}
