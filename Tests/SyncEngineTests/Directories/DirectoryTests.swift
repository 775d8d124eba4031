import Foundation
import StoreCore
import StoreFiles
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// A directory on the real disk as the target of a sync.
struct DirectoryTests {
    let bench: DirectoryBench

    init() throws { bench = try DirectoryBench(["a": "one", "d/b": "two", "d/e/c": "three"]) }

    @Test func `S7: a canceled pass does not read a large file to its end`() async throws {
        try bench.write("", "big")
        let file = try FileHandle(forWritingTo: bench.url.appending(path: "big"))
        // A file without blocks, which would be read for hours.
        try file.truncate(atOffset: 1 << 40)
        try file.close()
        bench.origin.withLock { $0.listed = [ListedFile(path: "big", sha256: digest("big"), byteCount: 1 << 40)] }
        let synchronizer = OneWaySynchronizer(processor: bench.target())
        bench.onStep { if $0 == .reads("big") { synchronizer.cancel() } }
        #expect(await syncError { try await synchronizer.sync() }?.code == .cancelled)
        try await until { !synchronizer.isSyncing }
        bench.probe.withLock { $0 = nil }
    }

    @Test func `S9: a pass makes a directory equal to the list, and a second pass transfers nothing`() async throws {
        try await bench.sync()
        #expect(try bench.files == ["a": "one", "d/b": "two", "d/e/c": "three"])
        let first = bench.transferred
        let report = try await bench.sync()
        #expect(report.unchangedCount == 3)
        #expect(bench.transferred == first)
        bench["a"] = "changed"
        bench["d/e/c"] = nil
        let second = try await bench.sync()
        #expect((second.updatedCount, second.removedCount) == (1, 1))
        #expect(try bench.files == ["a": "changed", "d/b": "two"])
        #expect(!bench.exists("d/e"))
        #expect(bench.exists("d"))
    }

    @Test(
        arguments: [
            ListedFile(path: "a", sha256: digest("wanted"), byteCount: 6), ListedFile(path: "a", version: "1", byteCount: 5),
            ListedFile(path: "a", version: "1", byteCount: 7),
        ])
    func `S9: content with a wrong digest or size is not installed`(listed: ListedFile) async throws {
        try await bench.sync()
        bench.origin.withLock { $0.listed = [listed] }
        bench["a"] = "forged"
        let error = await syncError { try await bench.sync([.removalLimit]) }
        #expect(error?.code == .incomplete && codes(error) == [.wrongContent])
        #expect(try bench.files == ["a": "one", "d/b": "two", "d/e/c": "three"], "a pass with a failure removes nothing")
    }

    @Test(arguments: [true, false])
    func `S9: an empty file of the list is installed`(hasDigest: Bool) async throws {
        bench["empty"] = ""
        if !hasDigest { bench.origin.withLock { $0.listed = [ListedFile(path: "empty", version: "1", byteCount: 0)] } }
        try await bench.sync()
        #expect(try bench.files["empty"] == "")
        #expect(try await bench.sync().unchangedCount == (hasDigest ? 4 : 1))
    }

    @Test(arguments: ["damaged", "missing", "empty", "cut"])
    func `S9: an invalid journal causes a new comparison but no removal`(how: String) async throws {
        try await bench.sync()
        let transferred = bench.transferred
        try bench.write("mine", "own")
        var bytes = try Data(contentsOf: bench.journal)
        switch how {
        case "damaged": bytes[bytes.count / 2] ^= 1
        case "cut": bytes.removeSubrange(40..<60)
        default: bytes = Data()
        }
        if how == "missing" { try FileManager.default.removeItem(at: bench.journal) } else { try bytes.write(to: bench.journal) }
        bench["d/b"] = nil
        try await bench.sync(foreignFiles: .remove)
        #expect(try bench.files == ["a": "one", "d/b": "two", "d/e/c": "three", "own": "mine"])
        #expect(bench.transferred == transferred, "files with the listed digest are adopted")
        try await bench.sync(foreignFiles: .remove)
        #expect(try bench.files == ["a": "one", "d/e/c": "three"])
    }

    @Test func `S9: a process that ends between recording and renaming a file leaves no local edit`() async throws {
        try await bench.sync()
        let stamp = FileStamp(size: 7, modified: 1, inode: 1)
        let record = FileRecord(version: digest("changed"), digest: SHA256.digest(of: Array("changed".utf8)), stamp: stamp)
        try TargetJournal.write(TargetJournal.changes(in: bench.journal) + [.put("a", record)], to: bench.journal)
        bench["a"] = "changed"
        let report = try await bench.sync(localEdits: .keepLocal)
        #expect(report.localEdits.isEmpty)
        #expect(report.updatedCount == 1)
        #expect(try bench.files["a"] == "changed")
    }

    @Test func `S9: the torn last entry of a journal is ignored, and cut off before the next one`() async throws {
        try await bench.sync()
        let bytes = try Data(contentsOf: bench.journal)
        let before = try TargetJournal.changes(in: bench.journal), torn = try LogFormat.mirror.encode([before[0]], at: bytes.count)
        for length in torn.indices {
            try (bytes + torn.prefix(length)).write(to: bench.journal)
            #expect(try await bench.sync().unchangedCount == 3)
            #expect(try TargetJournal.changes(in: bench.journal) == before)
        }
        bench["a"] = "changed"
        #expect(try await bench.sync(localEdits: .keepLocal).updatedCount == 1)
        #expect(try TargetJournal.changes(in: bench.journal).prefix(before.count) == before[...])
    }

    @Test func `S9: foreign files are removed in the first pass after the journal was compacted`() async throws {
        for number in 0..<200 { bench["many/\(number)"] = "content \(number)" }
        try await bench.sync()
        for number in 0..<200 { bench["many/\(number)"] = nil }
        let size = try Data(contentsOf: bench.journal).count
        try await bench.sync(foreignFiles: .remove)
        #expect(try Data(contentsOf: bench.journal).count < size / 10)
        try bench.write("mine", "own")
        try await bench.sync(foreignFiles: .remove)
        #expect(try bench.files == ["a": "one", "d/b": "two", "d/e/c": "three"])
    }

    private struct KeyedFile: FileItem {
        var path: String
        var version = "1"
        var byteCount: Int64? = 80_000
        var key: PathKey { PathKey("local/" + path) }
    }

    @Test func `S10: a transfer of an item with a key of its own resumes`() async throws {
        let transfer = HalfTransfer<KeyedFile>()
        let target = DirectoryTarget(directory: bench.url, transfer: transfer) { ListedSource([KeyedFile(path: "a")]) }
        #expect(codes(await syncError { try await OneWaySynchronizer(processor: target).sync() }) == [nil])
        #expect(try await OneWaySynchronizer(processor: target).sync().addedCount == 1)
        #expect(transfer.offsets.withLock { $0 } == [nil, 40_000])
        #expect(try bench.files.keys.sorted() == ["local/a"])
    }

    @Test(arguments: [true, false])
    func `S10: an interrupted transfer resumes where it stopped, unless the disk cannot read its part`(isReadable: Bool) async throws {
        let text = String(repeating: "x", count: 100_000)
        bench["big"] = text
        bench.origin.withLock { $0.breaks["big"] = 60_000 }
        _ = await syncError { try await bench.sync() }
        #expect(!bench.exists("big"))
        if !isReadable {
            bench.origin.withLock { $0.onTransfer = { _ in throw diskError(.EIO) } }
            _ = await syncError { try await bench.sync() }
        }
        let before = bench.transferred
        bench.origin.withLock { ($0.breaks, $0.onTransfer) = ([:], nil) }
        try await bench.sync()
        #expect(try bench.files["big"] == text)
        #expect(bench.transferred - before == (isReadable ? 40_000 : 100_000))
        #expect(try FileManager.default.contentsOfDirectory(atPath: bench.url.appending(path: ".storehouse/parts").path).isEmpty)
    }

    @Test func `S10: a part of a file that has left the list is discarded, even by a pass that changes nothing`() async throws {
        try await bench.sync()
        let parts = bench.url.appending(path: ".storehouse/parts").path
        bench["big"] = String(repeating: "x", count: 100_000)
        bench.origin.withLock { $0.breaks["big"] = 60_000 }
        _ = await syncError { try await bench.sync() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: parts).count == 2)
        bench["big"] = nil
        #expect(try await OneWaySynchronizer(processor: bench.target()).plan().isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: parts).count == 2, "a plan changes nothing")
        #expect(try await bench.sync().unchangedCount == 3)
        #expect(try FileManager.default.contentsOfDirectory(atPath: parts).isEmpty)
    }

    @Test(arguments: ["tag", "version"])
    func `S10: a changed origin restarts a transfer`(what: String) async throws {
        bench["big"] = String(repeating: "x", count: 100_000)
        bench.origin.withLock { $0.breaks["big"] = 60_000 }
        _ = await syncError { try await bench.sync() }
        let before = bench.transferred
        bench.origin.withLock { origin in
            origin.breaks = [:]
            if what == "tag" { origin.tags["big"] = "\"2\"" } else { origin.contents["big"] = String(repeating: "y", count: 100_000) }
        }
        try await bench.sync()
        #expect(try bench.files["big"] == bench["big"])
        #expect(bench.transferred - before == 100_000)
    }

    @Test func `S10: a validator stored without bytes is not used for the bytes of a later transfer`() async throws {
        bench.origin.withLock { $0.listed = [ListedFile(path: "big", version: "1")] }
        try await bench.sync()
        try FileManager.default.removeItem(at: bench.url.appending(path: "big"))
        // A process that is killed between its first two writes leaves the validator alone.
        let memory = PartMemory(path: "big", version: "1", validator: "\"1\"")
        try JSONEncoder().encode(memory).write(to: bench.url.appending(path: ".storehouse/parts/\(PartNames(path: "big").memory)"))
        bench["big"] = String(repeating: "y", count: 100_000)
        bench.origin.withLock { ($0.tags["big"], $0.breaks["big"]) = ("\"2\"", 10_000) }
        _ = await syncError { try await bench.sync() }
        bench["big"] = String(repeating: "x", count: 100_000)
        bench.origin.withLock { ($0.tags, $0.breaks) = ([:], [:]) }
        try await bench.sync()
        #expect(try bench.files["big"] == bench["big"])
    }

    @Test func `S10: a validator of another version is removed with an error, and the next pass transfers the file again`() async throws {
        bench["big"] = String(repeating: "x", count: 100_000)
        bench.origin.withLock { $0.breaks["big"] = 60_000 }
        _ = await syncError { try await bench.sync() }
        let memory = bench.url.appending(path: ".storehouse/parts/\(PartNames(path: "big").memory)")
        try Data(SealedFile("SHpartof", version: 2, temporaryKind: "part").encode([1, 2, 3])).write(to: memory)
        bench.origin.withLock { $0.breaks = [:] }
        let error = await syncError { try await bench.sync() }
        #expect(error?.code == .incomplete && error?.description.contains("version 2") == true)
        #expect(!bench.exists("big"))
        let before = bench.transferred
        try await bench.sync()
        #expect(try bench.files["big"] == bench["big"])
        #expect(bench.transferred - before == 100_000)
    }

    @Test func `S14: a directory has one writer at a time, even if the second one finds it through a symbolic link`() async throws {
        let link = temporaryURL()
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: bench.url)
        let first = bench.target()
        try await first.syncWillBegin()
        let second = DirectoryTarget(directory: link, transfer: BenchTransfer(bench: bench)) { ListedSource([ListedFile]()) }
        for processor in [bench.target(), second] {
            let error = await syncError { try await OneWaySynchronizer(processor: processor).sync(overriding: .emptySource) }
            #expect(error?.code == .targetLocked)
            #expect(error?.description.contains("\(ProcessInfo.processInfo.processIdentifier)") == true)
        }
        await first.syncDidEnd(SyncReport(pass: 1))
        try await bench.sync()
        #expect(try bench.files.count == 3)
    }

    @Test func `S14: a target shared by two synchronizers is unlocked when the pass with the lock ends`() async throws {
        let target = bench.target()
        let (first, second) = ([PassMark(hub: ObjectIdentifier(bench), pass: 1)], [PassMark(hub: ObjectIdentifier(bench), pass: 2)])
        try await PassMark.$all.withValue(Set(first)) { try await target.syncWillBegin() }
        // The second pass has failed to begin, and has not ended yet.
        let error = await syncError { try await PassMark.$all.withValue(Set(second)) { try await target.syncWillBegin() } }
        #expect(error?.code == .targetLocked)
        await PassMark.$all.withValue(Set(first)) { await target.syncDidEnd(SyncReport(pass: 1)) }
        let third = bench.target()
        try await third.syncWillBegin()
        await PassMark.$all.withValue(Set(second)) { await target.syncDidEnd(SyncReport(pass: 2)) }
        #expect(await syncError { try await bench.sync() }?.code == .targetLocked)
        await third.syncDidEnd(SyncReport(pass: 3))
        try await bench.sync()
    }

    @Test(arguments: [["A"], ["D/x"], ["d/B"], ["stra\u{DF}e", "STRA\u{DF}E"]])
    func `S8: a name that the disk treats as equal to another is refused before any overwrite`(names: [String]) async throws {
        try await bench.sync(folding: .all)
        for name in names { bench[name] = "other" }
        #expect(codes(await syncError { try await bench.sync(folding: .all) }) == [.nameClash])
        let files = try bench.files
        #expect(files.filter { $0.value != "other" } == ["a": "one", "d/b": "two", "d/e/c": "three"])
        #expect(files.count == 2 + names.count)
    }

    @Test func `S8: a file to which a user has given another spelling is a name clash`() async throws {
        try await bench.sync(folding: .all)
        let (user, listed) = (bench.url.appending(path: "A"), bench.url.appending(path: "a"))
        try FileManager.default.moveItem(at: listed, to: user)
        bench["0"] = "first"
        bench.origin.withLock {
            // A folding disk finds the file under both spellings.
            $0.onTransfer = { _ in try? FileManager.default.linkItem(at: user, to: listed) }
        }
        #expect(codes(await syncError { try await bench.sync(folding: .all, concurrency: 1) }) == [.nameClash])
        #expect(bench.origin.withLock { $0.transfers.last } == "0")
    }

    @Test func `S8: a listed file in place of a needed directory is refused`() async throws {
        bench["a/below"] = "x"
        #expect(codes(await syncError { try await bench.sync() }).first == .nameTaken)
    }

    @Test func `S19: symbolic links are never followed out of the directory`() async throws {
        let outside = try DirectoryBench()
        try FileManager.default.createSymbolicLink(at: bench.url.appending(path: "d"), withDestinationURL: outside.url)
        try FileManager.default.createSymbolicLink(at: bench.url.appending(path: "a"), withDestinationURL: outside.url.appending(path: "x"))
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.nameTaken, .nameTaken, .nameTaken])
        #expect(try outside.files.isEmpty)
    }

    @Test func `S15: a local edit is kept or overwritten, and reported`() async throws {
        try await bench.sync()
        try bench.write("edited", "a")
        let kept = try await bench.sync(localEdits: .keepLocal)
        #expect(kept.localEdits.map(\.description) == ["a"])
        #expect(try bench.files["a"] == "edited")
        let report = try await bench.sync()
        #expect(report.localEdits.map(\.description) == ["a"])
        #expect(try bench.files["a"] == "one")
    }

    @Test func `S15: a file that gets the content of an earlier version back is an edit`() async throws {
        try await bench.sync()
        bench["a"] = "new"
        try await bench.sync()
        try bench.write("one", "a")
        let report = try await bench.sync(localEdits: .keepLocal)
        #expect(report.localEdits.map(\.description) == ["a"])
        #expect(try bench.files["a"] == "one")
    }

    @Test func `S15: a touched file with unchanged content is not an edit`() async throws {
        try await bench.sync()
        let transferred = bench.transferred
        try bench.write("one", "a")
        let report = try await bench.sync(localEdits: .keepLocal)
        #expect(report.localEdits.isEmpty)
        #expect(report.unchangedCount == 3)
        #expect(bench.transferred == transferred)
    }

    @Test(arguments: [("one", false), ("mine", true)])
    func `S15: a foreign file with a listed name is kept as an edit unless its content is equal`(text: String, isKept: Bool) async throws {
        try bench.write(text, "a")
        let report = try await bench.sync(localEdits: .keepLocal)
        #expect(report.localEdits.map(\.description) == (isKept ? ["a"] : []))
        #expect(try bench.files["a"] == text)
        #expect(bench.origin.withLock { !$0.transfers.contains("a") })
    }

    @Test func `S4: a file edited while its new version is downloaded is left alone`() async throws {
        try await bench.sync()
        let target = bench.target()
        try await target.syncWillBegin()
        let entry = LocalEntry<ListedFile>("a", version: digest("one"))
        #expect(try await target.isUnchanged("a", since: entry))
        try bench.write("edited now", "a")
        #expect(try await !target.isUnchanged("a", since: entry))
        await target.syncDidEnd(SyncReport(pass: 1))
    }

    @Test func `a vanished target does not count as empty`() async throws {
        try await bench.sync()
        let target = bench.target()
        try await target.syncWillBegin()
        try FileManager.default.removeItem(at: bench.url)
        #expect(await syncError { try await target.localInventory() }?.code == .targetVanished)
        await target.syncDidEnd(SyncReport(pass: 1))
    }
}
