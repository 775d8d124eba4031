import Dispatch
import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles

/// Changes of other users of a shared cacher beside streams.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct SharedCornerTests {
    @Test(arguments: [nil, Duration.seconds(3_600)])
    func `L3, D1: an invalidation by another process ends the stream, and a wanted key starts a new one`(_ lifetime: Duration?) async throws
    {
        let directory = try TemporaryDirectory()
        func cacher() -> TieredCacher<FileCacher<Int, Int>> {
            TieredCacher(
                over: FileCacher(directory: directory.file("x"), expiry: lifetime.map { .after($0) } ?? .never, sharing: .processes))
        }
        let feed = ScriptedLiveFetcher<Int, Int>()
        let (live, other) = (Store(cacher: cacher(), fetcher: feed), Store(cacher: cacher()) { (_: Int) in 5 })
        let observer = RecordingObserver(live[1].publish())
        try await feed.send(.content(7), timeout: .seconds(600))
        _ = try await observer.next(timeout: .seconds(600)) { $0.isCompleted && $0.content == 7 }
        try await live.waitUntilSaved()
        #expect(try await other[1].requireData(from: .cache) == 7)
        await other[1].invalidate()
        try await feed.connected(count: 2, timeout: .seconds(600))
        #expect(await live[1].getData(from: .cache) == nil)
        try await feed.send(.content(8), timeout: .seconds(600))
        _ = try await observer.next(timeout: .seconds(600)) { $0.isCompleted && $0.content == 8 }
    }

    /// Fetches a text in one language, and accepts no other language.
    private struct Translator: RevalidatingFetcher {
        let language: String
        let requests: WatchedState<Int>

        func fetch(param: Int, revalidating: Validator?) async throws -> FetchResult<String> {
            requests.increment()
            return .modified(language, .unspecified, Validator(notes: language))
        }

        func accepts(_ validator: Validator, param: Int) async -> Bool { validator.notes == language }
    }

    @Test func `D2: stores that do not accept each other's versions do not make each other fetch, and show none of them`() async throws {
        let (directory, requests) = (try TemporaryDirectory(), WatchedState(0))
        let stores = ["de", "fr"].map { language in
            Store(
                cacher: TieredCacher(over: FileCacher<Int, String>(directory: directory.file("x"), sharing: .processes)),
                fetcher: Translator(language: language, requests: requests))
        }
        let observers = stores.map { RecordingObserver($0[1].publish()) }
        for observer in observers { try await until("the content is there") { observer.states.last?.content != nil } }
        // A change of another key arrives after all earlier changes.
        for value in 0..<10 {
            await stores[value % 2][2].update("\(value)")
            try await until("the change arrives") { await stores[1 - value % 2][2].getData(from: .cache) == "\(value)" }
        }
        #expect(requests.current == 2)
        #expect(observers.map { $0.states.last?.content } == ["de", "fr"])
    }

    @Test func `D1: an attempt to follow that is due sooner does not wait for one that is due later`() async {
        let follower = FileFollower("/missing", on: DispatchQueue(label: "following"))
        follower.schedule(after: .seconds(3_600)) {}
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            follower.schedule(after: .milliseconds(1)) { continuation.resume() }
        }
        withExtendedLifetime(follower) {}
    }

    @Test func `D8: an event that a failed attempt to follow has caused does not cause the next attempt at once`() async {
        let follower = FileFollower("/missing", on: DispatchQueue(label: "following"))
        let start = ContinuousClock.now
        follower.passBegan()
        #expect(follower.passFailed {})
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            follower.schedule { continuation.resume() }
        }
        #expect(.now - start >= .milliseconds(990))
        withExtendedLifetime(follower) {}
    }
}
