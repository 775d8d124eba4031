import StoreCore
import StoreCoreTesting
import StoreTrials
import Synchronization
import Testing
import Trials

@testable import StoreResilience

/// A batch fetcher whose requests are those of a script.
private struct Batching {
    let time = ManualTime()
    let script: ScriptedFetcher<[Int], [Int: Int]>
    let fetcher: BatchFetcher<Int, Int>

    init(
        limit: Int = 100,
        script: ScriptedFetcher<[Int], [Int: Int]> = ScriptedFetcher {
            .success(Dictionary(uniqueKeysWithValues: $0.param.map { ($0, 10 * $0) }))
        }
    ) {
        self.script = script
        fetcher = BatchFetcher(limit: limit, delay: .milliseconds(5), time: time) { params in
            guard case .modified(let contents, _, _) = try await script.fetch(param: params, revalidating: nil) else { throw Offline() }
            return contents
        }
    }

    /// The keys of each request.
    var requests: [[Int]] { script.requests.map(\.param) }

    /// Begins the fetches one after another.
    func begin(_ keys: some Sequence<Int>) async throws -> [Task<Int, any Error>] {
        var tasks: [Task<Int, any Error>] = []
        for key in keys {
            let count = fetcher.waitingCount
            tasks.append(Task { try await fetcher.fetch(param: key) })
            try await until("the fetch waits") { fetcher.waitingCount == count + 1 }
        }
        return tasks
    }

    /// Waits for the timer of a batch, and lets it fire.
    func fire() async throws {
        try await time.sleepers(atLeast: 1)
        time.advance(by: .milliseconds(5))
    }
}

/// A key that counts the comparisons of its type.
private struct ComparedKey: Hashable {
    static let comparisons = Atomic(0)
    var number: Int

    static func == (left: ComparedKey, right: ComparedKey) -> Bool {
        comparisons.add(1, ordering: .relaxed)
        return left.number == right.number
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct BatchFetcherTests {
    @Test func `C21: 1 000 keys of a store in batches of 100 are 10 requests`() async throws {
        let test = Batching()
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: test.fetcher, time: test.time)
        let callers = (0..<1_000).map { key in Task { try await store[key].requireData() } }
        for (key, caller) in callers.enumerated() { #expect(try await caller.value == 10 * key) }
        #expect(test.requests.count == 10 && test.requests.allSatisfy { $0.count == 100 })
        #expect(Set(test.requests.joined()) == Set(0..<1_000))
    }

    @Test func `C21: the fetches of one delay are one request, in their order and without duplicates`() async throws {
        let test = Batching()
        let fetches = try await test.begin([3, 1, 2, 1, 3])
        test.time.advance(by: .milliseconds(4))
        #expect(test.script.startedCount == 0)
        try await test.fire()
        try await until("the fetches have returned") { test.fetcher.waitingCount == 0 }
        for (fetch, key) in zip(fetches, [3, 1, 2, 1, 3]) { #expect(try await fetch.value == 10 * key) }
        let late = try await test.begin([4])
        try await test.fire()
        #expect(try await late[0].value == 40)
        #expect(test.requests == [[3, 1, 2], [4]])
    }

    @Test(arguments: [1, 0, -5]) func `C21: a batch of one is sent at once`(limit: Int) async throws {
        let test = Batching(limit: limit)
        #expect(test.fetcher.limit == 1)
        for key in 1...3 {
            let fetch = Task { try await test.fetcher.fetch(param: key) }
            try await test.script.started(count: key)
            #expect(try await fetch.value == 10 * key)
        }
        #expect(test.requests == [[1], [2], [3]] && test.time.sleeperCount == 0)
    }

    @Test func `C21: a full batch is sent at once and ends its timer`() async throws {
        let test = Batching(limit: 2)
        let first = try await test.begin([1])
        try await test.time.sleepers(atLeast: 1)
        let second = Task { try await test.fetcher.fetch(param: 2) }
        try await test.script.started(count: 1)
        #expect(try await first[0].value == 10)
        #expect(try await second.value == 20)
        try await test.time.sleepers(atMost: 0)
        #expect(test.requests == [[1, 2]])
    }

    @Test func `C21: a missing key is that key's error, and foreign keys are ignored`() async throws {
        let test = Batching(script: ScriptedFetcher(.success([1: 10, 3: 30, 77: 770, 78: 780])))
        let fetches = try await test.begin(1...3)
        try await test.fire()
        #expect(try await fetches[0].value == 10)
        #expect(try await fetches[2].value == 30)
        let error = await #expect(throws: FetchError.self) { try await fetches[1].value }
        #expect(error?.code == .missingKey && error?.failureKind == .permanent && error?.allowsStale == false)
    }

    @Test func `C20, C21: missing keys do not open a breaker, and an empty response fails every key`() async throws {
        let test = Batching(script: ScriptedFetcher(.success([:])))
        let breaker = CircuitBreaker(opensAfter: 1, time: test.time)
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: test.fetcher.guarded(by: breaker), time: test.time)
        let callers = (1...5).map { key in Task { try await store[key].requireData() } }
        try await until("five fetches wait") { test.fetcher.waitingCount == 5 }
        try await test.fire()
        for caller in callers { await #expect(throws: (any Error).self) { try await caller.value } }
        #expect(breaker.state == .closed)
    }

    @Test func `C21: a failed batch fails each of its keys with the error`() async throws {
        let test = Batching(script: ScriptedFetcher(.failure(Offline())))
        let fetches = try await test.begin(1...3)
        try await test.fire()
        for fetch in fetches { await #expect(throws: Offline.self) { try await fetch.value } }
        #expect(test.script.startedCount == 1)
    }

    @Test func `C21: a canceled fetch returns at once and harms no other fetch of its batch`() async throws {
        let test = Batching()
        test.script.hold()
        let fetches = try await test.begin(1...3)
        fetches[0].cancel()
        await #expect(throws: CancellationError.self) { try await fetches[0].value }
        try await test.fire()
        try await test.script.started(count: 1)
        fetches[1].cancel()
        await #expect(throws: CancellationError.self) { try await fetches[1].value }
        test.script.release()
        #expect(try await fetches[2].value == 30)
        #expect(test.requests == [[2, 3]] && test.script.cancelledCount == 0)
    }

    @Test func `C21: a batch that every fetch has left is not sent, or its request is canceled`() async throws {
        let test = Batching()
        test.script.hold()
        var fetches = try await test.begin(1...3)
        try await test.time.sleepers(atLeast: 1)
        for fetch in fetches { fetch.cancel() }
        for fetch in fetches { _ = await fetch.result }
        try await test.time.sleepers(atMost: 0)
        fetches = try await test.begin(4...5)
        try await test.fire()
        try await test.script.started(count: 1)
        for fetch in fetches { fetch.cancel() }
        try await test.script.cancelled(count: 1)
        #expect(test.requests == [[4, 5]])
        // The next fetch begins another batch.
        test.script.release()
        let next = try await test.begin([6])
        try await test.fire()
        #expect(try await next[0].value == 60)
    }

    @Test func `C21: a key that left a batch and joined again is requested once`() async throws {
        let test = Batching()
        let first = try await test.begin([1, 2])
        first[0].cancel()
        _ = await first[0].result
        let second = try await test.begin([1])
        try await test.fire()
        #expect(try await second[0].value == 10)
        #expect(try await first[1].value == 20)
        #expect(test.requests == [[2, 1]])
    }

    @Test func `C21: a request that waits for a key of its own batch fails, directly or through another batch`() async throws {
        let stores = WatchedState<[Store<Int, Int>]>([])
        let time = ManualTime()
        let fetcher = BatchFetcher<Int, Int>(limit: 2, time: time) { params in
            // The request of the keys 1 and 2 needs key 3, and the request of 3 and 4 needs key 2: a cycle.
            let needed = params == [3, 4] ? 2 : params.contains(2) ? 3 : nil
            if let needed { _ = try await stores.current[0][needed].requireData() }
            return Dictionary(uniqueKeysWithValues: params.map { ($0, 10 * $0) })
        }
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: fetcher, time: time)
        stores.update { $0 = [store] }
        defer { stores.update { $0 = [] } }
        let own = BatchFetcher<Int, Int>(limit: 1, time: time) { params in
            [params[0]: try await stores.current[1][params[0]].requireData()]
        }
        let second = Store(cacher: MemoryCacher<Int, Int>(), fetcher: own, time: time)
        stores.update { $0.append(second) }
        let error = await #expect(throws: StoreError.self) { try await second[1].requireData() }
        #expect(error?.code == .reentrantFetch)
        let one = Task { try await store[1].requireData() }
        try await until("the first fetch waits") { fetcher.waitingCount == 1 }
        let two = Task { try await store[2].requireData() }
        try await until("the request of 1 and 2 waits for key 3") { fetcher.waitingCount == 3 }
        let four = Task { try await store[4].requireData() }
        for caller in [one, two, four] { await #expect(throws: StoreError.self) { try await caller.value } }
    }

    @Test func `C21: fetches leave a large batch without a search among its keys`() async throws {
        let fetcher = BatchFetcher<ComparedKey, Int>(limit: 10_000, delay: .seconds(1), time: ManualTime()) { _ in [:] }
        let fetches = (0..<500).map { key in Task { try await fetcher.fetch(param: ComparedKey(number: key)) } }
        try await until("all fetches wait") { fetcher.waitingCount == fetches.count }
        let before = ComparedKey.comparisons.load(ordering: .relaxed)
        for fetch in fetches { await fetch.cancelAndWait() }
        #expect(ComparedKey.comparisons.load(ordering: .relaxed) - before < 20 * fetches.count)
    }

    @Test func `C15, C21: batches leave nothing behind`() async throws {
        let counter = LifeCounter()
        let fetcher = BatchFetcher<Int, LifeCounter.Life>(limit: 4, delay: .zero) { params in
            Dictionary(uniqueKeysWithValues: params.map { ($0, counter.make()) })
        }
        for round in 0..<Cycles.count / 10 {
            let fetches = (0..<6).map { key in Task { try await fetcher.fetch(param: key) } }
            if round.isMultiple(of: 2) { for fetch in fetches { fetch.cancel() } }
            for fetch in fetches { _ = await fetch.result }
        }
        try await counter.none()
    }
}
