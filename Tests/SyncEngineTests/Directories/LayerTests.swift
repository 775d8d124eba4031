import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// S23 to S25: the reserve of space, the backup directory, and the check of all contents.
struct LayerTests {
    private func layers(_ change: (inout MirrorLayers) -> Void) -> MirrorLayers {
        var layers = MirrorLayers()
        change(&layers)
        return layers
    }

    private func codes(_ error: SyncError?) -> [SyncError.Code?] { error?.report?.failures.map { ($0.error as? SyncError)?.code } ?? [] }

    private func files(in directory: URL) throws -> [String: String] {
        var all: [String: String] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path(percentEncoded: false)) {
            let file = directory.appending(path: path)
            if try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile ?? false {
                all[path] = String(decoding: try Data(contentsOf: file), as: UTF8.self)
            }
        }
        return all
    }

    // MARK: Space

    @Test func `S23: a pass that does not fit is refused before it changes anything`() async throws {
        let bench = try DirectoryBench(["a": "1", "b": "2"])
        try await bench.sync()
        bench.origin.withLock { origin in
            origin.listed = [
                ListedFile(path: "a", sha256: digest("1"), byteCount: 1), ListedFile(path: "c", sha256: digest("3"), byteCount: 1 << 60),
            ]
            origin.transfers = []
        }
        let checks = layers { $0.freeSpace = 0 }
        let plan = try await OneWaySynchronizer(processor: bench.target(layers: checks)).plan()
        #expect(plan.gateRefusal?.code == .noSpace)
        #expect(plan.additions.count == 1)
        let error = await syncError { try await bench.sync(layers: checks, removalTiming: .beforeDownloads) }
        #expect(error?.code == .noSpace)
        #expect(try bench.files == ["a": "1", "b": "2"])
        #expect(bench.origin.withLock { $0.transfers } == [])
    }

    @Test func `S23: a pass that fits is made, and the reserve counts`() async throws {
        let bench = try DirectoryBench(["a": "1"])
        #expect(await syncError { try await bench.sync(layers: layers { $0.freeSpace = .max }) }?.code == .noSpace)
        #expect(try await bench.sync(layers: layers { $0.freeSpace = 1 }).addedCount == 1)
        // Without anything to download, no space is needed.
        #expect(try await bench.sync(layers: layers { $0.freeSpace = .max }).unchangedCount == 1)
    }

    // MARK: Backup

    @Test(arguments: [false, true], [Durability.crash, .power])
    func `S24: replaced and removed files are kept under their paths`(isInside: Bool, durability: Durability) async throws {
        let bench = try DirectoryBench(["a": "1", "d/b": "2", "d/c": "3", "m": "4", "z": "z"])
        let other = try TemporaryDirectory()
        let backup = isInside ? bench.url.appending(path: "old files/today") : other.url.appending(path: "backup")
        try await bench.sync(layers: layers { $0.backup = backup }, durability: durability)
        bench.origin.withLock { $0.contents = ["a": "1 new", "d/b": "2 new", "moved": "4", "z": "z"] }
        try bench.write("edited", "d/b")
        let report = try await bench.sync(
            foreignFiles: isInside ? .remove : .keep, layers: layers { $0.backup = backup }, durability: durability)
        #expect((report.updatedCount, report.removedCount, report.movedCount) == (2, 1, 1))
        #expect(try files(in: backup) == ["a": "1", "d/b": "edited", "d/c": "3"])
        // The backup takes no part in later passes, and the newest backup of a path stays.
        bench.origin.withLock { $0.contents["a"] = "1 newer" }
        try await bench.sync(foreignFiles: .remove, layers: layers { $0.backup = backup }, durability: durability)
        #expect(try files(in: backup) == ["a": "1 new", "d/b": "edited", "d/c": "3"])
        let found = try bench.files.filter { !$0.key.hasPrefix("old files/") }
        #expect(found == bench.origin.withLock { $0.contents })
    }

    @Test func `S24: a file that cannot be kept is neither replaced nor removed`() async throws {
        let bench = try DirectoryBench(["a/x": "1", "b": "2", "z": "z"])
        let backup = try TemporaryDirectory()
        // A file has the name of a directory of the backup.
        try Data("in the way".utf8).write(to: backup.url.appending(path: "a"))
        try await bench.sync()
        bench.origin.withLock { $0.contents = ["a/x": "1 new", "z": "z"] }
        let error = await syncError { try await bench.sync(layers: layers { $0.backup = backup.url }) }
        #expect(error?.code == .incomplete)
        #expect(try bench.files == ["a/x": "1", "b": "2", "z": "z"])
        #expect(try files(in: backup.url) == ["a": "in the way"])
    }

    @Test func `S19, S24: no link leads a backup elsewhere`() async throws {
        let bench = try DirectoryBench(["d/a": "1", "z": "z"])
        let (backup, elsewhere) = (try TemporaryDirectory(), try TemporaryDirectory())
        try FileManager.default.createSymbolicLink(at: backup.url.appending(path: "d"), withDestinationURL: elsewhere.url)
        try await bench.sync()
        bench.origin.withLock { $0.contents = ["d/a": "2", "z": "z"] }
        let error = await syncError { try await bench.sync(layers: layers { $0.backup = backup.url }) }
        #expect(error?.code == .incomplete)
        #expect(try bench.files == ["d/a": "1", "z": "z"])
        #expect(try files(in: elsewhere.url).isEmpty)
    }

    @Test(arguments: ["", ".storehouse", ".storehouse/parts", ".storehouse/backup"])
    func `S24: a backup in a directory that passes change themselves is refused`(path: String) async throws {
        let bench = try DirectoryBench(["a": "1"])
        try await bench.sync()
        bench["a"] = "2"
        let backup = path.isEmpty ? bench.url : bench.url.appending(path: path)
        let error = await syncError { try await bench.sync(layers: layers { $0.backup = backup }) }
        #expect(error?.code == .unsafeName)
        #expect(try bench.files == ["a": "1"])
    }

    // MARK: Verification

    /// Changes a file's content, but not its size, time and inode.
    private func damage(_ file: URL) throws {
        let reference = file.deletingLastPathComponent().appending(path: "reference-\(file.lastPathComponent)")
        func touch(_ file: URL, like other: URL) throws {
            let child = try ChildProcess(
                "/usr/bin/touch", ["-r", other.path(percentEncoded: false), file.path(percentEncoded: false)])
            #expect(child.wait())
        }
        try touch(reference, like: file)
        let handle = try FileHandle(forWritingTo: file)
        try handle.write(contentsOf: Data("X".utf8))
        try handle.close()
        try touch(file, like: reference)
        try FileManager.default.removeItem(at: reference)
    }

    @Test(arguments: [LocalEdits.overwrite, .keepLocal])
    func `S25: a damaged file is found by its digest, and repaired by a pass`(edits: LocalEdits) async throws {
        let bench = try DirectoryBench(["a": "1 one", "d/b": "2 two", "c": "3 three"])
        try await bench.sync()
        try damage(bench.url.appending(path: "d/b"))
        #expect(try await bench.sync().unchangedCount == 3, "the stamp does not show the damage")
        let check = layers { $0.verification = .digests(at: nil) }
        let synchronizer = OneWaySynchronizer(processor: bench.target(layers: check), options: SyncOptions(localEdits: edits))
        let plan = try await synchronizer.plan()
        #expect(plan.updates.map(\.item.path) == ["d/b"])
        #expect(plan.updates.first?.reason == .unknownVersion)
        #expect(try bench.files["d/b"] == "X two", "a plan changes nothing")
        #expect(try await synchronizer.sync().updatedCount == 1)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
        #expect(try await synchronizer.sync().unchangedCount == 3)
    }

    @Test func `S22, S25: a check of contents keeps to its rate, and excluded files are not read`() async throws {
        let bench = try DirectoryBench(["a": "12345", "b.log": "67890"])
        try await bench.sync()
        try damage(bench.url.appending(path: "b.log"))
        let rate = try TransferRate(bytesPerSecond: 1_000_000)
        let check = layers { layers in
            layers.verification = .digests(at: rate)
            layers.filter = FileFilter(["*.log"])
        }
        let report = try await bench.sync(layers: check)
        #expect((report.unchangedCount, report.updatedCount) == (1, 0))
    }

    @Test func `S20, S25: a damaged file is no source of a move`() async throws {
        let bench = try DirectoryBench(["a": "1 one", "z": "z"])
        try await bench.sync()
        try damage(bench.url.appending(path: "a"))
        bench.origin.withLock { $0.contents = ["b": "1 one", "z": "z"] }
        let report = try await bench.sync(layers: layers { $0.verification = .digests(at: nil) })
        #expect((report.movedCount, report.addedCount, report.removedCount) == (0, 1, 1))
        #expect(try bench.files == ["b": "1 one", "z": "z"])
    }
}
