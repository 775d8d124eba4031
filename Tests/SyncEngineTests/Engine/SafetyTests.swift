import StoreCore
import Testing
import Trials
@testable import SyncEngine

struct SafetyTests {
    private static let local = Dictionary(uniqueKeysWithValues: (1...30).map { ($0, 1) })

    @Test(
        arguments: [
            [], [SourcePage([Thing(1)])], [SourcePage([Thing(1)]), SourcePage([Thing(2)])],
            [SourcePage([Thing(1)], end: .complete(count: 2))], [SourcePage([Thing(1), Thing(2)], end: .complete(count: 1))],
        ] as [[SourcePage<Thing>]])
    func `S2: a list without its end or with a wrong count changes nothing`(pages: [SourcePage<Thing>]) async throws {
        for order in [SourceOrder.unsorted, .sortedByKey] {
            let bench = Bench(local: [1: 1, 9: 1], order: order, list: { _ in pages })
            #expect(await syncError { try await OneWaySynchronizer(processor: bench).sync() }?.code == .incompleteList)
            #expect(bench.local == [1: 1, 9: 1])
            #expect(!bench.calls.contains(.prepare))
        }
    }

    @Test func `S3: an empty list over local items is refused unless a run overrides it`() async throws {
        let bench = Bench(local: [1: 1])
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(removalLimit: .unlimited))
        let error = await syncError { try await synchronizer.sync() }
        #expect(error?.code == .emptySource)
        #expect(error?.message.contains("the local side has 1 item") == true)
        #expect(error?.report?.pendingRemovals.count ?? 0 == 0)
        #expect(await syncError { try await synchronizer.sync(overriding: [.removalLimit, .everythingChanged]) }?.code == .emptySource)
        #expect(bench.local == [1: 1])
        try await synchronizer.sync(overriding: .emptySource)
        #expect(bench.local.isEmpty)
        bench.state.update { $0.local = [2: 1] }
        #expect(await syncError { try await synchronizer.sync() }?.code == .emptySource)
    }

    @Test func `S3: an empty list over an empty local side changes nothing`() async throws {
        let bench = Bench()
        #expect(try await OneWaySynchronizer(processor: bench).sync().isComplete)
        #expect(bench.calls == [.begin, .list, .inventory, .end])
    }

    @Test func `S3: the gate counts refused items as changed`() async throws {
        let bench = Bench(source: Self.local.keys.map { Thing($0, 2) }, local: Self.local, refuses: [1, 2])
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: SyncOptions(stopsOnError: false)).sync() }
        #expect(error?.code == .everythingChanged)
        #expect(error?.message.contains("30 changed") == true)
        #expect(error?.report?.planned == SyncReport.Planned(additions: 0, updates: 28, removals: 0))
        #expect(bench.local == Self.local)
    }

    @Test func `S3: the gate is checked before any change`() async throws {
        let bench = Bench(source: [Thing(1)], local: Self.local)
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(removalTiming: .beforeDownloads))
        let error = await syncError { try await synchronizer.sync() }
        #expect(error?.code == .removalLimit)
        #expect(error?.message.contains("29 of 30") == true)
        #expect(bench.calls == [.begin, .list, .inventory, .end])
        try await synchronizer.sync(overriding: .removalLimit)
        #expect(bench.local == [1: 1])
    }

    @Test func `S4: sync makes the changes that plan shows, and plan makes none`() async throws {
        for seed in seeds(200, quick: 40, sanitized: 40) {
            var chance = SplitMix(seed: seed)
            let order: SourceOrder = Bool.random(using: &chance) ? .sortedByKey : .unsorted
            let keys = (1...40).filter { _ in Bool.random(using: &chance) }
            let source = keys.map { Thing($0, Int.random(in: 1...2, using: &chance), bytes: 10) }
            let local = Dictionary(uniqueKeysWithValues: (1...40).filter { _ in Bool.random(using: &chance) }.map { ($0, 1) })
            let bench = Bench(source: order == .unsorted ? source.shuffled(using: &chance) : source, local: local, order: order)
            let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(removalLimit: .unlimited))
            let plan = try await synchronizer.plan()
            #expect(bench.local == local)
            #expect(bench.calls.allSatisfy { $0 == .list || $0 == .inventory })
            bench.state.update { $0.calls = [] }
            guard plan.gateRefusal == nil else { continue }
            let report = try await synchronizer.sync()
            let wanted = Dictionary(uniqueKeysWithValues: source.map { ($0.key, $0.version) })
            #expect(bench.local == wanted, "seed \(seed)")
            let downloaded = Set(bench.calls.compactMap { if case .content(let key) = $0 { key } else { nil } })
            #expect(downloaded == Set((plan.additions + plan.updates).map(\.item.key)), "seed \(seed)")
            let removed = bench.calls.compactMap { if case .remove(let keys) = $0 { keys } else { nil } }.reduce(into: Set()) {
                $0.formUnion($1)
            }
            #expect(removed == Set(plan.removals.map(\.local.key)), "seed \(seed)")
            #expect(report.unchangedCount == plan.unchangedCount)
            #expect(plan.downloadBytes == Int64(10 * downloaded.count))
            #expect(try await synchronizer.plan().isEmpty)
        }
    }

    @Test func `S4: an item that changes after the plan is left alone and reported`() async throws {
        let bench = Bench(source: [Thing(1), Thing(2, 2)], local: [2: 1, 3: 1], checks: { key, _ in key == 1 })
        let error = await syncError {
            try await OneWaySynchronizer(processor: bench, options: SyncOptions(stopsOnError: false, removalTiming: .beforeDownloads))
                .sync()
        }
        #expect(bench.local == [1: 1, 2: 1, 3: 1])
        #expect(error?.report?.failures.map(\.stage) == [.removals, .contents])
        #expect(error?.report?.failures.allSatisfy { ($0.error as? SyncError)?.code == .changedLocally } == true)
        #expect(error?.report?.failures.map { $0.key.value(as: Int.self) } == [3, 2])
    }

    @Test func `S8: duplicate keys are refused or resolved by a rule, and reported`() async throws {
        for order in [SourceOrder.unsorted, .sortedByKey] {
            let pages = [SourcePage([Thing(1), Thing(2, 5)]), SourcePage([Thing(2, 6), Thing(3)], end: .complete(count: 4))]
            for (rule, version) in [(DuplicateKeys.keepFirst, 5), (.keepLast, 6)] {
                let bench = Bench(local: [1: 1], order: order, list: { _ in pages })
                let report = try await OneWaySynchronizer(processor: bench, options: SyncOptions(duplicates: rule)).sync()
                #expect(bench.local == [1: 1, 2: version, 3: 1])
                #expect(report.duplicates.map(\.description) == ["2"])
            }
            let bench = Bench(local: [1: 1, 9: 1], order: order, list: { _ in pages })
            #expect(await syncError { try await OneWaySynchronizer(processor: bench).sync() }?.code == .duplicateKeys)
            #expect(bench.local == [1: 1, 9: 1])
        }
    }

    @Test func `S11: an unsorted list that is declared sorted is refused`() async throws {
        let bench = Bench(source: [Thing(2), Thing(1)], local: [3: 1], order: .sortedByKey)
        #expect(await syncError { try await OneWaySynchronizer(processor: bench).sync() }?.code == .unsortedList)
        #expect(bench.local == [3: 1])
    }

    @Test(arguments: [LocalEdits.overwrite, .keepLocal])
    func `S15: local edits are overwritten or kept, and always reported`(edits: LocalEdits) async throws {
        let bench = Bench(source: [Thing(1), Thing(2, 2)], local: [1: 1, 2: 1, 3: 1])
        bench.state.update { $0.edited = [1, 3] }
        let report = try await OneWaySynchronizer(processor: bench, options: SyncOptions(localEdits: edits)).sync()
        #expect(Set(report.localEdits.map(\.description)) == ["1", "3"])
        #expect(bench.local == (edits == .overwrite ? [1: 1, 2: 2] : [1: 1, 2: 2, 3: 1]))
        #expect(bench.calls.contains(.content(1)) == (edits == .overwrite))
    }

    @Test func `S15: an item that was deleted and re-added is an update`() async throws {
        let bench = Bench(source: [Thing(1, 7)], local: [1: 3])
        let report = try await OneWaySynchronizer(processor: bench).sync()
        #expect((report.addedCount, report.updatedCount, report.removedCount) == (0, 1, 0))
        #expect(!bench.calls.contains(.remove([1])))
    }
}
