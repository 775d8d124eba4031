import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// Files of a directory that a pass leaves alone, in its report.
struct DirectoryReportTests {
    @Test func `S9: after the loss of a journal, files that have left the list are counted`() async throws {
        let bench = try await DirectoryBench(["a": "one", "b": "two", "c": "three", "d": "four"]).synced()
        bench["c"] = nil
        bench["d"] = nil
        try Data("damaged".utf8).write(to: bench.journal)
        let plan = try await OneWaySynchronizer(processor: bench.target()).plan()
        #expect((plan.unchangedCount, plan.foreignCount, plan.removals.count) == (2, 2, 0))
        let report = try await bench.sync()
        #expect((report.unchangedCount, report.foreignCount, report.removedCount) == (2, 2, 0))
        #expect(report.summary.contains("2 foreign"))
        #expect(try await bench.sync().foreignCount == 2)
        #expect(try await bench.sync(foreignFiles: .remove).removedCount == 2)
        #expect(try await bench.sync().foreignCount == 0)
    }

    @Test(arguments: [ForeignFiles.keep, .remove])
    func `S15: foreign objects that no pass can remove are reported`(foreignFiles: ForeignFiles) async throws {
        let bench = try await DirectoryBench(["a": "one"]).synced()
        let directory = bench.url.path(percentEncoded: false)
        try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: "a")
        #if os(Linux)
        _ = try ChildProcess.output(of: "/usr/bin/env", ["sh", "-c", "mkdir '\(directory)/d' && mkfifo '\(directory)/d/pipe'"])
        _ = try ChildProcess.output(of: "/usr/bin/env", ["sh", "-c", "cd '\(directory)' && printf x > \"$(printf 'no\\377text')\""])
        try bench.write("x", ".Storehouse/x")
        let expected = [".Storehouse", "d/pipe", "link", "no\u{FFFD}text"]
        #else
        let expected = ["link"]
        #endif
        let report = try await bench.sync(foreignFiles: foreignFiles)
        #expect(report.removedCount == 0)
        #expect(report.skipped.map(\.key.description) == (foreignFiles == .remove ? expected : []))
        #expect(report.skipped.allSatisfy { ($0.error as? SyncError)?.code == .unremovable })
        #expect(report.isComplete)
    }

    @Test func `S5: the error of a disk says its reason once`() async throws {
        let bench = try DirectoryBench(["a": "one"])
        bench.onStep { step in
            if case .writes = step { throw StoreError.fileSystem("writing", path: "/disk/file", errno: POSIXErrorCode.ENOSPC.rawValue) }
        }
        let error = try #require(await syncError { try await bench.sync() })
        #expect(error.description.components(separatedBy: "No space left").count == 2, "\(error)")
        #expect(!error.description.contains("NSPOSIXErrorDomain"))
    }
}
