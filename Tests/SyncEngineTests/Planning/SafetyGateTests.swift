import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// S3: the gate as a function of four counts, two limits and the overrides.
struct SafetyGateTests {
    private static let gates: [SyncOverrides] = [.emptySource, .removalLimit, .updateLimit, .everythingChanged]

    /// The expected refusal: each rule by itself, in the order of precedence.
    private func expected(_ counts: SafetyGate.Counts, _ removals: ChangeLimit, _ updates: ChangeLimit, _ allowed: SyncOverrides)
        -> SyncError.Code?
    {
        func exceeds(_ changes: Int, _ limit: ChangeLimit) -> Bool {
            switch limit {
            case .share(let share): counts.local >= 20 && Double(changes) > share * Double(counts.local)
            case .count(let count): changes > count
            case .unlimited: false
            }
        }
        let isEverything = counts.local >= 20 && counts.removals + counts.updates == counts.local
        if counts.source == 0 { return counts.local > 0 && !allowed.contains(.emptySource) ? .emptySource : nil }
        if exceeds(counts.removals, removals), !allowed.contains(.removalLimit) { return .removalLimit }
        if isEverything { return allowed.contains(.everythingChanged) ? nil : .everythingChanged }
        return exceeds(counts.updates, updates) && !allowed.contains(.updateLimit) ? .updateLimit : nil
    }

    /// Numbers of changes: those beside the limits, and a few others.
    private func changes(of local: Int) -> Set<Int> {
        let limits = [1, 3, 4, local / 2, local / 2 + 1, local - 1].filter { 0...local ~= $0 }
        return Set(limits + part(of: 0...local, each: 20))
    }

    @Test func `S3: the gate follows its rules for all plans of a few local items and all overrides`() {
        let limits: [ChangeLimit] = [.share(0.5), .share(0), .share(1), .count(3), .unlimited]
        var refused: [SyncError.Code: Int] = [:]
        for local in isWholeRun ? [0, 1, 19, 20, 21, 24] : [0, 1, 19, 20] {
            let changes = changes(of: local)
            for removals in changes {
                for updates in changes.union([local - removals]) where removals + updates <= local {
                    for source in Set([0, updates, 30]) {
                        let counts = SafetyGate.Counts(source: source, local: local, removals: removals, updates: updates)
                        for limit in limits {
                            // By default no override, one of them, or all; a whole run has all pairs and triples too.
                            for bits in 0..<16 where isWholeRun || bits.nonzeroBitCount != 2 && bits.nonzeroBitCount != 3 {
                                let allowed = SyncOverrides(rawValue: bits)
                                let found = SafetyGate.refusal(
                                    of: counts, removalLimit: limit, updateLimit: .share(0.5), overrides: allowed)
                                let other = SafetyGate.refusal(
                                    of: counts, removalLimit: .share(0.5), updateLimit: limit, overrides: allowed)
                                let wanted = expected(counts, limit, .share(0.5), allowed)
                                if found?.code != wanted { Issue.record("\(counts), removals \(limit), \(bits)") }
                                if other?.code != expected(counts, .share(0.5), limit, allowed) {
                                    Issue.record("\(counts), updates \(limit), \(bits)")
                                }
                                if let wanted { refused[wanted, default: 0] += 1 }
                            }
                        }
                    }
                }
            }
        }
        #expect(Set(refused.keys) == [.emptySource, .removalLimit, .updateLimit, .everythingChanged])
    }

    // Local items, changes, limit → whether the limit is exceeded.
    @Test(
        arguments: [
            (19, 19, .share(0.5), false), (20, 10, .share(0.5), false), (20, 11, .share(0.5), true), (20, 0, .share(0), false),
            (20, 1, .share(0), true), (30, 25, .share(.nan), true), (30, 0, .share(.nan), false), (30, 25, .share(.infinity), false),
            (5, 4, .count(3), true), (5, 3, .count(3), false), (6, 1, .count(-5), true), (6, 0, .count(-5), false),
            (1000, 999, .unlimited, false),
        ] as [(Int, Int, ChangeLimit, Bool)])
    func `S3: a limit as a share applies to 20 or more local items, and a limit as a count always applies`(
        local: Int, changes: Int, limit: ChangeLimit, isExceeded: Bool
    ) {
        #expect(limit.isExceeded(by: changes, local: local) == isExceeded)
    }

    @Test(arguments: [(20, 11, SyncError.Code?.some(.updateLimit)), (20, 10, nil), (19, 18, nil)])
    func `S3: excess updates are refused with their counts unless a run overrides the limit`(
        local: Int, changed: Int, code: SyncError.Code?
    ) async throws {
        let source = (1...local).map { Thing($0, $0 <= changed ? 2 : 1) }
        let bench = Bench(source: source, local: Dictionary(uniqueKeysWithValues: (1...local).map { ($0, 1) }))
        let synchronizer = OneWaySynchronizer(processor: bench)
        #expect(try await synchronizer.plan().gateRefusal?.code == code)
        let error = await syncError { try await synchronizer.sync() }
        #expect(error?.code == code)
        guard code != nil else { return }
        #expect(error?.message.contains("\(changed) of \(local) local items") == true)
        #expect(error?.message.contains("sync(overriding: .updateLimit)") == true)
        #expect(!bench.calls.contains(.prepare))
        try await synchronizer.sync(overriding: .updateLimit)
        #expect(bench.local.values.count { $0 == 2 } == changed)
        // The override applied only to that run.
        bench.state.update { $0.source = source.map { Thing($0.key, $0.version + 5) }.dropLast() + [source[local - 1]] }
        #expect(await syncError { try await synchronizer.sync() }?.code == .updateLimit)
    }
}
