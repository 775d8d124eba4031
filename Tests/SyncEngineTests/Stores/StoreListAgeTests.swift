import Foundation
import StoreCore
import StoreFiles
import StoreOutbox
import SyncEngine
import Testing
import Trials

/// Changes that a store accepts while a pass reads its list or carries it out.
struct StoreListAgeTests {
    private struct Photo: SyncItem, Codable, Hashable {
        var key: String
        var version: Int
    }

    private struct Origin: Sendable {
        var photos: [Photo] = (0..<5).map { Photo(key: "p\($0)", version: 1) }
        var isListHeld = false
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

    private func store(onDisk: Bool = false) -> Store<String, Photo> {
        let fetch: @Sendable (String) async throws -> Photo = { [origin] key in
            origin.update { $0.fetches += 1 }
            guard let photo = origin.current.photos.first(where: { $0.key == key }) else { throw Trouble.lasting }
            return photo
        }
        return onDisk ? Store(cacher: FileCacher(directory: directory), fetch: fetch) : Store(cacher: MemoryCacher(), fetch: fetch)
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
        let store = store(onDisk: onDisk)
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
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
        let store = store()
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
        _ = try await pass(synchronizer) {
            let new = Photo(key: "new", version: 1)
            origin.update { $0.photos.append(new) }
            await store["new"].update(new)
        }
        #expect(try await versions(store)["new"] == 1)
        #expect(try await synchronizer.sync().unchangedCount == 6)
    }

    @Test func `S4: a change accepted just before its item is replaced or removed is not undone`() async throws {
        let store = store()
        let processor = StoreSyncProcessor(list: list, store: store)
        let synchronizer = OneWaySynchronizer(processor: processor)
        try await synchronizer.sync()
        _ = try await processor.sourceList()
        await store["p0"].update(Photo(key: "p0", version: 7))
        await #expect(throws: SyncError.self) { try await processor.remove(["p0"]) }
        #expect(try await versions(store)["p0"] == 7)
        try await processor.remove(["p1"])
        #expect(try await versions(store)["p1"] == nil)
    }

    @Test func `S4: content that only an ordinary fetch has brought during a pass is no change of the user`() async throws {
        let store = store()
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        let report = try await pass(synchronizer) { _ = try await store["p3"].requireData() }
        #expect(report.isComplete && report.leftOut.isEmpty)
        #expect(try await versions(store).count == 5)
    }

    @Test func `S4: a plan leaves out changes accepted while its list was read`() async throws {
        let store = store()
        let synchronizer = OneWaySynchronizer(processor: StoreSyncProcessor(list: list, store: store))
        try await synchronizer.sync()
        origin.update { ($0.isListHeld, $0.listRequests) = (true, 0) }
        let plan = Task { try await synchronizer.plan() }
        try await origin.wait { $0.listRequests == 1 ? () : nil }
        await store["p1"].update(Photo(key: "p1", version: 2))
        await store["new"].update(Photo(key: "new", version: 1))
        origin.update { $0.isListHeld = false }
        let found = try await plan.value
        #expect(found.removals.isEmpty && found.updates.isEmpty)
        #expect(found.leftOut == ["p1"])
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
        await outbox.register(Create.self, creating: store, at: \.id) {
            Photo(key: $0.id, version: 0)
        } perform: { command, _ in
            Created("real-\(command.id)")
        }
        await outbox.register(Raise.self, patching: store, at: \.id) {
            $1.version = 9
        } perform: { _, _ in
        }
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
        await outbox.register(Raise.self, patching: store, at: \.id) {
            $1.version = 9
        } perform: { _, _ in
        }
        await outbox.register(Create.self, creating: store, at: \.id) {
            Photo(key: $0.id, version: 0)
        } perform: { _, _ in
            Created("new")
        }
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
