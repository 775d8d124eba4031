import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S18: passes in a directory that has the user's own files and no journal.
struct FirstRunTests {
    private func synchronizer(
        _ bench: DirectoryBench, _ edits: LocalEdits = .overwrite, foreignFiles: ForeignFiles = .keep
    ) -> OneWaySynchronizer<DirectoryTarget<ListedSource<ListedFile>, BenchTransfer>> {
        OneWaySynchronizer(processor: bench.target(foreignFiles: foreignFiles), options: SyncOptions(retry: .never, localEdits: edits))
    }

    private func bench(own: Int, listed: Int, equal: Int = 0, hasDigests: Bool = true) throws -> DirectoryBench {
        let bench = try DirectoryBench(Dictionary(uniqueKeysWithValues: (0..<listed).map { ("d/\($0)", "listed \($0)") }))
        for number in 0..<own { try bench.write(number < equal ? "listed \(number)" : "the user's own \(number)", "d/\(number)") }
        if !hasDigests {
            bench.origin.withLock { origin in origin.listed = origin.contents.keys.sorted().map { ListedFile(path: $0, version: "1") } }
        }
        return bench
    }

    @Test(arguments: [false, true])
    func `S18: a first run reports the user's files of the list's names as edited, and keeps them by option`(hasDigests: Bool) async throws
    {
        let bench = try bench(own: 3, listed: 10, hasDigests: hasDigests)
        let own = try bench.files
        let plan = try await synchronizer(bench).plan()
        #expect(plan.updates.map(\.reason) == [.editedLocally, .editedLocally, .editedLocally])
        let report = try await synchronizer(bench, .keepLocal).sync()
        #expect((report.addedCount, report.updatedCount, report.localEdits.count) == (7, 0, 3))
        #expect(try bench.files.filter { own[$0.key] != nil } == own)
        // They stay the user's in every later pass.
        #expect(try await synchronizer(bench, .keepLocal).sync().localEdits.count == 3)
        #expect(try bench.files.filter { own[$0.key] != nil } == own)
    }

    @Test(arguments: [false, true])
    func `S18: a first run that replaces the user's files says so`(hasDigests: Bool) async throws {
        let bench = try bench(own: 3, listed: 10, hasDigests: hasDigests)
        let report = try await synchronizer(bench).sync()
        #expect((report.addedCount, report.updatedCount, report.localEdits.count) == (7, 3, 3))
        #expect(report.summary.contains("3 edited locally"))
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test(arguments: [false, true])
    func `S3, S18: the gate refuses a first run that would replace many of the user's files`(hasDigests: Bool) async throws {
        let bench = try bench(own: 30, listed: 40, hasDigests: hasDigests)
        let own = try bench.files
        #expect(try await synchronizer(bench).plan().gateRefusal?.code == .everythingChanged)
        #expect(await syncError { try await synchronizer(bench).sync() }?.code == .everythingChanged)
        #expect(try bench.files == own)
        // A refused pass is still no pass that has installed these files.
        #expect(await syncError { try await synchronizer(bench).sync() }?.code == .everythingChanged)
        #expect(try bench.files == own)
        try await synchronizer(bench).sync(overriding: .everythingChanged)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S18: files of the user that equal the list's are adopted`() async throws {
        let bench = try bench(own: 30, listed: 30, equal: 28)
        let report = try await synchronizer(bench, .keepLocal).sync()
        #expect((report.unchangedCount, report.localEdits.count) == (28, 2))
        #expect(bench.transferred == 0)
    }

    @Test func `S18: a first run that was interrupted leaves the user's files the user's`() async throws {
        let bench = try bench(own: 3, listed: 10)
        bench.origin.withLock { $0.onTransfer = { path in if path == "d/7" { throw Trouble.lasting } } }
        #expect(await syncError { try await synchronizer(bench, .keepLocal).sync() }?.code == .incomplete)
        bench.origin.withLock { $0.onTransfer = nil }
        let own = try bench.files.filter { $0.value.hasPrefix("the user") }
        #expect(own.count == 3)
        let report = try await synchronizer(bench, .keepLocal).sync()
        #expect(report.localEdits.count == 3)
        #expect(try bench.files.filter { own[$0.key] != nil } == own)
    }

    @Test func `S18: no first run removes foreign files, and the pass after a complete one may`() async throws {
        let bench = try bench(own: 0, listed: 3)
        try bench.write("mine", "own")
        #expect(try await synchronizer(bench, foreignFiles: .remove).plan().removals.isEmpty)
        bench.origin.withLock { $0.onTransfer = { path in if path == "d/2" { throw Trouble.lasting } } }
        #expect(await syncError { try await synchronizer(bench, foreignFiles: .remove).sync() }?.code == .incomplete)
        bench.origin.withLock { $0.onTransfer = nil }
        #expect(try await synchronizer(bench, foreignFiles: .remove).sync().removedCount == 0)
        #expect(bench.exists("own"))
        #expect(try await synchronizer(bench, foreignFiles: .remove).sync().removedCount == 1)
    }

    @Test(arguments: [LocalEdits.overwrite, .keepLocal])
    func `S15, S18: a file of the user with a listed name stays an edit where foreign files are removed`(edits: LocalEdits) async throws {
        let bench = try bench(own: 0, listed: 3)
        try await synchronizer(bench, foreignFiles: .remove).sync()
        for path in ["d/new", "own"] { try bench.write("mine", path) }
        bench["d/new"] = "listed"
        let report = try await synchronizer(bench, edits, foreignFiles: .remove).sync()
        #expect(report.localEdits.map(\.description) == ["d/new"])
        #expect(report.removedCount == 1 && !bench.exists("own"))
        #expect(try bench.files["d/new"] == (edits == .keepLocal ? "mine" : "listed"))
        // An edit is reported as long as it is there.
        #expect(try await synchronizer(bench, edits, foreignFiles: .remove).sync().localEdits.count == (edits == .keepLocal ? 1 : 0))
    }

    @Test(arguments: [false, true])
    func `S18: a first pass without downloads is no complete one, so the next pass removes none of the user's files`(
        isLost: Bool
    ) async throws {
        let bench = try bench(own: 1, listed: 3, equal: 1)
        try bench.write("mine", "own")
        if isLost { try bench.write("damaged", ".storehouse/journal") }
        let withoutContents = OneWaySynchronizer(
            processor: bench.target(foreignFiles: .remove), options: SyncOptions(downloadsContents: false, retry: .never))
        for _ in 0..<3 {
            let report = try await withoutContents.sync()
            #expect((report.unchangedCount, report.removedCount) == (1, 0))
            #expect(try await synchronizer(bench, foreignFiles: .remove).plan().removals.isEmpty)
        }
        #expect(bench.transferred == 0 && bench.exists("own"))
        // The first pass with all downloads is the first complete one.
        #expect(try await synchronizer(bench, foreignFiles: .remove).sync().removedCount == 0)
        #expect(bench.exists("own"))
        #expect(try await withoutContents.sync().removedCount == 1)
    }

    @Test func `S18: a first pass that leaves downloads out is no complete one`() async throws {
        let bench = try bench(own: 0, listed: 3)
        try bench.write("mine", "own")
        let some = OneWaySynchronizer(
            processor: Interposed(base: bench.target(foreignFiles: .remove), chosen: ["d/1"]), options: SyncOptions(retry: .never))
        for _ in 0..<3 { #expect(try await some.sync().removedCount == 0) }
        #expect(try bench.files == ["d/1": "listed 1", "own": "mine"])
        let all = OneWaySynchronizer(
            processor: Interposed(base: bench.target(foreignFiles: .remove), chosen: ["d/0", "d/1", "d/2"]),
            options: SyncOptions(retry: .never))
        #expect(try await all.sync().removedCount == 0)
        #expect(try await all.sync().removedCount == 1)
    }

    @Test func `S9, S18: a journal that was there and does not verify is a lost one, and its files are not edits`() async throws {
        let bench = try bench(own: 0, listed: 5)
        try await synchronizer(bench).sync()
        for remains in ["", "damaged", "storehouse-journal 1\n"] {
            try Data(remains.utf8).write(to: bench.journal)
            #expect(try await synchronizer(bench, .keepLocal).plan().unchangedCount == 5)
            #expect(try await synchronizer(bench, .keepLocal).sync().localEdits.isEmpty)
        }
        // Without the file, nothing says that these files were ever installed. They have the listed content, so they are adopted.
        try FileManager.default.removeItem(at: bench.journal)
        #expect(try await synchronizer(bench, .keepLocal).sync().unchangedCount == 5)
    }

    @Test func `S18: a first run that fails in its last flush lets no pass remove foreign files before one has completed`() async throws {
        let bench = try bench(own: 3, listed: 3, equal: 3)
        try bench.write("mine", "own")
        bench.onStep { if $0 == .flushBegins { throw diskError(.EIO) } }
        #expect(await syncError { try await bench.sync(foreignFiles: .remove, durability: .power) }?.stage == .end)
        bench.onStep { _ in }
        for count in [0, 1] {
            #expect(try await bench.sync(foreignFiles: .remove, durability: .power).removedCount == count)
        }
    }

    @Test func `S15, S18: a file that differs after the loss of a journal is kept or replaced by option`() async throws {
        let bench = try bench(own: 0, listed: 5)
        try await synchronizer(bench).sync()
        try Data("damaged".utf8).write(to: bench.journal)
        bench["d/2"] = "new"
        let report = try await synchronizer(bench, .keepLocal).sync()
        #expect(report.unchangedCount == 4 && report.localEdits.map(\.description) == ["d/2"])
        #expect(try bench.files["d/2"] == "listed 2")
        #expect(try await synchronizer(bench).sync().updatedCount == 1)
        #expect(try bench.files["d/2"] == "new")
    }

    @Test func `S9, S18: a process that dies while it makes its first journal leaves none, or one that says so`() async throws {
        let bench = try bench(own: 3, listed: 5)
        let own = bench.url.appending(path: ".storehouse")
        try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
        // The journal gets its name when its first lines are complete.
        let incomplete = own.appending(path: TemporaryFile.makeName(kind: WritableFile.replacementKind))
        try Data("SHmirr".utf8).write(to: incomplete)
        let report = try await synchronizer(bench, .keepLocal).sync()
        #expect(report.localEdits.count == 3)
        #expect(!FileManager.default.fileExists(atPath: incomplete.path))
    }
}
