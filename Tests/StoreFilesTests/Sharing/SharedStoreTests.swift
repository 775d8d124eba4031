import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
import StorePlatform
@testable import StoreCore
@testable import StoreFiles

/// Tests D1 to D7 with several stores, each with a cacher of its own on one directory, as several processes would have them.
struct SharedStoreTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    /// One process of several.
    final class Process: Sendable {
        let fetcher: ScriptedFetcher<Int, Int>
        let cacher: FileCacher<Int, Int>
        let store: Store<Int, Int>

        init(_ directory: URL, isTiered: Bool = true, scope: CacheScope? = nil, fetcher: ScriptedFetcher<Int, Int> = .counting()) {
            self.fetcher = fetcher
            cacher = FileCacher(directory: directory, sharing: .processes)
            store = Store(isTiered ? .tiered : .plain, over: cacher, fetcher: fetcher, scope: scope)
        }

        func observer(_ key: Int) -> RecordingObserver<Int> { RecordingObserver(store[key].publish()) }
    }

    private func process(isTiered: Bool = true, fetcher: ScriptedFetcher<Int, Int> = .counting()) -> Process {
        Process(place.url, isTiered: isTiered, fetcher: fetcher)
    }

    private func until(_ observer: RecordingObserver<Int>, shows content: Int) async throws {
        try await Trials.until("the observer sees \(content)") { observer.states.last?.content == content }
    }

    @Test func `C23: clearing a closed scope again changes no file, nor a file of a new scope`() async throws {
        func open() async throws -> (CacheScope, FileCacher<Int, Int>) {
            let scope = CacheScope(directory: place.url)
            let cacher = FileCacher<Int, Int>(directory: scope.directory(named: "numbers"), sharing: .processes)
            let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting(), scope: scope)
            _ = try await store[1].requireData()
            try await store.waitUntilSaved()
            return (scope, cacher)
        }
        let (former, _) = try await open()
        try await former.close(clearing: true)
        try FileManager.default.removeItem(at: place.url)
        try await former.close(clearing: true)
        #expect(!FileManager.default.fileExists(atPath: place.url.path(percentEncoded: false)))
        let (_, cacher) = try await open()
        try await former.close(clearing: true)
        #expect(try await cacher.load(param: 1) != nil)
    }

    // MARK: Changes arrive

    @Test func `C13, D1: a page request is repeated for a list that another process has saved`() async throws {
        func list(_ fetcher: ScriptedPaginationFetcher<Int, Int>) -> PaginationStoreFlowable<Int, Int> {
            PaginationStore(cacher: FileCacher<Int, [Int]>(directory: place.url, sharing: .processes), fetcher: fetcher)[1]
        }
        let fetcher = ScriptedPaginationFetcher<Int, Int> { .page([$0.pageKey.flatMap { Int($0) } ?? 0], nextKey: "1") }
        let (a, b) = (list(fetcher), list(ScriptedPaginationFetcher()))
        let observer = try await observeCompleted(a.publish())
        fetcher.hold()
        let page = Task { await a.requestNextData() }
        try await fetcher.started(count: 2)
        await b.update([5], nextKey: "6", prevKey: nil)
        try await fetcher.started(count: 3)
        fetcher.release()
        #expect(await page.value == .loaded)
        try await observer.next { $0.content == [5, 6] }
        #expect(fetcher.requests.map(\.pageKey) == [nil, "1", "6"])
    }

    @Test func `C6, D3: reads, changes, clearing and invalidations side by side leave the store working`() async throws {
        let fetcher = ScriptedFetcher<Int, Int> { _ in
            try? await Task.sleep(for: .milliseconds(.random(in: 0..<4)))
            return .success(1)
        }
        let store = process(isTiered: false, fetcher: fetcher).store
        let end = ContinuousClock.now + .seconds(rounds(40, quick: 1))
        await withTaskGroup { group in
            for _ in 0..<2 {
                group.addTask {
                    while .now < end {
                        _ = await store[.random(in: 0..<4)].getData()
                        try? await Task.sleep(for: .microseconds(200))
                    }
                }
                group.addTask {
                    while .now < end {
                        await store[.random(in: 0..<4)].update(2)
                        try? await Task.sleep(for: .microseconds(200))
                    }
                }
            }
            group.addTask {
                while .now < end {
                    try? await store.clear()
                    try? await store.invalidate { _ in true }
                    try? await Task.sleep(for: .milliseconds(2))
                }
            }
        }
        await store[1].update(7)
        try await store.waitUntilSaved()
        #expect(await store[1].getData(from: .cache) == 7)
    }

    @Test func `D1, E10: a process that has only saved follows the changes of another`() async throws {
        let (a, b) = (process(), process())
        await a.store[1].update(1)
        try await a.store.waitUntilSaved()
        let observer = a.observer(1)
        try await until(observer, shows: 1)
        await b.store[1].update(2)
        try await until(observer, shows: 2)
        #expect(try await a.store[1].requireData() == 2)
    }

    @Test(arguments: [true, false])
    func `D1: an update in one process reaches an observer and the memory of another`(isTiered: Bool) async throws {
        let (a, b) = (process(isTiered: isTiered), process(isTiered: isTiered))
        let observer = b.observer(1)
        try await until(observer, shows: 1)
        await b.store[2].update(20)
        for value in 10..<15 {
            await a.store[1].update(value)
            try await until(observer, shows: value)
        }
        await a.store[2].update(30)
        try await Trials.until("an idle key follows") { await b.store[2].getData(from: .cache) == 30 }
        #expect(b.fetcher.requests.count == 1)
        #expect(a.fetcher.requests.isEmpty)
    }

    @Test func `D1: a removal and an invalidation in one process fetch an observed key again`() async throws {
        let (a, b) = (process(), process())
        let observer = b.observer(1)
        try await until(observer, shows: 1)
        await a.store[1].clear()
        try await until(observer, shows: 2)
        // Before the save there is nothing to invalidate for the other process.
        try await b.store.waitUntilSaved()
        await a.store[1].invalidate()
        try await until(observer, shows: 3)
    }

    @Test func `D2: a store does not load its own changes`() async throws {
        let a = process()
        let observer = a.observer(1)
        try await until(observer, shows: 1)
        for value in 10..<30 { await a.store[1].update(value) }
        try await a.store.waitUntilSaved()
        // Every notice has been handled: that of another process comes after them.
        let b = process()
        await b.store[2].update(1)
        try await Trials.until("the notice arrives") { a.cacher.position.number >= b.cacher.position.number }
        try await until(observer, shows: 29)
        let contents = observer.states.compactMap(\.content)
        #expect(zip(contents, contents.dropFirst()).allSatisfy { $0 <= $1 })
        let key = a.store.engine.state.withLock { $0.live.values.first { $0.value.param == BoxedKey(1) }?.value.machine }
        #expect(key?.saving.elsewhere.unread == nil && key?.origin.reading == nil)
    }

    @Test func `D2: a store loads a record once, however often it changes it`() async throws {
        let cacher = LoadCounter(place.url)
        let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting())
        let observer = RecordingObserver(store[1].publish())
        try await until(observer, shows: 1)
        for value in 10..<30 { await store[1].update(value) }
        await store[1].update { $0 += 1 }
        await store[1].invalidate()
        try await until(observer, shows: 2)
        try await store.waitUntilSaved()
        // Every notice has been handled: that of another process comes after them.
        let other = process()
        await other.store[2].update(1)
        try await Trials.until("the notice arrives") { cacher.position.number >= other.cacher.position.number }
        #expect(cacher.loads == 1)
        await other.store[1].update(50)
        try await until(observer, shows: 50)
        #expect(cacher.loads == 2)
    }

    // MARK: No lost update

    @Test func `D3: additions of several stores are never lost`() async throws {
        let processes = (0..<3).map { _ in process() }
        await processes[0].store[1].update(0)
        await withTaskGroup { group in
            for process in processes { for _ in 0..<30 { group.addTask { await process.store[1].update { $0 += 1 } } } }
        }
        for process in processes { try await process.store.waitUntilSaved() }
        #expect(try await processes[0].cacher.load(param: 1)?.content == 90)
        for process in processes {
            try await Trials.until("every store has the sum") { await process.store[1].getData(from: .cache) == 90 }
        }
    }

    @Test func `D3: the result of an older fetch does not overwrite an update of another process`() async throws {
        let (a, b) = (process(), process())
        let cacher = b.cacher
        _ = try await cacher.load(param: 1)
        // The base of a fetch that began before the update.
        let base = cacher.position
        await a.store[1].update(50)
        #expect(!(try await cacher.save(record(7), param: 1, over: base).isSaved))
        #expect(try await b.store[1].requireData() == 50)
    }

    @Test func `D3: an update with a value overwrites the update of another process`() async throws {
        let (a, b) = (process(), process())
        let observers = [a.observer(1), b.observer(1)]
        for round in 0..<10 {
            async let first: Void = a.store[1].update(1000 + round)
            async let second: Void = b.store[1].update(2000 + round)
            _ = await (first, second)
            try await a.store.waitUntilSaved()
            try await b.store.waitUntilSaved()
            let last = try #require(try await a.cacher.load(param: 1)?.content)
            #expect(last % 1000 == round)
            for observer in observers { try await until(observer, shows: last) }
        }
    }

    // MARK: One fetch

    @Test func `D5: only one of several stores with many callers fetches a missing key`() async throws {
        let log = Lock(0)
        let processes = (0..<4).map { _ in
            Store(
                cacher: TieredCacher(over: FileCacher<Int, Int>(directory: place.url, sharing: .processes)),
                policy: StorePolicy(leaseDuration: hangLimit)
            ) { key in
                log.withLock { $0 += 1 }
                await otherTasksRun()
                return key
            }
        }
        for key in 1...rounds(10) {
            await withTaskGroup { group in
                for store in processes { for _ in 0..<20 { group.addTask { #expect(await store[key].getData() == key) } } }
            }
            #expect(log.withLock { $0 } == key)
        }
    }

    @Test func `D5: a failure fails the waiters of other stores once, with its advice`() async throws {
        struct Refusal: Error, FailureAdvising {
            var failureKind: FailureKind { .permanent }
            var retryAfter: Duration? { .seconds(9) }
        }
        let first = Lock(0)
        let second = Lock(0)
        let gate = Gate()
        let a = Store(
            cacher: FileCacher<Int, Int>(directory: place.url, sharing: .processes), policy: StorePolicy(leaseDuration: hangLimit)
        ) { _ in
            first.withLock { $0 += 1 }
            await gate.wait()
            throw Refusal()
        }
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let b = Store(cacher: cacher, policy: StorePolicy(retry: RetryPolicy(attempts: 5), leaseDuration: hangLimit)) { _ in
            second.withLock { $0 += 1 }
            return 1
        }
        let holder = Task { try await a[1].requireData() }
        try await Trials.until("the fetch began") { first.withLock { $0 } == 1 }
        let waiter = Task { try await b[1].requireData() }
        try await Trials.until("the other store waits") { cacher.shared?.leaseEvents.current.waited.count == 1 }
        gate.open()
        await #expect(throws: Refusal.self) { try await holder.value }
        let error = try await #require(throws: FetchFailedElsewhere.self) { try await waiter.value() }
        #expect(error.message.contains("Refusal"))
        #expect(error.failureKind == .permanent && error.retryAfter == .seconds(9) && error.attempts > 1 && !error.allowsStale)
        #expect(second.withLock { $0 } == 0)
        #expect(try await b[1].requireData() == 1)
    }

    /// Fetches content that must not be stored.
    private struct Private: RevalidatingFetcher {
        let gate: Gate
        let began: @Sendable () -> Void

        func fetch(param: Int, revalidating: Validator?) async throws -> FetchResult<Int> {
            began()
            await gate.wait()
            return .modified(param, Freshness(storage: .forbidden), nil)
        }
    }

    @Test func `D2, D5: observers of content that must not be stored do not make other stores fetch it`() async throws {
        let gate = Gate()
        let began = Lock(0)
        gate.open()
        let stores = (0..<2).map { _ in
            Store(
                cacher: TieredCacher(over: FileCacher<Int, Int>(directory: place.url, sharing: .processes)),
                fetcher: Private(gate: gate) { began.withLock { $0 += 1 } })
        }
        let observers = stores.map { RecordingObserver($0[1].publish()) }
        let others = stores.map { RecordingObserver($0[2].publish()) }
        for observer in observers + others { try await Trials.until("the content is there") { observer.states.last?.content != nil } }
        // A change of another key arrives after all earlier changes.
        for value in 10..<20 {
            await stores[value % 2][3].update(value)
            try await Trials.until("the change arrives") { await stores[1 - value % 2][3].getData(from: .cache) == value }
        }
        #expect(began.withLock { $0 } == 4)
        #expect(observers.allSatisfy { $0.states.last?.content == 1 })
        // An invalidation concerns the other store, too.
        await stores[0][1].invalidate()
        try await Trials.until("both stores fetch again") { began.withLock { $0 } == 6 }
    }

    @Test func `D5: after a result that must not be stored, each store fetches for itself`() async throws {
        let gate = Gate()
        let began = Lock(0)
        let cachers = (0..<3).map { _ in FileCacher<Int, Int>(directory: place.url, sharing: .processes) }
        let stores = cachers.map { cacher in
            Store(
                cacher: cacher, fetcher: Private(gate: gate) { began.withLock { $0 += 1 } },
                policy: StorePolicy(leaseDuration: hangLimit))
        }
        let callers = stores.map { store in Task { try await store[1].requireData() } }
        try await Trials.until("two wait for one") {
            cachers.count { $0.shared?.leaseEvents.current.waited.isEmpty == false } == 2 && began.withLock { $0 } == 1
        }
        gate.open()
        for caller in callers { #expect(try await caller.value() == 1) }
    }

    @Test func `D5: a fetch that is canceled gives its lease to the next store`() async throws {
        let a = Store(
            cacher: FileCacher<Int, Int>(directory: place.url, sharing: .processes),
            policy: StorePolicy(unwantedFetch: .cancel(after: .zero))
        ) { _ in
            try await untilCanceled()
            return 1
        }
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let b = Store(cacher: cacher) { _ in 2 }
        let holder = Task { try await a[1].requireData() }
        try await Trials.until("the lease is held") { try place.names.contains(".sharing") && leaseFiles() == 1 }
        let waiter = Task { try await b[1].requireData() }
        try await Trials.until("the other store waits") { cacher.shared?.leaseEvents.current.waited.count == 1 }
        holder.cancel()
        #expect(try await waiter.value() == 2)
    }

    @Test func `D5: a dropped fetch that ignores its cancellation does not delay the next one`() async throws {
        let (gate, began) = (Gate(), WatchedState(0))
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let store = Store(cacher: cacher, policy: StorePolicy(leaseDuration: hangLimit)) { _ in
            let number = began.increment()
            if number == 1 { await Task { await gate.wait() }.value }
            return number
        }
        let caller = Task { try await store[1].requireData() }
        try await began.wait { $0 == 1 ? () : nil }
        try await store.clear()
        #expect(try await caller.value() == 2)
        gate.open()
    }

    @Test func `D5: a fetch that a breaker refuses gives its lease to the next store`() async throws {
        struct Refusal: Error, FailureAdvising {
            var failureKind: FailureKind { .transient }
            var isRefusal: Bool { true }
        }
        let gate = Gate()
        let a = Store(cacher: FileCacher<Int, Int>(directory: place.url, sharing: .processes)) { _ in
            await gate.wait()
            throw Refusal()
        }
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let b = Store(cacher: cacher, policy: StorePolicy(leaseDuration: hangLimit)) { _ in 2 }
        let holder = Task { try await a[1].requireData() }
        try await Trials.until("the lease is held") { try place.names.contains(".sharing") && leaseFiles() == 1 }
        let waiter = Task { try await b[1].requireData() }
        try await Trials.until("the other store waits") { cacher.shared?.leaseEvents.current.waited.count == 1 }
        gate.open()
        await #expect(throws: Refusal.self) { try await holder.value }
        #expect(try await waiter.value() == 2)
    }

    private func leaseFiles() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: place.directory.path + "/.sharing").count { $0.hasSuffix(".lease") }
    }

    // MARK: Emptying

    @Test func `D7: clearing a store or a scope empties all processes`() async throws {
        let scope = CacheScope(directory: place.url)
        let users = scope.directory(named: "users")
        let (a, b) = (Process(users, scope: scope), Process(users))
        for round in 0..<3 {
            await a.store[1].update(round * 100)
            try await Trials.until("the change arrives") { await b.store[1].getData(from: .cache) == round * 100 }
            if round == 0 { try await a.store.clear() } else { try await scope.clear() }
            try await Trials.until("the other store is empty") { await b.store[1].getData(from: .cache) == nil }
        }
    }

    @Test func `D4: after a gap every live key and the memory are read again`() async throws {
        let (a, b) = (process(), process())
        let observer = b.observer(1)
        try await until(observer, shows: 1)
        await b.store[2].update(20)
        // The reader's queue is busy while the ring wraps.
        let shared = try #require(b.cacher.shared)
        let gate = DispatchSemaphore(value: 0)
        let isBusy = Lock(false)
        shared.queue.async {
            isBusy.withLock { $0 = true }
            gate.wait()
        }
        try await Trials.until("the queue is busy") { isBusy.withLock { $0 } }
        await a.store[1].update(10)
        await a.store[2].update(21)
        try await addChanges(2_060, in: place)
        gate.signal()
        try await until(observer, shows: 10)
        try await Trials.until("an idle key follows") { await b.store[2].getData(from: .cache) == 21 }
    }
}

/// Counts the loads of a shared cacher.
private final class LoadCounter: SharedCacher {
    private let files: FileCacher<Int, Int>
    private let count = Lock(0)

    init(_ directory: URL) { files = FileCacher(directory: directory, sharing: .processes) }

    var loads: Int { count.withLock { $0 } }
    var expiry: Expiry { files.expiry }
    var position: Revision { files.position }

    func load(param: Int) async throws -> CacheRecord<Int>? {
        count.withLock { $0 += 1 }
        return try await files.load(param: param)
    }

    func save(_ record: CacheRecord<Int>, param: Int) async throws { try await files.save(record, param: param) }
    func remove(param: Int) async throws { try await files.remove(param: param) }
    func removeAll() async throws { try await files.removeAll() }
    func keys() async throws -> [Int]? { try await files.keys() }

    func observeChanges(_ observer: @escaping @Sendable (CacherChange<Int>) -> Void) -> ChangeObservation { files.observeChanges(observer) }

    func save(_ record: CacheRecord<Int>, param: Int, over base: Revision) async throws -> SaveOutcome<Int> {
        try await files.save(record, param: param, over: base)
    }

    func remove(param: Int, over base: Revision) async throws -> SaveOutcome<Int> { try await files.remove(param: param, over: base) }
    func lease(_ param: Int, for duration: Duration) async throws -> LeaseOutcome { try await files.lease(param, for: duration) }
}

extension SharedStoreTests {
    @Test func `C23: closing a store of a shared directory ends its lease, and another process fetches at once`() async throws {
        let directory = try TemporaryDirectory()
        func store(_ fetcher: ScriptedFetcher<Int, Int>) -> Store<Int, Int> {
            Store(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("numbers"), sharing: .processes)), fetcher: fetcher,
                policy: StorePolicy(leaseDuration: .seconds(100_000)))
        }
        let (ours, theirs) = (ScriptedFetcher<Int, Int>.counting(cancellation: .ignored), ScriptedFetcher<Int, Int>.counting())
        let (mine, other) = (store(ours), store(theirs))
        ours.hold()
        let caller = Task { try await mine[1].requireData() }
        try await ours.started(count: 1)
        let waiter = Task { try await other[1].requireData() }
        let closing = Task { try await mine.close() }
        #expect(await caller.outcome == "StoreError")
        ours.release()
        try await closing.value
        #expect(try await waiter.value == 1)
        try await other.close()
        let files = try directory.fingerprint
        await mine[1].update(7)
        await other[1].update(7)
        #expect(try directory.fingerprint == files)
    }
}
