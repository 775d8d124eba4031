import Foundation
import StoreCore
import StoreFiles

/// The content that the figures are measured with.
struct Tally: Codable, Hashable, Sendable {
    /// The number of writes of each writer.
    var counts: [Int: Int] = [:]
    /// The time of the last write on the machine's monotonic clock, in nanoseconds.
    var time: Int64 = 0

    /// Whether no write of `other` is missing here.
    func includes(_ other: Tally) -> Bool {
        other.counts.allSatisfy { writer, count in counts[writer, default: 0] >= count }
    }
}

/// The place that the processes of a figure share: a directory or a database.
///
/// The figures know nothing else of it. A further kind of place is a further case of ``init(named:)``.
struct FigurePlace: Sendable {
    typealias Fetch = @Sendable (_ key: String) async throws -> Tally
    typealias Events = @Sendable (_ event: StoreEvent<String>) -> Void

    /// The name by which another process makes the same place.
    let name: String
    /// Makes a store over the place, as each process has one.
    let makeStore: @Sendable (_ onEvent: Events?, _ fetch: @escaping Fetch) throws -> Store<String, Tally>
    /// The longest time between a save and its sight by another process, for 99 of 100 saves.
    let latency: Duration

    /// Makes the place from its name: `directory:` and a path, or that of a table.
    init(named name: String) throws {
        self.name = name
        if let makeStore = Self.databaseStores(name) {
            (self.makeStore, latency) = (makeStore, Self.databaseLatency)
            return
        }
        guard let path = name.wholeMatch(of: /directory:(.*)/)?.1 else {
            throw FleetOptions.Mistake(description: "unknown place \(name)")
        }
        latency = .milliseconds(20)
        makeStore = { [directory = URL(filePath: String(path), directoryHint: .isDirectory)] onEvent, fetch in
            let files = FileCacher<String, Tally>(directory: directory, sharing: .processes)
            return Store(cacher: TieredCacher(over: files), onEvent: onEvent) { key in try await fetch(key) }
        }
    }

    /// Makes a store that never fetches.
    func store(onEvent: Events? = nil) throws -> Store<String, Tally> {
        try makeStore(onEvent) { key in throw FleetOptions.Mistake(description: "\(key) is missing") }
    }
}
