internal import Inspector
internal import StoreCore

// The cost of an inspector: the floor is the same store without one.

extension Experiment {
    static var inspecting: [Experiment] { [inspectedHit, inspectedFetch, firstKeyPage] }

    private static let inspectedHit = Experiment(
        section: .reading, figures: [Figure(name: "inspected-hit", title: "cache hit with an inspector attached", unit: .nanoseconds)]
    ) { scale in
        let (plain, inspected, inspector) = try await stores()
        let count = scale.times(500_000, quick: 100_000)
        return [
            (.floor, { try await perCall(count) { for _ in 0..<count { _ = try await plain[1].requireData() } } }),
            (
                .storehouse,
                {
                    defer { withExtendedLifetime(inspector) {} }
                    return try await perCall(count) { for _ in 0..<count { _ = try await inspected[1].requireData() } }
                }
            ),
        ]
    }

    /// One fetch makes two events: 5 µs each are 5 % of the time at 10 000 events a second.
    private static let inspectedFetch = Experiment(
        section: .reading,
        figures: [Figure(name: "inspected-fetch", title: "fetch without work, with an inspector attached", unit: .nanoseconds)]
    ) { scale in
        let (plain, inspected, inspector) = try await stores()
        let count = scale.times(20_000, quick: 5_000)
        return [
            (.floor, { try await perCall(count) { for key in 0..<count { _ = try await plain[key].requireData(from: .origin) } } }),
            (
                .storehouse,
                {
                    defer { withExtendedLifetime(inspector) {} }
                    return try await perCall(count) { for key in 0..<count { _ = try await inspected[key].requireData(from: .origin) } }
                }
            ),
        ]
    }

    private static let firstKeyPage = Experiment(
        section: .reading, figures: [Figure(name: "first-key-page", title: "first 100 of 100 000 keys, as snapshots", unit: .nanoseconds)],
        isSteady: true
    ) { _ in
        let store = Store(cacher: MemoryCacher<Int, Int>(limit: 100_000)) { $0 }
        for key in 0..<100_000 { await store[key].update(key) }
        return [(.storehouse, { await perCall(1) { _ = store.keySnapshots(limit: 100) } })]
    }
}

/// Makes a store without an inspector, and one with.
private func stores() async throws -> (Store<Int, Int>, Store<Int, Int>, Inspector) {
    let (plain, inspected) = (Store(cacher: MemoryCacher<Int, Int>()) { $0 }, Store(cacher: MemoryCacher<Int, Int>()) { $0 })
    let inspector = try await Inspector.start()
    inspector.attach(inspected, name: "inspected")
    for store in [plain, inspected] { await store[1].update(1) }
    return (plain, inspected, inspector)
}

private func perCall(_ count: Int, _ body: () async throws -> Void) async rethrows -> [Double] {
    let watch = Stopwatch()
    try await body()
    return [watch.nanoseconds / Double(count)]
}
