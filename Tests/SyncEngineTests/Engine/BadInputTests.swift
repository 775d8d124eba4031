import Foundation
import StoreCore
import Testing
@testable import SyncEngine

/// Errors of sources, inventories and processors, and their limited effects.
struct BadInputTests {
    /// An item with a text as its key.
    struct Note: SyncItem, Hashable {
        var key: String
        var version = 1
    }

    private func notebook(_ source: [String], local: [String] = [], order: SourceOrder = .unsorted) -> LocalItems<ListedSource<Note>> {
        LocalItems(
            ListedSource(source.map { Note(key: $0) }, order: order), versions: Dictionary(uniqueKeysWithValues: local.map { ($0, 1) }))
    }

    @Test func `S8: keys that differ in case are different`() async throws {
        let notebook = notebook(["a", "A", "ä", "Ä"])
        #expect(try await OneWaySynchronizer(processor: notebook).sync().addedCount == 4)
        #expect(notebook.versions.current.count == 4)
    }

    @Test(arguments: [("\u{E9}", "e\u{301}"), ("\u{AC00}", "\u{1100}\u{1161}"), ("\u{212B}", "\u{C5}")])
    func `S8: two Unicode forms of a text are one key`(composed: String, decomposed: String) async throws {
        for order in [SourceOrder.unsorted, .sortedByKey] {
            let twice = notebook([composed, decomposed], order: order)
            #expect(await syncError { try await OneWaySynchronizer(processor: twice).sync() }?.code == .duplicateKeys)
            #expect(twice.versions.current.isEmpty)
            // A local item in the other form is neither added nor removed.
            let other = notebook([composed], local: [decomposed], order: order)
            #expect(try await OneWaySynchronizer(processor: other).sync().unchangedCount == 1)
            #expect(other.versions.current.count == 1)
        }
    }

    @Test(arguments: ["", " ", "\u{0}", "../../etc", "a/b", String(repeating: "x", count: 100_000), "\u{202E}abc", "👩‍👩‍👧‍👦"])
    func `any text can be a key`(key: String) async throws {
        let notebook = notebook([key, "other"], local: ["other"])
        #expect(try await OneWaySynchronizer(processor: notebook).sync().addedCount == 1)
        #expect(notebook.versions.current[key] == 1)
    }

    @Test(arguments: [SyncStage.sourceList, .localInventory], [SourceOrder.unsorted, .sortedByKey])
    func `S2: a second page that throws changes nothing, and the error names the stage`(stage: SyncStage, order: SourceOrder) async throws {
        let processor = Broken(failsIn: stage, order: order)
        let synchronizer = OneWaySynchronizer(processor: processor, options: SyncOptions(retry: .never))
        for error in [await syncError { try await synchronizer.sync() }, await syncError { try await synchronizer.plan() }] {
            #expect((error?.stage, error?.code) == (stage, .stageFailed))
            #expect(error?.underlyingError is Trouble)
        }
        #expect(processor.touched.current == 0)
    }

    /// A processor with a second page that throws.
    private struct Broken: SyncProcessor {
        let failsIn: SyncStage
        var order = SourceOrder.unsorted
        let touched = WatchedState(0)

        func sourceList() async throws -> PagedSource<Thing, Int> {
            PagedSource(order: order) { [failsIn] cursor in
                if cursor == nil { return .init([Thing(1)], then: .page(1)) }
                if failsIn == .sourceList { throw Trouble.lasting }
                return .init([Thing(2)], then: .end(.complete()))
            }
        }

        func localInventory() async throws -> LocalInventory<Thing> {
            LocalInventory(order: order) { [failsIn] in
                var page = 0
                return {
                    page += 1
                    if page == 2, failsIn == .localInventory { throw Trouble.lasting }
                    return page == 3 ? nil : [LocalEntry(10 * page, version: 1)]
                }
            }
        }

        func downloadContent(of item: Thing) async throws { touched.update { $0 += 1 } }
        func remove(_ keys: Set<Int>) async throws { touched.update { $0 += 1 } }
    }

    @Test(arguments: [SyncStage.plan, .prepare]) func `a hook that throws prevents all changes`(stage: SyncStage) async throws {
        let bench = Bench(
            source: [Thing(1, 2), Thing(2)], local: [1: 1, 3: 1],
            needs: { _ in
                if stage == .plan { throw Trouble.lasting }
                return true
            }, act: { if $0 == .prepare, stage == .prepare { throw Trouble.lasting } })
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: SyncOptions(retry: .never)).sync() }
        #expect(error?.stage == stage)
        #expect(error?.underlyingError as? Trouble == .lasting)
        #expect(bench.local == [1: 1, 3: 1])
    }

    @Test func `S4: an unnecessary update counts as unchanged in the plan and the report`() async throws {
        let bench = Bench(source: [Thing(1, 2), Thing(2, 2)], local: [1: 1, 2: 1], needs: { $0 == 2 })
        let synchronizer = OneWaySynchronizer(processor: bench)
        let plan = try await synchronizer.plan()
        #expect(plan.updates.map(\.item.key) == [2])
        #expect(plan.unchangedCount == 1)
        #expect(try await synchronizer.sync().updatedCount == 1)
        #expect(bench.local == [1: 1, 2: 2])
    }

    @Test(arguments: [nil, 2, 3] as [Int?]) func `S2: a list in memory is checked against its expected count`(count: Int?) async throws {
        var reading = ListReading(reader: ListedSource([Thing(1), Thing(2)], expectedCount: count).makeReader(), board: nil)
        do {
            #expect(try await reading.next()?.count == 2)
            #expect(try await reading.next() == nil)
            #expect(count != 3)
        } catch {
            #expect((error as? SyncError)?.code == .incompleteList)
            #expect(count == 3)
        }
    }

    @Test func `an error describes the failed operation in one line`() {
        let error = SyncError(.removalLimit, "cannot carry out the plan: too much", stage: .safetyGate, underlyingError: Trouble.lasting)
        #expect(error.description == "SyncError.removalLimit: cannot carry out the plan: too much (underlying: \(Trouble.lasting))")
        #expect(SyncError.Code(rawValue: "removalLimit") == .removalLimit)
    }

    @Test(arguments: [
        (URLError(.cancelled) as any Error, FailureKind.cancelled), (CancellationError(), .cancelled), (URLError(.timedOut), .transient),
        (POSIXError(.ENOSPC), .fatal), (POSIXError(.EACCES), .permanent), (POSIXError(.EBUSY), .transient),
        (CocoaError(.fileWriteVolumeReadOnly), .fatal), (Trouble.lasting, .permanent),
        (SyncError(.stageFailed, "", underlyingError: POSIXError(.ENOSPC)), .fatal), (SyncError(.stageFailed, ""), .permanent),
        (SyncError(.targetLocked, ""), .transient), (SyncError(.cancelled, ""), .cancelled),
    ]) func `S5: every error has a kind`(error: any Error, kind: FailureKind) {
        #expect(FailureKind(judging: error) == kind)
    }
}
