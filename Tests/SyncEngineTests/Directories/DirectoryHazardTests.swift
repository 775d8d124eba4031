import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// Effects of other programs and users on a target: unreadable files, a moved directory, hard links.
struct DirectoryHazardTests {
    private let bench: DirectoryBench

    init() throws { bench = try DirectoryBench(["a": "one", "d/b": "two"]) }

    private func path(_ name: String) -> String { bench.url.appending(path: name).path(percentEncoded: false) }

    // MARK: Unreadable paths

    /// Runs a mirror of made-up files, by default without root privileges, and returns its last line.
    private func run(_ generation: Int = 1, count: Int = 3, mode: String = "unprivileged") throws -> String? {
        try bench.writer(generation, count: count, mode: mode).lines.last
    }

    /// Makes files and directories readable for root only.
    private func lock(_ names: String...) throws {
        for name in names { try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: path(name)) }
        guard isRoot() else { return }
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: bench.url.path(percentEncoded: false))
    }

    private func unlock(_ names: String...) throws {
        for name in names { try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path(name)) }
    }

    @Test func `S5: an unreadable foreign directory does not stop a pass`() async throws {
        try bench.write("inside", "lost+found/x")
        try bench.write("secret", "secret")
        try lock("lost+found", "secret")
        #expect(try run() == "done 1 skipped")
        #expect(try run(2) == "done 1 skipped")
        try unlock("lost+found", "secret")
        #expect(try bench.files["lost+found/x"] == "inside")
        #expect(try bench.files["secret"] == "secret")
    }

    @Test func `S4: a process that may only read a target can make a plan`() throws {
        #expect(try run(count: 8, mode: "") == "done")
        // Root ignores permissions, and the process below is not root.
        try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: path(".storehouse/journal"))
        #expect(try run(count: 8, mode: "plan") == "8 unchanged")
    }

    @Test func `S9: staged updates of files that their owner may not write are installed`() throws {
        try lock()
        for generation in 1...3 { #expect(try run(generation, count: 8, mode: "protected") == "done", "generation \(generation)") }
    }

    @Test func `S9: a file that a killed pass has held for a move does not stop a download for its new name`() throws {
        try lock()
        #expect(try run(count: 2, mode: "protected") == "done")
        // Not even the owner may write this file, and the old name stays until the download has succeeded.
        let held = path(".storehouse/parts/\(PartNames(path: "d2/f2").bytes)")
        try FileManager.default.linkItem(atPath: path("d0/f0"), toPath: held)
        #expect(try run(count: 3, mode: "protected") == "done")
    }

    @Test(arguments: ["d1", "d1/f1"])
    func `S5: an unreadable directory or file in the way of an item fails that item alone`(name: String) async throws {
        if name == "d1" {
            try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: true)
        } else {
            try bench.write("mine", name)
        }
        if isRoot() { try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: path("d1")) }
        try lock(name)
        let last = try #require(try run())
        #expect(last.hasPrefix("failed incomplete"))
        #expect(last.contains("cannot be read") && last.contains("“\(name)”"))
        try unlock("d1", name)
        let files = try bench.files
        #expect(files["d0/f0"] != nil && files["d2/f2"] != nil)
        #expect(files["d1/f1"] == (name == "d1" ? nil : "mine"))
        #expect(try run(1) == "done 0 skipped")
    }

    @Test(.enabled(if: isRoot(), "only root can take the directory from the process below"))
    func `S5: a target that the process may not change fails once, not once for each file`() throws {
        try FileManager.default.createDirectory(atPath: path(".storehouse"), withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: path(".storehouse"))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path(""))
        let last = try #require(try run(count: 40))
        #expect(last.hasPrefix("failed incomplete") && last.contains("targetDenied"), "\(last)")
        #expect(last.contains("failures: 1"), "\(last)")
    }

    @Test(arguments: [0, 0o555])
    func `S5: a directory without permission has one failure, and the other directories are synchronized`(mode: Int) async throws {
        try FileManager.default.createDirectory(atPath: path("d1"), withIntermediateDirectories: true)
        if isRoot() { try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: path("d1")) }
        try lock("d1")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path("d1"))
        // Of the eight files, the directory has two.
        let last = try #require(try run(count: 8))
        try unlock("d1")
        #expect(last.hasPrefix("failed incomplete") && last.contains("“d1”"), "\(last)")
        #expect(last.hasSuffix("failures: 1"), "\(last)")
        let files = try bench.files
        #expect(["d0/f0", "d0/f4", "d2/f2", "d2/f6", "d3/f3", "d3/f7"].allSatisfy { files[$0] != nil })
        #expect(files["d1/f1"] == nil && files["d1/f5"] == nil)
        #expect(try run(count: 8) == "done 0 skipped")
    }

    @Test(arguments: [0, 0o555])
    func `S5: updates in a directory that has lost its permission have one failure`(mode: Int) async throws {
        try lock()
        #expect(try run(count: 10) == "done 0 skipped")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path("d1"))
        // The next list has other versions of two files in this directory, and of several in the others.
        let last = try #require(try run(2, count: 10))
        try unlock("d1")
        #expect(last.hasPrefix("failed incomplete") && last.contains("“d1”"), "\(last)")
        #expect(last.hasSuffix("failures: 1"), "\(last)")
        #expect(try run(2, count: 10) == "done 0 skipped")
    }

    @Test func `S5: a file is removed even if the process may not remove its empty directory`() throws {
        try lock()
        #expect(try run(count: 8) == "done 0 skipped")
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path(""))
        // The shorter list has no file in the directories `d2` and `d3`.
        let last = try #require(try run(count: 2))
        try unlock("")
        #expect(last == "done 0 skipped")
        #expect(Set(try bench.files.keys) == ["d0/f0", "d1/f1"])
        #expect(try run(count: 2) == "done 0 skipped")
    }

    @Test(arguments: [POSIXErrorCode.EACCES, .EPERM, .EIO], [TargetStep.lists("lost+found"), .reads("a")])
    func `S5: only unreadable paths are skipped, and their content does not count as removed`(
        code: POSIXErrorCode, failing: TargetStep
    ) async throws {
        bench["lost+found/x"] = "ours"
        try await bench.sync()
        // The changed time forces the pass to read the file.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: path("a"))
        let isDirectory = failing == .lists("lost+found")
        bench["lost+found/x"] = nil
        if !isDirectory { bench["a"] = nil }
        bench["new"] = "new"
        bench.onStep { if $0 == failing { throw diskError(code) } }
        let name = isDirectory ? "lost+found" : "a"
        guard code != .EIO else {
            #expect(await syncError { try await bench.sync() }?.code == .stageFailed)
            return
        }
        let report = try await bench.sync()
        #expect((report.skipped.map(\.key.description), report.addedCount) == ([name], 1))
        #expect(report.skipped.map { ($0.error as? SyncError)?.code } == [.unreadable])
        #expect(try bench.files["a"] == "one")
        #expect(bench.exists("lost+found/x") == isDirectory)
        // If the unreadable path is in the way of an item, only that item fails.
        bench[isDirectory ? "lost+found/y" : "a"] = "in the way"
        bench["newer"] = "newer"
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.unreadable])
        #expect(error?.report?.failures.first?.description.contains("“\(name)”") == true)
        #expect(try bench.files["newer"] == "newer")
        #expect(try bench.files["a"] == "one")
        // Once the path is readable, a pass completes normally.
        bench.probe.withLock { $0 = nil }
        bench.origin.withLock { $0.contents = ["a": "one", "new": "new", "newer": "newer", "d/b": "two"] }
        #expect(try await bench.sync().skipped.isEmpty)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S5: a directory that becomes a link during the comparison fails only its items`() async throws {
        let elsewhere = try TemporaryDirectory()
        for name in ["a", "d/b"] { try bench.write("own", name) }
        for name in ["a", "d/b"] { bench[name] = "new" }
        bench.onStep { [folder = path("d")] step in
            guard step == .reads("a") else { return }
            try FileManager.default.removeItem(atPath: folder)
            try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: elsewhere.url.path)
        }
        #expect(codes(await syncError { try await bench.sync() }) == [.nameTaken])
        #expect(try bench.files["a"] == "new")
    }

    @Test func `S4: a file that disappears with its directory during the comparison does not count as unchanged`() async throws {
        try bench.write("one", "a")
        try bench.write("two", "d/b")
        bench.onStep { [url = bench.url] step in
            if step == .reads("a") { try FileManager.default.removeItem(at: url.appending(path: "d")) }
        }
        #expect(codes(await syncError { try await bench.sync() }) == [.changedLocally])
        bench.probe.withLock { $0 = nil }
        try await bench.sync()
        #expect(try bench.files == ["a": "one", "d/b": "two"])
    }

    // MARK: A moved or removed target

    @Test(arguments: [Durability.crash, .power])
    func `S9: a target moved during its last transfer ends the pass with a fatal error`(durability: Durability) async throws {
        let other = bench.url.path(percentEncoded: false) + "-moved"
        defer { try? FileManager.default.removeItem(atPath: other) }
        bench.origin.withLock { [url = bench.url] in
            $0.onTransfer = { path in
                if path == "d/b" { try FileManager.default.moveItem(atPath: url.path(percentEncoded: false), toPath: other) }
            }
        }
        let error = await syncError { try await bench.sync(durability: durability, concurrency: 1) }
        #expect(codes(error) == [.targetVanished])
        #expect(error?.report?.updatedCount == 0)
    }

    @Test(arguments: [false, true])
    func `S9: a target moved after its last file ends the pass with a fatal error, and reports no removal`(hasRemovals: Bool) async throws {
        if hasRemovals {
            try await bench.sync()
            bench.publish(["c": "new"])
        }
        let other = bench.url.path(percentEncoded: false) + "-moved"
        defer { try? FileManager.default.removeItem(atPath: other) }
        let last = TargetStep.renamed(hasRemovals ? "c" : "d/b")
        bench.onStep { [url = bench.url] step in
            if step == last { try FileManager.default.moveItem(atPath: url.path(percentEncoded: false), toPath: other) }
        }
        let error = await syncError { try await bench.sync(.everythingChanged, concurrency: 1) }
        #expect(error?.code == .targetVanished || codes(error) == [.targetVanished])
        #expect(!hasRemovals || error?.report?.removedCount == 0)
        #expect(FileManager.default.fileExists(atPath: other + "/a"))
    }

    @Test func `S9: a target unmounted during a pass ends the pass with a fatal error`() async throws {
        guard let disk = SmallDisk(kilobytes: 400) else { return }
        defer { disk.unmount() }
        let bench = self.bench
        let target = DirectoryTarget(directory: URL(filePath: disk.path), transfer: BenchTransfer(bench: bench)) {
            ListedSource(["a", "d/b"].map { ListedFile(path: $0, sha256: digest(bench[$0] ?? "")) })
        }
        bench.origin.withLock { [path = disk.path] in
            $0.onTransfer = { name in
                if name == "d/b" { _ = try ChildProcess.output(of: "/usr/bin/env", ["umount", "-l", path], showsErrors: false) }
            }
        }
        let error = await syncError {
            try await OneWaySynchronizer(processor: target, options: SyncOptions(concurrency: 1, stopsOnError: false, retry: .never)).sync()
        }
        #expect(codes(error) == [.targetVanished])
    }

    @Test(arguments: ["", ".storehouse", ".storehouse/parts"])
    func `S5: a target removed during a pass ends the pass with one fatal error`(what: String) async throws {
        for number in 0..<200 { bench["many/\(number)"] = "content \(number)" }
        // Other downloads wait for the removal; otherwise, all of them could end before a slow removal.
        let state = Lock((transfers: 0, isBeingRemoved: false))
        bench.origin.withLock { [url = bench.url] origin in
            origin.onTransfer = { _ in
                let removes = state.withLock { state in
                    state.transfers += 1
                    if state.transfers == 50 { state.isBeingRemoved = true }
                    return state.transfers == 50
                }
                guard removes else {
                    while state.withLock({ $0.isBeingRemoved }) { Thread.sleep(forTimeInterval: 0.001) }
                    return
                }
                defer { state.withLock { $0.isBeingRemoved = false } }
                let place = url.appending(path: what)
                // A running download may create a file in a directory that is being removed.
                while FileManager.default.fileExists(atPath: place.path(percentEncoded: false)) {
                    try? FileManager.default.removeItem(at: place)
                }
            }
        }
        let error = await syncError { try await bench.sync(concurrency: 8) }
        // A file that is being installed may also fail on its own while only a part of the directory is removed.
        #expect(codes(error).compactMap(\.self) == [.targetVanished])
        #expect(error?.report?.pendingDownloadCount ?? 0 >= 90)
    }

    // MARK: Hard links

    @Test(arguments: ["journal", "lock"], [Durability.crash, .power])
    func `S9: a journal or lock with a second hard link is replaced, not written`(name: String, durability: Durability) async throws {
        try await bench.sync(durability: durability)
        let backup = bench.url.path(percentEncoded: false) + "-backup"
        defer { try? FileManager.default.removeItem(atPath: backup) }
        try Data("old \(UUID())".utf8).write(to: URL(filePath: path(".storehouse/lock")))
        try FileManager.default.linkItem(atPath: path(".storehouse/\(name)"), toPath: backup)
        let before = try Data(contentsOf: URL(filePath: backup))
        bench["a"] = "changed"
        let report = try await bench.sync(durability: durability)
        #expect(report.updatedCount == 1 && report.unchangedCount == 1)
        #expect(try Data(contentsOf: URL(filePath: backup)) == before)
        #expect(try await bench.sync(durability: durability).unchangedCount == 2)
    }

    @Test func `S9: a part with a second hard link is not written`() async throws {
        bench["big"] = String(repeating: "x", count: 100_000)
        bench.origin.withLock { $0.breaks["big"] = 60_000 }
        _ = await syncError { try await bench.sync() }
        let part = path(".storehouse/parts/\(PartNames(path: "big").bytes)")
        let memory = path(".storehouse/parts/\(PartNames(path: "big").memory)")
        let backups = [part, memory].map { _ in bench.url.path(percentEncoded: false) + "-\(UUID())" }
        defer { for backup in backups { try? FileManager.default.removeItem(atPath: backup) } }
        for (name, backup) in zip([part, memory], backups) { try FileManager.default.linkItem(atPath: name, toPath: backup) }
        let before = try backups.map { try Data(contentsOf: URL(filePath: $0)) }
        bench.origin.withLock {
            $0.breaks = [:]
            $0.tags["big"] = "\"2\""
        }
        try await bench.sync()
        #expect(try bench.files["big"] == bench["big"])
        #expect(try backups.map { try Data(contentsOf: URL(filePath: $0)) } == before)
    }

    @Test(arguments: ["journal", "lock"], ["pipe", "link"])
    func `S9: a journal or lock that is not a regular file ends the pass before any change`(name: String, what: String) async throws {
        try await bench.sync()
        try FileManager.default.removeItem(atPath: path(".storehouse/\(name)"))
        let outside = bench.url.path(percentEncoded: false) + "-outside"
        try Data("outside".utf8).write(to: URL(filePath: outside))
        defer { try? FileManager.default.removeItem(atPath: outside) }
        if what == "pipe" {
            _ = try #require(try ChildProcess.output(of: "/usr/bin/env", ["mkfifo", path(".storehouse/\(name)")]))
        } else {
            try FileManager.default.createSymbolicLink(atPath: path(".storehouse/\(name)"), withDestinationPath: outside)
        }
        bench["a"] = "changed"
        let error = await syncError { try await bench.sync() }
        #expect(error?.code == .stageFailed && error?.stage == .begin)
        #expect(error?.description.contains("move it away") == true)
        #expect(try bench.files["a"] == "one")
        #expect(try Data(contentsOf: URL(filePath: outside)) == Data("outside".utf8))
    }
}

#endif
