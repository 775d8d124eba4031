@testable import StoreCore
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ObservingTests {
    @Test(arguments: Backing.allCases)
    func `C7: an equal state is not published again`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.fetcher.hold()
        await bench.store[1].update(70)
        let observer = RecordingObserver(bench.store[1].publish(forceRefresh: true))
        try await observer.next { $0.summary == "loading(70)" }
        // Starts one fetch at a time, because fetches are numbered on arrival and could overtake each other.
        for epoch in 1...4 {
            if epoch > 1 { await bench.store[1].invalidate() }
            try await bench.fetcher.started(count: epoch)
        }
        bench.fetcher.release()
        try await observer.next { $0.isCompleted }
        #expect(observer.summary == "loading(70) completed(4)")
    }

    @Test func `C7: a state keeps the content of its moment, however late it is read`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        var iterator = bench.store[1].publish().makeAsyncIterator()
        let early = await iterator.next()
        await bench.store[1].update(2)
        #expect(early?.summary == "completed(1)")
        #expect(await iterator.next()?.summary == "completed(2)")
    }

    @Test func `C8: an inactive observer retains no old content and gets the newest state`() async throws {
        let counter = LifeCounter()
        let store = Store<Int, LifeCounter.Life>(cacher: MemoryCacher()) { _ in throw Offline() }
        await store[1].update(counter.make())
        var iterator = store[1].publish().makeAsyncIterator()
        _ = await iterator.next()
        for _ in 0..<Cycles.count { await store[1].update(counter.make()) }
        #expect(counter.alive == 1)
        let newest = counter.make()
        await store[1].update(newest)
        let state = await iterator.next()
        #expect(state?.isCompleted == true && state?.content === newest)
    }

    @Test(arguments: Backing.withCacher)
    func `C8: the first state follows the cache read`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.hold(.load)
        let observer = RecordingObserver(bench.store[1].publish())
        try await bench.cacher.began(.load)
        #expect(observer.states.isEmpty)
        bench.cacher.release()
        _ = try await observer.states(count: 1)
        #expect(observer.summary == "completed(3)")
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test func `C8: a sequence that is not iterated starts nothing, and a released iterator leaves at once`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        var iterator: LoadingStateSequence<Int>.Iterator? = bench.store[1].publish().makeAsyncIterator()
        #expect(bench.liveKeys == 0)
        #expect(await iterator?.next()?.content == 1)
        #expect(bench.liveKeys == 1)
        iterator = nil
        #expect(bench.liveKeys == 0)
    }

    // The place of the live key, and a place without one.
    @Test(arguments: [0, 7])
    func `C8: an observer that leaves late does not affect the observers of a live key`(place: Int) async throws {
        let bench = Bench(.plain, saved: 1)
        bench.cacher.hold(.load)
        let caller = try await bench.waitingCaller()
        let other = RecordingObserver(bench.store[1].publish())
        try await until("the other observer has joined") { bench.observers() == 1 }
        let isGone = await bench.store.waitAsObserver(at: place)
        #expect(isGone, "the engine did not report the observer as gone")
        bench.cacher.release()
        #expect(try await caller.value == 1)
        _ = try await other.states(count: 1)
        #expect(other.summary == "completed(1)")
    }

    @Test func `C8: an iterator canceled before its first state has ended permanently`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        let observer = Task { [sequence = bench.store[1].publish()] in
            withUnsafeCurrentTask { $0?.cancel() }
            var iterator = sequence.makeAsyncIterator()
            let first = await iterator.next()
            // A copy of the iterator continues in another task.
            let handedOn = await Task.detached { [copy = Carried(iterator)] in
                var iterator = copy.iterator
                return await iterator.next()
            }.value
            return first == nil && handedOn == nil
        }
        #expect(await observer.value)
        #expect(bench.liveKeys == 0)
    }

    @Test func `C8: canceling an observer between two states ends its sequence`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        let gate = WatchedState(false)
        let observer = Task { [sequence = bench.store[1].publish()] in
            var iterator = sequence.makeAsyncIterator()
            let first = await iterator.next()?.content
            try? await gate.wait { $0 ? () : nil }
            return (first, await iterator.next()?.content, await iterator.next()?.content)
        }
        try await until("the observer has joined") { bench.liveKeys == 1 }
        observer.cancel()
        gate.update { $0 = true }
        let (first, second, third) = await observer.value
        #expect((first == 1 || first == nil) && second == nil && third == nil)
        #expect(bench.liveKeys == 0)
    }
}

/// An iterator that moves to another task; the tasks never use it at the same time.
private struct Carried: @unchecked Sendable {
    let iterator: LoadingStateSequence<Int>.Iterator

    init(_ iterator: LoadingStateSequence<Int>.Iterator) { self.iterator = iterator }
}
