import StoreCore
import StoreCoreTesting
import Testing
import Trials
@testable import SyncEngine

/// Random histories of a list, a local side, edits, faults and options, compared with dictionaries.
struct HistoryTests {
    /// The current faults.
    private struct Faults: Sendable {
        var badContents: Set<Int> = []
        var badRemovals: Set<Int> = []
        /// The number of failures left before an item succeeds.
        var flaky: [Int: Int] = [:]
        var isCut = false
        var inventoryFails = false
    }

    private struct History {
        let seed: Int
        var chance: SplitMix
        let options: SyncOptions
        let bench: Bench
        let faults: WatchedState<Faults>
        let synchronizer: OneWaySynchronizer<Bench>

        init(seed: Int) {
            self.seed = seed
            chance = SplitMix(seed: seed)
            var options = SyncOptions(
                concurrency: Int.random(in: 1...4, using: &chance), downloadsPreviews: Bool.random(using: &chance),
                stopsOnError: Bool.random(using: &chance), retry: RetryPolicy(attempts: 3, base: .zero))
            options.removalTiming = Bool.random(using: &chance) ? .afterDownloads : .beforeDownloads
            options.removalLimit = Bool.random(using: &chance) ? .share(0.5) : .count(Int.random(in: 0...6, using: &chance))
            options.localEdits = Bool.random(using: &chance) ? .overwrite : .keepLocal
            options.order = [.asListed, .byKey, .smallestFirst, .largestFirst].randomElement(using: &chance) ?? .asListed
            self.options = options
            let order: SourceOrder = Bool.random(using: &chance) ? .sortedByKey : .unsorted
            let pageSize = Int.random(in: 1...9, using: &chance)
            let faults = WatchedState(Faults())
            self.faults = faults
            bench = Bench(
                order: order,
                list: { state in
                    let isCut = faults.current.isCut
                    let things = order == .sortedByKey ? state.source.sorted { $0.key < $1.key } : state.source
                    var pages = stride(from: 0, to: things.count, by: pageSize).map { start in
                        SourcePage(Array(things[start..<min(start + pageSize, things.count)]))
                    }
                    if isCut { return pages.dropLast() }
                    pages.append(SourcePage([], end: .complete(count: things.count)))
                    return pages
                },
                act: { call in
                    await Task.yield()
                    switch call {
                    case .inventory where faults.current.inventoryFails: throw Trouble.lasting
                    case .content(let key):
                        if faults.current.badContents.contains(key) { throw Trouble.lasting }
                        let isFlaky = faults.update { faults -> Bool in
                            guard let left = faults.flaky[key], left > 0 else { return false }
                            faults.flaky[key] = left - 1
                            return true
                        }
                        if isFlaky { throw Trouble.passing }
                    case .remove(let keys) where !faults.current.badRemovals.isDisjoint(with: keys): throw Trouble.lasting
                    default: break
                    }
                })
            synchronizer = OneWaySynchronizer(processor: bench, options: options, time: ManualTime())
        }

        /// Changes both sides and the faults at random.
        mutating func change() {
            let keys = 1...40
            var state = bench.state.current
            for _ in 0..<Int.random(in: 0...12, using: &chance) {
                let key = Int.random(in: keys, using: &chance)
                state.source.removeAll { $0.key == key }
                if Int.random(in: 0..<3, using: &chance) > 0 {
                    let bytes: Int64? = Bool.random(using: &chance) ? nil : Int64.random(in: 0...99, using: &chance)
                    state.source.append(Thing(key, Int.random(in: 1...3, using: &chance), bytes: bytes))
                }
            }
            if Int.random(in: 0..<15, using: &chance) == 0 { state.source = [] }
            for _ in 0..<Int.random(in: 0...3, using: &chance) {
                let key = Int.random(in: keys, using: &chance)
                switch Int.random(in: 0..<3, using: &chance) {
                case 0: (state.local[key], _) = (nil, state.edited.remove(key))
                case 1: state.local[key] = 0
                default: if state.local[key] != nil { state.edited.insert(key) }
                }
            }
            let (source, local, edited) = (state.source, state.local, state.edited)
            bench.state.update { ($0.source, $0.local, $0.edited) = (source, local, edited) }
            var faults = Faults()
            if Bool.random(using: &chance) {
                faults.badContents = Set(keys.filter { _ in Int.random(in: 0..<12, using: &chance) == 0 })
                faults.badRemovals = Set(keys.filter { _ in Int.random(in: 0..<12, using: &chance) == 0 })
                for key in keys where Int.random(in: 0..<6, using: &chance) == 0 {
                    faults.flaky[key] = Int.random(in: 1...2, using: &chance)
                }
                faults.isCut = Int.random(in: 0..<8, using: &chance) == 0
                faults.inventoryFails = Int.random(in: 0..<8, using: &chance) == 0
            }
            let now = faults
            self.faults.update { $0 = now }
        }

        /// Runs a pass and compares its result with dictionaries.
        mutating func pass(_ number: Int) async throws {
            let before = bench.state.current
            let overrides = SyncOverrides(rawValue: Int.random(in: 0..<8, using: &chance))
            let result: Result<SyncReport, SyncError>
            do {
                result = .success(try await synchronizer.sync(overriding: overrides))
            } catch {
                result = .failure(try #require(error as? SyncError))
            }
            let after = bench.state.current
            let faults = self.faults.current
            let context = Comment(rawValue: "seed \(seed), pass \(number): \(result)")

            let wanted = Dictionary(uniqueKeysWithValues: before.source.map { ($0.key, $0.version) })
            let kept = options.localEdits == .keepLocal ? before.edited : []
            let removals = Set(before.local.keys).filter { wanted[$0] == nil && !kept.contains($0) }
            let downloads = Set(wanted.keys).filter { key in
                !kept.contains(key) && (before.local[key] != wanted[key] || before.edited.contains(key))
            }
            let gone = Set(before.local.keys).subtracting(after.local.keys)

            // In any case: no item was removed without reason, every version comes from a side, and kept edits are unchanged.
            #expect(gone.isSubset(of: removals), context)
            for (key, version) in after.local { #expect(version == before.local[key] || version == wanted[key], context) }
            for key in kept { #expect(after.local[key] == before.local[key] && after.edited.contains(key), context) }
            #expect(after.begun == number && after.ended == number && after.running == 0, context)

            switch result {
            case .success(let report):
                #expect(after.local == before.local.filter { kept.contains($0.key) }.merging(wanted) { first, _ in first }, context)
                #expect(report.isComplete && report.failures.isEmpty, context)
                #expect(faults.badContents.isDisjoint(with: downloads) && faults.badRemovals.isDisjoint(with: removals), context)
                #expect(!faults.isCut && !faults.inventoryFails, context)
                #expect(Set(report.localEdits.compactMap { $0.value(as: Int.self) }) == before.edited, context)
                #expect(report.unchangedCount == before.local.count - gone.count - report.updatedCount - kept.count, context)
            case .failure(let error) where error.code == .incomplete:
                let report = try #require(error.report)
                let failed = Set(report.failures.compactMap { $0.key.value(as: Int.self) })
                let badDownloads = faults.badContents.intersection(downloads)
                let badRemovals = faults.badRemovals.intersection(removals)
                #expect(!failed.isEmpty && failed.isSubset(of: badDownloads.union(badRemovals)), context)
                if options.removalTiming == .afterDownloads, !badDownloads.isEmpty { #expect(gone.isEmpty, context) }
                if !options.stopsOnError {
                    let triesRemovals = options.removalTiming == .beforeDownloads || badDownloads.isEmpty
                    #expect(failed == (triesRemovals ? badDownloads.union(badRemovals) : badDownloads), context)
                    #expect(gone == (triesRemovals ? removals.subtracting(badRemovals) : []), context)
                    for key in downloads.subtracting(badDownloads) { #expect(after.local[key] == wanted[key], context) }
                }
            default:
                #expect(after.local == before.local, context)
            }
            let report: SyncReport? =
                switch result {
                case .success(let report): report
                case .failure(let error): error.report
                }
            if let report, report.planned != SyncReport.Planned() {
                #expect(report.addedCount + report.updatedCount + report.pendingDownloadCount == downloads.count, context)
                #expect(report.planned.removals == removals.count, context)
                #expect(report.removedCount == gone.count, context)
            }
        }
    }

    @Test func `S1, S2, S3, S4, S5, S15: every random history has the same result as a dictionary and loses no item`() async throws {
        for seed in seeds(300, quick: 30, sanitized: 30) {
            var history = History(seed: seed)
            for number in 1...8 {
                history.change()
                try await history.pass(number)
            }
            // Without faults and limits, the local side becomes equal to the source and stays equal.
            history.faults.update { $0 = Faults() }
            let (source, local, edited) = history.bench.state.read { ($0.source, $0.local, $0.edited) }
            try await history.synchronizer.sync(overriding: [.emptySource, .removalLimit, .updateLimit, .everythingChanged])
            let wanted = Dictionary(uniqueKeysWithValues: source.map { ($0.key, $0.version) })
            let kept = history.options.localEdits == .keepLocal ? local.filter { edited.contains($0.key) } : [:]
            #expect(history.bench.local == kept.merging(wanted) { first, _ in first }, "seed \(seed)")
            #expect(try await history.synchronizer.plan().isEmpty, "seed \(seed)")
        }
    }
}
