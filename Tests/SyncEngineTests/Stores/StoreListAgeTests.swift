import Foundation
import StoreCore
import StoreCoreTesting
import StoreFiles
import StoreOutbox
import SyncEngine
import Testing
import Trials

/// Changes that a store accepts while a pass reads its list or carries it out.
struct StoreListAgeTests {
    private struct Photo: SyncItem, Codable, Hashable, Identifiable {
        var key: String
        var version: Int
        var id: String { key }
    }

    private struct Origin: Sendable {
        var photos: [Photo] = (0..<5).map { Photo(key: "p\($0)", version: 1) }
        var isListHeld = false
        var isContentHeld = false
        var listRequests = 0
        var fetches = 0
    }

    private let origin = WatchedState(Origin())
    private let directory = temporaryURL()

    /// The list as it was when its request began.
    private var list: OriginSource<Photo, UnitParam> {
        OriginSource(
            ClosureFetcher { [origin] (_: UnitParam) in
                let photos = origin.update { origin in
                    origin.listRequests += 1
                    return origin.photos
                }
                try await origin.wait { $0.isListHeld ? nil : () }
                return photos
            })
    }

    private func store(over cacher: some Cacher<String, Photo>) -> Store<String, Photo> {
        Store(cacher: cacher) { [origin] key in
            origin.update { $0.fetches += 1 }
            try await origin.wait { $0.isContentHeld ? nil : () }
            guard let photo = origin.current.photos.first(where: { $0.key == key }) else { throw Trouble.lasting }
            return photo
        }
    }

    private func store() -> Store<String, Photo> { store(over: MemoryCacher()) }

    private typealias Synchronizer = OneWaySynchronizer<StoreSyncProcessor<OriginSource<Photo, UnitParam>, Photo>>

    /// A store with the photos of the list.
    private func synced(onDisk: Bool = false) async throws -> (Store<String, Photo>, Synchronizer) {
        let store = onDisk ? store(over: FileCacher(directory: directory)) : store()
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
        return (store, synchronizer)
    }

    private func versions(_ store: Store<String, Photo>) async throws -> [String: Int] {
        var versions: [String: Int] = [:]
        for key in ["p0", "p1", "p2", "p3", "p4", "new"] { versions[key] = try? await store[key].requireData(from: .cache).version }
        return versions
    }

    /// Runs a pass, and makes a change while its list is being read.
    private func pass(
        _ synchronizer: OneWaySynchronizer<some SyncProcessor>, whileReading change: () async throws -> Void
    ) async throws -> SyncReport {
        origin.update { ($0.isListHeld, $0.listRequests) = (true, 0) }
        let pass = Task { try await synchronizer.sync() }
        try await origin.wait { $0.listRequests == 1 ? () : nil }
        try await change()
        origin.update { $0.isListHeld = false }
        return try await pass.value
    }

    enum Change: CaseIterable { case update, edit, mutation, creation, removal, clearing }

    @Test(arguments: Change.allCases, [false, true])
    func `S4: a change accepted while the list is read is not undone, and the next pass meets it`(change: Change, onDisk: Bool) async throws
    {
        let (store, synchronizer) = try await synced(onDisk: onDisk)
        let before = try await versions(store)
        var expected = before
        let report = try await pass(synchronizer) {
            switch change {
            case .update:
                await store["p1"].update(Photo(key: "p1", version: 2))
                expected["p1"] = 2
            case .edit:
                await store["p1"].update { $0.version = 2 }
                expected["p1"] = 2
            case .mutation:
                try await store["p1"].mutate(optimistically: { $0.version = 2 }, perform: {})
                expected["p1"] = 2
            case .creation:
                await store["new"].update(Photo(key: "new", version: 1))
                expected["new"] = 1
            case .removal:
                await store["p1"].clear()
                expected["p1"] = nil
            case .clearing:
                try await store.clear()
                expected = [:]
            }
        }
        #expect(report.isComplete)
        #expect(try await versions(store) == expected)
        // The next list is younger than the change.
        try await synchronizer.sync(overriding: .removalLimit)
        #expect(try await versions(store) == before)
    }

    @Test func `S4: a photo that the origin has confirmed while the list was read stays after the next pass`() async throws {
        let (store, synchronizer) = try await synced()
        _ = try await pass(synchronizer) {
            let new = Photo(key: "new", version: 1)
            origin.update { $0.photos.append(new) }
            await store["new"].update(new)
        }
        #expect(try await versions(store)["new"] == 1)
        #expect(try await synchronizer.sync().unchangedCount == 6)
    }

    @Test func `S4: a change accepted just before its item is replaced or removed is not undone`() async throws {
        let (store, synchronizer) = try await synced()
        let processor = synchronizer.processor
        _ = try await processor.sourceList()
        await store["p0"].update(Photo(key: "p0", version: 7))
        await #expect(throws: SyncError.self) { try await processor.remove(["p0"]) }
        await #expect(throws: SyncError.self) { try await processor.downloadContent(of: Photo(key: "p0", version: 2)) }
        #expect(try await versions(store)["p0"] == 7)
        #expect(try await !processor.isUnchanged("p0", since: LocalEntry("p0", version: 7)))
        try await processor.remove(["p1"])
        #expect(try await versions(store)["p1"] == nil)
        try await processor.downloadContent(of: Photo(key: "p2", version: 2))
        #expect(try await versions(store)["p2"] == 2)
        #expect(try await processor.isUnchanged("p3", since: LocalEntry("p3", version: 1)))
    }

    @Test func `S4: content that a younger request has brought just before its item is replaced stays, and may be removed`() async throws {
        let (store, synchronizer) = try await synced()
        let processor = synchronizer.processor
        _ = try await processor.sourceList()
        origin.update { $0.photos[3].version = 2 }
        await store["p3"].refresh()
        try await processor.downloadContent(of: Photo(key: "p3", version: 1))
        #expect(try await versions(store)["p3"] == 2)
        try await processor.remove(["p3"])
        #expect(try await versions(store)["p3"] == nil)
    }

    @Test func `S4: an item of the list replaces content of a request that is older than the list`() async throws {
        let (store, synchronizer) = try await synced()
        origin.update { ($0.isContentHeld, $0.fetches) = (true, 0) }
        let refresh = Task { await store["p3"].refresh() }
        try await origin.wait { $0.fetches == 1 ? () : nil }
        origin.update { $0.photos[3].version = 2 }
        let report = try await pass(synchronizer) {
            // The response has the content of the time of its request.
            origin.update { ($0.photos[3].version, $0.isContentHeld) = (1, false) }
            await refresh.value
        }
        #expect(report.leftOut.isEmpty)
        #expect(try await versions(store)["p3"] == 2)
    }

    @Test func `S4: content that only an ordinary fetch has brought during a pass is no change of the user`() async throws {
        let store = store()
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        let report = try await pass(synchronizer) { _ = try await store["p3"].requireData() }
        #expect(report.isComplete && report.leftOut.isEmpty)
        #expect(try await versions(store).count == 5)
    }

    @Test func `S4: a plan leaves out changes accepted while its list was read, and a plan beside it those of its own list`() async throws {
        let (store, synchronizer) = try await synced()
        origin.update { ($0.isListHeld, $0.listRequests) = (true, 0) }
        let older = Task { try await synchronizer.plan() }
        try await origin.wait { $0.listRequests == 1 ? () : nil }
        await store["p1"].update(Photo(key: "p1", version: 2))
        await store["new"].update(Photo(key: "new", version: 1))
        let younger = Task { try await synchronizer.plan() }
        try await origin.wait { $0.listRequests == 2 ? () : nil }
        origin.update { $0.isListHeld = false }
        let found = try await older.value
        #expect(found.removals.isEmpty && found.updates.isEmpty && found.leftOut == ["p1"])
        #expect(try await younger.value.updates.map(\.item.key) == ["p1"])
    }

    @Test(arguments: [Change.update, .creation, .removal, .clearing])
    func `S4: a change by another process while the list is read is not undone`(change: Change) async throws {
        let (own, other) = (
            FileCacher<String, Photo>(directory: directory, sharing: .processes),
            FileCacher<String, Photo>(directory: directory, sharing: .processes)
        )
        let elsewhere = self.store(over: other)
        let store = store(over: own)
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
        var expected = try await versions(store)
        let report = try await pass(synchronizer) {
            switch change {
            case .creation:
                await elsewhere["new"].update(Photo(key: "new", version: 1))
                expected["new"] = 1
            case .removal:
                await elsewhere["p1"].clear()
                expected["p1"] = nil
            case .clearing:
                try await elsewhere.clear()
                expected = [:]
            default:
                await elsewhere["p1"].update(Photo(key: "p1", version: 2))
                expected["p1"] = 2
            }
            try await until("the change arrives") { own.position.number >= other.position.number }
        }
        #expect(report.isComplete)
        let leftOut = change == .clearing ? ["p0", "p1", "p2", "p3", "p4"] : change == .creation ? [] : ["p1"]
        #expect(report.leftOut.map(\.description) == leftOut)
        #expect(try await versions(store) == expected)
        #expect(try await versions(elsewhere) == expected)
    }

    private struct Feed: PaginationFetcher {
        let origin: WatchedState<Origin>

        func fetch(param: String) async throws -> Page<Photo> { Page(origin.current.photos) }
        func fetchNext(nextKey: String, param: String) async throws -> Page<Photo> { Page([]) }
    }

    @Test(arguments: [true, false])
    func `S4: a change through a linked list while the list is read is not undone`(hasContent: Bool) async throws {
        let store = store()
        let feed = PaginationStore(cacher: MemoryCacher<String, [Photo]>(), fetcher: Feed(origin: origin), links: [.elements(of: store)])
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        if hasContent { try await synchronizer.sync() }
        #expect(try await feed["home"].requireData().count == 5)
        let report = try await pass(synchronizer) { await feed["home"].update { $0[1].version = 2 } }
        #expect(report.leftOut.map(\.description) == ["p1"])
        #expect(try await versions(store)["p1"] != 1)
        #expect(try await feed["home"].requireData()[1].version == 2)
    }

    @Test func `S4: an item of the list does not replace content that a younger request has brought`() async throws {
        let (store, synchronizer) = try await synced()
        let report = try await pass(synchronizer) {
            origin.update { $0.photos[3].version = 2 }
            await store["p3"].refresh()
        }
        #expect(report.isComplete)
        #expect(report.leftOut.map(\.description) == ["p3"])
        #expect(try await versions(store)["p3"] == 2)
        #expect(try await synchronizer.sync().unchangedCount == 5)
    }

    @Test(arguments: [true, false])
    func `S4: an item of the list does not replace content that a younger request of a linked list has brought`(hasContent: Bool)
        async throws
    {
        let store = store()
        let feed = PaginationStore(cacher: MemoryCacher<String, [Photo]>(), fetcher: Feed(origin: origin), links: [.elements(of: store)])
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        if hasContent { try await synchronizer.sync() }
        #expect(try await feed["home"].requireData().count == 5)
        let report = try await pass(synchronizer) {
            if hasContent { origin.update { $0.photos[1].version = 2 } }
            await feed["home"].refresh()
        }
        #expect(report.leftOut.map(\.description) == (hasContent ? ["p1"] : []))
        #expect(report.addedCount == (hasContent ? 0 : 5))
        #expect(try await versions(store)["p1"] == (hasContent ? 2 : 1))
        #expect(try await feed["home"].requireData()[1].version == (hasContent ? 2 : 1))
    }

    @Test func `S4: an item of the list does not replace content that the origin has pushed`() async throws {
        let feed = ScriptedLiveFetcher<String, Photo>()
        let store = Store(cacher: MemoryCacher<String, Photo>(), fetcher: feed)
        let observer = RecordingObserver(store["p1"].publish())
        try await feed.send(.content(Photo(key: "p1", version: 1)))
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        let report = try await pass(synchronizer) { try await feed.send(.content(Photo(key: "p1", version: 2))) }
        #expect(report.leftOut.map(\.description) == ["p1"])
        #expect(try await versions(store) == ["p0": 1, "p1": 2, "p2": 1, "p3": 1, "p4": 1])
        withExtendedLifetime(observer) {}
    }

    @Test func `S4: a change accepted while an item is fetched is not undone by another request for the item`() async throws {
        let store = store()
        let processor = StoreSyncProcessor(list: list, store: store, version: \.version)
        let synchronizer = OneWaySynchronizer(processor: processor, options: SyncOptions(retry: .never))
        try await synchronizer.sync()
        origin.update { origin in
            origin.photos[1].version = 2
            (origin.isContentHeld, origin.fetches) = (true, 0)
        }
        let pass = Task { await syncError { try await synchronizer.sync() } }
        try await origin.wait { $0.fetches == 1 ? () : nil }
        await store["p1"].update(Photo(key: "p1", version: 7))
        origin.update { $0.isContentHeld = false }
        let error = await pass.value
        #expect((error?.report?.failures.first?.error as? SyncError)?.code == .changedLocally)
        #expect(try await versions(store)["p1"] == 7)
        #expect(origin.current.fetches == 1)
    }

    @Test func `S4: an item that is removed while it is fetched is wanted, and fetched again`() async throws {
        let store = store()
        let processor = StoreSyncProcessor(list: list, store: store, version: \.version)
        let synchronizer = OneWaySynchronizer(processor: processor, options: SyncOptions(concurrency: 1, retry: .never))
        origin.update { $0.isContentHeld = true }
        let pass = Task { try await synchronizer.sync() }
        try await origin.wait { $0.fetches == 1 ? () : nil }
        await store["p0"].clear()
        origin.update { $0.isContentHeld = false }
        #expect(try await pass.value.addedCount == 5)
        #expect(try await versions(store) == ["p0": 1, "p1": 1, "p2": 1, "p3": 1, "p4": 1])
    }

    @Test func `S4: the check of a key and its change are one step`() async throws {
        let store = store()
        for _ in 0..<rounds(300, quick: 30) {
            let watch = store.watchChanges()
            let listed = Bool.random() ? Photo(key: "p0", version: 2) : nil
            async let change: Void = store["p0"].update(Photo(key: "p0", version: 7))
            async let isReplaced = store.replace("p0", by: listed, unlessNewerThan: watch)
            _ = await (change, isReplaced)
            #expect(try await versions(store)["p0"] == 7)
            #expect(watch.change(of: "p0") == .byUser)
        }
        // The call itself is no change, so it can be repeated.
        let watch = store.watchChanges()
        let listed = Photo(key: "p0", version: 3)
        for _ in 0..<2 { #expect(await store.replace("p0", by: listed, unlessNewerThan: watch)) }
        #expect(watch.change(of: "p0") == nil)
        try await store.clear()
        #expect(await !store.replace("p0", by: listed, unlessNewerThan: watch))
        #expect(try await versions(store)["p0"] == nil)
    }

    // MARK: Outboxes

    private struct Create: Command {
        static let name = "create"
        var id: String
    }

    private struct Raise: Command {
        static let name = "raise"
        var id: String
    }

    @Test func `S4: the commands of an outbox that wait are no local items`() async throws {
        origin.update { $0.photos = (0..<25).map { Photo(key: "p\($0)", version: 1) } }
        let store = store()
        let outbox = try Outbox(directory: temporaryURL())
        await outbox.register(
            Create.self, creating: store, at: \.id, content: { Photo(key: $0.id, version: 0) },
            perform: { command, _ in Created("real-\(command.id)") })
        await outbox.register(Raise.self, patching: store, at: \.id, patch: { $1.version = 9 }, perform: { _, _ in })
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
        for number in 0..<30 { try await outbox.submit(Create(id: "t\(number)")) }
        try await outbox.submit(Raise(id: "p1"))
        #expect(try await store["p1"].requireData().version == 9)
        let report = try await synchronizer.sync()
        #expect((report.localCount, report.unchangedCount, report.removedCount) == (25, 25, 0))
        #expect(try await store["t7"].requireData().version == 0)
        #expect(try await store["p1"].requireData().version == 9)
    }

    @Test func `S4: a command that the origin performs while the list is read is not undone`() async throws {
        let store = store()
        let outbox = try Outbox(directory: temporaryURL())
        await outbox.register(Raise.self, patching: store, at: \.id, patch: { $1.version = 9 }, perform: { _, _ in })
        await outbox.register(
            Create.self, creating: store, at: \.id, content: { Photo(key: $0.id, version: 0) }, perform: { _, _ in Created("new") })
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
        try await outbox.submit(Raise(id: "p1"))
        try await outbox.submit(Create(id: "t"))
        let report = try await pass(synchronizer) {
            outbox.start()
            try await until { await outbox.commands().isEmpty }
        }
        #expect(report.isComplete)
        #expect(try await versions(store)["p1"] == 9)
        #expect(try await versions(store)["new"] == 0)
    }
}
