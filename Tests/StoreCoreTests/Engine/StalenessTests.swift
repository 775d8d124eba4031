import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct StalenessTests {
    enum Clearing: CaseIterable, Sendable { case clear, updateNil, storeClear }

    private func clear(_ bench: Bench, _ clearing: Clearing) async throws {
        switch clearing {
        case .clear: await bench.store[1].clear()
        case .updateNil: await bench.store[1].update(nil)
        case .storeClear: try await bench.store.clear()
        }
    }

    @Test(arguments: Backing.allCases, Clearing.allCases)
    func `C2: clearing a wanted key starts a fetch`(_ backing: Backing, _ clearing: Clearing) async throws {
        let bench = Bench(backing)
        let observer = try await bench.observeUpdate(7)
        bench.fetcher.hold()
        try await clear(bench, clearing)
        try await bench.fetcher.started(count: 1)
        _ = try await observer.states(count: 2)
        #expect(observer.summary == "completed(7) loading(nil)")
        bench.fetcher.release()
        try await observer.next { $0.content == 1 }
        #expect(observer.summary == "completed(7) loading(nil) completed(1)")
    }

    @Test(arguments: Backing.allCases, Clearing.allCases)
    func `C2: clearing an unwanted key leaves nothing running`(_ backing: Backing, _ clearing: Clearing) async throws {
        let bench = Bench(backing)
        await bench.store[1].update(7)
        try await clear(bench, clearing)
        try await bench.idle()
        #expect(bench.fetcher.startedCount == 0 && bench.cacher.runningCount == 0)
        await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
    }

    @Test(arguments: Backing.allCases)
    func `C3: a refresh keeps the old content in the loading state`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let observer = try await bench.observeUpdate(7)
        bench.fetcher.hold()
        let refresh = Task { [handle = bench.store[1]] in await handle.refresh() }
        _ = try await observer.states(count: 2)
        bench.fetcher.release()
        await refresh.value
        _ = try await observer.states(count: 3)
        #expect(observer.summary == "completed(7) loading(7) completed(1)")
    }

    @Test(arguments: Backing.allCases)
    func `C3: expired content is never served as valid`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)))
        await bench.store[1].update(7)
        bench.time.advance(by: .seconds(10) - .milliseconds(1))
        #expect(try await bench.store[1].requireData() == 7)
        bench.time.advance(by: .milliseconds(1))
        let error = await #expect(throws: StoreError.self) { try await bench.store[1].requireData(from: .cache) }
        #expect(error?.code == .noValidCache && error?.staleContent as? Int == 7)
        #expect(try await bench.store[1].requireData() == 1)
    }

    @Test(arguments: Backing.allCases)
    func `C3: stale content is served at once within its window during a refresh`(_ backing: Backing) async throws {
        let bench = Bench(backing, expiry: .after(.seconds(10)), policy: StorePolicy(staleWhileRevalidate: .seconds(5)))
        await bench.store[1].update(7)
        bench.fetcher.hold()
        bench.time.advance(by: .seconds(15))
        #expect(try await bench.store[1].requireData() == 7)
        try await bench.fetcher.started(count: 1)
        bench.fetcher.release()
        try await bench.idle()
        #expect(try await bench.store[1].requireData() == 1)
        bench.time.advance(by: .seconds(15) + .milliseconds(1))
        #expect(try await bench.store[1].requireData() == 2)
    }

    @Test(arguments: Backing.allCases)
    func `C3: stale content is served within its window if the refresh fails`(_ backing: Backing) async throws {
        let policy = StorePolicy(staleIfError: .seconds(5))
        let bench = Bench(backing, expiry: .after(.seconds(10)), policy: policy, fetcher: ScriptedFetcher { _ in throw Offline() })
        await bench.store[1].update(7)
        bench.time.advance(by: .seconds(15))
        #expect(try await bench.store[1].requireData() == 7)
        await #expect(throws: Offline.self) { try await bench.store[1].requireData(from: .origin) }
        bench.time.advance(by: .milliseconds(1))
        await #expect(throws: Offline.self) { try await bench.store[1].requireData() }
        #expect(bench.fetcher.startedCount == 3)
    }

    @Test func `C3: windows given by the origin override the policy, and must-revalidate overrides both`() async throws {
        let policy = StorePolicy(staleWhileRevalidate: .seconds(50), staleIfError: .seconds(50))
        let own = Freshness(lifetime: .seconds(10), staleWhileRevalidate: .zero, staleIfError: .seconds(1))
        let strict = Freshness(lifetime: .seconds(10), mustRevalidate: true)
        for freshness in [own, strict] {
            let bench = Bench(policy: policy, fetcher: ScriptedFetcher(.success(7, freshness: freshness), .failure(Offline())))
            _ = try await bench.store[1].requireData()
            bench.time.advance(by: .seconds(12))
            await #expect(throws: Offline.self) { try await bench.store[1].requireData() }
        }
    }

    private struct Judged: FailureAdvising {
        var failureKind: FailureKind
        var allowsStale: Bool
    }

    /// Errors, and whether expired content may be served in their place.
    private static let failures: [(error: any Error, isServed: Bool)] = [
        (Offline(), true), (CancellationError(), true),
        (Advice(failureKind: .transient), true), (Advice(failureKind: .cancelled), true),
        (Advice(failureKind: .permanent), false), (Advice(failureKind: .fatal), false),
        (Judged(failureKind: .transient, allowsStale: false), false), (Judged(failureKind: .permanent, allowsStale: true), true),
    ]

    @Test(arguments: Backing.allCases, failures.indices)
    func `C3: a failure says whether stale content may be served in its place`(_ backing: Backing, _ index: Int) async throws {
        let (failure, isServed) = Self.failures[index]
        let policy = StorePolicy(staleIfError: .seconds(5))
        let bench = Bench(backing, expiry: .after(.seconds(10)), policy: policy, fetcher: ScriptedFetcher { _ in throw failure })
        await bench.store[1].update(7)
        bench.time.advance(by: .seconds(15))
        if isServed {
            #expect(try await bench.store[1].requireData() == 7)
        } else {
            let error = await #expect(throws: (any Error).self) { try await bench.store[1].requireData() }
            #expect(error.map { String(reflecting: $0) } == String(reflecting: failure))
            #expect(await bench.store[1].getData() == nil)
        }
        // What is saved and what observers see is another matter (C4).
        let observer = RecordingObserver(bench.store[1].publish())
        #expect(try await observer.next { $0.error != nil }.content == 7)
    }

    @Test(arguments: failures.indices)
    func `C3: valid content is not stale after any error of a refresh`(_ index: Int) async throws {
        let bench = Bench(expiry: .after(.seconds(10)), fetcher: ScriptedFetcher { _ in throw Self.failures[index].error })
        await bench.store[1].update(7)
        await bench.store[1].refresh()
        #expect(try await bench.store[1].requireData() == 7)
    }

    @Test func `C3, C12: a failure that is held off still says whether stale content may be served`() async throws {
        let policy = StorePolicy(staleIfError: .seconds(60), errorExpiry: .seconds(60))
        for kind in [FailureKind.transient, .permanent] {
            let fetcher = ScriptedFetcher<Int, Int> { _ in throw Advice(failureKind: kind) }
            let bench = Bench(expiry: .after(.seconds(10)), policy: policy, fetcher: fetcher)
            await bench.store[1].update(7)
            bench.time.advance(by: .seconds(15))
            let observer = RecordingObserver(bench.store[1].publish())
            try await observer.next { $0.error != nil }
            if kind == .transient {
                #expect(try await bench.store[1].requireData() == 7)
            } else {
                await #expect(throws: Advice.self) { try await bench.store[1].requireData() }
            }
            #expect(bench.fetcher.startedCount == 1)
            try await observer.stopAndLeave()
        }
    }

    @Test(arguments: [FailureKind.transient, .permanent], [Duration.zero, .seconds(60)])
    func `C3: a refusal that is known closes the window of stale-while-revalidate`(_ kind: FailureKind, _ errorExpiry: Duration)
        async throws
    {
        let policy = StorePolicy(staleWhileRevalidate: .seconds(60), errorExpiry: errorExpiry)
        let fetcher = ScriptedFetcher<Int, Int> { _ in throw Advice(failureKind: kind) }
        let bench = Bench(expiry: .after(.seconds(10)), policy: policy, fetcher: fetcher)
        await bench.store[1].update(7)
        bench.time.advance(by: .seconds(15))
        // Nothing is known yet.
        #expect(try await bench.store[1].requireData() == 7)
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.error != nil }
        if kind == .transient {
            #expect(try await bench.store[1].requireData() == 7)
        } else {
            await #expect(throws: Advice.self) { try await bench.store[1].requireData() }
            // What the origin gives again is content again.
            await bench.store[1].update(8)
            bench.time.advance(by: .seconds(15))
            #expect(try await bench.store[1].requireData() == 8)
        }
        try await observer.stopAndLeave()
    }

    @Test(arguments: Backing.allCases)
    func `C4: a failed refresh keeps the last content`(_ backing: Backing) async throws {
        let bench = Bench(backing, fetcher: ScriptedFetcher { _ in throw Offline() })
        let observer = try await bench.observeUpdate(7)
        await bench.store[1].refresh()
        try await observer.next { $0.error != nil }
        #expect(observer.states.last?.summary == "error(Offline,7)")
        #expect(try await bench.store[1].requireData(from: .cache) == 7)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == 7) }
        try await observer.stopAndLeave()
        try await bench.idle()
        #expect(try await bench.store[1].requireData(from: .cache) == 7)
    }
}
