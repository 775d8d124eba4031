import Foundation
import StoreCore
import Testing

@testable import RemoteRouting

/// A cookie storage with a manual clock.
struct CookieBench {
    var storage: CookieStorage
    var now = Date(timeIntervalSince1970: 1_000_000_000)

    init(shared: Set<String> = [], limits: CookieStorage.Limits = .init()) {
        storage = CookieStorage(sharedDomains: shared, limits: limits)
    }

    mutating func set(_ lines: String..., at address: String = "https://a.example/") throws {
        storage.receive(lines, from: try request(address), now: now)
    }

    /// Returns the `Cookie` field of a request.
    mutating func sent(to address: String = "https://a.example/", _ method: HTTPMethod = .get, after hops: [String] = []) throws -> String?
    {
        storage.header(for: try request(address), isSafe: method.isSafe, after: try hops.map(request), now: now)
    }

    var all: [Cookie] { storage.cookies.values.flatMap(\.self) }

    private func request(_ address: String) throws -> CookieRequest {
        let url = try #require(URL(string: address))
        return try #require(CookieRequest(url), "\(address) cannot have cookies")
    }
}

/// A cacher that records its calls, and fails or waits on command.
final class CookieDisk: Cacher {
    struct Refused: Error {}

    struct State: Sendable {
        var records: [String: CacheRecord<[Cookie]>] = [:]
        var isBroken = false
        /// Whether `keys()` succeeds although the cacher is broken.
        var listsAlways = false
        var lists = true
        var calls: [String] = []
        /// The prefix of the calls that wait; `nil` if none waits.
        var held: String?
        var running = 0
        var mostRunning = 0
    }

    let state = WatchedState(State())

    private func call<Result: Sendable>(_ name: String, _ body: @Sendable (inout State) -> Result) async throws -> Result {
        state.update {
            $0.calls.append(name)
            $0.running += 1
            $0.mostRunning = max($0.mostRunning, $0.running)
        }
        defer { state.update { $0.running -= 1 } }
        _ = try await state.wait { $0.held.map(name.hasPrefix) == true ? nil : true }
        if state.current.isBroken, !(state.current.listsAlways && name == "keys") { throw Refused() }
        return state.update(body)
    }

    func load(param: String) async throws -> CacheRecord<[Cookie]>? { try await call("load \(param)") { $0.records[param] } }
    func save(_ record: CacheRecord<[Cookie]>, param: String) async throws {
        try await call("save \(param)") { $0.records[param] = record }
    }
    func remove(param: String) async throws { try await call("remove \(param)") { $0.records[param] = nil } }
    func removeAll() async throws { try await call("removeAll") { $0.records = [:] } }
    func keys() async throws -> [String]? { try await call("keys") { $0.lists ? Array($0.records.keys) : nil } }
}
