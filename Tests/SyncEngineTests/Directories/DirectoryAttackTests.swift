import Dispatch
import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// Changes of a directory by other programs in the middle of a pass.
struct DirectoryAttackTests {
    @Test func `S9: a journal cut at any byte removes no listed file and repeats no download`() async throws {
        let bench = try DirectoryBench(["a": "one", "d/b b": "two", "d/\u{E9}": "three"])
        try bench.write("mine", "own")
        try await bench.sync(durability: .power)
        bench["a"] = "four"
        try await bench.sync(durability: .power)
        let whole = try Data(contentsOf: bench.journal)
        let transferred = bench.transferred
        let plans = part(of: stride(from: 0, through: whole.count, by: 13).map(\.self), each: 4)
        // Reads the journal cut at every byte, but makes a plan only at some of them.
        for length in 0...whole.count {
            try whole.prefix(length).write(to: bench.journal)
            #expect(try TargetJournal.read(from: bench.journal) != nil || TargetJournal.changes(in: bench.journal).isEmpty)
            guard plans.contains(length) else { continue }
            let plan = try await OneWaySynchronizer(
                processor: bench.target(foreignFiles: .remove), options: SyncOptions(removalLimit: .unlimited, retry: .never)
            ).plan()
            let removed = plan.removals.map(\.local.key)
            #expect(removed.isEmpty || removed == ["own"], "cut at \(length) of \(whole.count)")
            // Until the journal records one complete comparison, no foreign file may be removed.
            let isRebuilt = try TargetJournal.changes(in: bench.journal).contains(.rebuilt)
            #expect(removed.isEmpty || isRebuilt, "cut at \(length) of \(whole.count)")
            #expect(plan.additions.isEmpty)
        }
        for length in part(of: stride(from: 0, through: whole.count, by: 37).map(\.self), each: 3) {
            try whole.prefix(length).write(to: bench.journal)
            // A listed file is not an edit, even if its record is lost.
            let report = try await bench.sync(localEdits: .keepLocal, durability: length % 2 == 0 ? .power : .crash)
            #expect(report.localEdits.isEmpty, "cut at \(length) of \(whole.count)")
            #expect(try bench.files == ["a": "four", "d/b b": "two", "d/\u{E9}": "three", "own": "mine"])
            let again = try await bench.sync()
            #expect(again.unchangedCount == 3 && again.localEdits.isEmpty, "cut at \(length) of \(whole.count)")
        }
        #expect(bench.transferred == transferred)
    }

    @Test func `S9: a journal with one bit flipped removes and downloads nothing`() async throws {
        let bench = try DirectoryBench(["a": "one", "d/b b": "two", "d/\u{E9}": "three"])
        try bench.write("mine", "own")
        try await bench.sync(durability: .power)
        bench["a"] = "four"
        try await bench.sync(durability: .power)
        let whole = try Data(contentsOf: bench.journal)
        let content = try bench.files
        let transferred = bench.transferred
        let passes = part(of: stride(from: 0, to: whole.count, by: 7).map(\.self), each: 4)
        for index in whole.indices {
            for bit in flippedBits(at: index) {
                var damaged = whole
                damaged[index] ^= 1 << UInt8(bit)
                try damaged.write(to: bench.journal)
                #expect(try TargetJournal.read(from: bench.journal) == nil, "bit \(bit) of byte \(index)")
                guard bit == index % 8, passes.contains(index) else { continue }
                let report = try await bench.sync(localEdits: .keepLocal)
                #expect(report.removedCount == 0 && report.localEdits.isEmpty && report.unchangedCount == 3, "byte \(index)")
            }
        }
        #expect(bench.transferred == transferred)
        #expect(try bench.files == content)
    }

    @Test(arguments: ["d/mine", "d/e/mine", "d/empty"])
    func `S5: a directory that contains anything outside the plan's removals stays unchanged`(own: String) async throws {
        let bench = try await DirectoryBench(["d/x": "1", "d/e/y": "2", "same": "s"]).synced()
        let isDirectory = own == "d/empty"
        if isDirectory {
            try FileManager.default.createDirectory(at: bench.url.appending(path: own), withIntermediateDirectories: true)
        } else {
            try bench.write("mine", own)
        }
        bench.origin.withLock { $0.contents = ["d": "file now", "same": "s"] }
        let before = try bench.files
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.nameTaken])
        #expect(try bench.files == before)
        #expect(error?.report?.pendingRemovals.count == 2)
        // After its removal, the next pass succeeds.
        try FileManager.default.removeItem(at: bench.url.appending(path: own))
        let transferred = bench.transferred
        try await bench.sync()
        #expect(try bench.files == ["d": "file now", "same": "s"])
        #expect(bench.transferred == transferred)
    }

    @Test(arguments: [Durability.crash, .power], ["edited", "untouched"])
    func `S8: a file with a new spelling replaces the old spelling unless that was edited`(
        durability: Durability, how: String
    ) async throws {
        let bench = try DirectoryBench(["readme": "one", "d/caf\u{E9}": "two", "same": "s"])
        try await bench.sync(folding: .all)
        bench.origin.withLock { [url = bench.url] origin in
            origin.contents = ["README": "changed", "d/cafe\u{301}": "new", "same": "s"]
            guard how == "edited" else { return }
            origin.onTransfer = { path in if path == "README" { try Data("edited".utf8).write(to: url.appending(path: "readme")) } }
        }
        let error = await syncError { try await bench.sync(folding: .all, durability: durability) }
        if how == "edited" {
            #expect(codes(error) == [.changedLocally])
            #expect(try bench.files["readme"] == "edited" && bench.files["README"] == nil)
        } else {
            #expect(error == nil)
            #expect(try bench.keys == ["README", "d/cafe\u{301}", "same"])
            #expect(try bench.files == bench.origin.withLock { $0.contents })
            #expect(try await bench.sync(folding: .all).unchangedCount == 3)
        }
    }

    @Test(arguments: [NameFolding.all, []])
    func `S8: a file gets a new spelling if the list changes its normal form`(folding: NameFolding) async throws {
        let bench = try DirectoryBench(["d/caf\u{E9}": "two", "e\u{301}": "decomposed"])
        try await bench.sync(folding: folding)
        bench.origin.withLock { $0.contents = ["d/cafe\u{301}": "new", "\u{E9}": "other"] }
        let report = try await bench.sync(folding: folding)
        #expect((report.updatedCount, report.addedCount, report.removedCount) == (0, 2, 2))
        #expect(try bench.keys == ["d/cafe\u{301}", "\u{E9}"])
        #expect(try await bench.sync(folding: folding).unchangedCount == 2)
        bench.origin.withLock { $0.contents = [:] }
        try await bench.sync([.emptySource], folding: folding)
        #expect(try bench.files.isEmpty)
    }

    @Test func `S4: many files replace one file, which is removed once`() async throws {
        for round in 0..<rounds(20, quick: 4) {
            let bench = try await DirectoryBench(["a": "file", "b": "file"]).synced()
            bench.origin.withLock { origin in
                origin.contents = [:]
                for number in 0..<24 { origin.contents["\(number % 2 == 0 ? "a" : "b")/\(number)/x"] = "\(number)" }
            }
            let report = try await bench.sync(
                durability: round % 2 == 0 ? .power : .crash, concurrency: 12,
                removalTiming: round % 4 < 2 ? .afterDownloads : .beforeDownloads)
            #expect((report.addedCount, report.removedCount) == (24, 2))
            #expect(try bench.files == bench.origin.withLock { $0.contents })
        }
    }

    @Test(arguments: [Durability.crash, .power])
    func `S5, S9: a failed pass leaves no directory in the way of the next pass`(durability: Durability) async throws {
        let bench = try DirectoryBench(["d/e/x": "1", "own/y": "2", "own/new/y": "3"])
        try FileManager.default.createDirectory(at: bench.url.appending(path: "own"), withIntermediateDirectories: true)
        bench.onStep { if case .renames = $0 { throw diskError(.EIO) } }
        #expect(await syncError { try await bench.sync(durability: durability) }?.code == .incomplete)
        #expect(!bench.exists("d") && !bench.exists("own/new"))
        #expect(bench.exists("own"), "no pass has created it")
        bench.probe.withLock { $0 = nil }
        bench.origin.withLock { $0.contents = ["d": "file", "own/new": "file"] }
        try await bench.sync(durability: durability)
        #expect(try bench.files == ["d": "file", "own/new": "file"])
    }

    @Test(arguments: [("p/d/x", []), ("p/D", .all)] as [(String, NameFolding)])
    func `S4: removing an obstacle keeps a directory that another file needs`(obstacle: String, folding: NameFolding) async throws {
        let bench = try DirectoryBench([obstacle: "1", "same": "s"])
        try await bench.sync(folding: folding)
        let (isReady, hasMadeWay) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        bench.origin.withLock { origin in
            origin.contents = ["p/d": "file", "p/new": "2", "same": "s"]
            // Waits until the other file has opened its directory; the second thread transfers that file.
            origin.onTransfer = { path in if path == "p/d" { _ = isReady.wait(timeout: .now() + 10) } }
        }
        bench.onStep { step in
            if step == .renames("p/d") { hasMadeWay.signal() }
            guard step == .renames("p/new") else { return }
            isReady.signal()
            _ = hasMadeWay.wait(timeout: .now() + 10)
        }
        try await bench.sync(folding: folding, concurrency: 2)
        #expect(try bench.files == ["p/d": "file", "p/new": "2", "same": "s"])
    }

    /// Appends a change to the journal, as a process that was killed after the write.
    private func append(_ change: TargetJournal.Change, to bench: DirectoryBench) throws {
        try TargetJournal.write(TargetJournal.changes(in: bench.journal) + [change], to: bench.journal)
    }

    @Test func `S9: a foreign file that a killed process was about to replace is not removed`() async throws {
        let bench = try await DirectoryBench(["a": "one"]).synced()
        try bench.write("the user's own", "mine")
        let record = FileRecord(version: "1", digest: SHA256.digest(of: [1]), stamp: FileStamp(size: 1, modified: 1, inode: 1))
        try append(.put("mine", record), to: bench)
        let plan = try await OneWaySynchronizer(processor: bench.target()).plan()
        #expect(plan.removals.isEmpty)
        for _ in 1...3 { #expect(try await bench.sync().removedCount == 0) }
        #expect(try bench.files == ["a": "one", "mine": "the user's own"])
    }

    @Test func `S9, S18: a file that a killed first run was about to replace is not removed before a complete pass`() async throws {
        let bench = try DirectoryBench(["a": "one"])
        try bench.write("the user's own", "mine")
        bench.origin.withLock { $0.onTransfer = { _ in throw Trouble.lasting } }
        _ = await syncError { try await bench.sync(foreignFiles: .remove) }
        bench.origin.withLock { $0.onTransfer = nil }
        let record = FileRecord(version: "1", digest: SHA256.digest(of: [1]), stamp: FileStamp(size: 1, modified: 1, inode: 1))
        try append(.put("mine", record), to: bench)
        #expect(try await bench.sync(foreignFiles: .remove).removedCount == 0)
        #expect(try bench.files == ["a": "one", "mine": "the user's own"])
        #expect(try await bench.sync(foreignFiles: .remove).removedCount == 1)
    }

    @Test(arguments: ["offline", "refused", "cancelled"])
    func `S9: a pass that fails before its changes does not end the protection of files without a record`(how: String) async throws {
        let bench = try await DirectoryBench(["a": "one", "b": "two"]).synced()
        try bench.write("unknown", "mine")
        try Data("damaged".utf8).write(to: bench.journal)
        let target = DirectoryTarget(
            directory: bench.url, transfer: BenchTransfer(bench: bench), durability: .crash, foreignFiles: .remove
        ) { () throws -> ListedSource<ListedFile> in
            if how == "offline" { throw Trouble.lasting }
            if how == "cancelled" { throw CancellationError() }
            return ListedSource([ListedFile(path: "a", version: "1")], expectedCount: 2)
        }
        let error = await syncError { try await OneWaySynchronizer(processor: target, options: SyncOptions(retry: .never)).sync() }
        #expect(error?.report?.isComplete == false)
        #expect(try await bench.sync(foreignFiles: .remove).removedCount == 0)
        #expect(try bench.files == ["a": "one", "b": "two", "mine": "unknown"])
        #expect(try await bench.sync(foreignFiles: .remove).removedCount == 1)
    }

    @Test(arguments: [false, true])
    func `S9: a directory that a killed process emptied does not block a file of its name after another pass`(isEmpty: Bool) async throws {
        let bench = try await DirectoryBench(["a": "one", "d/e/x": "x"]).synced()
        // The process was killed after it removed the file.
        try FileManager.default.removeItem(at: bench.url.appending(path: "d/e/x"))
        bench["d/e/x"] = nil
        if !isEmpty { bench["a"] = "two" }
        try await bench.sync()
        #expect(!bench.exists("d"))
        bench["d"] = "file"
        try await bench.sync()
        #expect(try bench.files == ["a": isEmpty ? "one" : "two", "d": "file"])
    }

    @Test func `S9: a pass that fails before its changes does not forget a directory that a killed process emptied`() async throws {
        let bench = try await DirectoryBench(["a": "one", "d/x": "x"]).synced()
        try FileManager.default.removeItem(at: bench.url.appending(path: "d/x"))
        bench.origin.withLock { $0.listed = [] }
        #expect(await syncError { try await bench.sync() }?.code == .emptySource)
        #expect(bench.exists("d"))
        bench.origin.withLock { ($0.listed, $0.contents) = (nil, ["a": "one", "d": "file"]) }
        try await bench.sync()
        #expect(try bench.files == ["a": "one", "d": "file"])
    }

    @Test func `S9: a directory left by a killed process does not block a file of its name`() async throws {
        let bench = try await DirectoryBench(["a": "one"]).synced()
        let record = FileRecord(version: "1", digest: SHA256.digest(of: [1]), stamp: FileStamp(size: 1, modified: 1, inode: 1))
        try TargetJournal.write(TargetJournal.changes(in: bench.journal) + [.put("d/e/x", record)], to: bench.journal)
        for path in ["d/e", "own/empty"] {
            try FileManager.default.createDirectory(at: bench.url.appending(path: path), withIntermediateDirectories: true)
        }
        bench["d"] = "file"
        try await bench.sync()
        #expect(try bench.files == ["a": "one", "d": "file"])
        #expect(bench.exists("own/empty"))
    }
}
