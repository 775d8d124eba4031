import Console
import Foundation
import PostgresCacher
import StoreCore

extension Figures {
    /// Measures all figures on a table of their own. The processes share nothing but the database.
    ///
    /// - Returns: Whether all are met.
    static func run(_ options: FleetOptions, on url: String) async throws -> Bool {
        let directory = FileManager.default.temporaryDirectory.appending(path: "figures-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        // Only logs are left.
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = { (name: String) in directory.appending(path: name).path(percentEncoded: false) }
        var size = Size()
        (size.rounds, size.writes) = (options.rounds, options.writes)
        let table = "figures_\(UInt32.random(in: 0...UInt32.max))"
        try await FleetTable.check(url, table)
        let place = try FigurePlace(named: FigurePlace.name(ofTable: table, url))
        let isMet = try await Figures(place: place, size: size, console: Console(isPlain: options.isPlain), path: path).run()
        try await FleetTable.remove(url, table)
        return isMet
    }
}

extension FigurePlace {
    /// The longest time between a save and its sight by another machine, for 99 of 100 saves.
    static let databaseLatency = Duration.milliseconds(50)

    /// The name of the place on a table: `postgres:`, the table, a colon, and the URL.
    static func name(ofTable table: String, _ url: String) -> String { "postgres:\(table):\(url)" }

    /// Makes stores over the table of such a name, each with connections of its own; `nil` if the name is of another kind.
    static func databaseStores(_ name: String) -> (@Sendable (_ onEvent: Events?, _ fetch: @escaping Fetch) throws -> Store<String, Tally>)?
    {
        guard let match = name.wholeMatch(of: /postgres:(\w+):(.*)/) else { return nil }
        let (table, url) = (String(match.1), String(match.2))
        return { onEvent, fetch in
            let rows = try PostgresCacher<String, Tally>(url: url, table: table)
            return Store(cacher: TieredCacher(over: rows), onEvent: onEvent) { key in try await fetch(key) }
        }
    }
}
