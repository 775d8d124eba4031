import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

/// Tests observers that join, wait and leave on real threads while the state changes.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ObserverRaceTests {
    /// Observes the given number of states and returns their contents.
    private static func look(_ handle: StoreFlowable<Int, Int>, times: Int) async -> [Int] {
        var seen: [Int] = []
        for await state in handle.publish() {
            if let content = state.content { seen.append(content) }
            if seen.count == times { break }
        }
        return seen
    }

    @Test(arguments: Backing.allCases)
    func `C7, C8: leaving observers see strictly rising states, and staying observers see the last one`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let handle = bench.store[1]
        await handle.update(0)
        let stays = (0..<3).map { _ in RecordingObserver(handle.publish()) }
        for observer in stays { _ = try await observer.states(count: 1) }
        let last = 1_000
        let writer = Task { for number in 1...last { await handle.update(number) } }
        var visitors: [Task<[Int], Never>] = []
        for round in 0..<200 {
            visitors.append(Task { await Self.look(handle, times: round % 4 + 1) })
            for _ in 0..<round % 3 { await Task.yield() }
            if round % 3 == 0 { visitors[round / 2].cancel() }
        }
        await writer.value
        for visitor in visitors { visitor.cancel() }
        for visitor in visitors {
            let seen = await visitor.value
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 }, "\(seen)")
        }
        for observer in stays {
            let seen = try await observer.wait { $0.last?.content == last }.compactMap(\.content)
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
        }
        for observer in stays { try await observer.stopAndLeave() }
        try await bench.idle()
    }

    @Test func `C8: an update right after an observer read a state is delivered`() async throws {
        let bench = Bench()
        let handle = bench.store[1]
        await handle.update(0)
        let seen = WatchedState(-1)
        let observer = Task {
            for await state in handle.publish() {
                guard let content = state.content else { continue }
                seen.update { $0 = content }
            }
        }
        // Each update comes right after the last one was seen, while the observer is about to suspend.
        for number in 0...500 {
            if number > 0 { await handle.update(number) }
            try await until("\(number) is seen") { seen.current == number }
        }
        await observer.cancelAndWait()
    }

    @Test(arguments: Backing.withCacher)
    func `C8, C9: an observer canceled while it starts to wait does not stay suspended`(_ backing: Backing) async throws {
        let bench = Bench(backing, policy: StorePolicy(unwantedFetch: .cancel(after: .zero)))
        bench.fetcher.hold()
        for round in 0..<200 {
            bench.cacher.hold(.load)
            let observer = Task { await Self.look(bench.store[1], times: 1) }
            for _ in 0..<round % 6 { await Task.yield() }
            observer.cancel()
            #expect(await observer.value.isEmpty)
            bench.cacher.release()
        }
        try await bench.idle()
    }

    @Test func `C15: observers that come and go leave nothing behind`() async throws {
        let bench = Bench()
        let handle = bench.store[1]
        await handle.update(0)
        let stays = try await observeFirst(handle.publish())
        for round in 0..<Cycles.count / 40 {
            let visitor = Task { await Self.look(handle, times: 1) }
            if round.isMultiple(of: 3) { visitor.cancel() }
            _ = await visitor.value
        }
        #expect(bench.observerCapacity() <= 160)
        await handle.update(1)
        try await stays.next { $0.content == 1 }
    }

    @Test(arguments: [0, 40])
    func `C15: the places of many observers are freed while a few stay`(_ stayingIterators: Int) async throws {
        let bench = Bench()
        let handle = bench.store[1]
        await handle.update(0)
        var (leaving, stay): ([LoadingStateSequence<Int>.Iterator], [LoadingStateSequence<Int>.Iterator]) = ([], [])
        var tasks: [RecordingObserver<Int>] = []
        let size = Cycles.count
        for number in 0..<size {
            var iterator = handle.publish().makeAsyncIterator()
            #expect(await iterator.next()?.content == 0)
            if stayingIterators > 0, number % (size / stayingIterators) == 7 { stay.append(iterator) } else { leaving.append(iterator) }
            // Some observers wait at the first places, in the middle and at the end while the others leave.
            guard number % (size / 3) == 99 else { continue }
            tasks.append(RecordingObserver(handle.publish()))
            _ = try await tasks.last?.states(count: 1)
        }
        #expect(stay.count == stayingIterators && bench.observers() == size + tasks.count)
        leaving = []
        #expect(bench.observerCapacity() <= 128 + 8 * (stay.count + tasks.count))
        for number in 1...3 {
            await handle.update(number)
            for task in tasks { try await task.next { $0.content == number } }
            for place in stay.indices {
                var iterator = stay[place]
                #expect(await iterator.next()?.content == number)
            }
        }
        // New observers join the remaining ones.
        var late = handle.publish().makeAsyncIterator()
        #expect(await late.next()?.content == 3)
        for task in tasks {
            try await task.stopAndLeave()
            #expect(task.states.compactMap(\.content) == [0, 1, 2, 3])
        }
        stay = []
        #expect(bench.liveKeys == 1)
        await handle.update(4)
        #expect(await late.next()?.content == 4)
    }

    /// Calls `next` of one iterator from two tasks.
    @MainActor private static func awaitTwice(_ sequence: LoadingStateSequence<Int>) async {
        let shared = Shared(sequence)
        for _ in 0..<2 { Task { @MainActor in await shared.next() } }
        for _ in 0..<1_000 { await Task.yield() }
    }

    private static func reports(_ result: ExitTest.Result?) -> Bool {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self).contains("is awaited by two tasks; make an iterator for each")
    }

    @Test func `C8: awaiting an iterator from a second task ends the program instead of losing the first`() async {
        let ofStore = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let cacher = GatedCacher<Int, Int>()
            cacher.hold(.load)
            let store = Store(cacher: cacher) { $0 }
            await Self.awaitTwice(store[1].publish())
        }
        #expect(Self.reports(ofStore))
        let ofInput = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            await Self.awaitTwice(ManualStates<Int>().sequence)
        }
        #expect(Self.reports(ofInput))
        let ofCombination = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            await Self.awaitTwice(
                ManualStates<Int>().sequence.combineState(ManualStates<Int>().sequence).mapContent { (pair: (Int, Int)) in pair.0 + pair.1 }
            )
        }
        #expect(Self.reports(ofCombination))
    }

    /// An iterator shared by tasks.
    @MainActor private final class Shared {
        private let iterator: LoadingStateSequence<Int>.Iterator

        init(_ sequence: LoadingStateSequence<Int>) { iterator = sequence.makeAsyncIterator() }

        func next() async -> LoadingState<Int>? {
            var copy = iterator
            return await copy.next(isolation: MainActor.shared)
        }
    }

    @MainActor @Test func `C8: an iterator that moves between tasks stays one observer`() async throws {
        let bench = Bench()
        let handle = bench.store[1]
        await handle.update(0)
        var shared: Shared? = Shared(handle.publish())
        for number in 0..<200 {
            if number > 0 { await handle.update(number) }
            let content = await Task { @MainActor [shared] in await shared?.next()?.content }.value
            #expect(content == number)
            #expect(bench.liveKeys == 1)
        }
        // Canceling the waiting task removes the observer, whichever task started it.
        let waiting = Task { @MainActor [shared] in await shared?.next()?.content }
        await Task.yield()
        waiting.cancel()
        #expect(await waiting.value == nil)
        try await bench.idle()
        #expect(await shared?.next() == nil)
        shared = nil
    }
}
