import Dispatch
import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles

/// Changes of other users of a shared cacher, beside streams and beside fetches that wait for a lease.
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

    @Test func `D5: a fetch that waits for a newer record begins if an own save overwrites that record`() async throws {
        let cacher = LeasingCacher()
        let fetcher = ScriptedFetcher<Int, Int> { _ in .success(99) }
        let store = Store(cacher: cacher, fetcher: fetcher)
        _ = await store[1].getData(from: .cache)
        let first = Task { await store[1].update(1) }
        try await cacher.saves(begun: 1)
        cacher.change(to: 7)
        let second = Task { await store[1].update { $0 += 1 } }
        try await until { await store[1].getData(from: .cache) == 2 }
        cacher.allow(saves: 1)
        try await cacher.saves(begun: 2)
        let fetch = Task { try await store[1].requireData(from: .origin) }
        try await until { store.engine.isParked(1) }
        cacher.allow(saves: .max)
        #expect(try await fetch.value == 99)
        await first.value
        _ = await second.value
    }
}

extension StoreEngine {
    fileprivate func isParked(_ param: Int) -> Bool {
        state.withLock { $0.live[BoxedKey(param)]?.value.machine.origin.flight?.isParked == true }
    }
}

/// A shared cacher for one key in memory: it grants every lease, and a test lets its saves end one by one.
private final class LeasingCacher: SharedCacher {
    private struct State: Sendable {
        var record: CacheRecord<Int>?
        var revision = Revision.none
        var observer: (@Sendable (CacherChange<Int>) -> Void)?
        var allowed = 0
        var begun = 0
    }

    private let state = WatchedState(State())
    let expiry = Expiry.never

    func saves(begun count: Int) async throws { try await state.wait { $0.begun >= count ? () : nil } }
    func allow(saves count: Int) { state.update { $0.allowed = count } }

    /// Another user saves content.
    func change(to content: Int) {
        let (observer, revision) = state.update { state in
            state.revision = Revision(number: state.revision.number + 1, writer: 2)
            state.record = CacheRecord(content: content, fetchedAt: Date())
            return (state.observer, state.revision)
        }
        observer?(.changed(1, revision))
    }

    var position: Revision { state.read { $0.revision } }

    func observeChanges(_ observer: @escaping @Sendable (CacherChange<Int>) -> Void) -> ChangeObservation {
        state.update { $0.observer = observer }
        return ChangeObservation {}
    }

    func load(param: Int) async throws -> CacheRecord<Int>? { state.read { $0.record } }

    func save(_ record: CacheRecord<Int>, param: Int) async throws { _ = try await commit(record, over: nil) }

    func save(_ record: CacheRecord<Int>, param: Int, over base: Revision) async throws -> SaveOutcome<Int> {
        try await commit(record, over: base)
    }

    func remove(param: Int) async throws { _ = try await commit(nil, over: nil) }

    func remove(param: Int, over base: Revision) async throws -> SaveOutcome<Int> { try await commit(nil, over: base) }

    func removeAll() async throws { state.update { $0.record = nil } }

    func keys() async throws -> [Int]? { nil }

    func lease(_ param: Int, for duration: Duration) async throws -> LeaseOutcome { .granted(Lease(position: position) { _ in }) }

    private func commit(_ record: CacheRecord<Int>?, over base: Revision?) async throws -> SaveOutcome<Int> {
        let number = state.update { state in
            state.begun += 1
            return state.begun
        }
        try await state.wait { $0.allowed >= number ? () : nil }
        return state.update { state in
            if let base, state.revision > base, state.revision.writer == 2 { return .superseded(by: state.record, state.revision) }
            state.revision = Revision(number: state.revision.number + 1, writer: 1)
            state.record = record
            return .saved(state.revision)
        }
    }
}
