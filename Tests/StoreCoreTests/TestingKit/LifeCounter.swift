import StoreCore

/// Counts objects that live.
final class LifeCounter: Sendable {
    private let count = WatchedState(0)

    var alive: Int { count.current }

    func make() -> Life { Life(self) }

    /// Waits until none lives.
    func none() async throws {
        try await count.wait { $0 == 0 ? () : nil }
    }

    /// One object that is counted.
    final class Life: Sendable {
        private let counter: LifeCounter

        fileprivate init(_ counter: LifeCounter) {
            self.counter = counter
            counter.count.update { $0 += 1 }
        }

        deinit {
            counter.count.update { $0 -= 1 }
        }
    }
}

/// The error of an origin that cannot be reached.
struct Offline: Error {}
