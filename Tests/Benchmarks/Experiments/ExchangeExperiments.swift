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
            exchangeMemory, wireMemory,
        ]
    }

    /// Makes an exchange of the same bytes from the same origin, decoded to the same type.
    private static func exchange(_ name: String, _ title: String, width: Int, count: Int, quick: Int) -> Experiment {
        Experiment(.wire, name, title) { scale in
            let origin = try LoopbackOrigin()
            let profile = Profile.some
            origin.on(.get, "/profile") { _ in .json(profile) }
            let (bare, host) = (BareSession(), host(of: origin))
            let url = origin.url.appending(path: "profile")
            let times = scale.times(count, quick: quick)
            return [
                .mutex {
                    // The closure keeps the origin running.
                    defer { withExtendedLifetime(origin) {} }
                    return try await perCall(times, over: width) { _ in
                        let data = try await bare.data(from: url)
                        blackHole(try JSONDecoder().decode(Profile.self, from: data))
                    }
                },
                .storehouse {
                    try await perCall(times, over: width) { _ in
                        let profile: Profile = try await host.send("/profile")
                        blackHole(profile)
                    }
                },
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

    private static let exchangeMemory = Experiment(
        .memory, "exchange-1000-peak", "most bytes held by 1 000 exchanges at once", unit: .bytes
    ) { _ in
        let meter = try PeakMeter()
        let (bare, host) = (BareSession(), host(of: meter.origin))
        return [
            .mutex { try await meter.peak { blackHole(try JSONDecoder().decode(Profile.self, from: try await bare.data(from: $0))) } },
            .storehouse { try await meter.peak { _ in blackHole(try await host.send("/profile") as Profile) } },
        ]
    }

    /// Opens new connections in each round, the same number for both contestants.
    private static let wireMemory = Experiment(
        .memory, "wire-1000-peak", "the same with the default transport and new connections", unit: .bytes
    ) { _ in
        let meter = try PeakMeter()
        return [
            .mutex {
                let bare = BareSession()
                defer { bare.invalidate() }
                return try await meter.peak { blackHole(try JSONDecoder().decode(Profile.self, from: try await bare.data(from: $0))) }
            },
            .storehouse {
                let configuration = HostConfiguration("127.0.0.1", scheme: .http, port: Int(meter.origin.port))
                let limits = HostLimits(concurrentExchanges: 1_000)
                #if os(Linux)
                let host = RemoteHost(configuration, transport: try CurlTransport(width: 64), limits: limits)
                #else
                let host = RemoteHost(configuration, limits: limits)
                #endif
                return try await meter.peak { _ in blackHole(try await host.send("/profile") as Profile) }
            },
        ]
    }
}

/// Measures the most bytes that 1 000 exchanges hold at once.
///
/// The origin responds to none before all of them wait, because a contestant that is slow to start would otherwise never hold all of them.
/// It shares the process with every contestant.
private struct PeakMeter: Sendable {
    let origin: LoopbackOrigin
    private let round = Round()

    /// The state of one round, which the origin's handler shares.
    private final class Round: Sendable {
        let state = Mutex((isOpen: false, responses: 0, most: 0.0))
    }

    init() throws {
        let profile = Profile.some
        origin = try LoopbackOrigin()
        origin.on(.get, "/profile") { [round] _ in
            while !round.state.withLock(\.isOpen) { try? await Task.sleep(for: .milliseconds(5)) }
            round.state.withLock { state in
                state.responses += 1
                // Reading the heap's size walks through all free memory under a lock; doing so at each request would dominate the work.
                if state.responses.isMultiple(of: 16) { state.most = max(state.most, HeapUsage.bytes) }
            }
            return .json(profile)
        }
    }

    func peak(_ body: @escaping @Sendable (URL) async throws -> Void) async throws -> [Double] {
        let url = origin.url.appending(path: "profile")
        // The record of the last round's requests would otherwise grow in this one.
        origin.forget()
        let before = HeapUsage.bytes
        round.state.withLock { $0 = (isOpen: false, responses: 0, most: before) }
        let tasks = (0..<1_000).map { _ in Task { try await body(url) } }
        let held = try await settled()
        round.state.withLock { $0.isOpen = true }
        for task in tasks { try await task.value }
        return [max(held, round.state.withLock(\.most)) - before]
    }

    /// Waits until the heap has stopped growing, and returns its size.
    private func settled() async throws -> Double {
        var last = 0.0
        var steady = 0
        while steady < 5 {
            try await Task.sleep(for: .milliseconds(20))
            let bytes = HeapUsage.bytes
            steady = abs(bytes - last) < 20_000 ? steady + 1 : 0
            last = bytes
        }
        return last
    }
}

/// A profile of about 1 KB of JSON.
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
