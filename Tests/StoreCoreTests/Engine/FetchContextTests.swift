import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore
@testable import StoreFiles

@Suite(.timeLimit(.minutes(hangMinutes)))
struct FetchContextTests {
    @TaskLocal static var span = "none"

    /// A fetcher that records the task-local value of each fetch, and can be held.
    private final class Tracer: TwoWayPaginationFetcher {
        private let seen = WatchedState<[String]>([])
        let fetches: ScriptedPaginationFetcher<Int, Int>

        init(_ fetches: ScriptedPaginationFetcher<Int, Int> = .init { .page([$0.number], nextKey: "n", prevKey: "p") }) {
            self.fetches = fetches
        }

        var spans: [String] { seen.current }

        func respond(to request: OriginRequest<Int>) async throws -> OriginResponse<[Int]> {
            seen.update { $0.append(FetchContextTests.span) }
            return try await fetches.respond(to: request)
        }

        // These are never called, because `respond(to:)` handles every request.
        func fetch(param: Int) async throws -> Page<Int> { throw Offline() }
        func fetchNext(nextKey: String, param: Int) async throws -> Page<Int> { throw Offline() }
        func fetchPrev(prevKey: String, param: Int) async throws -> Page<Int> { throw Offline() }
    }

    private func lists(
        _ tracer: Tracer, _ backing: Backing = .memory, over cacher: GatedCacher<Int, [Int]> = GatedCacher(),
        time: ManualTime = ManualTime(), _ change: (inout StorePolicy) -> Void = { _ in }
    ) -> PaginationStore<Int, Int> {
        var policy = StorePolicy(minimumInterval: .zero, fetchContext: .firstCaller)
        change(&policy)
        return switch backing {
        case .memory: PaginationStore(cacher: MemoryCacher(expiry: cacher.expiry), fetcher: tracer, policy: policy, time: time)
        case .tiered: PaginationStore(cacher: TieredCacher(over: cacher), fetcher: tracer, policy: policy, time: time)
        case .plain: PaginationStore(cacher: cacher, fetcher: tracer, policy: policy, time: time)
        }
    }

    private func traced<Result: Sendable>(_ span: String, _ body: @escaping @Sendable () async throws -> Result) -> Task<Result, any Error>
    {
        Self.$span.withValue(span) { Task { try await body() } }
    }

    enum Cause: CaseIterable, Sendable {
        case caller, origin, refresh, validation, nextPage, prevPage, clearing, invalidation, mutation
    }

    @Test(arguments: Backing.allCases, Cause.allCases)
    func `C22: a fetch inherits the task-local values of the caller that causes it`(_ backing: Backing, _ cause: Cause) async throws {
        let tracer = Tracer()
        let list = lists(tracer, backing)[1]
        var observer: RecordingObserver<[Int]>?
        if ![.caller, .origin, .refresh, .validation].contains(cause) {
            observer = RecordingObserver(list.publish())
            try await observer?.next { $0.isCompleted }
        }
        try await traced("caller") {
            switch cause {
            case .caller: _ = try await list.requireData()
            case .origin: _ = try await list.requireData(from: .origin)
            case .refresh: await list.refresh()
            case .validation: await list.validate()
            case .nextPage: await list.requestNextData()
            case .prevPage: await list.requestPrevData()
            case .clearing: await list.clear()
            case .invalidation: await list.invalidate()
            case .mutation: try await list.mutate(optimistically: { $0.append(-1) }) {}
            }
        }.value
        try await until("the fetch has begun") { tracer.spans.count == (observer == nil ? 1 : 2) }
        #expect(tracer.spans.last == "caller")
    }

    @Test(arguments: Backing.allCases)
    func `C22: an observer's fetch inherits the values of the task that observes`(_ backing: Backing) async throws {
        let tracer = Tracer()
        let list = lists(tracer, backing)[1]
        let observing = traced("observer") { for await state in list.publish() where state.isCompleted { return } }
        try await observing.value
        #expect(tracer.spans == ["observer"])
    }

    @Test(arguments: Backing.allCases)
    func `C1, C22: a caller that joins does not change the values`(_ backing: Backing) async throws {
        let tracer = Tracer()
        let lists = lists(tracer, backing)
        tracer.fetches.hold()
        let first = traced("first") { try await lists[1].requireData() }
        try await until("the first caller waits") { lists.waiting(1) == 1 }
        let second = traced("second") { try await lists[1].requireData(from: .origin) }
        try await until("both callers wait") { lists.waiting(1) == 2 }
        try await tracer.fetches.started(count: 1)
        tracer.fetches.release()
        _ = try await (first.value, second.value)
        #expect(tracer.spans == ["first"])
    }

    @Test(arguments: Backing.withCacher)
    func `C22: callers that wait for the cache read get the values of the first of them`(_ backing: Backing) async throws {
        let (tracer, cacher) = (Tracer(), GatedCacher<Int, [Int]>())
        let lists = lists(tracer, backing, over: cacher)
        cacher.hold(.load)
        let first = traced("first") { try await lists[1].requireData() }
        try await until("the first caller waits") { lists.waiting(1) == 1 }
        let second = traced("second") { await lists[1].refresh() }
        try await until("both callers wait") { lists.waiting(1) == 2 }
        cacher.release()
        _ = try await (first.value, second.value)
        #expect(tracer.spans == ["first"])
    }

    @Test(arguments: Backing.allCases)
    func `C9, C22: the caller's cancellation does not reach the fetch`(_ backing: Backing) async throws {
        let tracer = Tracer()
        let lists = lists(tracer, backing) { $0.unwantedFetch = .complete }
        tracer.fetches.hold()
        let caller = traced("caller") { try await lists[1].requireData() }
        try await tracer.fetches.started(count: 1)
        caller.cancel()
        #expect(await caller.outcome == "CancellationError")
        let joined = traced("joined") { try await lists[1].requireData() }
        try await until("the second caller waits") { lists.waiting(1) == 1 }
        tracer.fetches.release()
        #expect(try await joined.value == [1])
        #expect(tracer.spans == ["caller"])
    }

    @Test func `C9, C22: a fetch that no caller wants is canceled after its grace period`() async throws {
        let (tracer, time) = (Tracer(), ManualTime())
        let lists = lists(tracer, time: time)
        tracer.fetches.hold()
        let caller = traced("caller") { try await lists[1].requireData() }
        try await tracer.fetches.started(count: 1)
        await caller.cancelAndWait()
        try await time.advance(by: .seconds(1), sleepers: 1)
        try await tracer.fetches.ended(count: 1)
        try await until("the list is idle") { lists.liveKeys == 0 }
    }

    @Test func `C12, C22: a retry has the values of the fetch`() async throws {
        let time = ManualTime()
        let script = ScriptedPaginationFetcher<Int, Int>(.failure(Offline()), .page([1]))
        let tracer = Tracer(script)
        let list = lists(tracer, time: time) { $0.retry = RetryPolicy(attempts: 2) }[1]
        let caller = traced("caller") { try await list.requireData() }
        try await time.advance(by: .seconds(60), sleepers: 1)
        #expect(try await caller.value == [1])
        #expect(tracer.spans == ["caller", "caller"])
    }

    @Test(arguments: Backing.allCases)
    func `C16, C22: a fetch by a trigger has no values, even those of the task that registered it`(_ backing: Backing) async throws {
        let tracer = Tracer()
        let lists = lists(tracer, backing)
        let bell = Bell()
        try await traced("registration") { _ = lists.revalidate(on: bell) }.value
        let observing = traced("observer") { for await _ in lists[1].publish() {} }
        try await until("the list is loaded") { lists.lists.runningFetches == 0 && tracer.spans.count == 1 }
        try await traced("bell") { try await bell.ring() }.value
        try await until("the trigger fetches") { tracer.spans.count == 2 }
        #expect(tracer.spans == ["observer", "none"])
        observing.cancel()
        try await observing.value
    }

    @Test func `C10, C22: a fetch after expiry has no values`() async throws {
        let (tracer, time) = (Tracer(), ManualTime())
        let lists = lists(tracer, over: GatedCacher(expiry: .after(.seconds(60))), time: time) { $0.revalidatesOnExpiry = true }
        let observing = traced("observer") { for await _ in lists[1].publish() {} }
        try await time.advance(by: .seconds(61), sleepers: 1)
        try await until("the content is fetched again") { tracer.spans.count == 2 }
        #expect(tracer.spans == ["observer", "none"])
        observing.cancel()
        try await observing.value
    }

    @Test(arguments: Backing.allCases)
    func `C22: prefetching and a page request that the store repeats have no values`(_ backing: Backing) async throws {
        let tracer = Tracer()
        let lists = lists(tracer, backing)
        try await traced("prefetch") { _ = lists.prefetch([1]) }.value
        try await until("the list is prefetched") { tracer.spans.count == 1 && lists.liveKeys == 0 }
        let observer = RecordingObserver(lists[1].publish())
        try await observer.next { $0.isCompleted }
        tracer.fetches.hold()
        let page = traced("page") { await lists[1].requestNextData() }
        try await tracer.fetches.started(count: 2)
        let refetch = traced("refetch") { await lists[1].invalidate() }
        try await tracer.fetches.started(count: 3)
        try await refetch.value
        tracer.fetches.release()
        #expect(try await page.value == .loaded)
        #expect(tracer.spans == ["none", "page", "refetch", "none"])
        tracer.fetches.hold()
        let next = traced("next") { await lists[1].requestNextData() }
        try await tracer.fetches.started(count: 5)
        try await traced("update") { await lists[1].update([9]) }.value
        try await tracer.fetches.started(count: 6)
        tracer.fetches.release()
        #expect(try await next.value == .loaded)
        #expect(tracer.spans.suffix(2) == ["next", "none"])
    }

    @Test(arguments: Backing.withCacher)
    func `C15, C22: a caller that needs no fetch leaves no context behind`(_ backing: Backing) async throws {
        let tracer = Tracer()
        let lists = lists(tracer, backing)
        let counter = LifeCounter()
        for key in 0..<100 {
            await lists[key].update([key])
            let caller = Held.$life.withValue(counter.make()) { Task { [lists] in try await lists[key].requireData() } }
            _ = try await caller.value
        }
        try await until("the engine is idle") { lists.lists.engineIsIdle }
        #expect(lists.lists.engine.state.withLock { $0.starters.isEmpty })
        try await counter.none()
    }

    @Test func `C15, C22: a store that is released while it reads the cache leaves no task behind`() async throws {
        let (counter, cacher) = (LifeCounter(), GatedCacher<Int, Int>())
        cacher.hold(.load)
        do {
            let store = Store(
                cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting(), policy: StorePolicy(fetchContext: .firstCaller))
            let caller = Held.$life.withValue(counter.make()) { Task { try await store[1].requireData() } }
            try await cacher.began(.load)
            await caller.cancelAndWait()
        }
        cacher.release()
        try await counter.none()
    }

    @Test func `C22: by default a fetch has no values`() async throws {
        let tracer = Tracer()
        let list = lists(tracer) { $0.fetchContext = .detached }[1]
        _ = try await traced("caller") { try await list.requireData() }.value
        _ = try await traced("caller") { await list.requestNextData() }.value
        #expect(tracer.spans == ["none", "none"])
        #expect(StorePolicy.default.fetchContext == .detached)
    }

    @Test func `C22: a fetch inside a fetch has the values of the caller of the outer one`() async throws {
        let policy = StorePolicy(fetchContext: .firstCaller)
        let seen = WatchedState("")
        let inner = Store<Int, Int>(
            cacher: MemoryCacher(),
            fetcher: ClosureFetcher { key in
                seen.update { $0 = Self.span }
                return key
            }, policy: policy)
        let outer = Store<Int, Int>(
            cacher: MemoryCacher(), fetcher: ClosureFetcher { key in try await inner[key].requireData() }, policy: policy)
        #expect(try await traced("caller") { try await outer[1].requireData() }.value == 1)
        #expect(seen.current == "caller")
    }

    @Test func `C22: a fetch with a lease of a shared cacher has the values of its caller`() async throws {
        let directory = temporaryURL()
        let seen = WatchedState("")
        let store = Store<Int, Int>(
            cacher: FileCacher(directory: directory, sharing: .processes),
            fetcher: ClosureFetcher { key in
                seen.update { $0 = Self.span }
                return key
            }, policy: StorePolicy(fetchContext: .firstCaller))
        #expect(try await traced("caller") { try await store[1].requireData() }.value == 1)
        #expect(seen.current == "caller")
    }
}

/// An object that lives as long as the tasks that inherit it.
private enum Held {
    @TaskLocal static var life: LifeCounter.Life?
}
