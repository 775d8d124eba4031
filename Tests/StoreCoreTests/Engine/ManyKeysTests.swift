import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Calls for several keys at once.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ManyKeysTests {
    @Test func `several keys are fetched side by side, each once`() async throws {
        let bench = Bench()
        bench.fetcher.hold()
        let caller = Task { try await bench.store.requireData(for: [1, 2, 3, 1]) }
        try await bench.fetcher.started(count: 3)
        for (number, key) in bench.fetcher.requests.map(\.param).enumerated() {
            try await bench.fetcher.answer(number + 1, with: .success(key * 10))
        }
        #expect(try await caller.value == [1: 10, 2: 20, 3: 30])
        #expect(try await bench.store.requireData(for: 1...3) == [1: 10, 2: 20, 3: 30])
        #expect(bench.fetcher.startedCount == 3)
        #expect(try await bench.store.requireData(for: []) == [:])
    }

    @Test func `a key that fails fails the call, and getData returns the others`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>(), policy: StorePolicy(retry: .never)) { key in
            if key == 2 { throw Offline() }
            return key
        }
        await #expect(throws: Offline.self) { try await store.requireData(for: [1, 2, 3]) }
        #expect(await store.getData(for: [1, 2, 3]) == [1: 1, 3: 3])
    }

    @Test func `C9: a canceled call for several keys ends at once and leaves no caller behind`() async throws {
        let bench = Bench(policy: StorePolicy(unwantedFetch: .cancel(after: .zero)))
        bench.fetcher.hold()
        let caller = Task { try await bench.store.requireData(for: 1...5) }
        try await bench.fetcher.started(count: 5)
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        try await bench.idle()
    }

    @Test func `the states of several keys have the content of those that have any`() async throws {
        let fetcher = ScriptedFetcher<Int, Int> { $0.param == 2 ? .failure(Offline()) : .success($0.param) }
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: fetcher, policy: StorePolicy(retry: .never))
        fetcher.hold()
        let observer = RecordingObserver(store.publish([1, 2, 3]))
        try await observer.next { $0 == .loading(content: nil) }
        fetcher.release()
        let failed = try await observer.next { $0.error != nil && $0.content?.count == 2 }
        #expect(failed.content == [1: 1, 3: 3])
        await store[2].update(20)
        try await observer.next { $0 == .completed([1: 1, 2: 20, 3: 3]) }
        await store[3].update(30)
        try await observer.next { $0 == .completed([1: 1, 2: 20, 3: 30]) }
        let nothing = RecordingObserver(store.publish([]))
        try await nothing.ended()
        #expect(nothing.states == [.completed([:])])
    }

    @Test func `the states of several keys have the error of the first failed key in the order of the call`() async throws {
        struct Missing: Error { let key: Int }
        let time = ManualTime()
        let store = Store(cacher: MemoryCacher<Int, Int>(), time: time) { key -> Int in
            if key == 9 { try await time.sleep(until: time.now.advanced(by: .seconds(1))) }
            throw Missing(key: key)
        }
        let observer = RecordingObserver(store.publish([9, 1, 9, 2, 3, 4, 5, 6, 7, 8]))
        try await observer.next { $0.error != nil }
        try await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(1))
        try await observer.next { ($0.error as? Missing)?.key == 9 }
    }

    @Test func `C8: the states of several keys end without a state if those of one key do`() async throws {
        let (states, silent) = (ManualStates<Int>(.completed(1)), ManualStates<Int>())
        let observer = RecordingObserver(LoadingStateSequence<[Int: Int]>.combined([(1, states.sequence), (2, silent.sequence)]))
        try await states.taken(by: 1)
        silent.finish()
        try await observer.ended()
        #expect(observer.states.isEmpty)
    }
}
