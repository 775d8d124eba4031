import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct DecidedTests {
    @Test(arguments: Backing.withCacher)
    func `a load that throws is a miss and an event, and fails a request for the cache only`(_ backing: Backing) async throws {
        let bench = Bench(backing, reports: true)
        bench.cacher.fail(.load)
        await #expect(throws: GatedCacher<Int, Int>.Broken.self) { try await bench.store[1].requireData(from: .cache) }
        #expect(try await bench.store[1].requireData() == 1)
        try await until("both faults are reported") { bench.events.names.count { $0 == "fault load" } == 2 }
    }

    @Test func `forceRefresh applies to each iterator of the sequence`() async throws {
        let bench = Bench()
        let sequence = bench.store[1].publish(forceRefresh: true)
        for number in 1...3 {
            let observer = RecordingObserver(sequence)
            try await observer.next { $0.summary == "completed(\(number))" }
            try await observer.stopAndLeave()
        }
    }

    @Test(arguments: Backing.allCases)
    func `an in-place update without content does nothing and returns false`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        #expect(await bench.store[1].update { $0 += 1 } == false)
        #expect(bench.liveKeys == 0 && bench.fetcher.startedCount == 0 && bench.cacher.calls(.save).isEmpty)
    }

    @Test func `an in-place update that throws changes nothing`() async throws {
        let bench = Bench()
        await bench.store[1].update(7)
        await #expect(throws: Offline.self) {
            try await bench.store[1].update { content in
                content = 8
                throw Offline()
            }
        }
        #expect(try await bench.store[1].requireData() == 7)
        #expect(bench.liveKeys == 0)
    }

    @Test(arguments: Backing.withCacher)
    func `invalidating an idle key loads its record, dates it expired, keeps the validator and saves it`(_ backing: Backing) async throws {
        let tag = Validator(entityTag: "\"1\"")
        let bench = Bench(backing)
        bench.cacher.put(bench.record(3, validator: tag), param: 1)
        await bench.store[1].invalidate()
        #expect(bench.cacher.record(of: 1)?.isInvalidated == true && bench.cacher.record(of: 1)?.validator == tag)
        #expect(bench.liveKeys == 0 && bench.fetcher.startedCount == 0)
        let error = await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
        #expect(error?.staleContent as? Int == 3)
        #expect(try await bench.store[1].requireData() == 1)
        #expect(bench.fetcher.requests.map(\.validator) == [tag])
    }

    @Test(arguments: Backing.allCases)
    func `invalidating by a condition affects matching live and stored keys`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        for key in 1...6 { await bench.store[key].update(key) }
        let observer = try await observeFirst(bench.store[2].publish())
        try await bench.store.invalidate { $0.isMultiple(of: 2) }
        try await observer.next { $0.content == 1 }
        for key in [1, 3, 5] { #expect(try await bench.store[key].requireData(from: .cache) == key) }
        for key in [4, 6] { #expect(await bench.store[key].getData(from: .cache) == nil) }
    }

    @Test(arguments: Backing.withCacher)
    func `a cacher that cannot list its keys is an error, thrown after live keys were invalidated`(_ backing: Backing) async throws {
        let bench = Bench(backing, listsKeys: false)
        let observer = try await bench.observeUpdate(7)
        let error = await #expect(throws: StoreError.self) { try await bench.store.invalidate { _ in true } }
        #expect(error?.code == .cannotEnumerate)
        try await observer.next { $0.content == 1 }
    }

    @Test func `two stores over one cacher share records but no fetches`() async throws {
        let cacher = GatedCacher<Int, Int>()
        let fetchers = [ScriptedFetcher<Int, Int>.counting(), .counting()]
        let stores = fetchers.map { Store(cacher: cacher, fetcher: $0) }
        fetchers.forEach { $0.hold() }
        let callers = stores.map { store in Task { try await store[1].requireData() } }
        for fetcher in fetchers { try await fetcher.started(count: 1) }
        fetchers.forEach { $0.release() }
        for caller in callers { _ = try await caller.value }
    }

    @TaskLocal static var mark = "none"

    @Test func `C22: a fetch inherits the first caller's priority but not its task-locals`() async throws {
        let seen = WatchedState<(String, TaskPriority)?>(nil)
        let store = Store<Int, Int>(cacher: MemoryCacher()) { _ in
            seen.update { $0 = (Self.mark, Task.currentPriority) }
            return 1
        }
        _ = try await Self.$mark.withValue("caller") { try await Task(priority: .utility) { try await store[1].requireData() }.value }
        #expect(seen.current?.0 == "none")
        #expect((seen.current?.1 ?? .background) >= .utility)
    }
}
