internal import StoreCore
import StoreCoreTesting
internal import SyncEngine
internal import Testing
import Trials

// The examples of the article on testing a synchronization.

@Suite(.timeLimit(.minutes(hangMinutes)))
struct NoteProcessorTests {
    let time = ManualTime()
    let origin = NoteOrigin()
    let shelf = NoteShelf()
    let synchronizer: OneWaySynchronizer<NoteProcessor>

    init() {
        synchronizer = OneWaySynchronizer(
            processor: NoteProcessor(origin: origin, shelf: shelf), time: time)
    }

    @Test func `a sync adds new notes and updates changed ones`() async throws {
        #expect(try await synchronizer.sync().addedCount == 2)
        await origin.edit(1)
        let report = try await synchronizer.sync()
        #expect(report.summary == "0 added, 1 updated, 0 removed, 1 unchanged")
        #expect(await shelf.versions == [1: 2, 2: 1])
    }

    @Test func `a plan lists removals without making them`() async throws {
        try await synchronizer.sync()
        await origin.delete(2)
        let plan = try await synchronizer.plan()
        #expect(plan.removals.map(\.local.key) == [2])
        #expect(await shelf.versions.count == 2)
    }

    @Test func `a transient failure of the origin is retried`() async throws {
        await origin.fail(1)
        async let report = synchronizer.sync()
        try await time.sleepers(atLeast: 1)
        time.advanceToNextDeadline()
        #expect(try await report.isComplete)
        #expect(await shelf.versions.count == 2)
    }

    @Test func `an empty list removes nothing`() async throws {
        try await synchronizer.sync()
        await origin.empty()
        let error = await #expect(throws: SyncError.self) {
            try await synchronizer.sync()
        }
        #expect(error?.code == .emptySource)
        #expect(await shelf.versions.count == 2)
    }
}
