import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S17: the journal's records in little memory, and their reading.
struct RecordTableTests {
    @Test func `S17: a table of records behaves like a dictionary`() {
        for seed in seeds(200, quick: 15, sanitized: 15) {
            var chance = SplitMix(seed: seed)
            var table = RecordTable()
            var expected: [PathKey: FileRecord] = [:]
            // Composed and decomposed spellings are different keys, and so are the Kelvin sign and K.
            let paths = (0..<30).map { PathKey("directory/file-\($0)") } + ["caf\u{E9}", "cafe\u{301}", "K", "\u{212A}", ""]
            for step in 0..<400 {
                let path = paths[Int.random(in: 0..<paths.count, using: &chance)]
                switch Int.random(in: 0..<6, using: &chance) {
                case 0:
                    table.remove(path)
                    expected[path] = nil
                case 1:
                    table.settle(path)
                    expected[path]?.before = []
                default:
                    let digest = SHA256.digest(of: [UInt8(truncatingIfNeeded: step)])
                    let stamp = FileStamp(size: step, modified: Int64(step), inode: UInt64(step))
                    var record = FileRecord(version: Bool.random(using: &chance) ? digest.hex : "v\(step)", digest: digest, stamp: stamp)
                    if let before = expected[path] {
                        record.before = [FileRecord(version: before.version, digest: before.digest, stamp: before.stamp)]
                    }
                    table.put(record, for: path, line: step)
                    expected[path] = record
                }
                if table[path] != expected[path] { Issue.record("seed \(seed), step \(step), \(path)") }
            }
            #expect(table.count == expected.count && Set(table.paths) == Set(expected.keys), "seed \(seed)")
            for path in paths { #expect(table[path] == expected[path], "seed \(seed), \(path)") }
        }
    }

    @Test func `S9, S17: a journal keeps its changes, and one that is cut in its last change the others`() throws {
        let bench = try DirectoryBench()
        let file = bench.url.appending(path: "journal")
        var changes = [TargetJournal.Change.rebuilding]
        for number in 0..<200 {
            let path = PathKey("d/\(number)" + String(repeating: "x", count: number % 7 == 0 ? 300 : 3))
            let stamp = FileStamp(size: number, modified: 1, inode: UInt64(number))
            let digest = SHA256.digest(of: [UInt8(number)])
            changes.append(.put(path, FileRecord(version: number % 2 == 0 ? digest.hex : "\(number)", digest: digest, stamp: stamp)))
        }
        try TargetJournal.write(changes, to: file)
        #expect(try TargetJournal.changes(in: file) == changes)
        let bytes = try Data(contentsOf: file)
        for cut in [0, 1, 40] {
            try bytes.dropLast(cut).write(to: file)
            #expect(try TargetJournal.read(from: file)?.records.count == (cut == 0 ? 200 : 199))
        }
    }

    #if os(Linux)
    @Test(.disabled(if: isSanitized, "the thread sanitizer needs memory of its own"))
    func `S17: a pass over unchanged files takes at most 450 bytes of memory per file`() throws {
        func run(_ bench: DirectoryBench, _ count: Int, _ mode: String) throws -> [Int] {
            try bench.writer(0, count: count, mode: mode).lines.flatMap { $0.split(separator: " ").compactMap { Int($0) } }
        }
        let (small, large) = (try DirectoryBench(), try DirectoryBench([:], in: "/dev/shm"))
        let count = rounds(20_000, quick: 8_000)
        _ = try run(large, count, "fill")
        let base = try run(small, 0, "idle")
        #expect(try run(large, count, "idle").first == count, "the first pass finds the digests of the list")
        let again = try run(large, count, "idle")
        #expect(again.first == count)
        let bytes = (try #require(again.last) - (try #require(base.last))) * 1024
        #expect(bytes <= 450 * count, "\(bytes / count) bytes per file")
    }
    #endif
}
