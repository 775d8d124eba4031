import Dispatch
import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// The times at which flushes of the disk begin, and their waiters.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct GroupedFlushTests {
    @Test func `S9: flushes begin at least the interval apart`() async throws {
        let flushes = GroupedFlush(interval: .milliseconds(100))
        let (begun, gate) = (WatchedState<[UInt64]>([]), DispatchSemaphore(value: 0))
        let start = DispatchTime.now().uptimeNanoseconds
        let flush: @Sendable () throws -> Void = {
            begun.update { $0.append(DispatchTime.now().uptimeNanoseconds) }
            gate.wait()
        }
        try await withThrowingTaskGroup { group in
            group.addTask { try await flushes.wait(flush) }
            for number in 1...5 {
                try await begun.wait { $0.count == number ? () : nil }
                // Another waiter arrives during the flush and needs the next one.
                if number < 5 {
                    group.addTask { try await flushes.wait(flush) }
                    try await until("the next flush is wanted") { flushes.waitingCount == 1 }
                }
                gate.signal()
            }
            try await group.waitForAll()
        }
        // A further flush begins after all others have ended.
        gate.signal()
        try await flushes.wait(flush)
        let times = begun.current
        #expect(times.count == 6)
        // A flush may note its time long after it began, so only the time since the start says something about all intervals before it.
        #expect(times.enumerated().allSatisfy { number, time in time - start >= UInt64(number) * 99_000_000 }, "\(times)")
    }

    @Test func `S9: the first and the last waiter are not delayed`() async throws {
        let flushes = GroupedFlush(interval: .seconds(3_600))
        let count = Lock(0)
        let flush: @Sendable () throws -> Void = { count.withLock { $0 += 1 } }
        try await flushes.wait(flush)
        #expect(count.withLock { $0 } == 1)
        let between = (0..<20).map { _ in Task { try await flushes.wait(flush) } }
        try await until("all wait") { flushes.waitingCount == between.count }
        try await flushes.wait(isLast: true, flush)
        for task in between { try await task.value }
        #expect(count.withLock { $0 } == 2)
    }

    @Test func `S9: waiters can leave before a flush begins, and no flush runs without waiters`() async throws {
        let flushes = GroupedFlush(interval: .seconds(3_600))
        let count = Lock(0)
        let flush: @Sendable () throws -> Void = { count.withLock { $0 += 1 } }
        try await flushes.wait(flush)
        let left = (0..<8).map { _ in Task { try await flushes.wait(flush) } }
        try await until("all wait") { flushes.waitingCount == left.count }
        for task in left { task.cancel() }
        for task in left { await #expect(throws: CancellationError.self) { try await task.value } }
        #expect(flushes.waitingCount == 0)
        try await flushes.wait(isLast: true, flush)
        #expect(count.withLock { $0 } == 2)
    }

    @Test func `S9: a failed flush throws its error for all its waiters and all later ones`() async throws {
        struct Full: Error {}
        let flushes = GroupedFlush(interval: .milliseconds(20))
        try await flushes.wait {}
        let sharing = (0..<8).map { _ in Task { try await flushes.wait { throw Full() } } }
        for task in sharing { await #expect(throws: Full.self) { try await task.value } }
        for isLast in [false, true] {
            await #expect(throws: Full.self) { try await flushes.wait(isLast: isLast) { Issue.record("flushed again") } }
        }
        #expect(flushes.hasFailed)
    }
}
