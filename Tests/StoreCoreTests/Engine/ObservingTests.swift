@testable import StoreCore
import Testing
import Trials

@Suite(.timeLimit(.minutes(10)))
struct ObservingTests {
    @Test(arguments: Backing.allCases)
    func `C7: each observer sees a part of the one order, and each state its own content`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(0)
        let observers = (0..<20).map { _ in RecordingObserver(bench.store[1].publish()) }
        for observer in observers { _ = try await observer.states(count: 1) }
        for number in 1...500 { await bench.store[1].update(number) }
        for observer in observers {
            let states = try await observer.wait { $0.last?.content == 500 }
            let contents = states.compactMap(\.content)
            #expect(contents == contents.sorted())
            #expect(Set(contents).count == contents.count)
        }
    }

    @Test(arguments: Backing.allCases)
    func `C7: what looks the same as before is not published again`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.fetcher.hold()
        await bench.store[1].update(70)
        let observer = RecordingObserver(bench.store[1].publish(forceRefresh: true))
        try await observer.next { $0.summary == "loading(70)" }
        // One after the other: fetches are numbered as they arrive, and two may overtake each other on their way.
        for epoch in 1...4 {
            if epoch > 1 { await bench.store[1].invalidate() }
            try await bench.fetcher.started(count: epoch)
        }
        bench.fetcher.release()
        try await observer.next { $0.isCompleted }
        #expect(observer.summary == "loading(70) completed(4)")
    }

    @Test func `C7: a state is what was true at its moment, however late it is looked at`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        var iterator = bench.store[1].publish().makeAsyncIterator()
        let early = await iterator.next()
        await bench.store[1].update(2)
        #expect(early?.summary == "completed(1)")
        #expect(await iterator.next()?.summary == "completed(2)")
    }

    @Test func `C8: an observer who does not look costs nothing and gets the newest state`() async throws {
        let bench = Bench()
        await bench.store[1].update(0)
        var iterator = bench.store[1].publish().makeAsyncIterator()
        _ = await iterator.next()
        let settled = Memory.resident()
        for number in 1...Cycles.count { await bench.store[1].update(number) }
        Memory.expectFlat(since: settled)
        #expect(await iterator.next()?.summary == "completed(\(Cycles.count))")
    }

    @Test func `C8: an observer who does not look keeps no old content alive`() async throws {
        let counter = LifeCounter()
        let store = Store<Int, LifeCounter.Life>(cacher: MemoryCacher()) { _ in throw Offline() }
        await store[1].update(counter.make())
        var iterator = store[1].publish().makeAsyncIterator()
        _ = await iterator.next()
        for _ in 0..<1_000 { await store[1].update(counter.make()) }
        #expect(counter.alive == 1)
        #expect(await iterator.next()?.isCompleted == true)
    }

    @Test(arguments: Backing.withCacher)
    func `C8: the first state comes after the cache read`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.put(bench.record(3), param: 1)
        bench.cacher.hold(.load)
        let observer = RecordingObserver(bench.store[1].publish())
        try await bench.cacher.began(.load)
        #expect(observer.states.isEmpty)
        bench.cacher.release()
        _ = try await observer.states(count: 1)
        #expect(observer.summary == "completed(3)")
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test func `C8: a sequence that nobody iterates starts nothing`() async throws {
        let bench = Bench()
        let sequence = bench.store[1].publish()
        var iterator: LoadingStateSequence<Int>.Iterator? = sequence.makeAsyncIterator()
        #expect(bench.liveKeys == 0)
        _ = await iterator?.next()
        #expect(bench.liveKeys == 1)
        iterator = nil
        try await bench.idle()
    }

    @Test(arguments: [false, true])
    func `C8: an observer leaves when it is cancelled or released`(_ cancels: Bool) async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        if cancels {
            let observer = Task { [sequence = bench.store[1].publish()] in
                var states = 0
                for await _ in sequence { states += 1 }
                return states
            }
            try await until("it observes") { bench.liveKeys == 1 }
            observer.cancel()
            #expect(await observer.value <= 1)
        } else {
            var iterator: LoadingStateSequence<Int>.Iterator? = bench.store[1].publish().makeAsyncIterator()
            #expect(await iterator?.next()?.content == 1)
            iterator = nil
        }
        #expect(bench.liveKeys == 0)
    }

    @Test(arguments: [
        // A place that he had in the key's earlier life, one that somebody else has now, one at which no key lives any longer.
        ObserverPlace(key: 0, position: 3), ObserverPlace(key: 0, position: 0), ObserverPlace(key: 7, position: 0),
    ])
    func `C8: observers who leave while the key lives on for others harm nobody`(left: ObserverPlace) async throws {
        let bench = Bench(.plain)
        bench.cacher.put(bench.record(1), param: 1)
        bench.cacher.hold(.load)
        let caller = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.callers(1)
        let other = RecordingObserver(bench.store[1].publish())
        try await until("another one observes") { bench.observerPlaces() == 1 }
        let isGone = await bench.store.waitAsObserver(at: left)
        #expect(isGone, "an observer who has left was not told so")
        bench.cacher.release()
        #expect(try await caller.value == 1)
        _ = try await other.states(count: 1)
        #expect(other.summary == "completed(1)")
    }

    @Test func `C8: an iterator whose task was cancelled before its first state has ended for good`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        let observer = Task { [sequence = bench.store[1].publish()] in
            withUnsafeCurrentTask { $0?.cancel() }
            var iterator = sequence.makeAsyncIterator()
            let first = await iterator.next()
            // Whoever goes on with it has another task.
            let handedOn = await Task.detached { [copy = Carried(iterator)] in
                var iterator = copy.iterator
                return await iterator.next()
            }.value
            return first == nil && handedOn == nil
        }
        #expect(await observer.value)
        #expect(bench.liveKeys == 0)
    }

    @Test func `C8: cancelling an observer between two states ends its sequence`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        let gate = WatchedState(false)
        let observer = Task { [sequence = bench.store[1].publish()] in
            var iterator = sequence.makeAsyncIterator()
            let first = await iterator.next()?.content
            try? await gate.wait { $0 ? () : nil }
            return (first, await iterator.next()?.content, await iterator.next()?.content)
        }
        try await until("it observes") { bench.liveKeys == 1 }
        observer.cancel()
        gate.update { $0 = true }
        let (first, second, third) = await observer.value
        #expect((first == 1 || first == nil) && second == nil && third == nil)
        #expect(bench.liveKeys == 0)
    }
}

/// An iterator on its way to another task; no two tasks use it at once.
private struct Carried: @unchecked Sendable {
    let iterator: LoadingStateSequence<Int>.Iterator

    init(_ iterator: LoadingStateSequence<Int>.Iterator) { self.iterator = iterator }
}
