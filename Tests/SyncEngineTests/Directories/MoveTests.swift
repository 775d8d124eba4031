import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S20: files that have another path in the list are moved, not downloaded.
struct MoveTests {
    /// Synchronizes one set of files, then another, and returns the second report.
    private func change(_ before: [String: String], _ after: [String: String]) async throws -> (DirectoryBench, SyncReport) {
        let bench = try await DirectoryBench(before).synced()
        bench.publish(after)
        let report = try await bench.sync()
        #expect(try bench.files == after)
        #expect(try await bench.sync().unchangedCount == after.count)
        return (bench, report)
    }

    private func parts(_ bench: DirectoryBench) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: bench.url.appending(path: ".storehouse/parts").path(percentEncoded: false))
    }

    // Before, after, number of moves, paths that are downloaded.
    @Test(
        arguments: [
            ("a rename", ["a": "1", "z": "z"], ["b": "1", "z": "z"], 1, []),
            ("a directory", ["d/a": "1", "d/b": "2", "z": "z"], ["e/a": "1", "e/b": "2", "z": "z"], 2, []),
            ("a chain", ["a": "1", "b": "2"], ["b": "1", "c": "2"], 2, []),
            ("a swap", ["a": "1", "b": "2"], ["a": "2", "b": "1"], 2, []),
            ("a cycle", ["a": "1", "b": "2", "c": "3"], ["a": "3", "b": "1", "c": "2"], 3, []),
            ("a rotated log", ["log": "3", "log.1": "2", "log.2": "1"], ["log": "4", "log.1": "3", "log.2": "2"], 2, ["log"]),
            ("a file that becomes a directory", ["a": "1", "z": "z"], ["a/b": "1", "z": "z"], 1, []),
            ("a directory that becomes a file", ["a/b": "1", "z": "z"], ["a": "1", "z": "z"], 1, []),
            ("a swap of a file and a directory", ["a/b": "1", "c": "2"], ["a": "2", "c/b": "1"], 2, []),
            ("a move onto a file", ["a": "1", "b": "2", "z": "z"], ["b": "1", "z": "z"], 1, []),
            ("two copies of one file", ["a": "1", "z": "z"], ["b": "1", "c": "1", "z": "z"], 1, ["c"]),
            ("two of one content", ["a/x": "1", "a/y": "1"], ["b/x": "1", "b/y": "1"], 2, []),
            ("an empty file", ["a": "", "z": "z"], ["b": "", "z": "z"], 1, []),
            ("a copy of a file that stays", ["a": "1"], ["a": "1", "b": "1"], 0, ["b"]),
        ] as [(String, [String: String], [String: String], Int, [String])])
    func `S20: a file with another path is moved`(
        what: String, before: [String: String], after: [String: String], moves: Int, downloads: [String]
    ) async throws {
        let (bench, report) = try await change(before, after)
        #expect((report.movedCount, report.planned.moves) == (moves, moves))
        #expect(bench.origin.withLock { $0.transfers }.sorted() == downloads)
        #expect(report.addedCount + report.updatedCount == downloads.count)
        #expect(try parts(bench).isEmpty)
        // The journal of a later process knows the moved files.
        #expect(try await OneWaySynchronizer(processor: bench.target()).plan().unchangedCount == after.count)
    }

    @Test func `S20: 300 renames download nothing and pass the safety gate`() async throws {
        let before = Dictionary(uniqueKeysWithValues: (0..<300).map { ("old/\($0 % 7)/\($0)", "content \($0)") })
        let bench = try await DirectoryBench(before).synced()
        bench.publish(Dictionary(uniqueKeysWithValues: (0..<300).map { ("new/\($0 % 5)/n\($0)", "content \($0)") }))
        let synchronizer = OneWaySynchronizer(processor: bench.target(durability: .power))
        let plan = try await synchronizer.plan()
        #expect(plan.gateRefusal == nil)
        #expect(plan.moves.count == 300 && plan.additions.isEmpty && plan.removals.isEmpty && plan.downloads.isEmpty)
        #expect(plan.moves.allSatisfy { before[$0.from.key.path] == bench[$0.item.path] })
        let report = try await synchronizer.sync()
        #expect(report.movedCount == 300 && report.removedCount == 0 && report.addedCount == 0)
        #expect(bench.transferred == 0)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
        #expect(report.summary.contains("300 moved"))
        #expect(!bench.exists("old"), "directories that moves leave empty are removed")
    }

    @Test func `S3, S20: a move is neither a removal nor an update unless it replaces content that is then nowhere`() async throws {
        func refusal(_ after: @escaping (Int) -> (String, String)) async throws -> SyncError.Code? {
            let bench = try await DirectoryBench(Dictionary(uniqueKeysWithValues: (0..<30).map { ("\($0)", "content \($0)") })).synced()
            bench.origin.withLock { $0.contents = Dictionary(uniqueKeysWithValues: (0..<30).map(after)) }
            return try await OneWaySynchronizer(processor: bench.target()).plan().gateRefusal?.code
        }
        #expect(try await refusal { ("\(($0 + 1) % 30)", "content \($0)") } == nil)
        #expect(try await refusal { ("moved/\($0)", "content \($0)") } == nil)
        // Files 0 to 9 are moved onto 10 to 19, and that content is in no file afterward. Ten new files hide nothing.
        let code = try await refusal { $0 < 10 ? ("\($0 + 10)", "content \($0)") : ($0 < 20 ? "x\($0)" : "\($0)", "new \($0)") }
        #expect(code == .updateLimit)
    }

    @Test func `S4, S20: a file edited before its move stays, and the new file is downloaded`() async throws {
        let bench = try await DirectoryBench(["a": "1", "z": "z"]).synced()
        bench.publish(["b": "1", "z": "z"])
        let processor = Interposed(base: bench.target(), beforePreparation: { [bench = bench] in try bench.write("saved", "a") })
        let error = await syncError {
            try await OneWaySynchronizer(processor: processor, options: SyncOptions(stopsOnError: false, retry: .never)).sync()
        }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == ["a": "saved", "b": "1", "z": "z"])
        #expect(bench.origin.withLock { $0.transfers } == ["b"])
    }

    @Test(arguments: [false, true])
    func `S4, S20: a file edited while it is held is neither moved nor removed`(replaces: Bool) async throws {
        let bench = try await DirectoryBench(["a": "1", "z": "z"]).synced()
        bench.origin.withLock { $0.contents = ["b": "1", "z": "z"] }
        bench.onStep { [bench = bench] step in
            guard step == .renames("b") else { return }
            // A new file leaves the held one as it was; a write in place changes both of its names.
            if replaces { try FileManager.default.removeItem(at: bench.url.appending(path: "a")) }
            try bench.write("saved", "a")
        }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == (replaces ? ["a": "saved", "b": "1", "z": "z"] : ["a": "saved", "z": "z"]))
        #expect(error?.report?.failures.first?.stage == .moves)
        bench.probe.withLock { $0 = nil }
        #expect(try await bench.sync(localEdits: .keepLocal).localEdits.map(\.description) == ["a"])
        #expect(try bench.files == ["a": "saved", "b": "1", "z": "z"])
        #expect(try parts(bench).isEmpty)
    }

    @Test(arguments: [POSIXErrorCode.EPERM, .EOPNOTSUPP, .EMLINK, .EXDEV], [RemovalTiming.afterDownloads, .beforeDownloads])
    func `S1, S20: where a file cannot have two names, it is downloaded, and the same pass removes the old one`(
        code: POSIXErrorCode, timing: RemovalTiming
    ) async throws {
        let bench = try await DirectoryBench(["a": "1", "b": "2", "c": "3", "z": "z"]).synced()
        bench.publish(["b": "1", "a": "2", "d": "3", "z": "z"])
        bench.onStep { if case .holds = $0 { throw diskError(code) } }
        let report = try await bench.sync(removalTiming: timing)
        #expect((report.movedCount, report.addedCount, report.updatedCount, report.removedCount) == (0, 1, 2, 1))
        #expect(report.pendingRemovals.isEmpty)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
        #expect(try parts(bench).isEmpty)
    }

    @Test func `S3, S5, S20: a file that was neither moved nor downloaded keeps its old name, even despite failures`() async throws {
        let bench = try await DirectoryBench(Dictionary(uniqueKeysWithValues: (0..<30).map { ("old/\($0)", "content \($0)") })).synced()
        bench.publish(Dictionary(uniqueKeysWithValues: (0..<30).map { ("new/\($0)", "content \($0)") }))
        bench.onStep { if case .holds = $0 { throw diskError(.EPERM) } }
        bench.origin.withLock { $0.onTransfer = { _ in throw Trouble.lasting } }
        let options = SyncOptions(stopsOnError: false, removalCondition: .despiteFailures, retry: .never)
        let error = await syncError { try await OneWaySynchronizer(processor: bench.target(), options: options).sync() }
        #expect(error?.code == .incomplete)
        #expect((error?.report?.removedCount, error?.report?.pendingRemovals.count) == (0, 30))
        #expect(try bench.files.count == 30)
    }

    @Test func `S20: a disk that is full before a move ends the pass, and the next pass moves`() async throws {
        let bench = try await DirectoryBench(["a": "1", "b": "2", "z": "z"]).synced()
        bench.origin.withLock { ($0.contents, $0.transfers) = (["b": "1", "a": "2", "z": "z"], []) }
        bench.onStep { if $0 == .holds("b") { throw diskError(.ENOSPC) } }
        #expect(await syncError { try await bench.sync() }?.stage == .moves)
        #expect(try bench.files == ["a": "1", "b": "2", "z": "z"])
        #expect(try parts(bench).isEmpty)
        bench.probe.withLock { $0 = nil }
        #expect(try await bench.sync().movedCount == 2)
        #expect(bench.origin.withLock { $0.transfers } == [])
    }

    @Test(arguments: [false, true])
    func `S20, S24: a content that has lost its name to a failed swap is not downloaded again, or is in the backup`(
        hasBackup: Bool
    ) async throws {
        let (bench, backup) = (try DirectoryBench(["a": "1", "b": "2", "z": "z"]), try TemporaryDirectory())
        try await bench.sync()
        bench.origin.withLock { ($0.contents, $0.transfers) = (["b": "1", "a": "2", "z": "z"], []) }
        bench.onStep { if $0 == .renames("b") { throw diskError(.EBUSY) } }
        let layers = MirrorLayers { $0.backup = hasBackup ? backup.url : nil }
        #expect(await syncError { try await bench.sync(layers: layers, concurrency: 1) }?.code == .incomplete)
        #expect(try bench.files == ["a": "2", "b": "2", "z": "z"])
        bench.probe.withLock { $0 = nil }
        try await bench.sync(layers: layers)
        #expect(try bench.files == ["b": "1", "a": "2", "z": "z"])
        if hasBackup {
            #expect(try String(contentsOf: backup.url.appending(path: "a"), encoding: .utf8) == "1")
        } else {
            #expect(bench.origin.withLock { $0.transfers } == [])
        }
    }

    @Test(arguments: [false, true])
    func `S4, S20: a file saved under the new name is not replaced by a move`(exists: Bool) async throws {
        let bench = try await DirectoryBench(exists ? ["a": "1", "b": "2", "z": "z"] : ["a": "1", "z": "z"]).synced()
        bench.origin.withLock { $0.contents = ["b": "1", "z": "z"] }
        bench.onStep { [bench = bench] step in if step == .renames("b") { try bench.write("saved", "b") } }
        #expect(codes(await syncError { try await bench.sync() }) == [.changedLocally])
        #expect(try bench.files == ["a": "1", "b": "saved", "z": "z"])
    }

    @Test func `S15, S20: an edited file is no source of a move, and an edit under the new name is kept by option`() async throws {
        let bench = try await DirectoryBench(["a": "1", "b": "2", "z": "z"]).synced()
        try bench.write("edited", "b")
        bench.origin.withLock { $0.contents = ["b": "1", "z": "z"] }
        let report = try await bench.sync(localEdits: .keepLocal)
        #expect(report.movedCount == 0)
        #expect(report.localEdits.map(\.description) == ["b"])
        #expect(try bench.files == ["b": "edited", "z": "z"])
        bench.origin.withLock { $0.contents = ["c": "2", "z": "z"] }
        #expect(try await bench.sync(localEdits: .keepLocal).movedCount == 0)
        #expect(try bench.files == ["b": "edited", "c": "2", "z": "z"])
    }

    @Test func `S20: an edit under the new name is replaced by a move, and reported`() async throws {
        let bench = try await DirectoryBench(["a": "1", "b": "2", "z": "z"]).synced()
        try bench.write("edited", "b")
        bench.origin.withLock { $0.contents = ["b": "1", "z": "z"] }
        let report = try await bench.sync()
        #expect(report.movedCount == 1)
        #expect(report.localEdits.map(\.description) == ["b"])
        #expect(try bench.files == ["b": "1", "z": "z"])
    }

    @Test func `S8, S20: a new spelling on a folding disk is a move`() async throws {
        let bench = try DirectoryBench(["Read me": "1", "z": "z"])
        try await bench.sync(folding: .all)
        bench.publish(["READ ME": "1", "z": "z"])
        #expect(try await bench.sync(folding: .all).movedCount == 1)
        #expect(try bench.files == ["READ ME": "1", "z": "z"])
        #expect(bench.origin.withLock { $0.transfers } == [])
    }

    @Test func `S20: random lists are reached with every content that exists moved`() async throws {
        let first = UInt64.random(in: 1...1_000_000)
        for round in seeds(40 as UInt64, quick: 5, sanitized: 2) {
            var chance = SplitMix(seed: first + round)
            let bench = try DirectoryBench()
            var before: [String: String] = [:]
            for step in 0..<6 {
                let context = Comment(rawValue: "seed \(first + round), step \(step)")
                var after: [String: String] = ["stays": "s"]
                for name in ["a", "b", "c", "d", "e", "f"] where Int.random(in: 0..<6, using: &chance) > 0 {
                    let inner = Bool.random(using: &chance) ? ["x", "y/z"] : [""]
                    for part in inner { after[part.isEmpty ? name : name + "/" + part] = "\(Int.random(in: 0..<8, using: &chance))" }
                }
                var (open, free): ([String: Int], [String: Int]) = ([:], [:])
                for (path, text) in after where before[path] != text { open[text, default: 0] += 1 }
                for (path, text) in before where after[path] != text { free[text, default: 0] += 1 }
                let moves = open.reduce(0) { $0 + min($1.value, free[$1.key] ?? 0) }
                bench.publish(after)
                let report = try await bench.sync(.everythingChanged, concurrency: Bool.random(using: &chance) ? 1 : 4)
                #expect(try bench.files == after, context)
                #expect(report.movedCount == moves, context)
                #expect(bench.transferred == open.values.reduce(0, +) - moves, context)
                #expect(try parts(bench).isEmpty, context)
                before = after
            }
        }
    }
}

/// S20: the choice of moves, as a pure function.
struct MoveMatcherTests {
    private func digest(_ text: String) -> SHA256.Digest { SHA256.digest(of: Array(text.utf8)) }

    private func moves(_ wanted: [(String, String)], _ origins: [(String, String, Bool)]) -> [PathKey: PathKey] {
        MoveMatcher.moves(
            to: wanted.map { (PathKey($0.0), digest($0.1), Int64($0.1.utf8.count)) },
            from: origins.map { path, text, isGone in
                MoveMatcher.Origin(key: PathKey(path), digest: digest(text), size: Int64(text.utf8.count), isGone: isGone)
            })
    }

    @Test func `S20: among equal contents, the same name and files that are gone move first`() {
        let same = moves([("n/x", "1"), ("n/y", "1")], [("o/a", "1", true), ("o/y", "1", true), ("o/x", "1", true)])
        #expect(same == ["o/x": "n/x", "o/y": "n/y"])
        #expect(moves([("n/x", "1")], [("a", "1", false), ("b", "1", true)]) == ["b": "n/x"])
        #expect(moves([("n/x", "1")], [("a", "1", false), ("c", "1", true), ("b", "1", true)]) == ["b": "n/x"])
        #expect(moves([("a", "1")], [("a", "1", false)]) == [:])
        #expect(moves([("b", "1")], [("a", "2", true)]) == [:])
    }

    @Test func `S20: a file of another size does not move`() {
        let origin = MoveMatcher.Origin(key: "a", digest: digest("1"), size: 1, isGone: true)
        #expect(MoveMatcher.moves(to: [("b", digest("1"), 2)], from: [origin]) == [:])
        #expect(MoveMatcher.moves(to: [("b", digest("1"), nil)], from: [origin]) == ["a": "b"])
    }

    @Test func `S20: 20 000 files of one content are matched in linear time`() {
        // Quadratic time would take minutes.
        let count = 20_000
        let one = digest("1")
        let wanted = (0..<count).map { (key: PathKey("n/\($0)"), digest: one, size: Int64?(1)) }
        let origins = (0..<count).map { MoveMatcher.Origin(key: PathKey("o/m\($0)"), digest: one, size: 1, isGone: true) }
        #expect(MoveMatcher.moves(to: wanted, from: origins).count == count)
    }
}
