import Foundation
import StoreCore
import StoreCoreTesting
import StoreResilience
import Testing
import Trials

/// A store with a failure memory; the script of its fetcher has no answer but those of the test.
private struct Remembering {
    let time = ManualTime()
    let script = ScriptedFetcher<Int, Int>()
    let store: Store<Int, Int>

    init(for duration: Duration = .seconds(1), limit: Int = 10_000) {
        store = Store(
            cacher: MemoryCacher(expiry: .after(.zero)), fetcher: script.rememberingFailures(for: duration, limit: limit, time: time),
            time: time)
    }

    /// Fetches a key; returns the error.
    func failure(_ key: Int = 1) async -> (any Error)? {
        do {
            _ = try await store[key].requireData(from: .origin)
            return nil
        } catch {
            return error
        }
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct FailureMemoryTests {
    @Test func `C19: a key that has failed is not fetched again within the time, not by refresh() either`() async throws {
        let test = Remembering()
        test.script.enqueue(.failure(Offline()))
        #expect(await test.failure() is Offline)
        for _ in 1...100 { #expect(await test.failure() is FetchError) }
        await test.store[1].refresh()
        #expect(test.script.startedCount == 1)
        // Another key is not affected.
        test.script.enqueue(.success(2))
        #expect(await test.failure(2) == nil)
        #expect(test.script.startedCount == 2)
    }

    @Test func `C19: the error carries the original error and the remaining time`() async throws {
        let test = Remembering(for: .seconds(10))
        test.script.enqueue(.failure(Advising(failureKind: .fatal, attempts: 3, allowsStale: false)))
        _ = await test.failure()
        test.time.advance(by: .seconds(4))
        let error = try #require(await test.failure() as? FetchError)
        #expect(error.code == .failedRecently && error.retryAfter == .seconds(6))
        #expect(error.underlyingError is Advising && error.failureKind == .fatal && error.attempts == 3 && !error.allowsStale)
        #expect(
            error.localizedDescription.hasPrefix("FetchError.failedRecently: cannot fetch 1: its last fetch failed 4 s ago; retry in 6 s"))
    }

    @Test func `C19: a longer delay that the origin asked for is the delay of the refusal`() async throws {
        let test = Remembering()
        test.script.enqueue(.failure(Advising(retryAfter: .seconds(30))))
        _ = await test.failure()
        test.time.advance(by: .milliseconds(500))
        #expect((await test.failure() as? FetchError)?.retryAfter == .milliseconds(29_500))
    }

    @Test func `C19: a key is fetched again after the time, and a success forgets its failure`() async throws {
        let test = Remembering()
        test.script.enqueue(.failure(Offline()), .failure(Offline()), .success(7))
        #expect(await test.failure() is Offline)
        test.time.advance(by: .seconds(1))
        #expect(await test.failure() is Offline)
        test.time.advance(by: .milliseconds(999))
        #expect(await test.failure() is FetchError)
        test.time.advance(by: .milliseconds(1))
        #expect(await test.failure() == nil)
        test.script.enqueue(.success(8))
        #expect(await test.failure() == nil)
        #expect(test.script.startedCount == 4)
    }

    @Test func `C19: a success after the failure of another fetch forgets it`() async throws {
        let (script, time) = (ScriptedFetcher<Int, Int>(), ManualTime())
        let fetcher = script.rememberingFailures(for: .seconds(10), time: time)
        script.hold()
        var fetches: [Task<Void, any Error>] = []
        for count in 1...2 {
            fetches.append(Task { _ = try await fetcher.respond(to: .content(1, revalidating: nil)) })
            try await script.started(count: count)
        }
        try await script.answer(1, with: .failure(Offline()))
        await #expect(throws: Offline.self) { try await fetches[0].value }
        await #expect(throws: FetchError.self) { try await fetcher.respond(to: .content(1, revalidating: nil)) }
        try await script.answer(2, with: .success(1))
        try await fetches[1].value
        script.release()
        script.enqueue(.success(2))
        _ = try await fetcher.respond(to: .content(1, revalidating: nil))
        #expect(script.startedCount == 3)
    }

    @Test(arguments: [CancellationError() as any Error, Advising(failureKind: .cancelled)])
    func `C19: a cancellation is not remembered`(error: any Error) async throws {
        let test = Remembering()
        test.script.enqueue(.failure(error), .success(7))
        #expect(type(of: await test.failure()) != FetchError?.self)
        #expect(await test.failure() == nil)
        #expect(test.script.startedCount == 2)
    }

    @Test func `C19: an error that a cancellation causes is not remembered`() async throws {
        let script = ScriptedFetcher<Int, Int>(.failure(Offline()), .success(7), cancellation: .ignored)
        let fetcher = script.rememberingFailures(for: .seconds(1), time: ManualTime())
        script.hold()
        let fetch = Task { try await fetcher.respond(to: .content(1, revalidating: nil)) }
        try await script.started(count: 1)
        fetch.cancel()
        script.release()
        await #expect(throws: Offline.self) { _ = try await fetch.value }
        _ = try await fetcher.respond(to: .content(1, revalidating: nil))
    }

    @Test func `C19: beyond the limit the least recently used failure is forgotten`() async throws {
        let test = Remembering(for: .seconds(60), limit: 2)
        test.script.enqueue(.failure(Offline()), .failure(Offline()), .failure(Offline()), .failure(Offline()))
        for key in 1...2 { #expect(await test.failure(key) is Offline) }
        #expect(await test.failure(1) is FetchError)
        #expect(await test.failure(3) is Offline)
        #expect(await test.failure(1) is FetchError)
        #expect(await test.failure(2) is Offline)
        #expect(test.script.startedCount == 4)
    }

    @Test(arguments: [0, -1]) func `C19: without places or time every fetch reaches the origin`(_ number: Int) async throws {
        for test in [Remembering(limit: number), Remembering(for: .seconds(number))] {
            for _ in 1...3 { _ = await test.failure() }
            #expect(test.script.startedCount == 3)
        }
    }

    @Test func `C19: each page of a list is remembered by its own key, in both directions`() async throws {
        let time = ManualTime()
        let script = ScriptedPaginationFetcher<Int, Int>(
            .page([5], nextKey: "n", prevKey: "p"), .failure(Offline()), .page([4]), .page([6]))
        let lists = PaginationStore(
            cacher: MemoryCacher<Int, [Int]>(), fetcher: script.rememberingFailures(for: .seconds(1), time: time), time: time)
        _ = try await lists[1].requireData()
        #expect(await lists[1].requestNextData() == .failed(Offline()))
        guard case .failed(let error as FetchError) = await lists[1].requestNextData() else { throw Offline() }
        #expect(error.code == .failedRecently)
        #expect(await lists[1].requestPrevData() == .loaded)
        time.advance(by: .seconds(1))
        #expect(await lists[1].requestNextData() == .loaded)
        #expect(try await lists[1].requireData() == [4, 5, 6])
        #expect(script.requests.map(\.pageKey) == [nil, "n", "p", "n"])
    }

    @Test func `C19: a validator passes through, and the same key with another validator is remembered`() async throws {
        let script = ScriptedFetcher<Int, Int>(.notModified(), .failure(Offline()))
        let fetcher = script.rememberingFailures(for: .seconds(1), time: ManualTime())
        let validator = Validator(entityTag: "\"1\"")
        let response = try await fetcher.respond(to: .content(1, revalidating: validator))
        #expect(response.result == .notModified() && script.requests[0].validator == validator)
        await #expect(throws: Offline.self) { try await fetcher.respond(to: .content(1, revalidating: validator)) }
        await #expect(throws: FetchError.self) { try await fetcher.respond(to: .content(1, revalidating: nil)) }
    }
}
