import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct LeakTests {
    typealias Life = LifeCounter.Life

    enum Operation: CaseIterable, Sendable {
        case hit, miss, publishAndLeave, abandonedIterator, update, updateInPlace, cancel, refresh, mutate, failedMutate, invalidate, clear
        case storeClear, prefetch, trigger
    }

    /// The cycles of each case: fewer than elsewhere by default, because there are many cases.
    private static let cycles = isWholeRun || Cycles.isLongRun ? Cycles.count : 100

    private func perform(_ operation: Operation, _ store: Store<Int, Life>, _ counter: LifeCounter, _ round: Int) async throws {
        let handle = store[round % 7]
        switch operation {
        case .hit: _ = try await handle.requireData()
        case .miss: _ = try await store[round].requireData()
        case .publishAndLeave:
            for await state in handle.publish() where state.isCompleted { break }
        case .abandonedIterator:
            var iterator = handle.publish().makeAsyncIterator()
            _ = await iterator.next()
        case .update: await handle.update(counter.make())
        case .updateInPlace: await handle.update { $0 = counter.make() }
        case .cancel:
            let caller = Task { try await handle.requireData(from: .origin) }
            if round.isMultiple(of: 2) { await Task.yield() }
            await caller.cancelAndWait()
        case .refresh: await handle.refresh()
        case .mutate: try await handle.mutate(optimistically: { $0 = counter.make() }) {}
        case .failedMutate: _ = try? await handle.mutate(optimistically: { $0 = counter.make() }) { throw Offline() }
        case .invalidate: await handle.invalidate()
        case .clear: await handle.clear()
        case .storeClear: try await store.clear()
        case .prefetch: store.prefetch([round % 7])
        case .trigger:
            store.revalidate(on: AsyncStream<Void> { $0.finish() })
            // A trigger is a task. Creating triggers faster than they run would accumulate tasks.
            if round % 100 == 99 { try await until("the triggers have ended") { store.triggerCount == 0 } }
        }
    }

    @Test(arguments: [Backing.memory, .plain], Operation.allCases)
    func `C15: no object or memory remains after any number of cycles`(_ backing: Backing, _ operation: Operation) async throws {
        let counter = LifeCounter()
        let time = ManualTime()
        let fetcher = ClosureFetcher<Int, Life> { _ in counter.make() }
        let cacher = GatedCacher<Int, Life>(recordsCalls: false)
        let store =
            backing == .memory
            ? Store(cacher: MemoryCacher(limit: 7), fetcher: fetcher, time: time) : Store(cacher: cacher, fetcher: fetcher, time: time)
        let rounds = backing == .plain ? Self.cycles / 4 : Self.cycles
        for round in 0..<min(1_000, Self.cycles) { try await perform(operation, store, counter, round) }
        let settled = Memory.resident()
        for round in 0..<rounds {
            try await perform(operation, store, counter, round)
            // A plain cacher never evicts a key.
            if operation == .miss, backing == .plain, round % 100 == 99 { try await store.clear() }
        }
        time.advance(by: .seconds(2))
        try await until("the engine is idle") { store.engineIsIdle && store.triggerCount == 0 }
        #expect(Memory.resident() - settled < Memory.growthLimit)
        try await store.clear()
        try await counter.none()
        #expect(time.sleeperCount == 0)
    }

    @Test func `C15: page loads leave no object or memory behind`() async throws {
        let counter = LifeCounter()
        let fetcher = PaginationClosureFetcher<Int, Life> { _, _ in Page([counter.make()], nextKey: "n") }
        let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher)
        let settled = Memory.resident()
        for _ in 0..<Cycles.count / 10 {
            _ = try await lists[1].requireData()
            for _ in 0..<9 { await lists[1].requestNextData() }
            await lists[1].clear()
        }
        #expect(lists.liveKeys == 0)
        #expect(Memory.resident() - settled < Memory.growthLimit)
        try await counter.none()
    }

    @Test func `C15: keys that are no longer live cost nothing`() async throws {
        let counter = LifeCounter()
        let store = Store<Int, Life>(cacher: MemoryCacher(limit: 0)) { _ in counter.make() }
        let callers = (0..<rounds(10_000, quick: 1_000)).map { key in Task { try await store[key].requireData() } }
        for caller in callers { _ = try await caller.value }
        try await until("the engine is idle") { store.engineIsIdle }
        #expect(store.liveCapacity <= 64)
    }

    @Test func `C15: callers that have returned or left cost nothing while their key is observed`() async throws {
        let bench = Bench()
        let observer = try await observeCompleted(bench.store[1].publish())
        for _ in 0..<1_000 {
            _ = try await bench.store[1].requireData(from: .origin)
            await bench.store[1].update { $0 += 1 }
        }
        #expect(bench.waiting() == 0 && bench.registered() == 0)
        bench.fetcher.hold()
        let callers = (0..<1_000).map { _ in Task { try await bench.store[1].requireData(from: .origin) } }
        try await bench.callers(1_000)
        #expect(bench.callerCapacity() >= 1_000)
        for caller in callers { caller.cancel() }
        for caller in callers { _ = await caller.result }
        #expect(bench.registered() == 0 && bench.callerCapacity() <= 64)
        withExtendedLifetime(observer) {}
    }

    // MARK: Stores

    enum Ending: CaseIterable, Sendable { case idle, midFetch, midSave, abandonedObserver, timer, trigger, unsaved, cancelledCaller }

    @Test(arguments: Backing.allCases, Ending.allCases)
    func `C15: a store without references is released`(_ backing: Backing, _ ending: Ending) async throws {
        let policy = StorePolicy(revalidatesOnExpiry: true)
        var bench: Bench? = Bench(backing, expiry: .after(.seconds(10)), policy: policy, fetcher: .counting(cancellation: .ignored))
        guard let (fetcher, cacher, time) = bench.map({ ($0.fetcher, $0.cacher, $0.time) }) else { return }
        weak let engine = bench?.store.engineObject
        switch ending {
        case .idle: _ = try await bench?.store[1].requireData()
        case .midFetch:
            fetcher.hold()
            bench?.store.prefetch([1])
            try await fetcher.started(count: 1)
        case .midSave:
            cacher.hold(.save)
            let update = Task { [handle = bench?.store[1]] in await handle?.update(1) }
            if backing != .memory { try await cacher.began(.save) }
            await update.cancelAndWait()
        case .abandonedObserver:
            fetcher.hold()
            var iterator = bench?.store[1].publish().makeAsyncIterator()
            _ = await iterator?.next()
            iterator = nil
        case .timer:
            var iterator = bench?.store[1].publish().makeAsyncIterator()
            while await iterator?.next()?.isCompleted == false {}
            try await time.sleepers(atLeast: 1)
            iterator = nil
        case .trigger: bench?.store.revalidate(on: AsyncStream<Void> { _ in })
        case .unsaved:
            cacher.fail(.save)
            await bench?.store[1].update(1)
        case .cancelledCaller:
            fetcher.hold()
            let caller = Task { [handle = bench?.store[1]] in try await handle?.requireData() }
            try await fetcher.started(count: 1)
            await caller.cancelAndWait()
        }
        bench = nil
        // A running save is not abandoned: it retains the store until it has ended.
        cacher.release()
        try await until("the engine is released") { engine == nil }
        try await time.sleepers(atMost: 0)
        fetcher.release()
    }
}
