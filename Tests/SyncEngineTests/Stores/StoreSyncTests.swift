import Foundation
import StoreCore
import StoreFiles
import StoreCoreTesting
import SyncEngine
import Testing
import Trials

/// A store as the target, with real stores and cachers and scripted origins.
struct StoreSyncTests {
    private struct Photo: SyncItem, Codable, Hashable {
        var key: String
        var version: Int
        var isStarred = false
    }

    private struct Listing: Sendable {
        var photos: [Photo]
        var contentFetches: [String] = []
        /// The keys with failing content fetches.
        var missing: Set<String> = []
        /// The keys with content fetches that wait until their removal from this set.
        var slow: Set<String> = []
    }

    private let origin = WatchedState(
        Listing(photos: [Photo(key: "a", version: 1), Photo(key: "b", version: 1), Photo(key: "c", version: 1)]))

    private var whole: OriginSource<Photo, UnitParam> { OriginSource(ClosureFetcher { [origin] (_: UnitParam) in origin.current.photos }) }

    /// The list in pages of two items.
    private var paged: OriginSource<Photo, UnitParam> {
        OriginSource(
            PaginationClosureFetcher { [origin] (_: UnitParam, key: String?) in
                let photos = origin.current.photos
                let start = key.flatMap { Int($0) } ?? 0
                let end = min(start + 2, photos.count)
                return Page(Array(photos[start..<end]), nextKey: end < photos.count ? String(end) : nil)
            })
    }

    private func store(_ cacher: some Cacher<String, Photo>, time: some TimeSource = .system) -> Store<String, Photo> {
        Store(cacher: cacher, time: time) { [origin] key in
            origin.update { $0.contentFetches.append(key) }
            guard let photo = origin.current.photos.first(where: { $0.key == key }), !origin.current.missing.contains(key) else {
                throw Trouble.lasting
            }
            try await origin.wait { $0.slow.contains(key) ? nil : () }
            return photo
        }
    }

    private func contents(_ store: Store<String, Photo>) async throws -> [String: Int] {
        var contents: [String: Int] = [:]
        for key in ["a", "b", "c", "d"] { contents[key] = try? await store[key].requireData(from: .cache).version }
        return contents
    }

    @Test(arguments: [false, true]) func `a sync makes a store equal to a fetcher's list, paged or not`(isPaged: Bool) async throws {
        let store = store(MemoryCacher())
        let processor = StoreSyncProcessor(list: isPaged ? paged : whole, store: store, version: \.version)
        let synchronizer = OneWaySynchronizer(processor: processor)
        #expect(try await synchronizer.sync().addedCount == 3)
        #expect(try await contents(store) == ["a": 1, "b": 1, "c": 1])
        origin.update { $0.photos = [Photo(key: "a", version: 1), Photo(key: "b", version: 2), Photo(key: "d", version: 1)] }
        let report = try await synchronizer.sync()
        #expect((report.addedCount, report.updatedCount, report.removedCount, report.unchangedCount) == (1, 1, 1, 1))
        #expect(try await contents(store) == ["a": 1, "b": 2, "d": 1])
        #expect(origin.current.contentFetches.sorted() == ["a", "b", "b", "c", "d"])
        #expect(try await synchronizer.plan().isEmpty)
    }

    @Test func `a list of complete items needs no further fetch`() async throws {
        let store = store(MemoryCacher())
        try await OneWaySynchronizer(processor: StoreSyncProcessor(list: paged, store: store)).sync()
        #expect(try await contents(store) == ["a": 1, "b": 1, "c": 1])
        #expect(origin.current.contentFetches.isEmpty)
    }

    @Test func `observers of the store see the changes of a pass`() async throws {
        let store = store(MemoryCacher())
        await store["b"].update(Photo(key: "b", version: 0))
        let observer = RecordingObserver(store["b"].publish())
        _ = try await observer.next { $0.content?.version == 0 }
        try await OneWaySynchronizer(processor: StoreSyncProcessor(list: whole, store: store)).sync()
        _ = try await observer.next { $0.content?.version == 1 }
    }

    @Test func `a sync continues from the records of a file cacher`() async throws {
        let directory = temporaryURL()
        try await OneWaySynchronizer(processor: StoreSyncProcessor(list: whole, store: store(FileCacher(directory: directory)))).sync()
        let again = store(FileCacher(directory: directory))
        origin.update { $0.photos.removeFirst() }
        let report = try await OneWaySynchronizer(processor: StoreSyncProcessor(list: whole, store: again)).sync()
        #expect((report.unchangedCount, report.removedCount, report.addedCount) == (2, 1, 0))
        #expect(try await contents(again) == ["b": 1, "c": 1])
    }

    @Test func `a joined fetch of an older version is repeated`() async throws {
        let store = store(MemoryCacher())
        origin.update { $0.slow = ["a"] }
        let early = Task { try await store["a"].requireData() }
        try await origin.wait { $0.contentFetches == ["a"] ? () : nil }
        origin.update { $0.photos = [Photo(key: "a", version: 2)] }
        let listed = WatchedState(false)
        let processor = StoreSyncProcessor(
            list: OriginSource<Photo, UnitParam>(
                ClosureFetcher { [origin] _ in
                    listed.update { $0 = true }
                    return origin.current.photos
                }), store: store, version: \.version)
        let synchronizer = OneWaySynchronizer(processor: processor, options: SyncOptions(retry: .never))
        let caller = Task { try await synchronizer.sync() }
        try await listed.wait { $0 ? () : nil }
        try await until("the sync waits for the fetch too") { store.snapshot(of: "a")?.callers == 2 }
        origin.update { $0.slow = [] }
        #expect(try await caller.value.addedCount == 1)
        #expect(try await early.value.version == 1)
        #expect(try await store["a"].requireData(from: .cache).version == 2)
    }

    @Test func `expired content counts as present`() async throws {
        let time = ManualTime()
        let store = store(MemoryCacher(expiry: .after(.seconds(10))), time: time)
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: whole, store: store), time: time)
        try await synchronizer.sync()
        time.advance(by: .seconds(60))
        #expect(try await synchronizer.sync().unchangedCount == 3)
    }

    @Test func `S5: a failed fetch of the store is reported with its key and prevents removals`() async throws {
        let store = store(MemoryCacher())
        await store["d"].update(Photo(key: "d", version: 1))
        origin.update { $0.missing = ["b"] }
        let processor = StoreSyncProcessor(list: whole, store: store, version: \.version)
        let error = await syncError { try await OneWaySynchronizer(processor: processor, options: SyncOptions(stopsOnError: false)).sync() }
        #expect(error?.report?.failures.map(\.key.description) == ["b"])
        #expect(error?.report?.failures.first?.error as? Trouble == .lasting)
        #expect(error?.report?.pendingRemovals.map(\.description) == ["d"])
        #expect(try await contents(store) == ["a": 1, "c": 1, "d": 1])
    }

    @Test func `S15: content edited in the store is kept or overwritten`() async throws {
        for edits in [LocalEdits.keepLocal, .overwrite] {
            let store = store(MemoryCacher())
            let processor = StoreSyncProcessor(list: whole, store: store, isEdited: \.isStarred)
            let synchronizer = OneWaySynchronizer(processor: processor, options: SyncOptions(localEdits: edits))
            try await synchronizer.sync()
            await store["a"].update { $0.isStarred = true }
            let report = try await synchronizer.sync()
            #expect(report.localEdits.map(\.description) == ["a"])
            #expect(try await store["a"].requireData(from: .cache).isStarred == (edits == .keepLocal))
        }
    }

    @Test func `S4: content edited after the plan is left alone`() async throws {
        let store = store(MemoryCacher())
        let processor = StoreSyncProcessor(list: whole, store: store, isEdited: \.isStarred)
        let seen = LocalEntry<Photo>("a", version: 1)
        await store["a"].update(Photo(key: "a", version: 1))
        #expect(try await processor.isUnchanged("a", since: seen))
        await store["a"].update { $0.isStarred = true }
        #expect(try await !processor.isUnchanged("a", since: seen))
        #expect(try await !processor.isUnchanged("a", since: nil))
        await store["a"].update(Photo(key: "a", version: 2))
        #expect(try await !processor.isUnchanged("a", since: seen))
        #expect(try await processor.isUnchanged("a", since: nil))
        await store["a"].clear()
        #expect(try await processor.isUnchanged("a", since: seen))
    }

    @Test func `S2: a cacher that cannot list its keys fails the inventory without changes`() async throws {
        let store = store(UnlistedCacher())
        let error = await syncError { try await OneWaySynchronizer(processor: StoreSyncProcessor(list: whole, store: store)).sync() }
        #expect((error?.code, error?.stage) == (.stageFailed, .localInventory))
        #expect((error?.underlyingError as? StoreError)?.code == .cannotEnumerate)
    }

    /// A cacher that stores nothing and cannot list its keys.
    private struct UnlistedCacher: Cacher {
        var expiry: Expiry { .never }
        func load(param: String) async throws -> CacheRecord<Photo>? { nil }
        func save(_ record: CacheRecord<Photo>, param: String) async throws {}
        func remove(param: String) async throws {}
        func removeAll() async throws {}
    }
}
