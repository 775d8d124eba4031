import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ValidatingTests {
    private func failedBench(_ backing: Backing = .memory, errorExpiry: Duration = .zero) async throws -> (Bench, RecordingObserver<Int>) {
        let policy = StorePolicy(errorExpiry: errorExpiry)
        let bench = Bench(backing, policy: policy, fetcher: ScriptedFetcher(.success(1), .failure(Offline()), .success(3)))
        let observer = try await observeCompleted(bench.store[1].publish())
        await bench.store[1].refresh()
        try await observer.next { $0.error != nil }
        return (bench, observer)
    }

    @Test(arguments: Backing.allCases)
    func `C4: validate() fetches after a failure over valid content and clears the error`(_ backing: Backing) async throws {
        let (bench, observer) = try await failedBench(backing)
        await bench.store[1].validate()
        #expect(bench.fetcher.startedCount == 3)
        try await observer.next { $0.summary == "completed(3)" }
        await bench.store[1].validate()
        #expect(bench.fetcher.startedCount == 3)
    }

    @Test func `C1: validate() joins the fetch after a failure`() async throws {
        let (bench, observer) = try await failedBench()
        bench.fetcher.hold()
        let refresh = Task { [handle = bench.store[1]] in await handle.refresh() }
        try await bench.fetcher.started(count: 3)
        let validation = Task { [handle = bench.store[1]] in await handle.validate() }
        try await bench.callers(2)
        bench.fetcher.release()
        await refresh.value
        await validation.value
        try await observer.next { $0.summary == "completed(3)" }
        #expect(bench.fetcher.startedCount == 3)
    }

    @Test(arguments: [false, true])
    func `C12: errorExpiry holds off validate() until it has passed, but not refresh()`(_ hasPassed: Bool) async throws {
        let (bench, observer) = try await failedBench(errorExpiry: .seconds(30))
        await bench.store[1].validate()
        #expect(bench.fetcher.startedCount == 2)
        if hasPassed {
            bench.time.advance(by: .seconds(30))
            await bench.store[1].validate()
        } else {
            await bench.store[1].refresh()
        }
        #expect(bench.fetcher.startedCount == 3)
        try await observer.next { $0.summary == "completed(3)" }
    }

    @Test func `C3: requireData() and prefetch do not fetch valid content after a failure`() async throws {
        let (bench, observer) = try await failedBench()
        bench.store.prefetch([1, 2])
        try await bench.fetcher.started(count: 3)
        #expect(bench.fetcher.requests.last?.param == 2)
        #expect(try await bench.store[1].requireData() == 1)
        #expect(observer.states.last?.error != nil && bench.fetcher.startedCount == 3)
    }
}
