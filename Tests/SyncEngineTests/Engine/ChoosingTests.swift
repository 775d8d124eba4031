import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// S4: the downloads that a processor chooses, their order, and their display in `plan()`.
struct ChoosingTests {
    private func contents(_ bench: Bench) -> [Int] { bench.calls.compactMap { if case .content(let key) = $0 { key } else { nil } } }

    @Test func `S4: a processor can reorder and omit downloads, and plan shows what sync does`() async throws {
        let bench = Bench(
            source: [Thing(1), Thing(2), Thing(3, 2), Thing(4)], local: [3: 1, 9: 1],
            prepares: { $0.downloads.reversed().filter { $0.item.key != 2 } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1))
        let plan = try await synchronizer.plan()
        #expect(plan.downloads.map(\.item.key) == [3, 4, 1])
        #expect(plan.leftOut == [2] && plan.isDryRun)
        #expect((plan.additions.map(\.item.key), plan.updates.map(\.item.key)) == ([1, 4], [3]))
        #expect(bench.calls == [.list, .inventory])
        let report = try await synchronizer.sync()
        #expect(contents(bench) == [3, 4, 1])
        #expect((report.addedCount, report.updatedCount, report.removedCount, report.pendingDownloadCount) == (2, 1, 1, 0))
        #expect(report.leftOut.map(\.description) == ["2"] && report.isComplete && report.failures.isEmpty)
        #expect(report.summary.contains("1 left out"))
        #expect(bench.local == [1: 1, 3: 2, 4: 1])
    }

    @Test func `S4: an omitted item is neither removed nor updated`() async throws {
        let bench = Bench(source: [Thing(1, 2), Thing(2)], local: [1: 1], prepares: { _ in [] })
        let report = try await OneWaySynchronizer(processor: bench).sync()
        #expect(bench.local == [1: 1])
        #expect(Set(report.leftOut.map(\.description)) == ["1", "2"])
        #expect(contents(bench).isEmpty)
    }

    @Test func `S4: a download chosen twice begins once, and a download outside the plan never begins`() async throws {
        let other = Lock<[SyncPlan<Thing>.Download]>([])
        let bench = Bench(
            source: [Thing(1), Thing(2)],
            prepares: { plan in
                if plan.downloads.count == 1 { other.withLock { $0 = plan.downloads } }
                return plan.downloads + plan.downloads + other.withLock { $0 }
            })
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1))
        #expect(try await synchronizer.sync().addedCount == 2)
        #expect(contents(bench) == [1, 2])
        bench.state.update { $0.source.append(Thing(3)) }
        try await synchronizer.sync()
        bench.state.update { $0.source += [Thing(4), Thing(5)] }
        #expect(try await synchronizer.sync().addedCount == 2)
        #expect(contents(bench) == [1, 2, 3, 4, 5])
    }

    @Test func `S4: a custom order sorts by rank and keeps the source's order within a rank`() async throws {
        for seed in seeds(50) {
            var chance = SplitMix(seed: seed)
            let source = (1...60).shuffled(using: &chance).map { Thing($0, Int.random(in: 1...4, using: &chance)) }
            let bench = Bench(source: source)
            let order = DownloadOrder.by { (thing: Thing) in -thing.version }
            try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1, order: order)).sync()
            let wanted = (1...4).reversed().flatMap { version in source.filter { $0.version == version }.map(\.key) }
            #expect(contents(bench) == wanted, "seed \(seed)")
        }
    }

    @Test func `an order of other items is rejected`() {
        struct Other: SyncItem {
            var key: Int
            var version: Int
        }
        #expect(!DownloadOrder.by { (other: Other) in other.key }.canSort(Thing.self))
        #expect(DownloadOrder.by { (thing: Thing) in thing.key }.canSort(Thing.self))
        #expect(DownloadOrder.byKey.canSort(Thing.self))
    }

    @Test func `S4: a held-back item that is not installed counts as pending`() async throws {
        let bench = Bench(source: [Thing(1, 2, bytes: 10), Thing(2, bytes: 20), Thing(3)], local: [1: 1, 9: 1])
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(stopsOnError: false, retry: .never))
        bench.state.update { $0.heldBack = [1, 2].map { SyncRefusal($0, because: Trouble.lasting) } }
        let error = await syncError { try await synchronizer.sync() }
        #expect(error?.code == .incomplete)
        let report = try #require(error?.report)
        #expect((report.addedCount, report.updatedCount, report.pendingDownloadCount, report.downloadedBytes) == (1, 0, 2, 0))
        #expect(report.pendingRemovals.count == 1 && bench.local[9] == 1)
        bench.state.update { state in
            state.heldBack = [SyncRefusal(1, because: SyncError(.sharedContent, "shared"))]
            state.source = [Thing(1, 3), Thing(2), Thing(3)]
        }
        #expect(await syncError { try await synchronizer.sync() }?.code == .sharedContent)
        bench.state.update { $0.source = [Thing(1, 4), Thing(2), Thing(3)] }
        #expect(try await synchronizer.sync(overriding: .sharedContent).updatedCount == 1)
        #expect(bench.local[9] == nil)
        // Huge sizes are subtracted without an overflow.
        bench.state.update { state in
            state.source = (1...3).map { Thing($0, 9, bytes: .max) }
            state.heldBack = (1...3).map { SyncRefusal($0, because: Trouble.lasting) }
        }
        let refused = await syncError { try await synchronizer.sync(overriding: .everythingChanged) }
        #expect(refused?.report?.updatedCount == 0 && refused?.report?.failures.count == 3)
    }
}
