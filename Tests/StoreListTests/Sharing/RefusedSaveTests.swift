import Dispatch
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Tests that a change stays visible although another user's newer content makes the cacher refuse its save.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RefusedSaveTests {
    private let cacher = ScriptedSharedCacher()
    private let fetcher = ScriptedFetcher<Int, Int>()
    private let store: Store<Int, Int>

    init() { store = Store(cacher: cacher, fetcher: fetcher) }

    private func observed() async throws -> RecordingObserver<Int> {
        cacher.change(1, to: 100)
        let observer = RecordingObserver(store[1].publish())
        try await observer.next { $0.isCompleted && $0.content == 100 }
        return observer
    }

    /// An edit that is refused by the cacher. Its second application blocks its own thread until the test continues.
    private func refusedEdit(fails: Bool = false) async throws -> (edit: Task<Bool, any Error>, proceed: DispatchSemaphore) {
        let (runs, proceed) = (WatchedState(0), DispatchSemaphore(value: 0))
        cacher.hold()
        let edit = Task(executorPreference: QueueExecutor()) { [handle = store[1]] in
            try await handle.update { content in
                if runs.increment() > 1 {
                    proceed.wait()
                    if fails { throw Offline() }
                }
                content += 1
            }
        }
        try await cacher.saves(begun: 1)
        cacher.change(1, to: 200)
        cacher.release()
        try await runs.wait { $0 == 2 ? () : nil }
        return (edit, proceed)
    }

    @Test func `C7, D3: an edit does not disappear between its refused save and its next application`() async throws {
        let observer = try await observed()
        let (edit, proceed) = try await refusedEdit()
        // A slow observer would skip this state.
        try await observer.next { $0.content == 101 }
        #expect(try await store[1].requireData() == 200, "the newer content is accepted")
        for _ in 0..<100 { await Task.yield() }
        proceed.signal()
        #expect(try await edit.value)
        try await observer.next { $0.content == 201 }
        #expect(observer.states.compactMap(\.content) == [100, 101, 201])
        #expect(cacher.content(1) == 201)
    }

    @Test func `C8, D3: the newer content is published if the edit is not applied again`() async throws {
        let observer = try await observed()
        let (edit, proceed) = try await refusedEdit(fails: true)
        try await observer.next { $0.content == 101 }
        proceed.signal()
        await #expect(throws: Offline.self) { try await edit.value }
        try await observer.next { $0.content == 200 }
        #expect(observer.states.compactMap(\.content) == [100, 101, 200])
    }

    @Test func `C14, D3: a mutation does not disappear between its refused save and the origin's content`() async throws {
        let observer = try await observed()
        cacher.hold()
        fetcher.hold()
        let mutation = Task { [handle = store[1]] in try await handle.mutate(optimistically: { $0 += 1 }) {} }
        try await cacher.saves(begun: 1)
        cacher.change(1, to: 200)
        let started = fetcher.startedCount
        cacher.release()
        _ = try await mutation.value
        try await fetcher.started(count: started + 1)
        for _ in 0..<100 { await Task.yield() }
        fetcher.enqueue(.success(201), .success(201))
        fetcher.release()
        try await observer.next { $0.isCompleted && $0.content == 201 }
        #expect(!observer.states.contains { $0.content == 200 })
    }

    @Test func `D3: a refused edit is applied again although content was fetched over the same base meanwhile`() async throws {
        let observer = try await observed()
        cacher.hold()
        let edit = Task { [handle = store[1]] in await handle.update { $0 += 1 } }
        try await cacher.saves(begun: 1)
        fetcher.enqueue(.success(150))
        #expect(try await store[1].requireData(from: .origin) == 150)
        cacher.change(1, to: 200)
        cacher.release()
        #expect(await edit.value)
        try await observer.next { $0.content == 201 }
        #expect(cacher.content(1) == 201)
    }

    @Test func `D5: a fetch that waits for a newer record begins if an own save overwrites that record`() async throws {
        cacher.grantLeases()
        cacher.hold()
        fetcher.enqueue(.success(99), .success(99))
        _ = await store[1].getData(from: .cache)
        let first = Task { [store] in await store[1].update(1) }
        try await cacher.saves(begun: 1)
        cacher.change(1, to: 7)
        let second = Task { [store] in await store[1].update { $0 += 1 } }
        try await until { await store[1].getData(from: .cache) == 2 }
        cacher.releaseNext()
        try await cacher.saves(begun: 2)
        let fetch = Task { [store] in try await store[1].requireData(from: .origin) }
        try await until { store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.machine.origin.flight?.isParked == true } }
        cacher.release()
        #expect(try await fetch.value == 99)
        await first.value
        _ = await second.value
    }
}
