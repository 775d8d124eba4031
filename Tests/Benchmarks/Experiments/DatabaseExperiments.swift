internal import Foundation
internal import PostgresCacher
internal import StoreCore
internal import Trials

extension Experiment {
    /// A table of PostgreSQL, compared with handwritten calls of the same statements over as many connections.
    ///
    /// The server belongs to the experiment and does not flush its disk, which would hide everything else.
    static var database: [Experiment] {
        #if os(macOS) || os(Linux)
        [
            database(saves: false, width: 1), database(saves: true, width: 1), database(saves: false, width: 64),
            database(saves: true, width: 64),
        ]
        #else
        []
        #endif
    }

    #if os(macOS) || os(Linux)
    /// - Parameters:
    ///   - saves: Whether records are saved instead of loaded.
    ///   - width: The number of concurrent tasks; several of them share four connections.
    private static func database(saves: Bool, width: Int) -> Experiment {
        let title =
            "\(saves ? "save" : "load") 1 KB in PostgreSQL, \(width == 1 ? "one after another" : "\(width) tasks, 4 connections")"
            + (width == 1 ? ", compared with libpq on a queue" : "")
        return Experiment(.database, "postgres-\(saves ? "save" : "load")\(width == 1 ? "" : "-\(width)")", title) { scale in
            let server = try PostgresServer(["fsync=off", "full_page_writes=off", "autovacuum=off"])
            let times = scale.times(width == 1 ? 3_000 : 12_000, quick: width == 1 ? 500 : 2_000)
            let record = CacheRecord(content: Article.some(1), fetchedAt: Date(timeIntervalSinceReferenceDate: 800_000_000))
            let cacher = try PostgresCacher<Int, [Article]>(url: server.url, table: "records", connections: width == 1 ? 1 : 4)
            for key in 0..<keys { try await cacher.save(record, param: key) }
            let pool = try HandwrittenPool(server.url, table: "records", connections: width == 1 ? 1 : 4)
            var contestants: [Entrant] = [
                .mutex {
                    try await perCall(times, over: width) { number in
                        if saves {
                            try await pool.run(number) { try $0.save(record, number % keys) }
                        } else {
                            blackHole(try await pool.run(number) { try $0.load(number % keys) })
                        }
                    }
                },
                .storehouse {
                    defer { withExtendedLifetime(server) {} }
                    return try await perCall(times, over: width) { number in
                        if saves {
                            try await cacher.save(record, param: number % keys)
                        } else {
                            blackHole(try await cacher.load(param: number % keys))
                        }
                    }
                },
            ]
            guard width == 1 else { return contestants }
            contestants.append(
                .floor {
                    let connection = try HandwrittenConnection(server.url, table: "records")
                    let watch = Stopwatch()
                    for number in 0..<times {
                        if saves { try connection.save(record, number % keys) } else { blackHole(try connection.load(number % keys)) }
                    }
                    return [watch.nanoseconds / Double(times)]
                })
            return contestants
        }
    }

    private static let keys = 100
    #endif
}
