import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// Files that a user saves between a check and the change that the check allows.
struct LateEditTests {
    private func files(_ count: Int) -> [String: String] {
        Dictionary(uniqueKeysWithValues: (0..<count).map { ("d/\($0)", "listed \($0)") })
    }

    @Test(arguments: [LocalEdits.overwrite, .keepLocal], [false, true])
    func `S4, S15: a file saved after the check of a batch is not removed with it`(edits: LocalEdits, stops: Bool) async throws {
        let bench = try await DirectoryBench(files(40).merging(["same": "s"]) { first, _ in first }).synced()
        bench.origin.withLock { $0.contents = ["same": "s"] }
        let hasSaved = Lock(false)
        let processor = Interposed(
            base: bench.target(),
            beforeRemoval: { [url = bench.url] _ in
                if hasSaved.withLock({ $0 }) { return }
                hasSaved.withLock { $0 = true }
                for number in [0, 17, 39] { try Data("saved by the user".utf8).write(to: url.appending(path: "d/\(number)")) }
            })
        let options = SyncOptions(stopsOnError: stops, removalLimit: .unlimited, retry: .never, localEdits: edits)
        let error = await syncError { try await OneWaySynchronizer(processor: processor, options: options).sync() }
        #expect(error?.code == .incomplete)
        let found = try bench.files
        for number in [0, 17, 39] { #expect(found["d/\(number)"] == "saved by the user") }
        guard !stops else { return }
        #expect(codes(error) == [.changedLocally, .changedLocally, .changedLocally])
        #expect(error?.report?.pendingRemovals.count == 3)
        #expect(error?.report?.removedCount == 37)
        #expect(found.count == 4)
    }

    @Test func `S4: a file saved anew after its removal is not removed when the batch is repeated`() async throws {
        let bench = try await DirectoryBench(files(3).merging(["same": "s"]) { first, _ in first }).synced()
        bench.origin.withLock { $0.contents = ["same": "s"] }
        bench.onStep { [url = bench.url] step in
            // The first file is gone, and the second one fails, so that the engine repeats the removals one by one.
            guard step == .removes("d/1") else { return }
            if !FileManager.default.fileExists(atPath: url.appending(path: "d/0").path) {
                try Data("anew".utf8).write(to: url.appending(path: "d/0"))
                throw StoreError.fileSystem("removing", path: "/", errno: POSIXErrorCode.ETXTBSY.rawValue)
            }
        }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == ["d/0": "anew", "same": "s"])
    }

    @Test(arguments: [0, 1, 2])
    func `S4: the stamp of each file is checked right before its removal`(number: Int) async throws {
        let bench = try await DirectoryBench(files(3).merging(["same": "s"]) { first, _ in first }).synced()
        bench.origin.withLock { $0.contents = ["same": "s"] }
        bench.onStep { [url = bench.url] step in
            if step == .removes("d/\(number)") { try Data("saved".utf8).write(to: url.appending(path: "d/\(number)")) }
        }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == ["d/\(number)": "saved", "same": "s"])
    }

    @Test(arguments: [false, true])
    func `S4: the stamp of a file is checked right before a download replaces it`(isNew: Bool) async throws {
        let bench = try await DirectoryBench(isNew ? ["z": "z"] : ["d/a": "one", "z": "z"]).synced()
        bench["d/a"] = "two"
        bench.onStep { [bench = bench] step in if step == .renames("d/a") { try bench.write("saved", "d/a") } }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == ["d/a": "saved", "z": "z"])
        bench.probe.withLock { $0 = nil }
        // The edit is found by the next pass.
        #expect(try await bench.sync(localEdits: .keepLocal).localEdits.map(\.description) == ["d/a"])
        #expect(try bench.files == ["d/a": "saved", "z": "z"])
    }

    @Test func `S4: the stamp of a file is checked right before a staged update replaces it`() async throws {
        let bench = try DirectoryBench()
        func list(_ version: String) {
            bench.origin.withLock { origin in
                origin.contents = ["a": "a \(version)", "b": "b \(version)"]
                origin.listed = ["a", "b"].map { ListedFile(path: $0, version: version) }
            }
        }
        list("1")
        try await bench.sync()
        list("2")
        bench.onStep { [bench = bench] step in if step == .renames("a") { try bench.write("saved", "a") } }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == ["a": "saved", "b": "b 2"])
    }

    @Test(arguments: ["a file in place of a directory", "a directory in place of a file"])
    func `S4: the stamp of a file is checked right before another file takes its place`(what: String) async throws {
        let isFile = what.hasPrefix("a file")
        let bench = try await DirectoryBench(isFile ? ["d/x": "1", "z": "z"] : ["d": "1", "z": "z"]).synced()
        bench.origin.withLock { $0.contents = isFile ? ["d": "2", "z": "z"] : ["d/x": "2", "z": "z"] }
        let old = isFile ? "d/x" : "d"
        bench.onStep { [bench = bench] step in if step == .removes(old) { try bench.write("saved", old) } }
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.changedLocally])
        #expect(try bench.files == [old: "saved", "z": "z"])
    }
}
