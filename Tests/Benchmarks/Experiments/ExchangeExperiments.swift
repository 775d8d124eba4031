internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension Experiment {
    static var exchanges: [Experiment] {
        [
            exchange("exchange", "one exchange, 1 KB of JSON, keep-alive", width: 1, count: 400, quick: 150),
            exchange("exchange-1000", "1 000 exchanges at once, each", width: 1_000, count: 1_000, quick: 1_000),
            exchange("exchange-64-wide", "10 000 exchanges, 64 wide, each", width: 64, count: 10_000, quick: 1_000),
        ]
    }

    /// Both get the same bytes from the same origin and decode them to the same type.
    private static func exchange(_ name: String, _ title: String, width: Int, count: Int, quick: Int) -> Experiment {
        Experiment(section: .wire, figures: [Figure(name: name, title: title, unit: .nanoseconds)]) { scale in
            let origin = try LoopbackOrigin()
            let profile = Profile.some
            origin.on(.get, "/profile") { _ in .json(profile) }
            let bare = BareSession()
            let url = origin.url.appending(path: "profile")
            let settings = URLSessionConfiguration.ephemeral
            settings.httpMaximumConnectionsPerHost = 64
            let host = RemoteHost(
                HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)),
                transport: URLSessionTransport(configuration: settings), limits: HostLimits(concurrentExchanges: 1_000))
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
