import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MutationTests {
    /// A mutation that ends when the test says so.
    private struct Work {
        private let request = HeldRequest<Void>()
        let task: Task<Void, any Error>

        init(_ handle: StoreFlowable<Int, Int>, _ patch: @escaping @Sendable (inout Int) -> Void) {
            task = Task { [request] in try await handle.mutate(optimistically: patch) { try await request.run() } }
        }

        /// Starts a mutation, and waits until its request has begun.
        static func begun(_ handle: StoreFlowable<Int, Int>, _ patch: @escaping @Sendable (inout Int) -> Void) async throws -> Work {
            let work = Work(handle, patch)
            try await work.hasBegun()
            return work
        }

        func hasBegun() async throws { try await request.hasBegun() }
        func end(_ result: Result<Void, Offline>) { request.end(result) }
    }

    private func add(_ number: Int) -> @Sendable (inout Int) -> Void { { $0 += number } }

    @Test(arguments: Backing.allCases)
    func `C14: a patch is visible at once and saved when it is confirmed`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(10)
        let work = try await Work.begun(bench.store[1], add(5))
        #expect(try await bench.store[1].requireData() == 15)
        #expect(try await bench.store[1].requireData(from: .cache) == 15)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == 10) }
        work.end(.success(()))
        try await work.task.value
        #expect(try await bench.store[1].requireData() == 15)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == 15) }
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test(arguments: Backing.allCases)
    func `C14: a confirmed patch is not applied again to content fetched after it`(_ backing: Backing) async throws {
        let bench = Bench(backing, fetcher: ScriptedFetcher { _ in .success(1_000) })
        await bench.store[1].update(10)
        let first = try await Work.begun(bench.store[1], add(5))
        let second = try await Work.begun(bench.store[1], add(100))
        second.end(.success(()))
        try await second.task.value
        #expect(try await bench.store[1].requireData() == 115)
        await bench.store[1].refresh()
        #expect(try await bench.store[1].requireData() == 1_005)
        first.end(.success(()))
        try await first.task.value
        #expect(try await bench.store[1].requireData() == 1_005)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == 1_005) }
    }

    @Test func `C12, C14: the fetch after the last mutation waits while a failure holds it off`() async throws {
        let bench = Bench(
            policy: StorePolicy(errorExpiry: .seconds(5)), fetcher: ScriptedFetcher(.success(1), .failure(Offline()), .success(3)))
        let observer = try await observeCompleted(bench.store[1].publish())
        await bench.store[1].refresh()
        try await bench.store[1].mutate(optimistically: add(10)) {}
        _ = try await observer.next { $0.error != nil && $0.content == 11 }
        #expect(bench.fetcher.startedCount == 2)
        bench.time.advance(by: .seconds(5))
        try await observer.next { $0.summary == "completed(3)" }
        #expect(bench.fetcher.startedCount == 3)
    }

    @Test func `C14: values captured by a patch are released outside the lock`() async throws {
        /// Uses the store when it is released, as an app's model may.
        final class Form: Sendable {
            let store: Store<Int, Int>
            let step = 1

            init(_ store: Store<Int, Int>) { self.store = store }

            deinit { store.prefetch([2]) }
        }
        let bench = Bench()
        await bench.store[1].update(10)
        let first = try await Work.begun(bench.store[1], add(5))
        do {
            let form = Form(bench.store)
            try await bench.store[1].mutate { [form] in
                $0 += form.step
            } perform: {
            }
        }
        // Only the store retains the second patch now, and releases it when the first one is settled.
        first.end(.success(()))
        try await first.task.value
        #expect(try await bench.store[1].requireData() == 16)
        #expect(try await bench.store[2].requireData() == 1)
    }

    @Test func `C14: canceling a mutation undoes its patch`() async throws {
        let bench = Bench()
        await bench.store[1].update(10)
        let work = try await Work.begun(bench.store[1], add(5))
        work.task.cancel()
        #expect(await work.task.outcome == "CancellationError")
        #expect(try await bench.store[1].requireData() == 10)
        try await bench.idle()
    }

    @Test(arguments: [true, false])
    func `C14: an update applies beneath pending patches`(_ succeeds: Bool) async throws {
        let bench = Bench(.plain)
        await bench.store[1].update(10)
        let work = try await Work.begun(bench.store[1], add(5))
        await bench.store[1].update(20)
        await bench.store[1].update { $0 += 1 }
        #expect(try await bench.store[1].requireData() == 26)
        #expect(bench.cacher.record(of: 1)?.content == 21)
        work.end(succeeds ? .success(()) : .failure(Offline()))
        _ = await work.task.result
        #expect(try await bench.store[1].requireData() == (succeeds ? 26 : 21))
        #expect(bench.cacher.record(of: 1)?.content == (succeeds ? 26 : 21))
    }

    @Test(arguments: [true, false])
    func `C5: the result of a fetch that began before a mutation started or succeeded is dropped`(_ beforeStart: Bool) async throws {
        let bench = Bench(fetcher: .counting(cancellation: .ignored))
        await bench.store[1].update(10)
        bench.fetcher.hold()
        let early = beforeStart ? Task { [handle = bench.store[1]] in try await handle.requireData(from: .origin) } : nil
        if beforeStart { try await bench.fetcher.started(count: 1) }
        let work = try await Work.begun(bench.store[1], add(5))
        let late = Task { [handle = bench.store[1]] in try await handle.requireData(from: .origin) }
        try await bench.fetcher.started(count: beforeStart ? 2 : 1)
        try await bench.callers(beforeStart ? 2 : 1)
        work.end(.success(()))
        try await work.task.value
        let newest = beforeStart ? 3 : 2
        try await bench.fetcher.started(count: newest)
        for old in 1..<newest { try await bench.fetcher.answer(old, with: .success(-1)) }
        try await bench.fetcher.ended(count: newest - 1)
        #expect(bench.waiting() == (beforeStart ? 2 : 1))
        bench.fetcher.release()
        #expect(try await late.value == newest)
        if let early { #expect(try await early.value == newest) }
    }

    @Test(arguments: [true, false])
    func `C5: the result of a fetch that began before a mutation succeeded is dropped, even after clear()`(_ observed: Bool) async throws {
        let bench = Bench(fetcher: .counting(cancellation: .ignored))
        await bench.store[1].update(10)
        let observer = observed ? RecordingObserver(bench.store[1].publish()) : nil
        _ = try await observer?.states(count: 1)
        let work = try await Work.begun(bench.store[1], add(5))
        bench.fetcher.hold()
        await bench.store[1].clear()
        let caller = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.fetcher.started(count: 1)
        try await bench.callers(1)
        work.end(.success(()))
        try await work.task.value
        try await bench.fetcher.started(count: 2)
        try await bench.fetcher.answer(1, with: .success(-1))
        try await bench.fetcher.ended(count: 1)
        bench.fetcher.release()
        #expect(try await caller.value == 2)
        withExtendedLifetime(observer) {}
    }

    @Test func `C4: only clear() drops patches`() async throws {
        let bench = Bench()
        await bench.store[1].update(10)
        let work = try await Work.begun(bench.store[1], add(5))
        await bench.store[1].invalidate()
        #expect(try await bench.store[1].requireData() == 6)
        await bench.store[1].clear()
        await bench.store[1].update(20)
        work.end(.success(()))
        try await work.task.value
        #expect(try await bench.store[1].requireData() == 20)
        try await bench.idle()
    }

    @Test func `C14: a patch without content applies to the content that arrives`() async throws {
        let bench = Bench()
        let work = try await Work.begun(bench.store[1], add(5))
        #expect(try await bench.store[1].requireData() == 6)
        work.end(.failure(Offline()))
        _ = await work.task.result
        #expect(try await bench.store[1].requireData() == 1)
    }

    @Test(arguments: Backing.withCacher)
    func `C14: a mutation reads the cache first`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        try await bench.store[1].mutate(optimistically: add(5)) {}
        #expect(bench.cacher.record(of: 1)?.content == 8)
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test func `C14: the result or error of a mutation reaches its caller`() async throws {
        let bench = Bench()
        await bench.store[1].update(1)
        #expect(try await bench.store[1].mutate(optimistically: add(1)) { "done" } == "done")
        await #expect(throws: Offline.self) { try await bench.store[1].mutate(optimistically: add(1)) { throw Offline() } }
        #expect(try await bench.store[1].requireData() == 2)
    }

    @Test func `C14: the end of a mutation does not apply the later ones again`() async throws {
        let bench = Bench()
        await bench.store[1].update(0)
        let first = try await Work.begun(bench.store[1], add(1))
        let applied = WatchedState(0)
        let second = try await Work.begun(bench.store[1]) { number in
            applied.update { $0 += 1 }
            number += 2
        }
        first.end(.success(()))
        try await first.task.value
        #expect(applied.current == 1)
        #expect(try await bench.store[1].requireData() == 3)
        second.end(.failure(Offline()))
        _ = await second.task.result
        #expect(try await bench.store[1].requireData() == 1)
    }

    @Test(arguments: Backing.allCases)
    func `C14: of a hundred concurrent mutations exactly the successful ones remain`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(0)
        let works = (0..<100).map { Work(bench.store[1], add(1 << ($0 % 10))) }
        for work in works { try await work.hasBegun() }
        for (number, work) in works.enumerated().shuffled() { work.end(number.isMultiple(of: 3) ? .failure(Offline()) : .success(())) }
        for work in works { _ = await work.task.result }
        let expected = (0..<100).filter { !$0.isMultiple(of: 3) }.reduce(0) { $0 + 1 << ($1 % 10) }
        #expect(try await bench.store[1].requireData() == expected)
        try await bench.idle()
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == expected) }
    }
}
