import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LostUpdateTests {
    @Test(arguments: Backing.allCases, [ScriptedCancellation.honored, .ignored])
    func `C5: a fetch older than an update has no effect`(_ backing: Backing, _ cancellation: ScriptedCancellation) async throws {
        let bench = Bench(backing, fetcher: .counting(cancellation: cancellation), reports: true)
        bench.fetcher.hold()
        let observer = RecordingObserver(bench.store[1].publish())
        let caller = Task { [handle = bench.store[1]] in try await handle.requireData(from: .origin) }
        try await bench.fetcher.started(count: 1)
        try await bench.callers(1)
        await bench.store[1].update(70)
        #expect(try await caller.value == 70)
        bench.fetcher.release()
        try await bench.fetcher.ended(count: 1)
        try await bench.events.first("cancelled")
        try await observer.next { $0.isCompleted }
        #expect(try await bench.store[1].requireData() == 70)
        #expect(observer.states.last?.summary == "completed(70)")
        #expect(bench.fetcher.startedCount == 1)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == 70) }
    }

    enum Epoch: CaseIterable, Sendable { case clear, updateNil, invalidate, invalidateWhere, storeClear }

    @Test(arguments: Backing.allCases, Epoch.allCases)
    func `C5: waiting callers move to the fetch of the new epoch`(_ backing: Backing, _ epoch: Epoch) async throws {
        let bench = Bench(backing, fetcher: .counting(cancellation: .ignored))
        bench.fetcher.hold()
        let sources: [GettingFrom] = [.both, .origin]
        let callers = sources.map { source in Task { [handle = bench.store[1]] in try await handle.requireData(from: source) } }
        let others = [
            Task { [handle = bench.store[1]] in await handle.validate() },
            Task { [handle = bench.store[1]] in await handle.refresh() },
        ]
        try await bench.fetcher.started(count: 1)
        try await bench.callers(4)
        switch epoch {
        case .clear: await bench.store[1].clear()
        case .updateNil: await bench.store[1].update(nil)
        case .invalidate: await bench.store[1].invalidate()
        case .invalidateWhere: try await bench.store.invalidate { $0 == 1 }
        case .storeClear: try await bench.store.clear()
        }
        try await bench.fetcher.started(count: 2)
        try await bench.fetcher.cancelled(count: 1)
        try await bench.fetcher.answer(1, with: .success(-1))
        try await bench.fetcher.ended(count: 1)
        #expect(bench.waiting() == 4)
        bench.fetcher.release()
        for caller in callers { #expect(try await caller.value == 2) }
        for other in others { await other.value }
        #expect(bench.fetcher.startedCount == 2)
    }

    @Test func `C5: an update restarts a dropped refresh`() async throws {
        let bench = Bench()
        bench.fetcher.hold()
        let observer = RecordingObserver(bench.store[1].publish())
        let refresh = Task { [handle = bench.store[1]] in await handle.refresh() }
        try await bench.fetcher.started(count: 1)
        try await bench.callers(1)
        await bench.store[1].update(70)
        try await bench.fetcher.started(count: 2)
        try await observer.next { $0.summary == "loading(70)" }
        bench.fetcher.release()
        await refresh.value
        try await observer.next { $0.summary == "completed(2)" }
    }

    @Test(arguments: Backing.withCacher)
    func `C5: a validator belongs to its record, and an update drops it`(_ backing: Backing) async throws {
        let tag = Validator(entityTag: "\"1\"")
        let bench = Bench(
            backing, fetcher: ScriptedFetcher(.success(5, validator: tag), .notModified(), .success(6, validator: tag), .success(8)))
        _ = try await bench.store[1].requireData()
        await bench.store[1].refresh()
        #expect(try await bench.store[1].requireData() == 5)
        #expect(bench.fetcher.requests.map(\.validator) == [nil, tag])
        await bench.store[1].invalidate()
        #expect(try await bench.store[1].requireData() == 6)
        #expect(bench.fetcher.requests.last?.validator == tag)
        await bench.store[1].update(7)
        await bench.store[1].refresh()
        #expect(bench.fetcher.requests.last?.validator == nil)
        #expect(bench.cacher.record(of: 1)?.content == 8)
    }

    @Test func `C5: an update of a live key drops the validator too`() async throws {
        let tag = Validator(entityTag: "\"1\"")
        let bench = Bench(fetcher: ScriptedFetcher(.success(5, validator: tag), .success(6)))
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.isCompleted }
        await bench.store[1].update { $0 += 1 }
        await bench.store[1].refresh()
        #expect(bench.fetcher.requests.map(\.validator) == [nil, nil])
    }

    @Test func `C5: a not-modified response keeps the record with the validator sent, even if it was evicted`() async throws {
        let cacher = MemoryCacher<Int, Int>()
        let tag = Validator(entityTag: "\"1\"")
        let fetcher = ScriptedFetcher<Int, Int>(.success(5, validator: tag), .notModified())
        let store = Store(cacher: cacher, fetcher: fetcher)
        _ = try await store[1].requireData()
        fetcher.hold()
        let refresh = Task { [handle = store[1]] in try await handle.requireData(from: .origin) }
        try await fetcher.started(count: 2)
        cacher.trim(to: 0)
        fetcher.release()
        #expect(try await refresh.value == 5)
    }

    @Test func `C5: a not-modified response without a record is an error`() async throws {
        let bench = Bench(fetcher: ScriptedFetcher(.notModified()))
        let error = await #expect(throws: StoreError.self) { try await bench.store[1].requireData() }
        #expect(error?.code == .nothingToConfirm)
    }

    @Test(arguments: Backing.allCases)
    func `C5: an update sets the date of the record to now`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)))
        _ = try await bench.store[1].requireData()
        bench.time.advance(by: .seconds(8))
        await bench.store[1].update(70)
        bench.time.advance(by: .seconds(8))
        #expect(try await bench.store[1].requireData(from: .cache) == 70)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.fetchedAt == bench.time.date.addingTimeInterval(-8)) }
    }

    @Test func `C5: concurrent in-place updates are all applied`() async throws {
        let bench = Bench()
        await bench.store[1].update(0)
        let updates = (0..<200).map { _ in Task { [handle = bench.store[1]] in await handle.update { $0 += 1 } } }
        for update in updates { #expect(await update.value) }
        #expect(try await bench.store[1].requireData() == 200)
    }

    @Test(arguments: Backing.allCases)
    func `C5: an update during a cache read overrides the loaded record`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.hold(.load)
        let observer = RecordingObserver(bench.store[1].publish())
        if backing != .memory { try await bench.cacher.began(.load) }
        let update = Task { [handle = bench.store[1]] in await handle.update(70) }
        try await observer.next { $0.content == 70 }
        bench.cacher.release()
        await update.value
        #expect(observer.states.last?.summary == "completed(70)")
        #expect(try await bench.store[1].requireData() == 70)
    }
}
