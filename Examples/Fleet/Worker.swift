import Foundation
import PostgresCacher
import RemoteRouting
import StoreCore
import StoreFiles
import Trials

/// One process of the fleet. It requests a new key every 100 ms with many callers, changes two keys, and observes one of them.
final class Worker: Sendable {
    private let number: Int
    private let log: String
    private let start: Double
    private let seconds: Double
    private let store: Store<String, Item>
    /// Reads what the workers share, without the store.
    private let saved: @Sendable (String) async throws -> Item?
    private let counters: Counters

    /// The status, which the fetcher changes too.
    private final class Counters: Sendable {
        let status: Lock<Status>
        /// The failures of saves of the sum.
        let faults = Lock(0)

        init(_ number: Int) { status = Lock(Status(worker: number)) }
    }

    static let callers = 100
    static let roundsPerSecond = 10.0

    init(_ arguments: [String]) throws {
        guard arguments.count == 7, let number = Int(arguments[0]), let start = Double(arguments[4]), let seconds = Double(arguments[5])
        else { throw FleetOptions.Mistake(description: "only fleet itself starts a worker; leave out the argument worker") }
        (self.number, log, self.start, self.seconds) = (number, arguments[3], start, seconds)
        let counters = Counters(number)
        self.counters = counters
        let origin = RemoteHost(HostConfiguration(arguments[2]))
        let fetch: @Sendable (String) async throws -> Item = { key in
            counters.status.withLock { $0.fetches += 1 }
            return try await origin.send("/items/\(key)")
        }
        // A slow fetch is not repeated, and a killed worker loses its lease at once.
        let policy = StorePolicy(leaseDuration: hangLimit)
        if arguments[6].isEmpty {
            let files = FileCacher<String, Item>(directory: URL(filePath: arguments[1], directoryHint: .isDirectory), sharing: .processes)
            store = Store(cacher: TieredCacher(over: files), policy: policy) { key in try await fetch(key) }
            saved = { key in try await files.load(param: key)?.content }
        } else {
            let rows = try PostgresCacher<String, Item>(url: arguments[1], table: arguments[6])
            let onEvent: @Sendable (StoreEvent<String>) -> Void = { event in
                guard case .cacherFault = event.kind, let key = event.param else { return }
                counters.status.withLock { _ = $0.faultyKeys.insert(key) }
                if key == "sum" { counters.faults.withLock { $0 += 1 } }
            }
            store = Store(cacher: TieredCacher(over: rows), policy: policy, onEvent: onEvent) { key in try await fetch(key) }
            saved = { key in try await rows.load(param: key)?.content }
        }
    }

    func run() async throws {
        _ = try await store["sum"].requireData()
        let tasks = [
            Task { await self.observe() }, Task { try await self.request() }, Task { try await self.change() },
        ]
        while elapsed < seconds {
            try await Task.sleep(for: .milliseconds(200))
            report()
        }
        for task in tasks.dropFirst() { _ = await task.result }
        // The database may be unavailable for a moment.
        while (try? await store.waitUntilSaved()) == nil { try await Task.sleep(for: .milliseconds(100)) }
        counters.status.withLock { $0.hasSaved = true }
        report()
        let end = Supervisor.endFile(beside: log).path(percentEncoded: false)
        // A worker that has lost its supervisor ends after five minutes.
        for _ in 0..<6000 where !FileManager.default.fileExists(atPath: end) { try await Task.sleep(for: .milliseconds(50)) }
        let (shared, sum) = (try await lastContent("shared"), try await lastContent("sum"))
        counters.status.withLock { status in
            (status.isFinal, status.shared, status.sum) = (true, shared, sum?.value)
        }
        report()
        tasks[0].cancel()
    }

    /// Waits, up to a minute, until the store has content that the workers share; returns the content of the store.
    private func lastContent(_ key: String) async throws -> Item? {
        for _ in 0..<600 {
            let content = await store[key].getData(from: .cache)
            if let last = try? await saved(key), last == content { return content }
            try await Task.sleep(for: .milliseconds(100))
        }
        return await store[key].getData(from: .cache)
    }

    private var elapsed: Double { Date().timeIntervalSince1970 - start }

    /// The machine's monotonic clock, which all processes share.
    private static func now() -> Int64 { Int64(ProcessInfo.processInfo.systemUptime * 1_000_000_000) }

    private func report() {
        let status = counters.status.withLock { $0 }
        guard let json = try? JSONEncoder().encode(status) else { return }
        appendLine(log, String(decoding: json, as: UTF8.self))
    }

    private func observe() async {
        var last: Item?
        for await item in store["shared"].publish().contents() where item != last {
            last = item
            guard item.writer != number, item.time > 0 else { continue }
            let delay = Int((Self.now() - item.time) / 1_000)
            counters.status.withLock { status in
                status.changes += 1
                status.delays.append(delay)
            }
        }
    }

    /// Requests one new key in each round, which all workers begin at the same time.
    private func request() async throws {
        var round = Int(elapsed * Self.roundsPerSecond) + 1
        while elapsed < seconds {
            let wait = Double(round) / Self.roundsPerSecond - elapsed
            if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
            let key = "round-\(round)"
            let callers = (0..<Self.callers).map { _ in Task { try await store[key].requireData() } }
            for caller in callers {
                _ = try await caller.value
                counters.status.withLock { $0.answers += 1 }
            }
            counters.status.withLock { $0.rounds += 1 }
            round += 1
        }
    }

    /// Sets one key, and adds to another one.
    private func change() async throws {
        var value = 0
        while elapsed < seconds {
            value += 1
            await store["shared"].update(Item(value: value, writer: number, time: Self.now()))
            let faults = counters.faults.withLock { $0 }
            let isAccepted = await store["sum"].update { $0.value += 1 }
            let isSaved = (try? await store.waitUntilSaved()) != nil
            let isSure = isSaved && faults == counters.faults.withLock { $0 }
            counters.status.withLock { status in
                if isAccepted, isSure { status.additions += 1 } else if isAccepted { status.unsureAdditions += 1 }
            }
            report()
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
