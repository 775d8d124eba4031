import Foundation
import RemoteRouting
import StoreCore
import Trials

/// A process of a figure; it reads commands from its standard input, and ends when that ends.
enum FigureProcess {
    /// - Parameter arguments: The role, the name of the place, and the arguments of the role.
    static func run(_ arguments: [String]) async throws {
        let counts = ["request": 2, "write": 3, "read": 1, "save": 2, "see": 1]
        guard arguments.count >= 2 + (arguments.first.flatMap { counts[$0] } ?? 0) else {
            throw FleetOptions.Mistake(description: "only fleet itself starts a figure; pass --check")
        }
        let (place, rest) = (try FigurePlace(named: arguments[1]), Array(arguments.dropFirst(2)))
        switch arguments[0] {
        case "request": try await request(place, callers: Int(rest[0]) ?? 0, origin: rest[1])
        case "write": try await write(place, writer: Int(rest[0]) ?? 0, keys: Int(rest[1]) ?? 0, log: rest[2])
        case "read": try await read(place, keys: Int(rest[0]) ?? 0)
        case "save": try await save(place, keys: Int(rest[0]) ?? 0, rate: Int(rest[1]) ?? 0)
        case "see": try await see(place, keys: Int(rest[0]) ?? 0)
        case "follow": try await follow(place)
        case "rest": try await idle()
        case let other: throw FleetOptions.Mistake(description: "unknown role \(other)")
        }
    }

    /// The lines of the standard input. A thread of its own waits for them.
    static func commands() -> AsyncStream<String> {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        let thread = Thread {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        thread.start()
        return stream
    }

    static func key(_ number: Int) -> String { "key-\(number)" }

    /// The line of a log for an acknowledged write; all lines have the same length.
    static func line(ofWriteTo number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The machine's monotonic clock, which all processes share.
    static func now() -> Int64 { Int64(ProcessInfo.processInfo.systemUptime * 1_000_000_000) }

    static func sayJSON(_ value: some Encodable) throws { say(String(decoding: try JSONEncoder().encode(value), as: UTF8.self)) }

    // MARK: One fetch

    /// Requests each key of the standard input with many callers, and prints how many have failed.
    private static func request(_ place: FigurePlace, callers: Int, origin: String) async throws {
        let host = RemoteHost(HostConfiguration(origin))
        let store = try place.makeStore(nil) { key in
            try await host.send("/items/\(key)")
            return Tally()
        }
        say("ready")
        for await key in commands() {
            let all = (0..<callers).map { _ in Task { (try? await store[key].requireData()) != nil } }
            var failures = 0
            for caller in all where await !caller.value { failures += 1 }
            say("\(failures)")
        }
    }

    // MARK: Writes and kills

    /// Adds to random keys until `stop`. Appends the number of the key to the log once the write is saved.
    private static func write(_ place: FigurePlace, writer: Int, keys: Int, log: String) async throws {
        let faults = Lock(0)
        let store = try place.store { event in
            if case .cacherFault = event.kind { faults.withLock { $0 += 1 } }
        }
        let mayWrite = Lock(true)
        let writing = Task {
            while mayWrite.withLock({ $0 }) {
                let number = Int.random(in: 0..<keys)
                let before = faults.withLock { $0 }
                let isMade = await store[key(number)].update { tally in
                    tally.counts[writer, default: 0] += 1
                    tally.time = now()
                }
                // A save that has failed is an event, and not acknowledged.
                if isMade, faults.withLock({ $0 }) == before { appendLine(log, line(ofWriteTo: number)) }
            }
        }
        say("ready")
        for await command in commands() {
            switch command {
            case "stop":
                mayWrite.withLock { $0 = false }
                await writing.value
                try await store.waitUntilSaved()
                say("\(faults.withLock { $0 })")
            default:
                try await sayTallies(of: store, keys)
            }
        }
    }

    /// A value that several tasks change.
    private final class Shared<Value: Sendable>: Sendable {
        let value: Lock<Value>

        init(_ value: Value) { self.value = Lock(value) }
    }

    /// Observes all keys, and counts the contents that lack a write of the content before.
    private static func read(_ place: FigurePlace, keys: Int) async throws {
        let seen = Shared((contents: 0, older: 0))
        let store = try place.store()
        for number in 0..<keys {
            Task {
                var last = Tally()
                for await tally in store[key(number)].publish().contents() {
                    let isOlder = !tally.includes(last)
                    last = tally
                    seen.value.withLock { seen in
                        seen.contents += 1
                        seen.older += isOlder ? 1 : 0
                    }
                }
            }
        }
        say("ready")
        for await command in commands() {
            switch command {
            case "stop": say(seen.value.withLock { "\($0.contents) \($0.older)" })
            default: try await sayTallies(of: store, keys)
            }
        }
    }

    private static func sayTallies(of store: Store<String, Tally>, _ keys: Int) async throws {
        var tallies: [Tally?] = []
        for number in 0..<keys { tallies.append(await store[key(number)].getData(from: .cache)) }
        try sayJSON(tallies)
    }

    // MARK: Latency

    /// Saves as many contents as the standard input says, at an even rate; prints how long it took, in nanoseconds.
    private static func save(_ place: FigurePlace, keys: Int, rate: Int) async throws {
        let store = try place.store()
        say("ready")
        for await command in commands() {
            let start = ContinuousClock.now
            var saves: [Task<Void, Never>] = []
            for number in 0..<(Int(command) ?? 0) {
                let begin = start + .seconds(1) * number / rate
                if begin > .now { try await Task.sleep(until: begin) }
                saves.append(Task { await store[key(number % keys)].update(Tally(counts: [0: number], time: now())) })
            }
            for save in saves { await save.value }
            say("\((ContinuousClock.now - start).saturatedNanoseconds)")
        }
    }

    /// Observes all keys; prints the delays of the changes since the command before, in microseconds.
    private static func see(_ place: FigurePlace, keys: Int) async throws {
        let delays = Shared<[Int]>([])
        let store = try place.store()
        for number in 0..<keys {
            Task {
                for await tally in store[key(number)].publish().contents() {
                    let delay = Int((now() - tally.time) / 1_000)
                    delays.value.withLock { $0.append(delay) }
                }
            }
        }
        say("ready")
        for await _ in commands() {
            try sayJSON(
                delays.value.withLock { delays in
                    defer { delays = [] }
                    return delays
                })
        }
    }

    // MARK: Idle

    /// Observes a key, and prints its count.
    private static func follow(_ place: FigurePlace) async throws {
        let store = try place.store()
        let observer = Task {
            for await tally in store[key(0)].publish().contents() { say("\(tally.counts[0, default: 0])") }
        }
        for await _ in commands() {}
        observer.cancel()
    }

    /// Observes a key of a store that shares nothing, and prints its count.
    private static func idle() async throws {
        let store = Store(cacher: MemoryCacher<String, Tally>()) { _ in Tally(counts: [0: 0]) }
        let observer = Task {
            for await tally in store[key(0)].publish().contents() { say("\(tally.counts[0, default: 0])") }
        }
        for await _ in commands() {}
        observer.cancel()
    }
}
