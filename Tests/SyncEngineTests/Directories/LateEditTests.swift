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
        #expect((error?.report?.pendingRemovals.count, error?.report?.removedCount) == (3, 37))
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
        #expect(codes(await syncError { try await bench.sync() }) == [.changedLocally])
        #expect(try bench.files == ["d/0": "anew", "same": "s"])
    }

    // The files before and after a change of the list, and the steps before which the user saves the file at a path.
    @Test(
        arguments: [
            ("the first removal", ["d/0": "0", "d/1": "1", "d/2": "2", "z": "z"], ["z": "z"], "d/0", [.removes("d/0")]),
            ("the second removal", ["d/0": "0", "d/1": "1", "d/2": "2", "z": "z"], ["z": "z"], "d/1", [.removes("d/1")]),
            ("the last removal", ["d/0": "0", "d/1": "1", "d/2": "2", "z": "z"], ["z": "z"], "d/2", [.removes("d/2")]),
            ("a new file", ["z": "z"], ["d/a": "two", "z": "z"], "d/a", [.renames("d/a")]),
            ("an update", ["d/a": "one", "z": "z"], ["d/a": "two", "z": "z"], "d/a", [.renames("d/a")]),
            ("a new file that waits for the disk", ["z": "z"], ["a": "two", "z": "z"], "a", [.flushEnds, .synchronizes("a")]),
            ("an update that waits for the disk", ["a": "one", "z": "z"], ["a": "two", "z": "z"], "a", [.flushEnds, .synchronizes("a")]),
            ("a file in place of a directory", ["d/x": "1", "z": "z"], ["d": "2", "z": "z"], "d/x", [.removes("d/x")]),
            ("a directory in place of a file", ["d": "1", "z": "z"], ["d/x": "2", "z": "z"], "d", [.removes("d")]),
        ] as [(String, [String: String], [String: String], String, [TargetStep])])
    func `S4: the stamp of a file is checked right before its removal, or before another file takes its place`(
        what: String, before: [String: String], after: [String: String], path: String, steps: [TargetStep]
    ) async throws {
        let durability: Durability = steps.contains(.flushEnds) ? .power : .crash
        let bench = try DirectoryBench(before)
        try await bench.sync(durability: durability)
        bench.publish(after)
        bench.onStep { [bench = bench] step in if steps.contains(step) { try bench.write("saved", path) } }
        #expect(codes(await syncError { try await bench.sync(durability: durability) }) == [.changedLocally])
        #expect(try bench.files == [path: "saved", "z": "z"])
        // The next pass finds the edit, unless it is in the way of another file.
        guard after[path] != nil, durability == .crash else { return }
        bench.probe.withLock { $0 = nil }
        #expect(try await bench.sync(localEdits: .keepLocal).localEdits.map(\.description) == [path])
        #expect(try bench.files == [path: "saved", "z": "z"])
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
        #expect(codes(await syncError { try await bench.sync() }) == [.changedLocally])
        #expect(try bench.files == ["a": "saved", "b": "b 2"])
    }
}
