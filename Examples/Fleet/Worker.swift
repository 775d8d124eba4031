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
    private let counters: Counters
    /// The number of later additions after which the event of a failed save has arrived.
    private let lateness: Int

    /// The status, which the fetcher changes too.
    private final class Counters: Sendable {
        let status: Lock<Status>
        /// The failures of saves of the sum.
        let faults = Lock(0)
        /// The failures before each of the latest additions, in order.
        let undecided = Lock<[Int]>([])

        init(_ number: Int) { status = Lock(Status(worker: number)) }
    }

    static let callers = 100
    static let roundsPerSecond = 10.0

    init(_ arguments: [String]) throws {
        guard arguments.count == 7, let number = Int(arguments[0]), let start = Double(arguments[4]), let seconds = Double(arguments[5])
        else { throw FleetOptions.Mistake(description: "only fleet itself starts a worker; start fleet without the argument worker") }
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
            lateness = 0
            let files = FileCacher<String, Item>(directory: URL(filePath: arguments[1], directoryHint: .isDirectory), sharing: .processes)
            store = Store(cacher: TieredCacher(over: files), policy: policy) { key in try await fetch(key) }
        } else {
            lateness = 25
            let rows = try PostgresCacher<String, Item>(url: arguments[1], table: arguments[6])
            let onEvent: @Sendable (StoreEvent<String>) -> Void = { event in
                guard case .cacherFault = event.kind, let key = event.param else { return }
                counters.status.withLock { _ = $0.faultyKeys.insert(key) }
                if key == "sum" { counters.faults.withLock { $0 += 1 } }
            }
            store = Store(cacher: TieredCacher(over: rows), policy: policy, onEvent: onEvent) { key in try await fetch(key) }
        }
    }

    func run() async throws {
        let isOver = Lock(false)
        let thread = Thread {
            // A line of the supervisor, or its end.
            _ = readLine()
            isOver.withLock { $0 = true }
        }
        thread.start()
        _ = try await store["sum"].requireData()
        let tasks = [
            Task { await self.observe() }, Task { try await self.request() }, Task { try await self.change() },
        ]
        while elapsed < seconds {
            try await Task.sleep(for: .milliseconds(200))
            report()
        }
        for task in tasks.dropFirst() { _ = await task.result }
        // The last changes of the other workers arrive until the supervisor finds that all workers agree.
        while !isOver.withLock({ $0 }) {
            // The database may be unavailable for a moment.
            if (try? await store.waitUntilSaved()) != nil {
                decide(allBut: 0)
                let (shared, sum) = (await store["shared"].getData(from: .cache), await store["sum"].getData(from: .cache))
                counters.status.withLock { status in
                    (status.isFinal, status.shared, status.sum) = (true, shared, sum?.value)
                }
                report()
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        tasks[0].cancel()
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
            if await store["sum"].update({ $0.value += 1 }) { counters.undecided.withLock { $0.append(faults) } }
            try await Task.sleep(for: .milliseconds(20))
            decide(allBut: lateness)
            report()
        }
    }

    /// Counts the additions, except the latest ones: if a save has failed, its event may still arrive.
    private func decide(allBut count: Int) {
        let (decided, left) = counters.undecided.withLock { undecided in
            let decided = Array(undecided.dropLast(count))
            undecided.removeFirst(decided.count)
            return (decided, undecided.count)
        }
        let faults = counters.faults.withLock { $0 }
        counters.status.withLock { status in
            for before in decided { if before == faults { status.additions += 1 } else { status.unsureAdditions += 1 } }
            status.undecidedAdditions = left
        }
    }
}
