import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// S11: both comparisons, which give the same result.
struct DiffTests {
    /// The content of a plan in a comparable form.
    private struct Summary: Equatable {
        var additions: [Int]
        var updates: [Int: SyncPlan<Thing>.DownloadReason]
        var versions: [Int]
        var removals: Set<Int>
        var unchanged: Int
        var kept: Set<Int>
        var duplicates: [Int]
        var counts: [Int]

        init(_ plan: SyncPlan<Thing>) {
            additions = plan.additions.map(\.item.key)
            updates = Dictionary(plan.updates.map { ($0.item.key, $0.reason) }, uniquingKeysWith: { first, _ in first })
            versions = (plan.additions + plan.updates).map(\.item.version)
            removals = Set(plan.removals.map(\.local.key))
            unchanged = plan.unchangedCount
            kept = Set(plan.keptEdits)
            duplicates = plan.duplicates
            counts = [plan.sourceCount, plan.localCount]
        }
    }

    private func pages<Element>(_ elements: [Element], _ chance: inout SplitMix) -> [[Element]] {
        var pages: [[Element]] = []
        var rest = elements[...]
        while !rest.isEmpty || (pages.count < 3 && Bool.random(using: &chance)) {
            let page = rest.prefix(Int.random(in: 0...5, using: &chance))
            pages.append(Array(page))
            rest = rest.dropFirst(page.count)
        }
        return pages
    }

    private func merged(
        _ source: [[Thing]], _ local: [[LocalEntry<Thing>]], _ edits: LocalEdits, _ duplicates: DuplicateKeys
    ) throws -> SyncPlan<Thing> {
        var diff = MergeDiff<Thing>(localEdits: edits, duplicates: duplicates)
        var source = source[...]
        var local = local[...]
        while true {
            switch diff.advance() {
            case .source: try diff.take(source: source.popFirst())
            case .local: try diff.take(local: local.popFirst())
            case .nothing: return diff.finish()
            }
        }
    }

    private func hashed(
        _ source: [[Thing]], _ local: [[LocalEntry<Thing>]], _ edits: LocalEdits, _ duplicates: DuplicateKeys
    ) throws -> SyncPlan<Thing> {
        var diff = HashedDiff<Thing>(localEdits: edits, duplicates: duplicates)
        for page in source { diff.take(source: page) }
        for page in local { try diff.take(local: page) }
        return diff.finish()
    }

    @Test func `S11: the merge, the comparison by hash and a dictionary give the same plan`() async throws {
        for seed in seeds(2000, quick: 400, sanitized: 200) {
            var chance = SplitMix(seed: seed)
            let range = 1...Int.random(in: 1...30, using: &chance)
            var source: [Thing] = []
            for key in range where Bool.random(using: &chance) {
                source.append(Thing(key, Int.random(in: 1...2, using: &chance)))
                while Int.random(in: 0..<8, using: &chance) == 0 { source.append(Thing(key, Int.random(in: 1...3, using: &chance))) }
            }
            let local = range.filter { _ in Bool.random(using: &chance) }.map { key in
                LocalEntry<Thing>(
                    key, version: Int.random(in: 0..<6, using: &chance) == 0 ? nil : 1, isEdited: Int.random(in: 0..<5, using: &chance) == 0
                )
            }
            let edits: LocalEdits = Bool.random(using: &chance) ? .overwrite : .keepLocal
            let rule: DuplicateKeys = Bool.random(using: &chance) ? .keepFirst : .keepLast
            let bySource = pages(source, &chance)
            let byLocal = pages(local, &chance)
            var (one, other) = (try merged(bySource, byLocal, edits, rule), try hashed(bySource, byLocal, edits, rule))
            try await one.settleUpdates(localEdits: edits) { _, _ in true }
            try await other.settleUpdates(localEdits: edits) { _, _ in true }
            let (merge, hash) = (Summary(one), Summary(other))
            #expect(merge == hash, "seed \(seed)")
            #expect(merge == oracle(source, local, edits, rule), "seed \(seed)")
        }
    }

    /// The comparison by dictionaries, as a reference.
    private func oracle(_ source: [Thing], _ local: [LocalEntry<Thing>], _ edits: LocalEdits, _ rule: DuplicateKeys) -> Summary {
        let wanted = Dictionary(source.map { ($0.key, $0) }, uniquingKeysWith: { rule == .keepFirst ? $0 : $1 })
        let here = Dictionary(uniqueKeysWithValues: local.map { ($0.key, $0) })
        var plan = Summary(SyncPlan())
        var updated: [Int] = []
        for (key, item) in wanted.sorted(by: { $0.key < $1.key }) {
            guard let entry = here[key] else {
                plan.additions.append(key)
                continue
            }
            if entry.isEdited {
                if edits == .keepLocal { plan.kept.insert(key) } else { plan.updates[key] = .editedLocally }
            } else if entry.version == nil {
                plan.updates[key] = .unknownVersion
            } else if entry.version != item.version {
                plan.updates[key] = .changed
            } else {
                plan.unchanged += 1
            }
            if plan.updates[key] != nil { updated.append(key) }
        }
        plan.versions = (plan.additions + updated).compactMap { wanted[$0]?.version }
        for (key, entry) in here where wanted[key] == nil {
            if entry.isEdited, edits == .keepLocal { plan.kept.insert(key) } else { plan.removals.insert(key) }
        }
        var seen: Set<Int> = []
        plan.duplicates = source.map(\.key).filter { !seen.insert($0).inserted }
        plan.counts = [wanted.count, here.count]
        return plan
    }

    @Test(
        arguments: [
            ([[2, 1]], [[]]), ([[1], [3], [2]], [[]]), ([[1, 5], [5, 4]], [[9]]), ([[1]], [[2, 1]]), ([[1]], [[5], [4]]),
        ] as [([[Int]], [[Int]])])
    func `S11: a side that violates its declared order is refused`(source: [[Int]], local: [[Int]]) {
        let error = #expect(throws: SyncError.self) {
            try merged(source.map { $0.map { Thing($0) } }, local.map { $0.map { LocalEntry($0, version: 1) } }, .overwrite, .keepLast)
        }
        #expect(error?.code == .unsortedList)
        #expect(error?.stage == (source == [[1]] ? .localInventory : .sourceList))
    }

    @Test(arguments: [[[1, 1]], [[1], [1]], [[1], [], [1]]])
    func `S8: a local side with a duplicate key is refused by both comparisons`(local: [[Int]]) {
        let entries = local.map { $0.map { LocalEntry<Thing>($0, version: 1) } }
        for compare in [merged, hashed] {
            let error = #expect(throws: SyncError.self) { try compare([[Thing(1)]], entries, .overwrite, .keepLast) }
            #expect((error?.code, error?.stage) == (.duplicateKeys, .localInventory))
        }
    }

    @Test func `S11: the merge holds only the current pages and the changes`() throws {
        var diff = MergeDiff<Thing>(localEdits: .overwrite, duplicates: .refuse)
        var source = 0
        var local = 0
        var most = 0
        loop: while true {
            switch diff.advance() {
            case .source:
                try diff.take(source: source < 100_000 ? (source..<source + 100).map { Thing($0, $0 % 1000 == 0 ? 2 : 1) } : nil)
                source += 100
            case .local:
                try diff.take(local: local < 100_000 ? (local..<local + 70).map { LocalEntry($0, version: 1) } : nil)
                local += 70
            case .nothing: break loop
            }
            most = max(most, diff.heldCount)
        }
        // One page of each side, and one item of the source that waits for its successor.
        #expect(most <= 171)
        let plan = diff.finish()
        #expect(plan.updates.count == 100)
    }

    @Test func `S11: the engine plans streams of many entries`() async throws {
        let processor = Stream(count: isWholeRun && !isSanitized ? 100_000 : 20_000)
        let plan = try await OneWaySynchronizer(processor: processor).plan()
        #expect(plan.sourceCount == processor.count)
        #expect(plan.updates.count == processor.count / 1000)
        #expect(plan.unchangedCount == processor.count - processor.count / 1000)
        #expect(plan.additions.isEmpty && plan.removals.isEmpty)
    }

    private struct Stream: SyncProcessor {
        let count: Int
        func sourceList() async throws -> PagedSource<Thing, Int> {
            PagedSource(order: .sortedByKey) { [count] cursor in
                let start = cursor ?? 0
                let end = min(start + 1000, count)
                let items = (start..<end).map { Thing($0, $0 % 1000 == 7 ? 2 : 1) }
                return .init(items, then: end < count ? .page(end) : .end(.complete(count: count)))
            }
        }
        func localInventory() async throws -> LocalInventory<Thing> {
            LocalInventory(order: .sortedByKey) { [count] in
                var position = 0
                return {
                    guard position < count else { return nil }
                    defer { position += 1000 }
                    return (position..<min(position + 1000, count)).map { LocalEntry($0, version: 1) }
                }
            }
        }
        func downloadContent(of item: Thing) async throws {}
        func remove(_ keys: Set<Int>) async throws {}
    }
}
