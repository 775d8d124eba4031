internal import StoreCore
internal import Synchronization

extension Experiment {
    /// Many callers of one missing key; each contestant is new in each round.
    ///
    /// The time beyond the fetch hides the cost of arriving callers, which overlaps the fetch. Processor time is therefore a figure of its
    /// own.
    static let sharedFetch = Experiment(
        section: .reading,
        figures: [
            Figure(name: "shared-fetches", title: "10 000 callers, 1 missing key: fetches", unit: .count),
            Figure(name: "shared-fetch", title: "the same: time beyond the fetch of 50 ms", unit: .nanoseconds),
            Figure(name: "shared-fetch-cpu", title: "the same: processor time", unit: .nanoseconds),
        ]
    ) { _ in
        [
            .floor { try await callTenThousandTimes(waitsForOrigin: false) { _ in { User(id: 0) } } },
            .actor {
                try await callTenThousandTimes { origin in
                    let actor = ActorRepository<Int, User> { await origin.fetch($0) }
                    return { try await actor.value(for: 0) }
                }
            },
            .mutex {
                try await callTenThousandTimes { origin in
                    let mutex = MutexRepository<Int, User> { await origin.fetch($0) }
                    return { try await mutex.value(for: 0) }
                }
            },
            .storehouse {
                try await callTenThousandTimes { origin in
                    let store = Store(cacher: MemoryCacher<Int, User>()) { await origin.fetch($0) }
                    return { try await store[0].requireData() }
                }
            },
        ]
    }
}

/// An origin with a real delay. A manual clock would have to know that all callers wait, which would add work to the measurement.
private final class SlowOrigin: Sendable {
    static let delay = Duration.milliseconds(50)

    let fetches = Atomic(0)

    func fetch(_ key: Int) async -> User {
        fetches.add(1, ordering: .relaxed)
        // Fetches are never canceled here.
        try? await Task.sleep(for: Self.delay, clock: .continuous)
        return User(id: key)
    }
}

private func callTenThousandTimes(
    waitsForOrigin: Bool = true, _ makeCaller: (SlowOrigin) -> @Sendable () async throws -> User
) async throws -> [Double] {
    let origin = SlowOrigin()
    let call = makeCaller(origin)
    let processTimeBefore = processTime()
    let watch = Stopwatch()
    // Plain tasks, because a group of ten thousand tasks has quadratic cost.
    let tasks = (0..<10_000).map { _ in Task { try await call().id } }
    var sum = 0
    for task in tasks { sum += try await task.value }
    let elapsed = watch.nanoseconds
    blackHole(sum)
    let delay = waitsForOrigin ? SlowOrigin.delay / .nanoseconds(1) : 0
    return [Double(origin.fetches.load(ordering: .relaxed)), elapsed - delay, processTime() - processTimeBefore]
}
