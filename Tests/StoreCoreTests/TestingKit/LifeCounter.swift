import StoreCore

/// Counts living objects.
final class LifeCounter: Sendable {
    private let count = WatchedState(0)

    var alive: Int { count.current }

    func make() -> Life { Life(self) }

    /// Waits until no object is alive.
    func none() async throws { try await count.wait { $0 == 0 ? () : nil } }

    /// A counted object.
    final class Life: Sendable {
        private let counter: LifeCounter

        fileprivate init(_ counter: LifeCounter) {
            self.counter = counter
            counter.count.update { $0 += 1 }
        }

        deinit { counter.count.update { $0 -= 1 } }
    }
}
