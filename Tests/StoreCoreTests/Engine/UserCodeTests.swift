import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Tests user code that runs under a store's lock and calls the store.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct UserCodeTests {
    private static func namesMistake(_ result: ExitTest.Result?) -> Bool {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            .contains("a closure that a store runs under its lock has called the same store")
    }

    @Test func `C14: a patch that calls its own store ends the program with the reason`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
            _ = try await store[1].requireData()
            try await store[1].mutate { _ in
                store.prefetch([2])
            } perform: {
            }
        }
        #expect(Self.namesMistake(result))
    }

    @Test func `C13: an identity that calls its own store ends the program with the reason`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let place = WatchedState<PaginationStore<Int, Int>?>(nil)
            let fetcher = ScriptedPaginationFetcher<Int, Int>(.page([1], nextKey: "n"), .page([2]))
            let lists = PaginationStore(
                cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher,
                identity: .by { element in
                    place.current?.prefetch([2])
                    return element
                })
            _ = try await lists[1].requireData()
            place.update { $0 = lists }
            await lists[1].requestNextData()
        }
        #expect(Self.namesMistake(result))
    }

    @Test func `L3: a change of a live value that calls its own store ends the program with the reason`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let bench = LiveBench()
            let observer = try await bench.observe(sending: .content("a"))
            try await observer.next { $0.isCompleted }
            try await bench.feed.send(.change { _ in bench.store.prefetch([2]) })
            try await observer.next { $0.error != nil }
        }
        #expect(Self.namesMistake(result))
    }

    @Test func `C14: a patch may call its own store in a new task`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        _ = try await store[1].requireData()
        let tasks = WatchedState<[Task<Int, any Error>]>([])
        try await store[1].mutate { content in
            content = 7
            let task = Task { try await store[2].requireData() }
            tasks.update { $0.append(task) }
        } perform: {
        }
        for task in tasks.current { #expect(try await task.value == 2) }
    }

    @Test func `C14: a patch may read content of its own store in memory`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        for key in 1...2 { _ = try await store[key].requireData() }
        try await store[1].mutate { content in
            if case .completed(let other, next: _, prev: _)? = store[2].stateInMemory { content += other }
        } perform: {
        }
        #expect(try await store[1].requireData() == 3)
    }
}
