internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import Synchronization

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension Experiment {
    static var exchanges: [Experiment] {
        [
            exchange("exchange", "one exchange, 1 KB of JSON, keep-alive", width: 1, count: 400, quick: 150),
            exchange("exchange-1000", "1 000 exchanges at once, each", width: 1_000, count: 1_000, quick: 1_000),
            exchange("exchange-64-wide", "10 000 exchanges, 64 wide, each", width: 64, count: 10_000, quick: 1_000),
            exchangeMemory,
        ]
    }

    /// Both get the same bytes from the same origin and decode them to the same type.
    private static func exchange(_ name: String, _ title: String, width: Int, count: Int, quick: Int) -> Experiment {
        Experiment(section: .wire, figures: [Figure(name: name, title: title, unit: .nanoseconds)]) { scale in
            let origin = try LoopbackOrigin()
            let profile = Profile.some
            origin.on(.get, "/profile") { _ in .json(profile) }
            let (bare, host) = (BareSession(), host(of: origin))
            let url = origin.url.appending(path: "profile")
            let times = scale.times(count, quick: quick)
            return [
                (
                    .mutex,
                    {
                        // The closure keeps the origin running.
                        defer { withExtendedLifetime(origin) {} }
                        return try await spread(times, over: width) {
                            let data = try await bare.data(from: url)
                            blackHole(try JSONDecoder().decode(Profile.self, from: data))
                        }
                    }
                ),
                (
                    .storehouse,
                    {
                        try await spread(times, over: width) {
                            let profile: Profile = try await host.send("/profile")
                            blackHole(profile)
                        }
                    }
                ),
            ]
        }
    }

    private static func host(of origin: LoopbackOrigin) -> RemoteHost {
        let settings = URLSessionConfiguration.ephemeral
        settings.httpMaximumConnectionsPerHost = 64
        return RemoteHost(
            HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)),
            transport: URLSessionTransport(configuration: settings), limits: HostLimits(concurrentExchanges: 1_000))
    }

    /// The origin looks while it answers, when most of the exchanges are under way; it is in the same process, for both alike.
    private static let exchangeMemory = Experiment(
        section: .memory,
        figures: [Figure(name: "exchange-1000-peak", title: "most bytes held by 1 000 exchanges at once", unit: .bytes)]
    ) { _ in
        let origin = try LoopbackOrigin()
        let profile = Profile.some
        let seen = Mutex((requests: 0, most: 0.0))
        origin.on(.get, "/profile") { _ in
            seen.withLock { seen in
                seen.requests += 1
                // The allocator walks through all that is free, under its own lock: at each request that would be most of the work.
                if seen.requests.isMultiple(of: 16) { seen.most = max(seen.most, HeapUsage.bytes) }
            }
            return .json(profile)
        }
        let (bare, host) = (BareSession(), host(of: origin))
        let url = origin.url.appending(path: "profile")
        @Sendable func peak(_ body: @escaping @Sendable () async throws -> Void) async throws -> [Double] {
            let before = HeapUsage.bytes
            seen.withLock { $0.most = before }
            _ = try await spread(1_000, over: 1_000, body)
            return [seen.withLock { $0.most } - before]
        }
        return [
            (
                .mutex,
                {
                    // The closure keeps the origin running.
                    defer { withExtendedLifetime(origin) {} }
                    return try await peak { blackHole(try JSONDecoder().decode(Profile.self, from: try await bare.data(from: url))) }
                }
            ),
            (.storehouse, { try await peak { blackHole(try await host.send("/profile") as Profile) } }),
        ]
    }

    /// The time of one exchange where so many run at a time.
    private static func spread(
        _ count: Int, over width: Int, _ body: @escaping @Sendable () async throws -> Void
    ) async throws -> [Double] {
        let watch = Stopwatch()
        // Plain tasks: a group of a thousand has a price of its own.
        let tasks = (0..<width).map { worker in
            Task { for _ in stride(from: worker, to: count, by: width) { try await body() } }
        }
        for task in tasks { try await task.value }
        return [watch.nanoseconds / Double(count)]
    }
}

/// About 1 KB of JSON.
private struct Profile: Codable, Sendable {
    var id: Int
    var name: String
    var address: [String: String]
    var tags: [String]
    var about: String

    static let some = Profile(
        id: 1_815, name: "Ada Lovelace", address: ["street": "12 St James's Square", "city": "London", "country": "England"],
        tags: ["mathematics", "engines", "notes"], about: String(repeating: "The engine weaves algebraic patterns. ", count: 20))
}
