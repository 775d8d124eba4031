import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import StoreResilience

/// A fetcher behind a breaker that opens after three failures within ten seconds and holds for thirty.
private struct Guarded {
    let time = ManualTime()
    let script = ScriptedFetcher<Int, Int>()
    let breaker: CircuitBreaker
    let fetcher: DecoratedOrigin<ScriptedFetcher<Int, Int>>

    init(opensAfter failures: Int = 3) {
        breaker = CircuitBreaker(opensAfter: failures, within: .seconds(10), holdsFor: .seconds(30), time: time)
        fetcher = script.guarded(by: breaker)
    }

    func fetch(_ key: Int = 1) async throws { _ = try await fetcher.respond(to: .content(key, revalidating: nil)) }

    /// Lets fetches end with these errors; `nil` is a success.
    ///
    /// - Returns: The state of the breaker after the last of them.
    @discardableResult
    func end(_ errors: (any Error)?...) async -> CircuitBreaker.State {
        for error in errors {
            script.enqueue(error.map { .failure($0) } ?? .success(1))
            _ = try? await fetch()
        }
        return breaker.state
    }

    /// Opens the breaker, and waits until a trial may begin.
    func openAndHold() async {
        await end(Offline(), Offline(), Offline())
        time.advance(by: .seconds(30))
    }

    /// Begins a trial, which is attempt 4, and another one after the hold time of the first, which is attempt 5.
    func heldTrials() async throws -> (first: Task<Void, any Error>, second: Task<Void, any Error>) {
        await openAndHold()
        script.hold()
        let first = Task { try await fetch() }
        try await script.started(count: 4)
        time.advance(by: .seconds(30))
        let second = Task { try await fetch() }
        try await script.started(count: 5)
        return (first, second)
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct CircuitBreakerTests {
    @Test func `C20: failures in a row open the breaker, and it refuses every key at once`() async throws {
        let test = Guarded()
        #expect(await test.end(Offline(), Offline()) == .closed)
        #expect(await test.end(Offline()) == .open)
        test.time.advance(by: .seconds(12))
        for key in 1...1_000 {
            let error = await #expect(throws: FetchError.self) { try await test.fetch(key) }
            #expect(error?.code == .circuitOpen && error?.retryAfter == .seconds(18) && error?.underlyingError is Offline)
        }
        #expect(test.script.startedCount == 3)
    }

    @Test func `C20: failures outside the window, and those before a response, do not count`() async throws {
        let test = Guarded()
        await test.end(Offline(), Offline())
        test.time.advance(by: .seconds(10) + .nanoseconds(1))
        #expect(await test.end(Offline(), Offline()) == .closed)
        #expect(await test.end(nil, Offline(), Offline()) == .closed)
        test.time.advance(by: .seconds(10))
        #expect(await test.end(Offline()) == .open)
    }

    @Test func `C20: a permanent failure is about its key and does not count, and neither do a cancellation and a refusal`() async throws {
        let test = Guarded()
        for _ in 1...10 { await test.end(Advising(failureKind: .permanent, allowsStale: false)) }
        await test.end(Offline(), Offline())
        let others: [any Error] = [CancellationError(), FetchError(.failedRecently, "a memory below"), StoreError(.closed, "signed out")]
        for error in others + others + others { await test.end(error) }
        #expect(test.breaker.state == .closed)
        #expect(await test.end(Advising(failureKind: .fatal)) == .open)
    }

    @Test func `C20: a permanent failure that allows stale content, such as status 500, counts as an outage`() async throws {
        let test = Guarded()
        for _ in 1...3 { await test.end(Advising(failureKind: .permanent, allowsStale: true)) }
        #expect(test.breaker.state == .open)
        let error = await #expect(throws: FetchError.self) { try await test.fetch(2) }
        #expect(error?.failureKind == .transient && error?.allowsStale == true && error?.retryAfter == .seconds(30))
        test.time.advance(by: .seconds(30))
        #expect(await test.end(Advising(failureKind: .permanent, allowsStale: true)) == .open)
    }

    @Test(arguments: [ScriptedCancellation.honored, .ignored], [false, true])
    func `C19, C20: an attempt that the store cancels at its limit counts as a failure, even if it responds later`(
        _ cancellation: ScriptedCancellation, _ responds: Bool
    ) async throws {
        let test = Guarded(opensAfter: 2)
        test.script.cancellation = cancellation
        let store = Store(
            cacher: MemoryCacher<Int, Int>(),
            fetcher: test.script.rememberingFailures(for: .seconds(60), time: test.time).guarded(by: test.breaker),
            policy: StorePolicy(fetchTimeLimit: .seconds(5)), time: test.time)
        test.script.hold()
        for key in 1...2 {
            let call = Task { try await store[key].requireData() }
            try await test.script.started(count: key)
            try await test.time.sleepers(atLeast: 1)
            test.time.advance(by: .seconds(5))
            let error = await #expect(throws: StoreError.self) { try await call.value }
            #expect(error?.code == .fetchTimedOut)
        }
        // A fetcher that ignores its cancellation ends here.
        if responds { test.script.enqueue(.success(1), .success(2)) }
        test.script.release()
        for await state in test.breaker.states where state == .open { break }
        let refused = await #expect(throws: FetchError.self) { try await store[1].requireData() }
        #expect(refused?.code == .circuitOpen && (refused?.underlyingError as? StoreError)?.code == .fetchTimedOut)
        test.time.advance(by: .seconds(30))
        let remembered = await #expect(throws: FetchError.self) { try await store[1].requireData() }
        #expect(remembered?.code == .failedRecently)
    }

    @Test func `C20, C22: a fetch does not inherit the passed time limit of the fetch that has caused it`() async throws {
        let test = Guarded(opensAfter: 1)
        let inner = Store(
            cacher: MemoryCacher<Int, Int>(), fetcher: test.fetcher,
            policy: StorePolicy(unwantedFetch: .complete, fetchContext: .firstCaller), time: test.time)
        let outer = Store(cacher: MemoryCacher<Int, Int>(), policy: StorePolicy(fetchTimeLimit: .seconds(5)), time: test.time) { key in
            try await inner[key].requireData()
        }
        test.script.hold()
        let call = Task { try await outer[1].requireData() }
        try await test.script.started(count: 1)
        try await test.time.sleepers(atLeast: 1)
        test.time.advance(by: .seconds(5))
        await #expect(throws: StoreError.self) { try await call.value }
        try await test.script.answer(1, with: .failure(Advising(failureKind: .permanent, allowsStale: false)))
        try await until("the inner fetch has ended") { inner.snapshot().fetches == 0 }
        #expect(test.breaker.state == .closed)
    }

    @Test func `C20: of 1 000 keys a half-open breaker lets one try, and its response closes the breaker`() async throws {
        let test = Guarded()
        await test.openAndHold()
        #expect(test.breaker.state == .halfOpen)
        test.script.hold()
        test.script.enqueue(.success(1))
        let trial = Task { try await test.fetch() }
        try await test.script.started(count: 4)
        #expect(test.breaker.state == .halfOpen)
        await withTaskGroup { group in
            for key in 1...1_000 { group.addTask { await #expect(throws: FetchError.self) { try await test.fetch(key) } } }
        }
        #expect(test.script.startedCount == 4)
        test.script.release()
        try await trial.value
        #expect(test.breaker.state == .closed)
        #expect(await test.end(Offline(), Offline()) == .closed)
    }

    @Test func `C20: a permanent failure of the trial closes the breaker, because the origin responds`() async throws {
        let test = Guarded()
        await test.openAndHold()
        #expect(await test.end(Advising(failureKind: .permanent, allowsStale: false)) == .closed)
    }

    @Test func `C20: a failed trial opens the breaker for the hold time again`() async throws {
        let test = Guarded()
        await test.openAndHold()
        #expect(await test.end(Advising(failureKind: .fatal)) == .open)
        test.time.advance(by: .seconds(29))
        let error = await #expect(throws: FetchError.self) { try await test.fetch() }
        #expect(error?.underlyingError is Advising && error?.retryAfter == .seconds(1))
        test.time.advance(by: .seconds(1))
        #expect(await test.end(nil) == .closed)
    }

    @Test func `C20: a canceled trial leaves its place to the next fetch`() async throws {
        let test = Guarded()
        await test.openAndHold()
        #expect(await test.end(CancellationError()) == .halfOpen)
        #expect(await test.end(nil) == .closed)
    }

    @Test(arguments: [1, 2]) func `C20: a trial may wait for fetches of the same origin`(depth: Int) async throws {
        struct Outer: Fetcher {
            let inner: Store<Int, Int>
            func fetch(param: Int) async throws -> Int { try await inner[param].requireData() }
        }
        let test = Guarded()
        await test.openAndHold()
        var store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: test.fetcher, time: test.time)
        for _ in 1...depth {
            store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: Outer(inner: store).guarded(by: test.breaker), time: test.time)
        }
        let outermost = store
        test.script.enqueue(.success(1))
        for _ in 1...depth {
            let refusal = await #expect(throws: FetchError.self) { try await outermost[1].requireData() }
            #expect(refusal?.code == .circuitOpen && test.breaker.state == .halfOpen)
        }
        #expect(try await outermost[1].requireData() == 1)
        #expect(test.breaker.state == .closed)
    }

    @Test func `C20: a canceled fetch beside a trial lets no second trial begin`() throws {
        let start = ManualTime().now
        var machine = CircuitMachine(limit: 1, window: .seconds(10), hold: .seconds(30))
        machine.fetchEnded(machine.epoch, .failed(Offline()), at: start)
        let now = start.advanced(by: .seconds(30))
        machine.fetchEnded(try machine.fetchRequested(at: now).get(), .unknown(isOpen: true), at: now)
        let trial = try machine.fetchRequested(at: now).get()
        machine.fetchEnded(try machine.fetchRequested(at: now).get(), .unknown(isOpen: false), at: now)
        #expect(throws: FetchError.self) { try machine.fetchRequested(at: now).get() }
        machine.fetchEnded(trial, .responded, at: now)
        #expect(machine.state(at: now) == .closed)
    }

    @Test func `C20: a trial that does not end leaves its place after the hold time`() async throws {
        let test = Guarded()
        let (first, second) = try await test.heldTrials()
        // The first trial is outdated.
        try await test.script.answer(4, with: .failure(Offline()))
        _ = await first.result
        #expect(test.breaker.state == .halfOpen)
        try await test.script.answer(5, with: .success(1))
        try await second.value
        #expect(test.breaker.state == .closed)
    }

    @Test(arguments: [nil, Advising(failureKind: .permanent, allowsStale: false) as (any Error)?])
    func `C20: a response to a trial closes the breaker even after another trial has begun`(_ error: (any Error)?) async throws {
        let test = Guarded()
        let (first, second) = try await test.heldTrials()
        try await test.script.answer(4, with: error.map { .failure($0) } ?? .success(1))
        _ = await first.result
        #expect(test.breaker.state == .closed)
        // The later trial is of an older state now.
        try await test.script.answer(5, with: .failure(Offline()))
        _ = await second.result
        #expect(test.breaker.state == .closed)
    }

    @Test(arguments: [nil, Offline() as (any Error)?])
    func `C20: the end of a fetch that began before the last change has no effect`(_ error: (any Error)?) async throws {
        let test = Guarded()
        test.script.hold()
        let early = Task { try await test.fetch() }
        try await test.script.started(count: 1)
        for number in 2...4 {
            let fetch = Task { try await test.fetch() }
            try await test.script.started(count: number)
            try await test.script.answer(number, with: .failure(Offline()))
            _ = await fetch.result
        }
        test.time.advance(by: .seconds(30))
        let trial = Task { try await test.fetch() }
        try await test.script.started(count: 5)
        try await test.script.answer(1, with: error.map { .failure($0) } ?? .success(1))
        _ = await early.result
        #expect(test.breaker.state == .halfOpen)
        test.script.release()
        _ = await trial.result
    }

    @Test func `C20: a failure that a later one replaces may read the breaker while it is released`() async {
        final class ReadingFailure: Error {
            let breaker: CircuitBreaker
            init(_ breaker: CircuitBreaker) { self.breaker = breaker }
            deinit { _ = breaker.state }
        }
        let test = Guarded()
        for _ in 1...3 { await test.end(ReadingFailure(test.breaker)) }
        #expect(test.breaker.state == .open)
    }

    @Test func `C20: state and delay are those of the moment of reading`() async throws {
        let test = Guarded()
        #expect(test.breaker.retryAfter == nil)
        await test.end(Offline(), Offline(), Offline())
        test.time.advance(by: .seconds(29))
        #expect(test.breaker.state == .open && test.breaker.retryAfter == .seconds(1))
        test.time.advance(by: .seconds(1))
        #expect(test.breaker.state == .halfOpen && test.breaker.retryAfter == nil)
    }

    @Test func `C17, C20: a refused fetch is reported as refused, and a failed one as failed`() async throws {
        let time = ManualTime()
        let breaker = CircuitBreaker(opensAfter: 1, time: time)
        let fetcher = ScriptedFetcher<Int, Int> { _ in .failure(Offline()) }
        let events = EventRecorder<Int>()
        let store = Store(
            cacher: MemoryCacher<Int, Int>(), fetcher: fetcher.guarded(by: breaker), policy: StorePolicy(retry: .never), time: time,
            onEvent: events.record)
        for key in 1...2 { await #expect(throws: (any Error).self) { try await store[key].requireData() } }
        func isEnd(_ kind: StoreEventKind) -> Bool { if case .fetchEnded = kind { true } else { false } }
        try await events.recorded(count: 2) { isEnd($0.kind) }
        let ends = events.events.filter { isEnd($0.kind) }.map { "\($0)" }
        #expect(ends[0].contains("failed: Offline()") && ends[1].contains("refused: FetchError.circuitOpen"))
    }

    @Test func `C20: the states are a sequence that begins with the current state`() async throws {
        let test = Guarded(opensAfter: 0)
        let seen = WatchedState<[CircuitBreaker.State]>([])
        let isOver = WatchedState(false)
        let observer = Task { [breaker = test.breaker] in
            for await state in breaker.states { seen.update { $0.append(state) } }
            isOver.update { $0 = true }
        }
        try await until("the observer sees the current state") { seen.current == [.closed] }
        await test.end(Offline())
        try await until("the observer sees the open breaker") { seen.current == [.closed, .open] }
        try await test.time.sleepers(atLeast: 1)
        test.time.advance(by: .seconds(30))
        try await until("the observer sees that a trial may begin") { seen.current == [.closed, .open, .halfOpen] }
        await test.end(CancellationError())
        try await until("the observer sees the trial") { seen.current == [.closed, .open, .halfOpen] }
        await test.end(nil)
        try await until("the observer sees the closed breaker") { seen.current == [.closed, .open, .halfOpen, .closed] }
        observer.cancel()
        try await until("the sequence ends") { isOver.current }
    }

    @Test func `C20: a breaker is shared by stores and lists of one origin, and stale content is served`() async throws {
        let time = ManualTime()
        let breaker = CircuitBreaker(opensAfter: 2, time: time)
        let users = ScriptedFetcher<Int, Int>(.success(1), .failure(Offline()), .failure(Offline()))
        let pages = ScriptedPaginationFetcher<Int, Int>()
        let store = Store(
            cacher: MemoryCacher<Int, Int>(expiry: .after(.seconds(1))), fetcher: users.guarded(by: breaker),
            policy: StorePolicy(staleIfError: .seconds(600)), time: time)
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: pages.guarded(by: breaker), time: time)
        #expect(try await store[1].requireData() == 1)
        time.advance(by: .seconds(2))
        for _ in 1...10 { #expect(try await store[1].requireData() == 1) }
        #expect(users.startedCount == 3 && breaker.state == .open)
        await #expect(throws: FetchError.self) { try await lists[1].requireData() }
        #expect(pages.startedCount == 0)
    }

    @Test func `C19, C20: a memory behind a breaker and before it see only failures of the origin`() async throws {
        let time = ManualTime()
        let breaker = CircuitBreaker(opensAfter: 2, holdsFor: .seconds(5), time: time)
        let script = ScriptedFetcher<Int, Int> { _ in .failure(Offline()) }
        let inner = script.rememberingFailures(for: .seconds(1), time: time).guarded(by: breaker)
        for _ in 1...10 { _ = try? await inner.respond(to: .content(1, revalidating: nil)) }
        #expect(breaker.state == .closed && script.startedCount == 1)
        let outer = script.guarded(by: breaker).rememberingFailures(for: .seconds(60), time: time)
        for key in 2...4 { _ = try? await outer.respond(to: .content(key, revalidating: nil)) }
        #expect(breaker.state == .open && script.startedCount == 2)
        time.advance(by: .seconds(5))
        // The refusal of key 3 was not remembered, so the key may be the trial.
        await #expect(throws: Offline.self) { try await outer.respond(to: .content(3, revalidating: nil)) }
    }

    @Test func `C20: a breaker opens after five failures unless it is told otherwise`() async throws {
        let breaker = CircuitBreaker(time: ManualTime())
        let fetcher = ScriptedFetcher<Int, Int> { _ in .failure(Offline()) }.guarded(by: breaker)
        for key in 1...5 {
            #expect(breaker.state == .closed)
            await #expect(throws: Offline.self) { try await fetcher.respond(to: .content(key, revalidating: nil)) }
        }
        #expect(breaker.state == .open)
    }
}
