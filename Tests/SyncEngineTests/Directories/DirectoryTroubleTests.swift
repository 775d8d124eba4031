import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// Full disks, vanished directories, and names that change between file and directory.
struct DirectoryTroubleTests {
    @Test(arguments: [RemovalTiming.afterDownloads, .beforeDownloads])
    func `a sync replaces a file with a directory, and a directory with a file`(timing: RemovalTiming) async throws {
        let bench = try await DirectoryBench(["a": "file", "d/x": "1", "d/e/y": "2", "same": "s"]).synced()
        bench.origin.withLock { $0.contents = ["a/inner/x": "below", "d": "file now", "same": "s"] }
        let report = try await bench.sync(removalTiming: timing)
        #expect(try bench.files == ["a/inner/x": "below", "d": "file now", "same": "s"])
        #expect((report.addedCount, report.removedCount, report.pendingRemovals.count) == (2, 3, 0))
        #expect(try await bench.sync().unchangedCount == 3)
    }

    @Test(arguments: ["edited", "foreign", "failing"])
    func `S4, S15: an obstacle is removed only if the plan removes it, and only after the download`(why: String) async throws {
        let bench = try await DirectoryBench(["a": "file", "d/x": "1"]).synced()
        bench.origin.withLock { $0.contents = ["a/x": "below", "d": "file now"] }
        switch why {
        case "edited":
            bench.origin.withLock { [url = bench.url] in
                $0.onTransfer = { path in
                    let other = path == "d" ? "d/x" : "a"
                    try Data("edited meanwhile".utf8).write(to: url.appending(path: other))
                }
            }
        case "foreign": try bench.write("mine", "d/mine")
        default: bench.origin.withLock { $0.onTransfer = { _ in throw Trouble.lasting } }
        }
        let error = await syncError { try await bench.sync() }
        #expect(error?.code == .incomplete)
        switch why {
        case "edited":
            #expect(codes(error) == [.changedLocally, .changedLocally])
            #expect(try bench.files == ["a": "edited meanwhile", "d/x": "edited meanwhile"])
        case "foreign":
            #expect(codes(error) == [.nameTaken])
            #expect(try bench.files["d/mine"] == "mine")
        default: #expect(try bench.files == ["a": "file", "d/x": "1"])
        }
    }

    @Test func `S5: a target that vanishes during a transfer ends the pass, and the next pass creates it again`() async throws {
        let bench = try await DirectoryBench(["a": "one", "b": "two"]).synced()
        bench["c"] = "three"
        bench.origin.withLock { [url = bench.url] in $0.onTransfer = { _ in try FileManager.default.removeItem(at: url) } }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.targetVanished])
        #expect(error?.report?.failures.first?.description.contains("the directory is gone") == true)
        #expect(!bench.exists(""))
        bench.origin.withLock { $0.onTransfer = nil }
        try await bench.sync()
        #expect(try bench.files == ["a": "one", "b": "two", "c": "three"])
    }

    @Test(arguments: [Durability.crash, .power])
    func `S5, S9: a full disk stops the pass with one error and keeps old files`(durability: Durability) async throws {
        guard let disk = SmallDisk(kilobytes: 600) else { return }
        defer { disk.unmount() }
        let bench = try DirectoryBench(["a": "old", "b": String(repeating: "b", count: 50_000)], in: disk.path)
        try await bench.sync(durability: durability)
        bench["a"] = "new"
        for number in 0..<6 { bench["big\(number)"] = String(repeating: "\(number)", count: 150_000) }
        let error = await syncError { try await bench.sync(durability: durability, concurrency: 1) }
        let cause = try #require(error?.report?.failures.first?.error as? StoreError)
        #expect(cause.code == .fileSystem && (cause.underlyingError as? POSIXError)?.code == .ENOSPC)
        #expect(error?.report?.failures.count == 1, "the other items are pending")
        #expect(error?.report?.pendingDownloadCount ?? 0 > 1)
        let found = try bench.files
        #expect(found["b"] == bench["b"])
        for (path, text) in found { #expect(text == bench[path] || (path == "a" && text == "old"), "\(path) is torn") }
        // A shorter list frees space.
        for number in 2..<6 { bench["big\(number)"] = nil }
        try await bench.sync([.everythingChanged], durability: durability, removalTiming: .beforeDownloads)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S5: a directory on another disk fails its items with otherDisk`() async throws {
        let bench = try await DirectoryBench(["a": "one", "d/b": "two"]).synced()
        guard let disk = SmallDisk(kilobytes: 200, at: bench.url.appending(path: "d").path(percentEncoded: false)) else { return }
        defer { disk.unmount() }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.otherDisk])
        #expect(error?.report?.failures.first?.description.contains("on another disk") == true)
        disk.unmount()
        try await bench.sync()
        #expect(try bench.files == ["a": "one", "d/b": "two"])
    }

    /// Leaves what a power loss may leave: a journal that has not recorded the flush, and a file with zeros.
    private func tear(_ bench: DirectoryBench, to size: Int) throws {
        let changes = try TargetJournal.changes(in: bench.journal)
        let cut = try #require(changes.lastIndex(of: .synchronized))
        try TargetJournal.write(Array(changes[..<cut]), to: bench.journal)
        let file = bench.url.appending(path: "a")
        let modified = try #require(try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate] as? Date)
        let handle = try FileHandle(forUpdating: file)
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: Data(count: size))
        try handle.close()
        try FileManager.default.setAttributes([.modificationDate: modified.addingTimeInterval(-1)], ofItemAtPath: file.path)
    }

    @Test(
        arguments: [
            (.lists("d"), .EIO, 13), (.reads("a"), .EACCES, 13), (.reads("a"), .EACCES, 5), (.reads("a"), .EIO, 5),
        ] as [(TargetStep, POSIXErrorCode, Int)])
    func `S9: a pass that cannot compare a torn file replaces it or leaves it to the next pass`(
        failing: TargetStep, code: POSIXErrorCode, size: Int
    ) async throws {
        let bench = try DirectoryBench(["a": "whole content", "d/b": "other"])
        try await bench.sync(durability: .power)
        try tear(bench, to: size)
        bench.onStep { step in if step == failing { throw StoreError.fileSystem("opening", path: "p", errno: code.rawValue) } }
        let error = await syncError { try await bench.sync(durability: .power) }
        #expect((error == nil) == (size == 5), "\(error as Any)")
        bench.probe.withLock { $0 = nil }
        try await bench.sync(localEdits: .keepLocal, durability: .power)
        #expect(try bench.files == ["a": "whole content", "d/b": "other"])
    }

    @Test(arguments: [13, 5])
    func `S9: the passes after a power loss replace a torn file, even if the first of them fails`(size: Int) async throws {
        let bench = try DirectoryBench(["a": "whole content", "b": "other"])
        try await bench.sync(durability: .power)
        try tear(bench, to: size)
        let plan = try await OneWaySynchronizer(processor: bench.target(durability: .power)).plan()
        #expect(plan.updates.map(\.reason) == [.unknownVersion])
        let transferred = bench.transferred
        bench.origin.withLock { $0.onTransfer = { _ in throw Trouble.lasting } }
        #expect(codes(await syncError { try await bench.sync(durability: .power) }) == [nil])
        bench.origin.withLock { $0.onTransfer = nil }
        let report = try await bench.sync(localEdits: .keepLocal, durability: .power)
        #expect(report.localEdits.isEmpty, "a torn file is not an edit")
        #expect(try bench.files == ["a": "whole content", "b": "other"])
        #expect(bench.transferred - transferred == 13, "the intact file is not transferred again")
    }

    @Test func `S8: a plan detects name clashes of a folding disk without writing`() async throws {
        let bench = try await DirectoryBench(["a": "one"]).synced()
        // A folding disk finds the probe file under its other spelling too.
        try bench.write("", ".storehouse/PROBE-K")
        bench["B"] = "1"
        bench["b"] = "2"
        let before = try FileManager.default.subpathsOfDirectory(atPath: bench.url.path).sorted()
        let plan = try await OneWaySynchronizer(processor: bench.target()).plan()
        #expect(plan.refusals.map { ($0.error as? SyncError)?.code } == [.nameClash])
        #expect(try FileManager.default.subpathsOfDirectory(atPath: bench.url.path).sorted() == before)
    }

    @Test(arguments: ["d", "d/x"])
    func `S5: a file counts as changed if its directory became a file, or if it became a link`(taken: String) async throws {
        let bench = try DirectoryBench()
        try bench.write("other", "other")
        if taken == "d" {
            try bench.write("file", "d")
        } else {
            try FileManager.default.createDirectory(at: bench.url.appending(path: "d"), withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: bench.url.appending(path: "d/x").path, withDestinationPath: "../other")
        }
        let item = ListedFile(path: "d/x", sha256: digest("1"), byteCount: 1)
        #expect(try await bench.target().shouldUpdate(item, over: LocalEntry(item.key, version: nil, byteCount: 1)))
    }

    /// A file whose path in the directory is not its path at the origin.
    private struct Relocated: FileItem {
        var path: String { "origin/a" }
        var key: PathKey { "a" }
        var version: String { "1" }
    }

    @Test func `S10: the part of an item whose key is not its path is resumed`() async throws {
        let (directory, transfer) = (try TemporaryDirectory(), HalfTransfer<Relocated>())
        let target = DirectoryTarget(directory: directory.url, transfer: transfer) { ListedSource([Relocated()]) }
        _ = await syncError { try await OneWaySynchronizer(processor: target).sync() }
        try await OneWaySynchronizer(processor: target).sync()
        #expect(transfer.offsets.withLock { $0 } == [nil, 40_000])
        #expect(try Data(contentsOf: directory.url.appending(path: "a")).count == 80_000)
    }
}

/// A disk in memory of a few hundred kilobytes; requires the privilege to mount it.
final class SmallDisk {
    let path: String
    private var isMounted = true

    init?(kilobytes: Int, at place: String? = nil) {
        path = place ?? temporaryURL().path(percentEncoded: false)
        #if os(Linux)
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard Self.run("mount", "-t", "tmpfs", "-o", "size=\(kilobytes)k", "tmpfs", path) else {
            print("cannot mount a disk; the test is skipped")
            return nil
        }
        #else
        return nil
        #endif
    }

    func unmount() {
        guard isMounted else { return }
        isMounted = !Self.run("umount", "-l", path)
    }

    private static func run(_ arguments: String...) -> Bool {
        // If the command is missing, the test is skipped too.
        (try? ChildProcess.output(of: "/usr/bin/env", arguments, showsErrors: false)) != nil
    }
}
