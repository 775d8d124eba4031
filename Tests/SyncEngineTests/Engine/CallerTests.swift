import StoreCore
import StoreCoreTesting
import Testing
import Trials
@testable import SyncEngine

/// Callers and the outcomes of passes, and the effects of cancellation.
struct CallerTests {
    private let plain = SyncOptions(concurrency: 2, retry: .never)
    /// An origin with one item, which is not there yet.
    private let bench = Bench(source: [Thing(1)])
    private let synchronizer: OneWaySynchronizer<Bench>

    init() { synchronizer = OneWaySynchronizer(processor: bench, options: plain) }

    @Test func `S6: a thousand calls during a run share one more pass`() async throws {
        let first = try await synchronizer.begin(heldIn: .list)
        let others = (0..<1000).map { _ in Task { try await synchronizer.sync() } }
        try await until { synchronizer.snapshot().callers == 1001 }
        bench.release(.list)
        #expect(try await first.value.pass == 1)
        for other in others { #expect(try await other.value.pass == 2) }
        #expect((bench.state.current.begun, bench.state.current.ended) == (2, 2))
        #expect(!synchronizer.isSyncing)
    }

    @Test func `S6: each of a thousand concurrent calls gets the outcome of a pass that began after it`() async throws {
        let passes = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
            for _ in 0..<1000 { group.addTask { (bench.state.read { $0.begun }, try await synchronizer.sync().pass) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(passes.count == 1000)
        #expect(passes.allSatisfy { $0.1 > $0.0 })
        try await until { !synchronizer.isSyncing }
        #expect(bench.state.current.begun == bench.state.current.ended)
    }

    @Test func `S6: every caller of a pass gets its error`() async throws {
        let bench = Bench(source: [Thing(1)], act: { if $0 == .content(1) { throw Trouble.lasting } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: plain)
        let first = try await synchronizer.begin(heldIn: .list)
        let others = (0..<5).map { _ in Task { await syncError { try await synchronizer.sync() } } }
        try await until { synchronizer.snapshot().callers == 6 }
        bench.release(.list)
        #expect(await syncError { try await first.value }?.report?.pass == 1)
        for other in others {
            let error = await other.value
            #expect((error?.code, error?.report?.pass) == (.incomplete, 2))
            #expect(error?.report?.failures.map(\.description) == ["contents, 1: \(Trouble.lasting)"])
        }
    }

    @Test func `S6: a canceled caller leaves at once without affecting other callers`() async throws {
        let gate = DeafGate()
        let bench = Bench(source: [Thing(1)], act: { if $0 == .content(1) { await gate.pass() } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: plain)
        let leaving = Task { try await synchronizer.sync() }
        try await gate.arrivals(1)
        let staying = Task { try await synchronizer.sync() }
        try await until { synchronizer.snapshot().callers == 2 }
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        gate.open()
        #expect(try await staying.value.isComplete)
        #expect(bench.local == [1: 1])
    }

    @Test func `S6: a run without callers and observers is canceled`() async throws {
        let caller = try await synchronizer.begin(heldIn: .content(1))
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        // The call stays held, so only its cancellation can end it.
        try await until { !synchronizer.isSyncing }
        #expect(bench.state.current.ended == 1)
        #expect(bench.local.isEmpty)
    }

    @Test func `S6: an observer keeps a run alive after its callers have left`() async throws {
        let observer = RecordingObserver(synchronizer.publish())
        try await until { synchronizer.snapshot().observers == 1 }
        let caller = try await synchronizer.begin(heldIn: .content(1))
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        bench.release(.content(1))
        _ = try await observer.next { if case .completed = $0 { true } else { false } }
        #expect(bench.local == [1: 1])
        try await observer.stopAndLeave()
        try await until { synchronizer.snapshot().observers == 0 }
    }

    @Test func `S6: the override of a canceled caller no longer applies`() async throws {
        let bench = Bench(source: [], local: [1: 1])
        let synchronizer = OneWaySynchronizer(processor: bench, options: plain)
        let first = try await synchronizer.begin(heldIn: .list)
        let bold = Task { try await synchronizer.sync(overriding: .emptySource) }
        try await until { synchronizer.snapshot().callers == 2 }
        let careful = Task { await syncError { try await synchronizer.sync() } }
        try await until { synchronizer.snapshot().callers == 3 }
        bold.cancel()
        await #expect(throws: CancellationError.self) { try await bold.value }
        bench.release(.list)
        #expect(await syncError { try await first.value }?.code == .emptySource)
        #expect(await careful.value?.code == .emptySource)
        #expect(bench.local == [1: 1])
    }

    @Test func `S7: cancel ends every caller at once, even if an item never returns`() async throws {
        let gate = DeafGate()
        let bench = Bench(source: (1...6).map { Thing($0) }, act: { if case .content = $0 { await gate.pass() } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: plain)
        let callers = (0..<3).map { _ in Task { await syncError { try await synchronizer.sync() } } }
        try await until { synchronizer.snapshot().callers == 3 }
        try await gate.arrivals(2)
        synchronizer.cancel()
        for caller in callers { #expect(await caller.value?.code == .cancelled) }
        #expect(synchronizer.isSyncing)
        #expect(bench.state.current.ended == 0)
        // This call begins a pass after the canceled one, and is not canceled with it.
        let late = Task { try await synchronizer.sync() }
        try await until { synchronizer.snapshot().callers == 1 }
        gate.open()
        #expect(try await late.value.isComplete)
        #expect((bench.state.current.ended, bench.state.current.begun, bench.local.count) == (2, 2, 6))
        // The canceled pass finished or abandoned the items in flight, and began no others.
        let first = try #require(bench.calls.firstIndex(of: .end))
        #expect(bench.calls[..<first].filter { if case .content = $0 { true } else { false } }.count == 2)
    }

    @Test(arguments: [Bench.Call.begin, .list, .inventory, .prepare, .preview(1), .content(1), .remove([9]), .end])
    func `S7: cancel in any stage ends the pass exactly once and removes no further item`(call: Bench.Call) async throws {
        let bench = Bench(source: [Thing(1)], local: [9: 1])
        var options = plain
        options.downloadsPreviews = true
        let synchronizer = OneWaySynchronizer(processor: bench, options: options)
        let caller = try await synchronizer.begin(heldIn: call)
        synchronizer.cancel()
        #expect(await syncError { try await caller.value }?.code == .cancelled)
        // Every call except the end is canceled.
        if call == .end { bench.release(.end) }
        try await until { !synchronizer.isSyncing }
        #expect((bench.state.current.begun, bench.state.current.ended, bench.state.current.endsCancelled) == (1, 1, 0))
        #expect(bench.calls.last == .end)
        #expect(bench.local[9] == (call == .end ? nil : 1))
        bench.release(call)
        #expect(try await synchronizer.sync().isComplete)
    }

    @Test(arguments: [Bench.Call.begin, .list, .inventory, .prepare, .preview(1), .content(1), .remove([9])])
    func `S7: cancel returns at once, whichever call hangs, and the end waits for that call`(call: Bench.Call) async throws {
        let gate = DeafGate()
        let bench = Bench(source: [Thing(1)], local: [9: 1], act: { if $0 == call { await gate.pass() } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(downloadsPreviews: true, retry: .never))
        let caller = Task { await syncError { try await synchronizer.sync() } }
        try await gate.arrivals(1)
        synchronizer.cancel()
        synchronizer.cancel()
        #expect(await caller.value?.code == .cancelled)
        #expect(synchronizer.isSyncing && bench.state.current.ended == 0)
        gate.open()
        try await until { !synchronizer.isSyncing }
        #expect(bench.state.current.ended == 1)
        // The held call has returned, and no other call began after it.
        #expect(bench.calls.suffix(2) == [call, .end])
    }

    @Test func `S7: cancel also cancels the queued pass`() async throws {
        let first = try await synchronizer.begin(heldIn: .list)
        let second = Task { await syncError { try await synchronizer.sync() } }
        try await until { synchronizer.snapshot().callers == 2 }
        synchronizer.cancel()
        #expect(await syncError { try await first.value }?.code == .cancelled)
        #expect(await second.value?.code == .cancelled)
        try await until { !synchronizer.isSyncing }
        #expect(bench.state.current.begun == 1)
        #expect(bench.local.isEmpty)
    }

    @Test func `S7: cancel ends the wait for a retry`() async throws {
        let time = ManualTime()
        let bench = Bench(source: [Thing(1)], act: { if $0 == .content(1) { throw Trouble.passing } })
        let synchronizer = OneWaySynchronizer(processor: bench, time: time)
        let caller = Task { await syncError { try await synchronizer.sync() } }
        try await time.sleepers(atLeast: 1)
        synchronizer.cancel()
        #expect(await caller.value?.code == .cancelled)
        try await until { !synchronizer.isSyncing }
        #expect(bench.calls.count { $0 == .content(1) } == 1)
        #expect(bench.state.current.ended == 1)
    }

    @Test func `S7: the next pass resumes where the canceled one stopped`() async throws {
        let bench = Bench(source: (1...10).map { Thing($0) }, local: [99: 1])
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 1, retry: .never))
        let caller = try await synchronizer.begin(heldIn: .content(6))
        synchronizer.cancel()
        #expect(await syncError { try await caller.value }?.code == .cancelled)
        try await until { !synchronizer.isSyncing }
        #expect(bench.local.keys.sorted() == [1, 2, 3, 4, 5, 99])
        bench.release(.content(6))
        let report = try await synchronizer.sync()
        #expect((report.unchangedCount, report.addedCount, report.removedCount) == (5, 5, 1))
    }

    @Test func `S7: the error of a canceled call is not a failure of its item`() async throws {
        let bench = Bench(source: [Thing(1)])
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(retry: .never))
        let observer = RecordingObserver(synchronizer.publish())
        try await until { synchronizer.snapshot().observers == 1 }
        let caller = try await synchronizer.begin(heldIn: .content(1))
        synchronizer.cancel()
        #expect(await syncError { try await caller.value }?.code == .cancelled)
        let state = try await observer.next { if case .error = $0 { true } else { false } }
        #expect((state.error as? SyncError)?.code == .cancelled)
        #expect((state.content?.failures.count, state.content?.pendingDownloadCount) == (0, 1))
    }

    @Test func `S7: cancel without a run does nothing`() async throws {
        synchronizer.cancel()
        #expect(!synchronizer.isSyncing)
        #expect(try await synchronizer.sync().addedCount == 1)
        synchronizer.cancel()
        #expect(try await synchronizer.sync().unchangedCount == 1)
    }

    @Test func `S6: a call in a canceled task does nothing`() async throws {
        let caller = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await synchronizer.sync()
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(bench.calls.isEmpty)
    }

    @Test(arguments: [Bench.Call.begin, .list, .inventory, .prepare, .content(1), .remove([9]), .end])
    func `S6: a call from within the run throws instead of deadlocking`(call: Bench.Call) async throws {
        let link = WatchedState<OneWaySynchronizer<Bench>?>(nil)
        let codes = WatchedState<[SyncError.Code?]>([])
        let bench = Bench(
            source: [Thing(1)], local: [9: 1],
            act: {
                guard $0 == call, let synchronizer = link.current else { return }
                let error = await syncError { try await synchronizer.sync() }
                codes.update { $0.append(error?.code) }
            })
        let synchronizer = OneWaySynchronizer(processor: bench, options: plain)
        link.update { $0 = synchronizer }
        #expect(try await synchronizer.sync().isComplete)
        #expect(codes.current == [.calledFromWithin])
        #expect(bench.state.current.begun == 1)
        link.update { $0 = nil }
    }

    @Test func `S6: a call during the end stage gets a later pass`() async throws {
        let first = try await synchronizer.begin(heldIn: .end)
        let second = Task { try await synchronizer.sync() }
        try await until { synchronizer.snapshot().callers == 2 }
        bench.state.update { $0.source = [Thing(1, 2)] }
        bench.release(.end)
        #expect(try await first.value.addedCount == 1)
        #expect(try await second.value.updatedCount == 1)
    }
}
