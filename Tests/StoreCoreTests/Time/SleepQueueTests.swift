import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct SleepQueueTests {
    private let time = ManualTime()
    /// Uses `time` as its clock: each alarm is one of its sleepers.
    private let queue: SleepQueue

    init() {
        let time = time
        queue = SleepQueue(now: { time.now }) { try? await time.sleep(until: $0) }
    }

    private func nap(_ duration: Duration) -> Task<MonotonicInstant, any Error> {
        let deadline = time.now.advanced(by: duration)
        return Task {
            try await queue.sleep(until: deadline)
            return time.now
        }
    }

    @Test func `1 000 canceled sleeps leave one alarm and few entries`() async throws {
        for round in 0..<1_000 {
            let napper = nap(.seconds(120) + .nanoseconds(round))
            try await until("a task sleeps") { queue.count == 1 }
            napper.cancel()
            await #expect(throws: CancellationError.self) { _ = try await napper.value }
            #expect(queue.count == 0)
            #expect(queue.entryCount <= 66)
        }
        try await time.sleepers(atLeast: 1)
        #expect(time.sleeperCount == 1)
    }

    @Test func `1 000 sleeps canceled at once leave few entries`() async throws {
        let nappers = (0..<1_000).map { nap(.seconds(1 + $0 * 7_919 % 1_000)) }
        try await until("all tasks sleep") { queue.count == 1_000 }
        for napper in nappers { napper.cancel() }
        for napper in nappers { await #expect(throws: CancellationError.self) { _ = try await napper.value } }
        #expect(queue.count == 0)
        #expect(queue.entryCount <= 64)
    }

    @Test func `an alarm that ends early is set again`() async throws {
        let time = time
        let queue = SleepQueue(now: { time.now }) { instant in
            try? await time.sleep(until: min(instant, time.now.advanced(by: .seconds(1))))
        }
        let deadline = time.now.advanced(by: .seconds(3))
        let napper = Task { try await queue.sleep(until: deadline) }
        for second in 1...3 {
            try await time.sleepers(atLeast: 1)
            #expect(queue.count == 1, "after \(second - 1) s")
            time.advance(by: .seconds(1))
        }
        try await napper.value
        try await time.sleepers(atMost: 0)
    }

    @Test(arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min)])
    func `a sleep with a past deadline returns at once`(duration: Duration) async throws {
        _ = try await nap(duration).value
        #expect(queue.count == 0)
    }

    @Test(arguments: [Duration.zero, .seconds(1), .seconds(Int64.max)])
    func `a canceled task does not sleep`(duration: Duration) async throws {
        let deadline = time.now.advanced(by: duration)
        let napper = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await queue.sleep(until: deadline)
        }
        await #expect(throws: CancellationError.self) { try await napper.value }
        #expect(queue.count == 0)
        #expect(time.sleeperCount == 0)
    }

    @Test func `an endless sleep on the system clock ends only by cancellation`() async throws {
        let napper = Task { try await SystemTime().sleep(until: .distantFuture) }
        try await until("the task sleeps") { SleepQueue.system.count >= 1 }
        for _ in 0..<1_000 { await Task.yield() }
        napper.cancel()
        await #expect(throws: CancellationError.self) { try await napper.value }
    }

    @Test(arguments: part(of: 0..<20, each: 6))
    func `each sleeper wakes at its deadline, however many others are canceled`(seed: Int) async throws {
        var random = SplitMix(seed: seed)
        var nappers: [(second: Int, task: Task<MonotonicInstant, any Error>)] = []
        for index in 0..<200 {
            let second = Int.random(in: 1...60, using: &random)
            nappers.append((second, nap(.seconds(second))))
            try await until("the task sleeps") { queue.count == index + 1 }
        }
        nappers.shuffle(using: &random)
        let canceled = nappers.prefix(Int.random(in: 0...200, using: &random))
        let left = nappers.dropFirst(canceled.count)
        for napper in canceled { napper.task.cancel() }
        for napper in canceled { await #expect(throws: CancellationError.self) { _ = try await napper.task.value } }
        let start = time.now
        for second in 1...60 {
            let asleep = left.count { $0.second > second }
            if queue.count > asleep {
                // The task that sets the alarm may not have reached the clock yet.
                try await until("an alarm is set") { time.nextDeadline.map { $0 <= start.advanced(by: .seconds(second)) } ?? false }
            }
            time.advance(by: .seconds(1))
            let now = time.now
            for napper in left where napper.second == second { #expect(try await napper.task.value == now) }
            #expect(queue.count == asleep)
        }
    }
}
