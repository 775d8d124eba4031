import StoreCoreTesting
import StoreTrials
import Testing

@testable import StoreCore

/// Watches that note which keys of a store change, here by other users of its cacher.
struct ChangeWatchTests {
    @Test func `C5: a watch notes a change by another user, and a change of every key after a gap`() async throws {
        let cacher = ScriptedSharedCacher()
        let store = Store(cacher: TieredCacher(over: cacher), fetcher: ScriptedFetcher<Int, Int>.counting())
        _ = try await store[3].requireData()
        let watch = store.watchChanges()
        cacher.change(1, to: 7)
        #expect(watch.change(of: 1) == .elsewhere)
        #expect(watch.change(of: 2) == nil)
        #expect(await !store.replace(1, by: 8, unlessNewerThan: watch))
        #expect(await !store.replace(1, by: nil, unlessNewerThan: watch))
        #expect(try await store[1].requireData() == 7)
        cacher.announceGap()
        #expect(watch.change(of: 2) == .byUser)
        #expect(await !store.replace(2, by: 8, unlessNewerThan: watch))
    }
}
