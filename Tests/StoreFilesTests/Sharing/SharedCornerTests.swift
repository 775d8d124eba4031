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

    @Test func `D1: an attempt to follow that is due sooner does not wait for one that is due later`() async {
        let follower = FileFollower("/missing", on: DispatchQueue(label: "following"))
        follower.schedule(after: .seconds(3_600)) {}
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            follower.schedule(after: .milliseconds(1)) { continuation.resume() }
        }
        withExtendedLifetime(follower) {}
    }
}
