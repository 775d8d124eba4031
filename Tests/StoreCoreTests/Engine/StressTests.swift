import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

/// Runs random operations on a few keys in many tasks on real threads, and checks the laws afterward.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct StressTests {
    /// Content that shows its origin: a unique number, and the patches over it.
    struct Stamp: Hashable, Sendable {
        var base: Int
        var patches: [Int] = []
    }

    struct Storm: Sendable {
        var keys = 3
        var tasks = 8
        var operations = rounds(250, quick: 20)
        var observers = 4
    }

    private func policy(_ seed: UInt64) -> StorePolicy {
        var policy = StorePolicy()
        policy.revalidatesOnExpiry = seed.isMultiple(of: 2)
        policy.minimumInterval = .milliseconds(1)
        policy.staleWhileRevalidate = seed.isMultiple(of: 3) ? .seconds(1) : .zero
        policy.staleAfter = seed.isMultiple(of: 2) ? .milliseconds(2) : nil
        policy.retry = seed.isMultiple(of: 5) ? .exponential(attempts: 2, base: .milliseconds(1)) : .never
        let unwanted: [StorePolicy.UnwantedFetch] = [.cancel(after: .zero), .cancel(after: .milliseconds(2)), .complete]
        policy.unwantedFetch = unwanted[Int(seed % 3)]
        return policy
    }

    @Test(arguments: Backing.allCases, UInt64(1)...6)
    func `C1-C17: a storm of random operations breaks no law`(_ backing: Backing, _ seed: UInt64) async throws {
        let (storm, numbers, time, events) = (Storm(), WatchedState(0), ManualTime(), EventLog())
        let fetcher = ClosureFetcher<Int, Stamp> { _ in
            let stamp = Stamp(base: numbers.increment())
            for _ in 0..<stamp.base % 5 { await Task.yield() }
            if stamp.base.isMultiple(of: 11) { throw Offline() }
            if stamp.base.isMultiple(of: 3) { try Task.checkCancellation() }
            return stamp
        }
        let cacher = GatedCacher<Int, Stamp>(expiry: .after(.milliseconds(20)))
        let onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = seed.isMultiple(of: 2) ? events.append : nil
        let policy = policy(seed)
        let store =
            switch backing {
            case .memory:
                Store(cacher: MemoryCacher(expiry: cacher.expiry, limit: 2), fetcher: fetcher, policy: policy, time: time, onEvent: onEvent)
            case .tiered:
                Store(cacher: TieredCacher(over: cacher, limit: 2), fetcher: fetcher, policy: policy, time: time, onEvent: onEvent)
            case .plain: Store(cacher: cacher, fetcher: fetcher, policy: policy, time: time, onEvent: onEvent)
            }
        let watchers = (0..<storm.observers * storm.keys).map { RecordingObserver(store[$0 % storm.keys].publish()) }
        let open = WatchedState(storm.tasks)
        for task in 0..<storm.tasks {
            Task {
                var dice = SplitMix(seed: seed << 16 | UInt64(task))
                for _ in 0..<storm.operations { await Self.perform(&dice, store, storm, numbers, time, open) }
                open.update { $0 -= 1 }
            }
        }
        try await Self.wait(until: "all tasks have ended; \(backing), \(seed)", store, time) { open.current == 0 }
        let lastWord = try await speakLast(store, storm, watchers)
        for key in 0..<storm.keys {
            #expect(try await store[key].requireData() == lastWord)
            if backing != .memory { #expect(cacher.record(of: key)?.content == lastWord) }
        }
        for watcher in watchers { try await watcher.stopAndLeave() }
        try await Self.wait(until: "the engine is idle; \(backing), \(seed)", store, time) {
            store.engineIsIdle && store.runningFetches == 0
        }
        #expect(cacher.breaches == [])
        for key in 0..<storm.keys {
            let histories = watchers.enumerated().filter { $0.offset % storm.keys == key }.map {
                $0.element.states.compactMap(\.content?.base)
            }
            #expect(isOneOrder(histories))
        }
        if onEvent != nil {
            // Events are delivered outside the lock, the last ones perhaps after their key became idle.
            let count = store.eventCount
            try await Self.wait(until: "all events are delivered", store, time) { events.all.count == Int(count) }
            let delivered = events.all.map(\.number)
            #expect(delivered == Array(1...count), "events are missing, repeated or out of order")
        }
        try await time.sleepers(atMost: 0)
    }

    /// Updates all keys until every observer has seen the update. Fetches begun by earlier timers may still end in between.
    private func speakLast(_ store: Store<Int, Stamp>, _ storm: Storm, _ watchers: [RecordingObserver<Stamp>]) async throws -> Stamp {
        for round in 1...100 {
            let lastWord = Stamp(base: -round)
            for key in 0..<storm.keys { await store[key].update(lastWord) }
            do {
                // On a busy machine, the observers take longer than the fetches that may interfere.
                try await until("all observers see the last update", patience: .seconds(1 + round)) {
                    watchers.allSatisfy { $0.states.last == .completed(lastWord) }
                }
                return lastWord
            } catch is NeverHappened where round < 100 {}
        }
        preconditionFailure("The last round either returns or throws.")
    }

    /// Advances the time during the wait, for tasks that sleep.
    private static func wait(until wish: String, _ store: Store<Int, Stamp>, _ time: ManualTime, _ holds: () -> Bool) async throws {
        do {
            try await until(wish) {
                if !holds() { time.advance(by: .microseconds(100)) }
                return holds()
            }
        } catch {
            Issue.record("\(store.engineSummary)")
            throw error
        }
    }

    // MARK: Operations

    private static func perform(
        _ dice: inout SplitMix, _ store: Store<Int, Stamp>, _ storm: Storm, _ numbers: WatchedState<Int>, _ time: ManualTime,
        _ open: WatchedState<Int>
    ) async {
        let handle = store[dice.below(storm.keys)]
        let kind = dice.below(20)
        let yields = dice.below(4)
        open.update { $0 += 1 }
        let work = Task {
            defer { open.update { $0 -= 1 } }
            switch kind {
            case 0...2: _ = await handle.getData()
            case 3: _ = await handle.getData(from: .origin)
            case 4: _ = await handle.getData(from: .cache)
            case 5: await handle.refresh()
            case 6: await handle.validate()
            case 7, 8: await handle.update(Stamp(base: numbers.increment()))
            case 9, 10: await handle.update { $0.base = numbers.increment() }
            case 11: await handle.clear()
            case 12: await handle.invalidate()
            case 13, 14: await mutate(handle, numbers.increment(), fails: kind == 13)
            case 15: store.prefetch(0..<storm.keys)
            case 16: for await _ in handle.publish() { break }
            case 17: for await state in handle.publish(forceRefresh: true) where !state.isLoading { break }
            case 18:
                store.revalidate(
                    on: AsyncStream<Void> {
                        $0.yield(); $0.finish()
                    })
            default: if yields == 0 { try? await store.clear() } else { time.advance(by: .milliseconds(yields * 5)) }
            }
        }
        for _ in 0..<yields { await Task.yield() }
        if dice.below(3) == 0 { work.cancel() }
        // Tasks that sleep must not wait forever.
        if dice.below(4) == 0 { time.advance(by: .milliseconds(1)) }
        if dice.below(5) != 0 { await work.value }
    }

    private static func mutate(_ handle: StoreFlowable<Int, Stamp>, _ number: Int, fails: Bool) async {
        _ = try? await handle.mutate {
            $0.patches.append(number)
        } perform: {
            await Task.yield()
            if fails { throw Offline() }
        }
    }
}

/// Whether all histories are subsequences of one order: no element comes both before and after another.
func isOneOrder(_ histories: [[Int]]) -> Bool {
    var followers: [Int: Set<Int>] = [:]
    var ahead: [Int: Int] = [:]
    for history in histories {
        var last: Int?
        for element in history where element != last {
            ahead[element, default: 0] += 0
            if let last, followers[last, default: []].insert(element).inserted { ahead[element, default: 0] += 1 }
            last = element
        }
    }
    // Removes elements without predecessors until none is left. The remaining elements form a cycle.
    var free = ahead.filter { $0.value == 0 }.map(\.key)
    var left = ahead.count
    while let element = free.popLast() {
        left -= 1
        for follower in followers[element] ?? [] {
            ahead[follower, default: 0] -= 1
            if ahead[follower] == 0 { free.append(follower) }
        }
    }
    return left == 0
}
