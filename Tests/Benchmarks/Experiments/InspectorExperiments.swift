internal import Foundation
internal import Inspector
internal import RemoteRouting
internal import StoreCore

// The cost of an inspector: the floor is the same store without one.

extension Experiment {
    static var inspecting: [Experiment] { [inspectedHit, inspectedFetch, inspectedLoad, firstKeyPage, firstRows] }

    private static let inspectedHit = Experiment(.reading, "inspected-hit", "cache hit with an inspector attached") { scale in
        let (plain, inspected, inspector) = try await stores()
        let count = scale.times(500_000, quick: 100_000)
        return [
            .floor { try await perCall(count) { for _ in 0..<count { _ = try await plain[1].requireData() } } },
            .storehouse {
                defer { withExtendedLifetime(inspector) {} }
                return try await perCall(count) { for _ in 0..<count { _ = try await inspected[1].requireData() } }
            },
        ]
    }

    /// One fetch makes two events.
    private static let inspectedFetch = Experiment(.reading, "inspected-fetch", "fetch without work, with an inspector attached") { scale in
        let (plain, inspected, inspector) = try await stores()
        let count = scale.times(20_000, quick: 5_000)
        return [
            .floor { try await perCall(count) { for key in 0..<count { _ = try await plain[key].requireData(from: .origin) } } },
            .storehouse {
                defer { withExtendedLifetime(inspector) {} }
                return try await perCall(count) { for key in 0..<count { _ = try await inspected[key].requireData(from: .origin) } }
            },
        ]
    }

    /// Hits beside 5 000 fetches a second, of which each makes two events, while a page follows them.
    private static let inspectedLoad = Experiment(
        .reading, "inspected-load", "cache hit beside 10 000 events a second, with an open page",
        // Both processor threads are busy, so rounds differ much.
        rounds: 51
    ) { scale in
        let (plain, inspected, inspector) = try await stores()
        let page = OpenPage(inspector)
        let count = scale.times(2_500, quick: 1_000)
        return [
            .floor { try await timePerHit(of: plain, beside: count) },
            .storehouse {
                defer { withExtendedLifetime(inspector) {} }
                let reader = Task { try await page.follow() }
                defer { reader.cancel() }
                return try await timePerHit(of: inspected, beside: count)
            },
        ]
    }

    private static let firstKeyPage = Experiment(.reading, "first-key-page", "first 100 of 100 000 keys, as snapshots", rounds: 3) { _ in
        let store = Store(cacher: MemoryCacher<Int, Int>(limit: 100_000)) { $0 }
        for key in 0..<100_000 { await store[key].update(key) }
        return [.storehouse { await perCall(1) { _ = store.keySnapshots(limit: 100) } }]
    }

    private static let firstRows = Experiment(.reading, "first-rows", "first 100 of 100 000 keys, until a page has them", rounds: 3) { _ in
        let store = Store(cacher: MemoryCacher<Int, Int>(limit: 100_000)) { $0 }
        for key in 0..<100_000 { await store[key].update(key) }
        return [
            .storehouse {
                // A new one for each round, because an inspector uses a listing for a while.
                let inspector = try await Inspector.start()
                defer { withExtendedLifetime(inspector) {} }
                inspector.attach(store, name: "keys")
                let page = OpenPage(inspector)
                return try await perCall(1) { try await page.loadRows() }
            }
        ]
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

/// Performs 5 000 fetches a second, and hits in the time between; returns the time divided by the number of hits.
private func timePerHit(of store: Store<Int, Int>, beside fetches: Int) async throws -> [Double] {
    let (watch, start) = (Stopwatch(), ContinuousClock.now)
    var count = 0
    for number in 1...fetches {
        _ = try await store[number].requireData(from: .origin)
        let end = start.advanced(by: .microseconds(200 * number))
        repeat {
            for _ in 0..<100 { _ = try await store[1].requireData() }
            count += 100
        } while ContinuousClock.now < end
    }
    return [watch.nanoseconds / Double(count)]
}

/// A page without a browser.
private struct OpenPage: Sendable {
    private let host: RemoteHost
    private let token: String

    init(_ inspector: Inspector) {
        host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: inspector.url.port ?? 0))
        token = inspector.url.pathComponents.first { $0 != "/" } ?? ""
    }

    /// Follows the events as a browser does, until the task is canceled.
    func follow() async throws {
        var last: String?
        while true {
            let route = Route(path: "/\(token)/events", query: ["page": "benchmark"], headers: ["Last-Event-ID": last])
            let news = String(decoding: try await host.data(for: route), as: UTF8.self)
            last = news.split(separator: "\n").first { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    func loadRows() async throws {
        blackHole(try await host.data(for: Route(path: "/\(token)/list", query: ["subject": 1, "from": 0, "count": 100])))
    }
}
