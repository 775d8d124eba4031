import Foundation
import StoreCore
import StoreCoreTesting
import Testing
@testable import SyncEngine

/// S5: failures that are retried, collected, or end the pass.
struct RetryTests {
    /// The number of attempts of each call so far.
    private final class Tries: Sendable {
        private let counts = WatchedState<[Bench.Call: Int]>([:])
        func next(_ call: Bench.Call) -> Int {
            counts.update { counts in
                counts[call, default: 0] += 1
                return counts[call] ?? 0
            }
        }
        subscript(call: Bench.Call) -> Int { counts.current[call] ?? 0 }
    }

    /// Advances the time for each sleeper until the work is done.
    private func drive<Value: Sendable>(_ time: ManualTime, _ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = Task { try await work() }
        let clock = Task {
            while true {
                try await time.sleepers(atLeast: 1)
                time.advanceToNextDeadline()
            }
        }
        defer { clock.cancel() }
        return try await task.value
    }

    @Test(arguments: [Bench.Call.list, .inventory, .preview(1), .content(1), .remove([9])])
    func `S5: a call that succeeds at the third attempt is not a failure`(call: Bench.Call) async throws {
        let tries = Tries()
        let time = ManualTime()
        let bench = Bench(source: [Thing(1)], local: [9: 1], act: { if $0 == call, tries.next(call) <= 2 { throw Trouble.passing } })
        let synchronizer = OneWaySynchronizer(processor: bench, options: SyncOptions(downloadsPreviews: true), time: time)
        let report = try await drive(time) { try await synchronizer.sync() }
        #expect(report.isComplete)
        #expect(tries[call] == 3)
        #expect(bench.local == [1: 1])
    }

    @Test(arguments: [Bench.Call.list, .inventory, .preview(1), .content(1), .remove([9])])
    func `S5: a call that always fails is tried as often as the policy allows, and reported`(call: Bench.Call) async throws {
        let tries = Tries()
        let time = ManualTime()
        let bench = Bench(
            source: [Thing(1)], local: [9: 1],
            act: {
                guard $0 == call else { return }
                _ = tries.next(call)
                throw Trouble.passing
            })
        let options = SyncOptions(downloadsPreviews: true, stopsOnError: false, retry: .exponential(attempts: 4))
        let synchronizer = OneWaySynchronizer(processor: bench, options: options, time: time)
        let error = try await drive(time) { await syncError { try await synchronizer.sync() } }
        #expect(tries[call] == 4)
        #expect(error?.underlyingError as? Trouble == .passing)
        #expect(error?.failureKind == .transient)
        switch call {
        case .list: #expect(error?.stage == .sourceList)
        case .inventory: #expect(error?.stage == .localInventory)
        default: #expect(error?.report?.failures.map(\.attempts) == [4])
        }
        #expect(bench.local[9] == 1)
    }

    @Test(arguments: [Bench.Call.list, .content(1), .remove([9])], [77, 2_147_483_647])
    func `C24, S5: a retry waits for exactly the delay that the origin names, but for an hour at most`(
        call: Bench.Call, named: Int
    ) async throws {
        let time = ManualTime()
        let tries = Tries()
        let wish = Trouble(failureKind: .transient, retryAfter: .seconds(named))
        let bench = Bench(source: [Thing(1)], local: [9: 1], act: { if $0 == call, tries.next(call) == 1 { throw wish } })
        let synchronizer = OneWaySynchronizer(processor: bench, time: time)
        let caller = Task { try await synchronizer.sync() }
        try await time.sleepers(atLeast: 1)
        let delay = Duration.seconds(min(named, 3600))
        #expect(time.nextDeadline == time.now.advanced(by: delay))
        time.advance(by: delay)
        let report = try await caller.value
        #expect(report.addedCount == 1)
        #expect(report.isComplete)
    }

    @Test(
        arguments: [
            Trouble(failureKind: .permanent), Trouble(failureKind: .fatal), Trouble(failureKind: .cancelled),
            Trouble(failureKind: .transient, attempts: 3),
        ])
    func `S5: a permanent error, or an error that a lower layer has retried, is not retried`(trouble: Trouble) async throws {
        let tries = Tries()
        let bench = Bench(
            source: [Thing(1)],
            act: {
                guard $0 == .content(1) else { return }
                _ = tries.next($0)
                throw trouble
            })
        // Manual time does not advance by itself, so a wait would never end.
        let synchronizer = OneWaySynchronizer(processor: bench, time: ManualTime())
        let error = await syncError { try await synchronizer.sync() }
        #expect(tries[.content(1)] == 1)
        #expect(error?.code == .incomplete)
        #expect(error?.report?.failures.map(\.attempts) == [trouble.attempts])
    }

    @Test func `S5: failures of items are collected, and removals wait for a pass without failures`() async throws {
        let bench = Bench(
            source: (1...10).map { Thing($0) }, local: [20: 1, 21: 1],
            act: { if case .content(let key) = $0, key % 3 == 0 { throw Trouble.lasting } })
        let options = SyncOptions(stopsOnError: false, retry: .never)
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: options).sync() }
        let report = try #require(error?.report)
        #expect(error?.code == .incomplete)
        #expect(Set(report.failures.compactMap { $0.key.value(as: Int.self) }) == [3, 6, 9])
        #expect(report.failures.allSatisfy { $0.stage == .contents })
        #expect((report.addedCount, report.pendingDownloadCount, report.removedCount, report.isComplete) == (7, 3, 0, false))
        #expect(Set(report.pendingRemovals.compactMap { $0.value(as: Int.self) }) == [20, 21])
        #expect(bench.local[20] == 1 && bench.local[21] == 1)
    }

    @Test func `S5: with stopsOnError, the first failure ends the pass and cancels items in flight`() async throws {
        let bench = Bench(source: (1...50).map { Thing($0) }, local: [99: 1], act: { if $0 == .content(2) { throw Trouble.lasting } })
        // The first item hangs until it is canceled.
        bench.hold(.content(1))
        let error = await syncError {
            try await OneWaySynchronizer(processor: bench, options: SyncOptions(concurrency: 2, retry: .never)).sync()
        }
        #expect(error?.report?.failures.map(\.key.description) == ["2"])
        #expect(error?.report?.pendingDownloadCount == 50)
        #expect(bench.local == [99: 1])
        #expect(bench.calls.count { if case .content = $0 { true } else { false } } == 2)
    }

    @Test(arguments: [Trouble.deadly as any Error, POSIXError(.ENOSPC), POSIXError(.EROFS), CocoaError(.fileWriteOutOfSpace)])
    func `S5: a full disk ends the pass even if failures are collected`(error fatal: any Error) async throws {
        let bench = Bench(source: (1...50).map { Thing($0) }, local: [99: 1], act: { if $0 == .content(3) { throw fatal } })
        let options = SyncOptions(concurrency: 1, stopsOnError: false)
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: options, time: ManualTime()).sync() }
        #expect(error?.report?.failures.map(\.key.description) == ["3"])
        #expect(error?.failureKind == .fatal)
        #expect(bench.local == [1: 1, 2: 1, 99: 1])
    }

    @Test func `S5: a partially failed removal reports the remaining items and removes the others`() async throws {
        let bench = Bench(source: [Thing(1)], local: Dictionary(uniqueKeysWithValues: (1...12).map { ($0, 1) }))
        bench.state.update { $0.stuck = [4, 7] }
        let options = SyncOptions(stopsOnError: false, retry: .never)
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: options).sync() }
        #expect(error?.code == .incomplete)
        #expect(error?.report?.failures.map(\.description) == [4, 7].map { "removals, \($0): \(Trouble.lasting)" })
        #expect(error?.report?.pendingRemovals.compactMap { $0.value(as: Int.self) }.sorted() == [4, 7])
        #expect(error?.report?.removedCount == 9)
        #expect(bench.local == [1: 1, 4: 1, 7: 1])
    }

    @Test(arguments: [RemovalTiming.afterDownloads, .beforeDownloads])
    func `S5: with stopsOnError, the first failed removal ends the pass`(timing: RemovalTiming) async throws {
        let bench = Bench(source: [Thing(1), Thing(50)], local: Dictionary(uniqueKeysWithValues: (1...12).map { ($0, 1) }))
        bench.state.update { $0.stuck = [4, 7] }
        let options = SyncOptions(removalTiming: timing, removalLimit: .unlimited, retry: .never)
        let error = await syncError { try await OneWaySynchronizer(processor: bench, options: options).sync() }
        #expect(error?.report?.failures.map(\.description) == ["removals, 4: \(Trouble.lasting)"])
        #expect(error?.report?.pendingRemovals.compactMap { $0.value(as: Int.self) }.sorted() == Array(4...12))
        #expect(bench.local[50] == (timing == .afterDownloads ? 1 : nil))
    }

    @Test func `S5: a pass removes a few hundred keys per call`() async throws {
        let bench = Bench(source: [Thing(0)], local: Dictionary(uniqueKeysWithValues: (0...1000).map { ($0, 1) }))
        try await OneWaySynchronizer(processor: bench, options: SyncOptions(removalLimit: .unlimited)).sync()
        let sizes = bench.calls.compactMap { if case .remove(let keys) = $0 { keys.count } else { nil } }
        #expect(sizes.reduce(0, +) == 1000)
        #expect(sizes.allSatisfy { $0 <= 256 })
        #expect(bench.local == [0: 1])
    }

    @Test(arguments: [SourceOrder.unsorted, .sortedByKey])
    func `S5: entries that the inventory skips are reported for lists of any order`(order: SourceOrder) async throws {
        let bench = Bench(source: [Thing(1), Thing(2)], local: [1: 1, 9: 1], order: order)
        bench.state.update { $0.skipped = [SyncRefusal(5, because: Trouble.lasting)] }
        let synchronizer = OneWaySynchronizer(processor: bench)
        #expect(try await synchronizer.plan().skipped.map(\.key) == [5])
        let report = try await synchronizer.sync()
        #expect(report.skipped.map(\.description) == ["local inventory, 5: \(Trouble.lasting)"])
        #expect(report.isComplete)
    }

    @Test func `S5: refused items are reported and prevent removals`() async throws {
        for timing in [RemovalTiming.afterDownloads, .beforeDownloads] {
            let bench = Bench(source: [Thing(1), Thing(2)], local: [9: 1], refuses: [2])
            let options = SyncOptions(stopsOnError: false, removalTiming: timing)
            let error = await syncError { try await OneWaySynchronizer(processor: bench, options: options).sync() }
            #expect(error?.report?.failures.map(\.description) == ["plan, 2: \(Trouble.lasting)"])
            #expect(error?.report?.pendingRemovals.map(\.description) == ["9"])
            #expect(error?.report?.pendingDownloadCount == 1)
            #expect(bench.local == [1: 1, 9: 1])
        }
    }
}
