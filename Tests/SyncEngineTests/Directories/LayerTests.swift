import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S23 to S25: the reserve of space, the backup directory, and the check of all contents.
struct LayerTests {
    // MARK: Space

    @Test func `S23: a pass that does not fit is refused before it changes anything`() async throws {
        let bench = try await DirectoryBench(["a": "1", "b": "2"]).synced()
        let huge = ListedFile(path: "c", sha256: digest("3"), byteCount: 1 << 60)
        bench.origin.withLock { ($0.listed, $0.transfers) = ([ListedFile(path: "a", sha256: digest("1"), byteCount: 1), huge], []) }
        let checks = MirrorLayers { $0.freeSpace = 0 }
        let plan = try await OneWaySynchronizer(processor: bench.target(layers: checks)).plan()
        #expect((plan.gateRefusal?.code, plan.additions.count) == (.noSpace, 1))
        #expect(await syncError { try await bench.sync(layers: checks, removalTiming: .beforeDownloads) }?.code == .noSpace)
        #expect(try bench.files == ["a": "1", "b": "2"])
        #expect(bench.origin.withLock { $0.transfers } == [])
    }

    @Test func `S23: a pass that fits is made, and the reserve counts`() async throws {
        let bench = try DirectoryBench(["a": "1"])
        // A plan shows the refusal even before the first pass makes the directory.
        try FileManager.default.removeItem(at: bench.url)
        let first = OneWaySynchronizer(processor: bench.target(layers: .init { $0.freeSpace = .max }))
        #expect(try await first.plan().gateRefusal?.code == .noSpace)
        #expect(await syncError { try await bench.sync(layers: .init { $0.freeSpace = .max }) }?.code == .noSpace)
        #expect(try await bench.sync(layers: .init { $0.freeSpace = 1 }).addedCount == 1)
        // Without anything to download, no space is needed.
        #expect(try await bench.sync(layers: .init { $0.freeSpace = .max }).unchangedCount == 1)
    }

    @Test func `S23: many small files need the blocks that the disk gives them, and not only their bytes`() async throws {
        let bench = try DirectoryBench(["a": "1"])
        let root = try #require(try DirectoryHandle(opening: Directory(path: bench.url.path(percentEncoded: false))))
        let free = try #require(FileStatus.freeSpace(of: root))
        // Far more than other tests write meanwhile.
        let reserve = max(0, free - 400_000_000)
        let item = ListedFile(path: "b", version: "1", byteCount: 1)
        var plan = SyncPlan<ListedFile>()
        plan.additions = Array(repeating: SyncPlan<ListedFile>.Download(item: item, local: nil, reason: .missing), count: 200_000)
        let error = try await bench.target(layers: .init { $0.freeSpace = reserve }).refusal(of: plan)
        #expect(error?.code == .noSpace)
        #expect(error?.message.contains("needs 819200000 bytes") == true)
    }

    @Test(arguments: ["", "d", "new", "new/er/est"])
    func `S23, S24: files with a backup on the same disk free no space`(backup: String) async throws {
        let bench = try await DirectoryBench(["a": "1", "d/z": "z"]).synced()
        let target = bench.target(
            layers: .init { ($0.freeSpace, $0.backup) = (0, backup.isEmpty ? nil : bench.url.appending(path: backup)) })
        let huge = Int64(1) << 42
        let old = ["a", "b"].map { LocalEntry<ListedFile>(PathKey($0), version: "1", byteCount: huge) }
        var smaller = SyncPlan<ListedFile>()
        smaller.updates = zip(old, [huge / 2, 0]).map {
            SyncPlan.Download(item: ListedFile(path: $0.key.path, version: "2", byteCount: $1), local: $0, reason: .changed)
        }
        var removing = SyncPlan<ListedFile>()
        removing.additions = [SyncPlan.Download(item: ListedFile(path: "c", version: "1", byteCount: huge), local: nil, reason: .missing)]
        removing.removals = old.map { SyncPlan.Removal(local: $0, reason: .notInSource) }
        removing.removesFirst = true
        for plan in [smaller, removing] { #expect(try await target.refusal(of: plan)?.code == (backup.isEmpty ? nil : .noSpace)) }
    }

    // MARK: Backup

    @Test(arguments: [false, true], [Durability.crash, .power])
    func `S24: replaced and removed files are kept under their paths`(isInside: Bool, durability: Durability) async throws {
        let bench = try DirectoryBench(["a": "1", "d/b": "2", "d/c": "3", "m": "4", "z": "z"])
        let other = try TemporaryDirectory()
        let backup = isInside ? bench.url.appending(path: "old files/today") : other.url.appending(path: "backup")
        try await bench.sync(layers: .init { $0.backup = backup }, durability: durability)
        bench.origin.withLock { $0.contents = ["a": "1 new", "d/b": "2 new", "moved": "4", "z": "z"] }
        try bench.write("edited", "d/b")
        let report = try await bench.sync(
            foreignFiles: isInside ? .remove : .keep, layers: .init { $0.backup = backup }, durability: durability)
        #expect((report.updatedCount, report.removedCount, report.movedCount) == (2, 1, 1))
        #expect(try contents(of: backup) == ["a": "1", "d/b": "edited", "d/c": "3"])
        // The backup takes no part in later passes, and the newest backup of a path stays.
        bench.origin.withLock { $0.contents["a"] = "1 newer" }
        try await bench.sync(foreignFiles: .remove, layers: .init { $0.backup = backup }, durability: durability)
        #expect(try contents(of: backup) == ["a": "1 new", "d/b": "edited", "d/c": "3"])
        let found = try bench.files.filter { !$0.key.hasPrefix("old files/") }
        #expect(found == bench.origin.withLock { $0.contents })
    }

    @Test(arguments: [true, false])
    func `S19, S24: a file that cannot be kept is neither replaced nor removed, and no link leads a backup elsewhere`(
        isRemoved: Bool
    ) async throws {
        let bench = try DirectoryBench(["d/a": "1", "z": "z"])
        let (backup, elsewhere) = (try TemporaryDirectory(), try TemporaryDirectory())
        try FileManager.default.createSymbolicLink(at: backup.url.appending(path: "d"), withDestinationURL: elsewhere.url)
        try await bench.sync()
        bench.origin.withLock { $0.contents = isRemoved ? ["z": "z"] : ["d/a": "2", "z": "z"] }
        #expect(await syncError { try await bench.sync(layers: .init { $0.backup = backup.url }) }?.code == .incomplete)
        #expect(try bench.files == ["d/a": "1", "z": "z"])
        #expect(try contents(of: elsewhere.url).isEmpty)
    }

    @Test(arguments: [Durability.crash, .power])
    func `S24: a backup in the way of another gets a free name, and no pass fails for it`(durability: Durability) async throws {
        let bench = try DirectoryBench(["p": "1", "q/r": "2", "z": "z"])
        let backup = try TemporaryDirectory()
        try Data("the user's".utf8).write(to: backup.url.appending(path: "p~1"))
        for contents in [["p/x": "3", "q": "4", "z": "z"], ["p": "5", "q/r": "6", "z": "z"], ["z": "z"]] {
            try await bench.sync(layers: .init { $0.backup = backup.url }, durability: durability)
            bench.origin.withLock { $0.contents = contents }
        }
        try await bench.sync(layers: .init { $0.backup = backup.url }, durability: durability)
        #expect(try bench.files == ["z": "z"])
        #expect(
            try contents(of: backup.url) == ["p~1": "the user's", "p~2": "1", "p~3/x": "3", "p": "5", "q~1/r": "2", "q~2": "4", "q/r": "6"])
    }

    @Test(arguments: [false, true], [false, true])
    func `S4, S24: a file saved while its backup is made is neither replaced nor removed`(isRemoved: Bool, isShaped: Bool) async throws {
        let bench = try DirectoryBench(["a": "1", "z": "z"])
        let backup = try TemporaryDirectory()
        try await bench.sync()
        bench.origin.withLock { $0.contents = isShaped ? ["a/b": "2", "z": "z"] : isRemoved ? ["z": "z"] : ["a": "2", "z": "z"] }
        bench.onStep { [url = bench.url] step in
            guard step == .backsUp("a") else { return }
            // As programs save: a new file takes the name.
            try Data("saved".utf8).write(to: url.appending(path: "new"))
            try FileManager.default.removeItem(at: url.appending(path: "a"))
            try FileManager.default.moveItem(at: url.appending(path: "new"), to: url.appending(path: "a"))
        }
        #expect(codes(await syncError { try await bench.sync(layers: .init { $0.backup = backup.url }) }) == [.changedLocally])
        #expect(try bench.files == ["a": "saved", "z": "z"])
        #expect(try contents(of: backup.url) == ["a": "1"])
    }

    #if os(Linux)
    @Test(arguments: [Durability.crash, .power])
    func `S24: a backup on another disk is a copy, and none of it stays if that disk is full`(durability: Durability) async throws {
        let bench = try DirectoryBench(["d/a": "1", "z": "z"])
        let backup = try TemporaryDirectory(in: "/dev/shm")
        try await bench.sync()
        bench["d/a"] = "2"
        bench.onStep { if $0 == .backsUp("d/a") { throw diskError(.ENOSPC) } }
        #expect(await syncError { try await bench.sync(layers: .init { $0.backup = backup.url }, durability: durability) } != nil)
        #expect(try bench.files == ["d/a": "1", "z": "z"])
        bench.probe.withLock { $0 = nil }
        try await bench.sync(layers: .init { $0.backup = backup.url }, durability: durability)
        #expect(try bench.files == ["d/a": "2", "z": "z"])
        #expect(try contents(of: backup.url) == ["d/a": "1"])
    }
    #endif

    @Test func `S24: targets that share a backup directory do not mix their files`() throws {
        let (backup, one, two) = (try TemporaryDirectory(), try DirectoryBench(), try DirectoryBench())
        try one.write("1", "a")
        try two.write("2", "b")
        let places = try TargetPlaces(two.target().place, durability: .crash)
        let other = try BackupPlace(backup.url, of: places, modes: FileModes())
        // The other pass stores a file while the first one is about to name its own.
        let interrupted = try TargetPlaces(one.target().place, durability: .crash) { _ in
            try other.store("b", in: places.root, as: RelativePath("b"))
        }
        let store = try BackupPlace(backup.url, of: interrupted, modes: FileModes())
        try store.store("a", in: interrupted.root, as: RelativePath("a"))
        #expect(try contents(of: backup.url) == ["a": "1", "b": "2"])
    }

    @Test(arguments: ["", "..", "../..", ".storehouse", ".storehouse/parts", ".storehouse/backup", ".Storehouse/backup"])
    func `S24: a backup in a directory that passes change themselves is refused`(path: String) async throws {
        let bench = try await DirectoryBench(["a": "1"]).synced()
        bench["a"] = "2"
        let backup = path.isEmpty ? bench.url : bench.url.appending(path: path)
        #expect(await syncError { try await bench.sync(layers: .init { $0.backup = backup }) }?.code == .unsafeName)
        #expect(try bench.files == ["a": "1"])
    }

    @Test func `S8, S24: another spelling of the backup takes no part in passes on a folding disk`() throws {
        let bench = try DirectoryBench()
        let target = bench.target(layers: .init { $0.backup = bench.url.appending(path: "Old") }, folding: .letterCase)
        let excludes = try #require(target.excludes)
        #expect(excludes(PathKey("old/a")) && excludes(PathKey("Old/a")) && !excludes(PathKey("older/a")))
    }

    // MARK: Verification

    /// Changes a file's content, but not its size, time and inode.
    private func damage(_ file: URL) throws {
        let reference = file.deletingLastPathComponent().appending(path: "reference-\(file.lastPathComponent)")
        func touch(_ file: URL, like other: URL) throws {
            let child = try ChildProcess("/usr/bin/touch", ["-r", other.path(percentEncoded: false), file.path(percentEncoded: false)])
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
        // The size of the third file is that of two whole buffers.
        let bench = try await DirectoryBench(["a": "1 one", "d/b": "2 two", "c": String(repeating: "3", count: 1 << 17)]).synced()
        try damage(bench.url.appending(path: "d/b"))
        #expect(try await bench.sync().unchangedCount == 3, "the stamp does not show the damage")
        let check = MirrorLayers { $0.verification = .digests(at: nil) }
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
        let bench = try await DirectoryBench(["a": "12345", "b.log": "67890"]).synced()
        try damage(bench.url.appending(path: "b.log"))
        let rate = try TransferRate(bytesPerSecond: 1_000_000)
        let check = MirrorLayers { layers in
            layers.verification = .digests(at: rate)
            layers.filter = FileFilter(["*.log"])
        }
        let report = try await bench.sync(layers: check)
        #expect((report.unchangedCount, report.updatedCount) == (1, 0))
    }

    @Test(arguments: [(.overwrite, false), (.overwrite, true), (.keepLocal, false)] as [(LocalEdits, Bool)])
    func `S25: a file that the disk cannot read is repaired`(edits: LocalEdits, isTouched: Bool) async throws {
        let bench = try await DirectoryBench(["a": "1", "d/b": "2", "z": "z"]).synced()
        if isTouched { try bench.write("2", "d/b") }
        bench.onStep { if $0 == .reads("d/b") { throw StoreError.fileSystem("reading", path: "/", errno: POSIXErrorCode.EIO.rawValue) } }
        let report = try await bench.sync(localEdits: edits, layers: .init { $0.verification = .digests(at: nil) })
        #expect((report.updatedCount, report.unchangedCount) == (1, 2))
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S25: a file that becomes a link or is saved during the check is not damaged, and the pass goes on`() async throws {
        let bench = try await DirectoryBench(["a": "one"]).synced()
        for path in ["b", "c"] {
            bench[path] = path
            try await bench.sync()
        }
        bench.onStep { [url = bench.url] step in
            guard step == .reads("a") else { return }
            try FileManager.default.removeItem(at: url.appending(path: "b"))
            try FileManager.default.createSymbolicLink(atPath: url.appending(path: "b").path, withDestinationPath: "a")
            try Data("saved".utf8).write(to: url.appending(path: "c"))
        }
        #expect(try await bench.sync(layers: .init { $0.verification = .digests(at: nil) }).unchangedCount == 3)
        #expect(try bench.files["c"] == "saved")
    }

    @Test func `S25: a file that the process may not read is reported as skipped, and stays`() async throws {
        let bench = try await DirectoryBench(["a": "1", "z": "z"]).synced()
        bench.onStep { if $0 == .reads("a") { throw StoreError.fileSystem("opening", path: "/", errno: POSIXErrorCode.EACCES.rawValue) } }
        let report = try await bench.sync(layers: .init { $0.verification = .digests(at: nil) })
        #expect(report.skipped.map(\.key.description) == ["a"] && report.unchangedCount == 2)
    }

    @Test func `S20, S25: a damaged file is no source of a move`() async throws {
        let bench = try await DirectoryBench(["a": "1 one", "z": "z"]).synced()
        try damage(bench.url.appending(path: "a"))
        bench.origin.withLock { $0.contents = ["b": "1 one", "z": "z"] }
        let report = try await bench.sync(layers: .init { $0.verification = .digests(at: nil) })
        #expect((report.movedCount, report.addedCount, report.removedCount) == (0, 1, 1))
        #expect(try bench.files == ["b": "1 one", "z": "z"])
    }
}
