internal import Foundation
internal import StoreCore
import StoreFiles
import StorePlatform

extension Experiment {
    /// Uses fresh directories for each contestant and round, because ext4 creates files ten times slower after thousands of deletions.
    static var files: [Experiment] {
        [
            save(.crash, replaces: false), save(.crash, replaces: true), save(.power, replaces: false), save(.power, replaces: true),
            load("1 KB", count: 1), load("100 KB", count: 100), list,
        ]
    }

    private static func save(_ durability: Durability, replaces: Bool) -> Experiment {
        let synchronizes = durability == .power
        let title = "save 1 KB\(synchronizes ? " with 2 fsyncs" : ""), \(replaces ? "replaced" : "new")"
        return Experiment(.files, "file-save\(synchronizes ? "-power" : "")-\(replaces ? "replaced" : "new")", title) { scale in
            let place = BenchmarkDirectory()
            let times = synchronizes ? scale.times(400, quick: 100) : scale.times(2_000, quick: 500)
            let record = CacheRecord(content: Article.some(1), fetchedAt: Date(timeIntervalSinceReferenceDate: 800_000_000))
            let bytes = try await Article.fileBytes(record)
            return [
                .mutex {
                    let path = try place.makeDirectory()
                    if replaces { for key in 0..<times { try saveByHand(bytes, path, name(key), synchronizes: false) } }
                    let watch = Stopwatch()
                    for key in 0..<times { try saveByHand(bytes, path, name(key), synchronizes: synchronizes) }
                    return [watch.nanoseconds / Double(times)]
                },
                .storehouse {
                    let url = URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory)
                    let filling = FileCacher<Int, [Article]>(directory: url)
                    if replaces { for key in 0..<times { try await filling.save(record, param: key) } }
                    // The scan at the first save is excluded.
                    let cacher = FileCacher<Int, [Article]>(directory: url, durability: durability)
                    try await cacher.save(record, param: -1)
                    await cacher.settle()
                    let watch = Stopwatch()
                    for key in 0..<times { try await cacher.save(record, param: key) }
                    return [watch.nanoseconds / Double(times)]
                },
            ]
        }
    }

    private static func load(_ size: String, count: Int) -> Experiment {
        Experiment(.files, "file-load-\(count == 1 ? "small" : "large")", "load \(size), warm, compared with read + decode") { scale in
            let place = BenchmarkDirectory()
            let record = CacheRecord(content: Article.some(count), fetchedAt: Date(timeIntervalSinceReferenceDate: 800_000_000))
            let cacher = FileCacher<Int, [Article]>(directory: place.root)
            try await cacher.save(record, param: 1)
            await cacher.settle()
            try saveByHand(Array(try JSONEncoder().encode(record)), place.file(""), "plain", synchronizes: false)
            let times = scale.times(200_000, quick: 40_000) / (19 + count)
            return [
                .floor {
                    let path = place.file("plain")
                    let watch = Stopwatch()
                    for _ in 0..<times { blackHole(try loadByHand(path).count) }
                    return [watch.nanoseconds / Double(times)]
                },
                .mutex {
                    let path = place.file("plain")
                    let decoder = JSONDecoder()
                    let watch = Stopwatch()
                    for _ in 0..<times { blackHole(try decoder.decode(CacheRecord<[Article]>.self, from: Data(loadByHand(path)))) }
                    return [watch.nanoseconds / Double(times)]
                },
                .storehouse {
                    let watch = Stopwatch()
                    for _ in 0..<times { blackHole(try await cacher.load(param: 1)) }
                    return [watch.nanoseconds / Double(times)]
                },
            ]
        }
    }

    private static let list = Experiment(.files, "file-list", "100 000 records, list with stat") { _ in
        let place = BenchmarkDirectory()
        try FileManager.default.createDirectory(at: place.root, withIntermediateDirectories: true)
        for key in 0..<100_000 { try saveByHand([], place.file(""), name(key), synchronizes: false) }
        return [
            .mutex {
                let watch = Stopwatch()
                blackHole(try listByHand(place.file("")))
                return [watch.nanoseconds]
            },
            .storehouse {
                let watch = Stopwatch()
                guard var listing = try Directory(path: place.file("")).list() else { return [0] }
                var (count, bytes) = (0, 0)
                while let entry = try listing.next() {
                    guard let status = try listing.status(of: entry) else { continue }
                    count += 1
                    bytes += status.size
                }
                blackHole((count, bytes))
                return [watch.nanoseconds]
            },
        ]
    }
}

/// Returns a file name as long as a record's.
private func name(_ key: Int) -> String { SHA256.digest(of: Array(String(key).utf8)).hex + ".record" }

/// A typical article of an app: about 1 KB of JSON.
struct Article: Codable, Sendable {
    var id: Int
    var title: String
    var author: String
    var published: Date
    var tags: [String]
    var isRead: Bool
    var rating: Double
    var body: String

    static func some(_ count: Int) -> [Article] {
        (0..<count).map { id in
            Article(
                id: id, title: "How to keep what was fetched", author: "Ada Lovelace",
                published: Date(timeIntervalSinceReferenceDate: 700_000_000.25), tags: ["caching", "files", "swift"], isRead: false,
                rating: 4.5, body: String(repeating: "A record is wholly there or not at all. ", count: 19))
        }
    }

    /// Returns the bytes that the cacher writes for a record.
    static func fileBytes(_ record: CacheRecord<[Article]>) async throws -> [UInt8] {
        let place = BenchmarkDirectory()
        let url = URL(filePath: try place.makeDirectory(), directoryHint: .isDirectory)
        let cacher = FileCacher<Int, [Article]>(directory: url)
        try await cacher.save(record, param: 1)
        await cacher.settle()
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path(percentEncoded: false))
        guard let name = names.first else { return [] }
        return Array(try Data(contentsOf: url.appending(path: name)))
    }
}
