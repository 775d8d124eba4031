import Foundation
import StoreCore
import StoreCoreTesting
import StoreResilience
import StoreTrials
import Testing
import Trials

/// Law C23 for a store: nothing begins after `close()`, and nothing runs when it has returned.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ClosingTests {
    @Test(arguments: Backing.allCases)
    func `C23: a closed store refuses every call, and its observations end`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let observer = try await observeCompleted(bench.store[1].publish())
        try await bench.store.close()
        try await observer.ended()
        let fetches = bench.fetcher.startedCount
        for source in GettingFrom.allCases {
            #expect(await Task { try await bench.store[1].requireData(from: source) }.outcome == "StoreError")
        }
        let error = await #expect(throws: StoreError.self) { try await bench.store[1].requireData() }
        #expect(error?.code == .closed)
        await bench.store[1].update(9)
        await bench.store[1].refresh()
        await bench.store[1].validate()
        await bench.store[1].invalidate()
        await bench.store[1].clear()
        bench.store.prefetch([1, 2, 3])
        #expect(await bench.store[1].update { $0 += 1 } == false)
        await #expect(throws: StoreError.self) {
            try await bench.store[1].mutate(optimistically: { $0 += 1 }) { Issue.record("performed") }
        }
        await #expect(throws: StoreError.self) { try await bench.store.clear() }
        await #expect(throws: StoreError.self) { try await bench.store.invalidate { _ in true } }
        for await _ in bench.store[1].publish() { Issue.record("a closed store has a state") }
        bench.store.revalidate(on: AsyncStream<Void> { $0.finish() })
        #expect(bench.store.triggerCount == 0)
        #expect(bench.fetcher.startedCount == fetches)
        #expect(bench.store.engineIsIdle)
        #expect(bench.cacher.record(of: 1)?.content == (backing == .memory ? nil : 1))
        try await bench.store.close()
    }

    @Test(arguments: Backing.allCases)
    func `C23: closing fails the callers at once, and waits for fetches that ignore it`(_ backing: Backing) async throws {
        let bench = Bench(backing, fetcher: .counting(cancellation: .ignored))
        bench.fetcher.hold()
        let callers = (1...3).map { key in Task { try await bench.store[key].requireData() } }
        try await bench.fetcher.started(count: 3)
        let closing = Waiter { try await bench.store.close() }
        for caller in callers { #expect(await caller.outcome == "StoreError") }
        try await bench.fetcher.cancelled(count: 3)
        try await bench.fetcher.release(next: 2)
        try await bench.fetcher.ended(count: 2)
        #expect(closing.isWaiting)
        bench.fetcher.release()
        try await closing.task.value
        #expect(bench.fetcher.runningCount == 0)
        #expect(bench.cacher.calls(.save).isEmpty)
        #expect(bench.store.engineIsIdle)
    }

    @Test func `C23: closing waits for a fetch that was canceled before`() async throws {
        let bench = Bench(policy: StorePolicy(unwantedFetch: .cancel(after: .zero)), fetcher: .counting(cancellation: .ignored))
        let caller = try await bench.heldCaller()
        caller.cancel()
        try await bench.fetcher.cancelled(count: 1)
        let closing = Task {
            try await bench.store.close()
            return bench.fetcher.runningCount
        }
        try await until("the store is closed") { bench.store.snapshot().isClosed && bench.store.engineIsIdle }
        bench.fetcher.release()
        #expect(try await closing.value == 0)
    }

    @Test(arguments: Backing.withCacher)
    func `C23: closing saves what was accepted before`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        let changes = (1...3).map { key in Task { await bench.store[key].update(key * 10) } }
        try await bench.cacher.began(.save, count: 3)
        let newer = Task { await bench.store[1].update(11) }
        try await until { bench.waiting(1) == 2 }
        let closing = Task { try await bench.store.close() }
        try await until("the store is closed") { bench.store.snapshot().isClosed }
        bench.cacher.release()
        try await closing.value
        for change in changes + [newer] { await change.value }
        #expect((1...3).map { bench.cacher.record(of: $0)?.content } == [11, 20, 30])
        #expect(bench.cacher.runningCount == 0)
        #expect(bench.cacher.breaches.isEmpty)
        #expect(bench.store.engineIsIdle)
    }

    @Test(arguments: Backing.withCacher)
    func `C23: closing and clearing leaves nothing in the cacher, not even a running save`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.put(bench.record(5), param: 5)
        bench.cacher.hold(.save)
        let change = Task { await bench.store[1].update(10) }
        try await bench.cacher.began(.save)
        let closing = Task { try await bench.store.close(clearing: true) }
        try await until("the store is closed") { bench.store.snapshot().isClosed && bench.waiting(1) <= 1 }
        bench.cacher.release()
        try await closing.value
        await change.value
        #expect(bench.cacher.storedCount == 0)
        #expect(bench.cacher.runningCount == 0)
        #expect(bench.store.engineIsIdle)
    }

    @Test(arguments: Backing.withCacher, [false, true])
    func `C23: closing reports a cacher that fails, after everything has ended`(_ backing: Backing, _ clearing: Bool) async throws {
        let bench = Bench(backing)
        bench.cacher.fail(.save, .removeAll)
        await bench.store[1].update(10)
        let error = await #expect(throws: StoreError.self) { try await bench.store.close(clearing: clearing) }
        #expect(error?.code == .cacherFailed)
        #expect(bench.cacher.runningCount == 0)
        #expect(await Task { try await bench.store[1].requireData() }.outcome == "StoreError")
    }

    @Test(arguments: ["save", "accepts"], [false, true])
    func `C23: a call inside a call of the own cacher closes the store, and throws instead of waiting for itself`(
        _ place: String, _ clearing: Bool
    ) async throws {
        let cacher = CallingCacher()
        cacher.base.put(CacheRecord(content: 1, fetchedAt: .now, validator: Validator(notes: "old")), param: 1)
        let error = WatchedState<StoreError?>(nil)
        let store = WatchedState<Store<Int, Int>?>(nil)
        let close: @Sendable () async -> Void = {
            let thrown = await #expect(throws: StoreError.self) { try await store.current?.close(clearing: clearing) }
            error.update { $0 = thrown }
        }
        let scope = CacheScope()
        if place == "save" { cacher.run(inside: .save, close) }
        let created = Store(cacher: cacher, fetcher: AcceptingFetcher(onAccept: close), scope: scope)
        store.update { $0 = created }
        defer { store.update { $0 = nil } }
        if place == "save" { await created[1].update(5) } else { _ = await created[1].getData() }
        // The call of the store may end before the call inside it.
        #expect(try await error.wait { $0 }.code == .reentrantFetch)
        await #expect(throws: StoreError.self) { try await created[1].requireData() }
        // Outside, the call waits for everything.
        try await scope.close(clearing: clearing)
        #expect(cacher.base.record(of: 1)?.content == (clearing ? nil : place == "save" ? 5 : 1))
    }

    @Test func `C23: a canceled call closes the store, and only its wait ends`() async throws {
        let bench = Bench(.tiered, fetcher: .counting(cancellation: .ignored))
        let caller = try await bench.heldCaller()
        let closing = Task { try await bench.store.close() }
        closing.cancel()
        #expect(await closing.outcome == "CancellationError")
        #expect(await caller.outcome == "StoreError")
        bench.fetcher.release()
        try await bench.store.close()
        #expect(bench.fetcher.runningCount == 0)
    }

    @Test(arguments: 1...3)
    func `C23: fetchers that close their scope wait for everything but each other`(_ count: Int) async throws {
        let scope = CacheScope()
        let cacher = GatedCacher<Int, Int>()
        cacher.hold(.save)
        let arrived = WatchedState(0)
        let fetcher = ScriptedFetcher<Int, Int>(cancellation: .ignored) { request in
            arrived.update { $0 += 1 }
            try await arrived.wait { $0 == count ? () : nil }
            try await scope.close()
            return .success(request.number)
        }
        let store = Store(cacher: TieredCacher(over: cacher), fetcher: fetcher, scope: scope)
        let change = Task { await store[0].update(7) }
        try await cacher.began(.save)
        let callers = (1...count).map { key in Task { try await store[key].requireData() } }
        for caller in callers { #expect(await caller.outcome == "StoreError") }
        #expect(fetcher.endedCount == 0)
        cacher.release()
        try await fetcher.ended(count: count)
        await change.value
        try await scope.close()
        #expect(cacher.calls(.save).count == 1)
    }

    @Test func `C23: closing ends a stream, and saves its last value`() async throws {
        let cacher = GatedCacher<Int, Int>()
        let fetcher = ScriptedLiveFetcher<Int, Int>()
        let store = Store(cacher: TieredCacher(over: cacher), fetcher: fetcher)
        let observer = RecordingObserver(store[1].publish())
        try await fetcher.connected(count: 1)
        try await fetcher.send(LiveValue.content(41))
        try await observer.next { $0.content == 41 }
        try await store.close()
        try await observer.ended()
        #expect(cacher.record(of: 1)?.content == 41)
        #expect(store.engineIsIdle)
    }

    @Test func `C23: closing ends the prefetch queue and the triggers`() async throws {
        let bench = Bench(.tiered)
        bench.fetcher.hold()
        bench.store.prefetch(1...1_000)
        bench.store.revalidate(on: AsyncStream<Void> { _ in })
        try await bench.fetcher.started(count: 1)
        try await bench.store.close()
        #expect(bench.store.isPrefetchQueueEmpty)
        #expect(bench.store.triggerCount == 0)
        #expect(bench.fetcher.runningCount == 0)
        let begun = bench.fetcher.startedCount
        bench.fetcher.release()
        try await until { bench.store.prefetchers == 0 }
        #expect(bench.fetcher.startedCount == begun)
    }

    @Test func `C23: a mutation that runs during the call returns its result, and changes nothing`() async throws {
        let bench = Bench(.tiered)
        await bench.store[1].update(1)
        let gate = WatchedState(false)
        let mutation = Task {
            try await bench.store[1].mutate {
                $0 = 100
            } perform: {
                try await gate.wait { $0 ? () : nil }
                return 200
            }
        }
        try await until { await bench.store[1].getData() == 100 }
        try await bench.store.close()
        gate.update { $0 = true }
        #expect(try await mutation.value == 200)
        #expect(bench.cacher.record(of: 1)?.content == 1)
        #expect(bench.store.engineIsIdle)
    }

    /// Begins to close a scope, and expects the call to wait.
    private func waitingClose(of scope: CacheScope) async throws -> Task<Void, any Error> {
        let closing = Waiter { try await scope.close() }
        try await until("the scope is closed") { scope.isClosed }
        await otherTasksRun()
        #expect(closing.isWaiting)
        return closing.task
    }

    @Test func `C23: clearing a scope skips a store that was closed`() async throws {
        let scope = CacheScope()
        let (closed, open) = (GatedCacher<Int, Int>(), GatedCacher<Int, Int>())
        let stores = [closed, open].map { Store(cacher: TieredCacher(over: $0), scope: scope) { $0 } }
        for store in stores { await store[1].update(7) }
        try await scope.waitUntilSaved()
        try await stores[0].close()
        try await scope.clear()
        #expect(closed.record(of: 1)?.content == 7)
        #expect(open.storedCount == 0)
        try await scope.close(clearing: true)
        #expect(closed.storedCount == 0)
    }

    @Test func `C23: a clearing that runs when its scope is closed removes no file afterward`() async throws {
        let scope = CacheScope()
        let removals = WatchedState(0)
        scope.setRemoval { removals.update { $0 += 1 } }
        let cacher = GatedCacher<Int, Int>()
        let store = Store(cacher: cacher, scope: scope) { $0 }
        cacher.hold(.removeAll)
        let clearing = Task { try await scope.clear() }
        try await cacher.began(.removeAll)
        let closing = Task { try await scope.close() }
        try await until("the scope is closed") { scope.isClosed }
        cacher.release()
        try await closing.value
        let error = await #expect(throws: StoreError.self) { try await clearing.value }
        #expect(error?.code == .closed)
        #expect(removals.current == 0)
        withExtendedLifetime(store) {}
    }

    @Test func `C23: closing a scope waits while a clearing removes files`() async throws {
        let scope = CacheScope()
        let (hasBegun, gate) = (WatchedState(false), WatchedState(false))
        scope.setRemoval {
            hasBegun.update { $0 = true }
            try await gate.wait { $0 ? () : nil }
        }
        let clearing = Task { try await scope.clear() }
        try await hasBegun.wait { $0 ? () : nil }
        let closing = try await waitingClose(of: scope)
        gate.update { $0 = true }
        try await clearing.value
        try await closing.value
    }

    @Test(arguments: [false, true])
    func `C23: a call that closes a scope waits while another one removes files`(_ clearing: Bool) async throws {
        let scope = CacheScope()
        let (begun, gate) = (WatchedState(0), WatchedState(false))
        scope.setRemoval {
            // Only the first removal is held.
            if begun.increment() == 1 { try await gate.wait { $0 ? () : nil } }
        }
        let first = Task { try await scope.close(clearing: true) }
        try await begun.wait { $0 == 1 ? () : nil }
        let second = Waiter { try await scope.close(clearing: clearing) }
        if clearing { try await begun.wait { $0 == 2 ? () : nil } }
        await otherTasksRun()
        #expect(second.isWaiting)
        gate.update { $0 = true }
        try await first.value
        try await second.task.value
    }

    @Test func `C23: a call inside a call of a cacher does not wait for a removal that waits for the cacher`() async throws {
        let scope = CacheScope()
        let removal = WatchedState<Task<Void, any Error>?>(nil)
        let hasReturned = WatchedState(false)
        let cacher = CallingCacher()
        cacher.run(inside: .save) {
            // Detached, so that only the other call is inside the call of the cacher.
            let closing = Task.detached { try await scope.close(clearing: true) }
            removal.update { $0 = closing }
            try? await until("the scope is closed") { scope.isClosed }
            _ = try? await scope.close()
            hasReturned.update { $0 = true }
        }
        let store = Store(cacher: cacher, scope: scope) { $0 }
        let change = Task<Void, any Error> { await store[1].update(5) }
        try await change.value(of: "the change ends")
        try await until("the call inside the save returns") { hasReturned.current }
        try await removal.current?.value(of: "the removal ends")
    }

    @Test(arguments: [StorePolicy.UnwantedFetch.cancel(after: .zero), .complete])
    func `C23: closing a scope waits for the fetch of a store that was released`(_ unwanted: StorePolicy.UnwantedFetch) async throws {
        let scope = CacheScope()
        let fetcher = ScriptedFetcher<Int, Int>.counting(cancellation: .ignored)
        fetcher.hold()
        do {
            let policy = StorePolicy(unwantedFetch: unwanted)
            let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: fetcher, policy: policy, scope: scope)
            store.prefetch([1])
            try await fetcher.started(count: 1)
        }
        if unwanted != .complete { try await fetcher.cancelled(count: 1) }
        let closing = try await waitingClose(of: scope)
        try await fetcher.cancelled(count: 1)
        fetcher.release()
        try await closing.value
        #expect(fetcher.runningCount == 0)
    }

    @Test func `C23: closing a scope waits until the last value of a released stream is saved`() async throws {
        let (scope, cacher) = (CacheScope(), GatedCacher<Int, Int>())
        let fetcher = ScriptedLiveFetcher<Int, Int>()
        do {
            let policy = StorePolicy(saveInterval: .seconds(100_000))
            let store = Store(cacher: TieredCacher(over: cacher), fetcher: fetcher, policy: policy, time: ManualTime(), scope: scope)
            let observer = RecordingObserver(store[1].publish())
            try await fetcher.connected(count: 1)
            try await fetcher.send(LiveValue.content(41))
            try await store.waitUntilSaved()
            cacher.hold(.save)
            try await fetcher.send(LiveValue.content(42))
            try await observer.next { $0.content == 42 }
            try await observer.stopAndLeave()
        }
        try await cacher.began(.save, count: 2)
        let closing = try await waitingClose(of: scope)
        cacher.release()
        try await closing.value
        #expect(cacher.record(of: 1)?.content == 42)
        #expect(cacher.runningCount == 0)
    }

    @Test func `C23: closing a scope waits for the background work of a released store's cacher`() async throws {
        let (scope, cacher) = (CacheScope(), ScanningCacher())
        do {
            let store = Store(cacher: cacher, scope: scope) { $0 }
            _ = try await store[1].requireData()
            try await store.waitUntilSaved()
        }
        let closing = try await waitingClose(of: scope)
        cacher.isScanning.update { $0 = false }
        try await closing.value
    }

    @Test func `C23: closing waits for the request of a batch that its fetches have left`() async throws {
        let script = ScriptedFetcher<[Int], [Int: Int]>(cancellation: .ignored) { _ in .success([:]) }
        let batches = BatchFetcher<Int, Int>(limit: 2, time: ManualTime()) { keys in
            _ = try await script.fetch(param: keys, revalidating: nil)
            return [:]
        }
        script.hold()
        let stores = (0..<2).map { _ in Store(cacher: MemoryCacher<Int, Int>(), fetcher: batches) }
        let callers = stores.enumerated().map { key, store in Task { try await store[key].requireData() } }
        try await script.started(count: 1)
        let closings = stores.map { store in Waiter { try await store.close() } }
        for caller in callers { #expect(await caller.outcome == "StoreError") }
        try await script.cancelled(count: 1)
        await otherTasksRun()
        #expect(closings.allSatisfy { $0.isWaiting })
        script.release()
        for closing in closings { try await closing.task.value }
        #expect(script.runningCount == 0)
    }

    @Test func `C23: the request of a batch that closes its scope does not wait for itself`() async throws {
        let (scope, closed) = (CacheScope(), WatchedState(false))
        let batches = BatchFetcher<Int, Int>(limit: 2, time: ManualTime()) { _ in
            try await scope.close(clearing: true)
            closed.update { $0 = true }
            return [:]
        }
        let stores = (0..<2).map { _ in Store(cacher: MemoryCacher<Int, Int>(), fetcher: batches, scope: scope) }
        let callers = stores.enumerated().map { key, store in Task { try await store[key].requireData() } }
        for caller in callers { #expect(await caller.outcome == "StoreError") }
        try await closed.wait { $0 ? () : nil }
        try await scope.close()
    }

    @Test func `C23: random calls against a store that is closed leave nothing behind`() async throws {
        for seed in 1...rounds(200, quick: 40) {
            var random = SplitMix(seed: seed)
            let bench = Bench([.tiered, .plain][Int(random.next() % 2)], expiry: .after(.zero))
            let tasks = (0..<20).map { _ in
                let (key, kind) = (Int(random.next() % 3), random.next() % 6)
                return Task {
                    switch kind {
                    case 0: _ = try? await bench.store[key].requireData()
                    case 1: await bench.store[key].update(key)
                    case 2: await bench.store[key].update { $0 += 1 }
                    case 3: await bench.store[key].invalidate()
                    case 4: for await _ in bench.store[key].publish() {}
                    default: _ = try? await bench.store[key].mutate(optimistically: { $0 += 1 }) { 7 }
                    }
                }
            }
            for _ in 0..<random.next() % 8 { await Task.yield() }
            let isClearing = random.next().isMultiple(of: 2)
            try await bench.store.close(clearing: isClearing)
            let (calls, stored) = (bench.cacher.calls.count, bench.cacher.storedCount)
            #expect(bench.cacher.runningCount == 0 && bench.fetcher.runningCount == 0)
            if isClearing { #expect(stored == 0, "seed \(seed)") }
            for task in tasks { await task.value }
            #expect(bench.cacher.calls.count == calls, "seed \(seed)")
            #expect(bench.cacher.breaches.isEmpty)
            try await until { bench.store.engineIsIdle }
        }
    }
}

/// A cacher that scans its records in the background.
private final class ScanningCacher: NoticingCacher {
    let isScanning = WatchedState(true)
    let expiry = Expiry.never

    func load(param: Int) async throws -> CacheRecord<Int>? { nil }
    func save(_ record: CacheRecord<Int>, param: Int) async throws {}
    func remove(param: Int) async throws {}
    func removeAll() async throws {}
    func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Int>) -> Void) {}
    func settle() async { try? await isScanning.wait { $0 ? nil : () } }
}

/// A fetcher that runs a closure before it accepts a saved version.
private struct AcceptingFetcher: Fetcher {
    let onAccept: @Sendable () async -> Void

    func fetch(param: Int) async throws -> Int { param }

    func accepts(_ validator: Validator, param: Int) async -> Bool {
        await onAccept()
        return true
    }
}
