import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// The counts of a store at one moment.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SnapshotTests {
    @Test(arguments: Backing.allCases)
    func `a snapshot counts keys, observers, fetches and unsaved records`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        func expect(_ change: (inout StoreSnapshot) -> Void) {
            var expected = StoreSnapshot(
                name: "", recordsInMemory: backing == .plain ? nil : 0, costInMemory: backing == .plain ? nil : 0)
            change(&expected)
            #expect(bench.store.snapshot() == expected)
        }
        expect { _ in }
        bench.fetcher.hold()
        let observers = (0..<3).map { _ in RecordingObserver(bench.store[1].publish()) }
        try await bench.fetcher.started(count: 1)
        try await until("all observers have joined") { bench.observers() == 3 }
        expect { ($0.liveKeys, $0.observers, $0.fetches) = (1, 3, 1) }
        bench.cacher.hold(.save)
        bench.fetcher.release()
        for observer in observers { try await observer.next { $0.isCompleted } }
        let isSaved = backing == .memory
        if !isSaved { try await until("the save has begun") { bench.store.snapshot().cacherCalls == 1 } }
        expect {
            ($0.liveKeys, $0.observers, $0.unsavedKeys, $0.cacherCalls) = (1, 3, isSaved ? 0 : 1, isSaved ? 0 : 1)
            if backing != .plain { $0.recordsInMemory = 1 }
        }
        bench.cacher.release()
        for observer in observers { try await observer.stopAndLeave() }
        try await bench.idle()
        expect { if backing != .plain { $0.recordsInMemory = 1 } }
        try await bench.store.close()
        #expect(bench.store.snapshot().isClosed)
    }

    @Test func `a snapshot counts the cost in memory, and fetches that wait for a place`() async throws {
        let fetcher = ScriptedFetcher<Int, Int> { .success($0.param) }
        let store = Store(
            cacher: MemoryCacher<Int, Int>(cost: { $0 }), fetcher: fetcher, policy: StorePolicy(fetchWidth: 1))
        await store[7].update(7)
        await store[8].update(8)
        #expect(store.snapshot().costInMemory == 15)
        fetcher.hold()
        let callers = (1...3).map { key in Task { try await store[key].requireData() } }
        try await until("two fetches wait") { store.snapshot().waitingFetches == 2 }
        #expect(store.snapshot().fetches == 3)
        fetcher.release()
        for caller in callers { _ = try await caller.value }
        #expect(store.snapshot().waitingFetches == 0 && store.snapshot().costInMemory == 21)
    }

    @Test func `a failed save is counted until it succeeds`() async throws {
        let bench = Bench(.plain)
        bench.cacher.fail(.save)
        await bench.store[1].update(5)
        #expect(bench.store.snapshot().failedSaves == 1 && bench.store.snapshot().unsavedKeys == 1)
        bench.cacher.recover()
        try await bench.store.waitUntilSaved()
        #expect(bench.store.snapshot().failedSaves == 0 && bench.store.snapshot().unsavedKeys == 0)
    }
}
