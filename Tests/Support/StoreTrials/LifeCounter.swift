import StoreCore

/// Counts living objects.
package final class LifeCounter: Sendable {
    private let count = WatchedState(0)

    package init() {}

    package var alive: Int { count.current }

    package func make() -> Life { Life(self) }

    /// Waits until no object is alive.
    package func none() async throws { try await count.wait { $0 == 0 ? () : nil } }

    /// A counted object.
    package final class Life: Sendable {
        private let counter: LifeCounter

        fileprivate init(_ counter: LifeCounter) {
            self.counter = counter
            counter.count.update { $0 += 1 }
        }

        deinit { counter.count.update { $0 -= 1 } }
    }
}
