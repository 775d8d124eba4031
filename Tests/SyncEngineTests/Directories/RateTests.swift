import StoreCore
import StoreCoreTesting
import Testing
import Trials
@testable import SyncEngine

/// S22: the limit on the bytes per second of all transfers.
struct RateTests {
    @Test(arguments: [0, -1, Int64.min])
    func `S22: a rate that is not positive is refused, and the old rate stays`(rate: Int64) throws {
        #expect(#expect(throws: SyncError.self) { try TransferRate(bytesPerSecond: rate) }?.code == .invalidRate)
        let limit = try TransferRate(bytesPerSecond: 5)
        #expect(#expect(throws: SyncError.self) { try limit.change(to: rate) }?.code == .invalidRate)
        #expect(limit.bytesPerSecond == 5)
    }

    @Test func `S22: huge numbers of bytes wait long, and do not overflow`() {
        let now = MonotonicInstant(nanoseconds: 1_000)
        var bucket = TokenBucket(rate: 1, now: now)
        for _ in 0..<40 { _ = bucket.take(.max, now: now) }
        let place = bucket.take(1, now: now)
        #expect(bucket.delay(of: place, now: now) > .seconds(1_000_000_000))
    }

    /// Takes pieces at random times and rates, and checks that no prefix arrives before its bytes are paid for.
    @Test func `S22: random transfers never exceed the rate, and an idle limit saves at most a tenth of a second`() {
        let first = UInt64.random(in: 1...1_000_000)
        for round in seeds(300 as UInt64, quick: 60) {
            var chance = SplitMix(seed: first + round)
            var now = MonotonicInstant(nanoseconds: 1_000)
            var rate = Int64.random(in: 1...10_000, using: &chance)
            var bucket = TokenBucket(rate: rate, now: now)
            /// The upper bound of the bytes that may have arrived: a plain bucket of a tenth of a second.
            var (allowed, arrived) = (0.0, 0.0)
            func pass(_ time: Duration) {
                now = now.advanced(by: time)
                allowed = min(allowed + time / .seconds(1) * Double(rate), arrived + Double(rate) / 10)
            }
            for _ in 0..<50 {
                switch Int.random(in: 0..<4, using: &chance) {
                case 0: pass(.milliseconds(Int.random(in: 0...5_000, using: &chance)))
                case 1:
                    rate = Int64.random(in: 1...10_000, using: &chance)
                    bucket.change(to: rate, now: now)
                default:
                    let bytes = Int.random(in: 0...3_000, using: &chance)
                    let place = bucket.take(bytes, now: now)
                    let delay = bucket.delay(of: place, now: now)
                    let before = arrived
                    arrived += Double(bytes)
                    // The wait is exact: a little less is too early, and after it the bytes may arrive.
                    if delay > .milliseconds(2) { #expect(bucket.delay(of: place, now: now.advanced(by: delay * 0.9)) > .zero) }
                    pass(delay + .microseconds(1))
                    #expect(bucket.delay(of: place, now: now) == .zero, "seed \(first + round)")
                    // What arrived before this piece is paid for.
                    #expect(before <= allowed + 1, "seed \(first + round)")
                }
            }
        }
    }

    @Test func `S22: all transfers share the rate, in their order`() async throws {
        let time = ManualTime()
        let rate = try TransferRate(bytesPerSecond: 1_000, time: time)
        let arrived = WatchedState(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<5 {
                        try await rate.take(500)
                        arrived.update { $0 += 500 }
                    }
                }
            }
            // Twenty pieces of half a second: the last one begins after 9.5 seconds.
            let began = time.now
            while arrived.current < 10_000 {
                if time.advanceToNextDeadline() == nil { await Task.yield() }
                #expect(Double(arrived.current) <= began.duration(to: time.now) / .seconds(1) * 1_000 + 500)
            }
            try await group.waitForAll()
            #expect(began.duration(to: time.now) >= .seconds(9.5))
        }
    }

    @Test func `S22: a changed rate applies to a transfer that waits`() async throws {
        let time = ManualTime()
        let rate = try TransferRate(bytesPerSecond: 1, time: time)
        try await rate.take(1_000)
        let waiting = Task { try await rate.take(1) }
        try await time.sleepers(atLeast: 1)
        try rate.change(to: 1_000_000)
        time.advance(by: .milliseconds(200))
        try await waiting.value
    }

    @Test func `S22: a canceled transfer does not wait`() async throws {
        let time = ManualTime()
        let rate = try TransferRate(bytesPerSecond: 1, time: time)
        try await rate.take(1_000)
        let waiting = Task { try await rate.take(1) }
        try await time.sleepers(atLeast: 1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }
}
