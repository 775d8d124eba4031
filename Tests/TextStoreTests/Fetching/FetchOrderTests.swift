import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// T15: requests to one host wait in order.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct FetchOrderTests {
    private let origin: LoopbackOrigin
    private let fetcher = HTTPTextFetcher(deadline: hangLimit)

    init() throws { origin = try LoopbackOrigin { _ in .text("x").misbehaving(.neverAnswer) } }

    private func fetch(_ path: String) -> Task<Void, any Error> {
        Task { [fetcher, url = origin.url] in
            _ = try await fetcher.fetch(param: RemoteFile(url: url.appending(path: path)), revalidating: nil)
        }
    }

    /// Starts requests that wait for a permit of the origin, one after another.
    private func waiting(_ paths: [String]) async throws -> [Task<Void, any Error>] {
        let permits = fetcher.permits(of: "127.0.0.1 \(origin.port)")
        var tasks: [Task<Void, any Error>] = []
        for path in paths {
            tasks.append(fetch(path))
            try await until("\(path) waits") { permits.waiterCount == tasks.count }
        }
        return tasks
    }

    private var paths: [String] { origin.requests.map(\.path) }

    @Test func `T15: requests to a host beyond six wait in order, and those to another host do not`() async throws {
        let first = (1...6).map { fetch("first \($0)") }
        try await origin.waitUntil { $0.requests.count == 6 }
        let later = try await waiting(["7", "8", "9"])
        let other = try LoopbackOrigin { _ in .text("here") }
        _ = try await fetcher.fetch(param: RemoteFile(url: other.url.appending(path: "x")), revalidating: nil)
        for (number, task) in first.prefix(3).enumerated() {
            #expect(Array(paths.dropFirst(6)) == Array(["/7", "/8", "/9"].prefix(number)))
            task.cancel()
            try await origin.waitUntil { $0.requests.count == 7 + number }
        }
        #expect(Array(paths.dropFirst(6)) == ["/7", "/8", "/9"])
        for task in first + later {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `T15: a canceled waiter takes no permit, and all permits are returned`() async throws {
        // Some are canceled before their request is sent, some while they wait, and some meanwhile.
        for round in 0..<20 {
            let tasks = (0..<30).map { fetch("\(round) \($0)") }
            if round.isMultiple(of: 2) { try await until("six run") { origin.requests.count >= 6 } }
            for task in round.isMultiple(of: 3) ? tasks.reversed() : tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            try await origin.waitUntil { $0.requests.allSatisfy { $0.ending != nil } }
            origin.forget()
        }
        // All six permits are free, and no more.
        let six = (1...6).map { fetch("last \($0)") }
        // A request that was canceled while it was sent may arrive only now.
        try await origin.waitUntil { $0.requests.count { $0.path.hasPrefix("/last") } == 6 }
        let seventh = try await waiting(["7"])
        for task in six + seventh { task.cancel() }
        for task in six + seventh { await #expect(throws: CancellationError.self) { try await task.value } }
    }
}
