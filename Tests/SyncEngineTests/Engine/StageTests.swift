import StoreCore
import Testing
@testable import SyncEngine

struct StageTests {
    private let both = SyncOptions(concurrency: 1, downloadsPreviews: true, retry: .never)

    @Test func `S1: a pass runs its stages in order`() async throws {
        let bench = Bench(source: [Thing(1), Thing(2, 2)], local: [2: 1, 3: 1])
        let report = try await OneWaySynchronizer(processor: bench, options: both).sync()
        let calls: [Bench.Call] = [.preview(1), .preview(2), .content(1), .content(2), .remove([3]), .end]
        #expect(bench.calls == [.begin, .list, .inventory, .prepare] + calls)
        #expect(bench.local == [1: 1, 2: 2])
        #expect((report.addedCount, report.updatedCount, report.removedCount, report.previewCount) == (1, 1, 1, 2))
        #expect(report.isComplete)
    }

    @Test func `S1: with beforeDownloads, removals precede downloads`() async throws {
        let bench = Bench(source: [Thing(1)], local: [3: 1])
        try await OneWaySynchronizer(processor: bench, options: SyncOptions(removalTiming: .beforeDownloads)).sync()
        #expect(bench.calls == [.begin, .list, .inventory, .prepare, .remove([3]), .content(1), .end])
    }

    @Test(arguments: [Bench.Call.begin, .list, .inventory, .prepare, .preview(1), .content(1), .remove([3])])
    func `S1: begin and end are balanced if a call fails, and the error names the stage`(call: Bench.Call) async throws {
        let bench = Bench(source: [Thing(1)], local: [3: 1], act: { if $0 == call { throw Trouble.lasting } })
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: both).sync() }
        let stages: [Bench.Call: SyncStage] = [
            .begin: .begin, .list: .sourceList, .inventory: .localInventory, .prepare: .prepare, .preview(1): .previews,
            .content(1): .contents, .remove([3]): .removals,
        ]
        #expect(error?.stage == stages[call])
        #expect(error?.underlyingError as? Trouble == .lasting)
        #expect(bench.state.current.begun == 1 && bench.state.current.ended == 1)
        #expect(bench.calls.last == .end)
    }

    /// A processor that moves items to new keys.
    private struct Renamer: SyncProcessor {
        let local = WatchedState(Set(0..<1_000))
        let removals = WatchedState([Int]())

        func sourceList() -> ListedSource<Thing> { ListedSource((1_000..<2_000).map { Thing($0) }) }
        func localInventory() -> LocalInventory<Thing> {
            LocalInventory(versions: Dictionary(uniqueKeysWithValues: local.current.map { ($0, 1) }))
        }
        func downloadContent(of item: Thing) throws { throw Trouble.lasting }
        func moves(in plan: SyncPlan<Thing>) -> [SyncPlan<Thing>.Move] {
            zip(plan.additions, plan.removals).map { SyncPlan.Move($0, from: $1.local) }
        }
        func holdContent(of move: SyncPlan<Thing>.Move) -> Bool { true }
        func move(_ move: SyncPlan<Thing>.Move) { local.update { _ = $0.insert(move.item.key) } }
        func remove(_ keys: Set<Int>) {
            removals.update { $0.append(keys.count) }
            local.update { $0.subtract(keys) }
        }
    }

    @Test func `S1, S20: the old items of moves are removed a few hundred at a time`() async throws {
        let processor = Renamer()
        let report = try await OneWaySynchronizer(processor: processor).sync()
        #expect((report.movedCount, report.removedCount) == (1_000, 0))
        #expect(processor.local.current == Set(1_000..<2_000))
        #expect(processor.removals.current == [256, 256, 256, 232])
    }

    @Test func `S12: every preview ends before the first content begins`() async throws {
        let bench = Bench(source: (1...40).map { Thing($0) })
        try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 8, downloadsPreviews: true)).sync()
        let calls = bench.calls
        let lastPreview = try #require(calls.lastIndex { if case .preview = $0 { true } else { false } })
        let firstContent = try #require(calls.firstIndex { if case .content = $0 { true } else { false } })
        #expect(lastPreview < firstContent)
        #expect(calls.count == 40 + 40 + 5)
    }

    @Test func `S12: a slow preview delays every content`() async throws {
        let bench = Bench(source: (1...4).map { Thing($0) })
        bench.hold(.preview(3))
        let run = Task {
            try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 4, downloadsPreviews: true)).sync()
        }
        try await bench.waiting(.preview(3))
        try await bench.state.wait { $0.running == 1 ? () : nil }
        #expect(!bench.calls.contains(.content(1)))
        bench.release(.preview(3))
        _ = try await run.value
        #expect(bench.local.count == 4)
    }

    @Test(arguments: [1, 3, 0]) func `downloads run concurrently up to the limit`(concurrency: Int) async throws {
        let bench = Bench(source: (1...200).map { Thing($0) }, act: { _ in await Task.yield() })
        try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: concurrency)).sync()
        #expect(bench.state.current.mostRunning <= (concurrency == 0 ? 16 : concurrency))
        #expect(bench.local.count == 200)
    }

    @Test(arguments: [
        (DownloadOrder.asListed, [2, 1, 4, 3]), (.byKey, [1, 2, 3, 4]), (.smallestFirst, [4, 2, 3, 1]), (.largestFirst, [3, 2, 4, 1]),
    ]) func `downloads follow the chosen order`(order: DownloadOrder, keys: [Int]) async throws {
        let bench = Bench(source: [Thing(2, bytes: 20), Thing(1), Thing(4, bytes: 10), Thing(3, bytes: 30)])
        try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1, order: order)).sync()
        #expect(bench.calls.compactMap { if case .content(let key) = $0 { key } else { nil } } == keys)
    }
}
