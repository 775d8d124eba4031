import Foundation
import StoreCore
import Testing
@testable import SyncEngine

/// Plans made while a pass works in the same target.
struct DirectoryPlanTests {
    private let bench: DirectoryBench
    private let isArriving = WatchedState(false)
    private let mayArrive = WatchedState(false)

    init() throws { bench = try DirectoryBench(["kept": "kept", "gone": "gone", "old": "old"]) }

    /// Makes a synchronizer that holds the file `new` until the test releases it.
    private func synchronizer() -> OneWaySynchronizer<DirectoryTarget<ListedSource<ListedFile>, ClosureTransfer<ListedFile>>> {
        let transfer = ClosureTransfer<ListedFile> { [bench, isArriving, mayArrive] file, part in
            if file.path == "new" {
                isArriving.update { $0 = true }
                try await mayArrive.wait { $0 ? () : nil }
            }
            try await BenchTransfer(bench: bench).transfer(file, into: part)
        }
        let target = DirectoryTarget(directory: bench.url, transfer: transfer, durability: .crash) { [bench] in
            ListedSource(bench.origin.withLock { $0.contents.map { ListedFile(path: $0, sha256: digest($1)) }.sorted { $0.key < $1.key } })
        }
        return OneWaySynchronizer(processor: target, options: SyncOptions(stopsOnError: false, retry: .never))
    }

    @Test func `S4: a plan made during a pass does not let the pass remove later edits`() async throws {
        try await bench.sync()
        bench["new"] = "new"
        bench["gone"] = nil
        let synchronizer = synchronizer()
        let run = Task { try await synchronizer.sync() }
        try await isArriving.wait { $0 ? () : nil }
        try bench.write("edited by hand", "gone")
        #expect(try await synchronizer.plan().removals.map(\.reason) == [.editedLocally])
        mayArrive.update { $0 = true }
        #expect(codes(await syncError { _ = try await run.value }) == [.changedLocally])
        #expect(try bench.files["gone"] == "edited by hand")
        #expect(try bench.files["new"] == "new")
    }

    @Test func `S4: a plan made during a pass records no changed files`() async throws {
        try await bench.sync()
        bench["new"] = "new"
        let synchronizer = synchronizer()
        let run = Task { try await synchronizer.sync() }
        try await isArriving.wait { $0 ? () : nil }
        // Touches one file, removes one, and creates one with the listed content.
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: bench.url.appending(path: "kept").path)
        try FileManager.default.removeItem(at: bench.url.appending(path: "old"))
        try bench.write("new", "new")
        let journal = try Data(contentsOf: bench.journal)
        let plan = try await synchronizer.plan()
        #expect((plan.additions.map(\.item.path), plan.updates.count, plan.unchangedCount) == (["old"], 0, 3))
        #expect(try Data(contentsOf: bench.journal) == journal)
        mayArrive.update { $0 = true }
        _ = await run.result
        try await bench.sync()
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S4, S5: a plan made during a pass does not let the pass replace a file that it cannot read`() async throws {
        try bench.write("mine", "kept")
        bench.onStep { if $0 == .reads("kept") { throw diskError(.EACCES) } }
        let target = bench.target()
        let item = ListedFile(path: "kept", sha256: digest("kept"), byteCount: 4)
        try await target.syncWillBegin()
        _ = try await target.localInventory()
        let entry = LocalEntry<ListedFile>("kept", version: nil, byteCount: 4, isEdited: true, isForeign: true)
        #expect(try await target.shouldUpdate(item, over: entry))
        // The plan has another list, and does not read the file.
        bench["kept"] = nil
        #expect(try await OneWaySynchronizer(processor: target).plan().refusals.isEmpty)
        #expect(try await target.refusals(among: [item]).count == 1)
        await target.syncDidEnd(SyncReport(pass: 1))
    }
}
