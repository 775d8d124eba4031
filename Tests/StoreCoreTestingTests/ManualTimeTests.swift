import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ManualTimeTests {
    @Test(
        arguments: [
            (.zero, "0 ns"), (.nanoseconds(999), "999 ns"), (.nanoseconds(1_000), "1 µs"), (.nanoseconds(26_830), "26.8 µs"),
            (.nanoseconds(999_499), "999 µs"), (.nanoseconds(999_500), "1 ms"), (.microseconds(2_345), "2.35 ms"),
            (.milliseconds(340), "340 ms"), (.seconds(2), "2 s"), (.milliseconds(59_960), "60 s"), (.seconds(86_400), "86400 s"),
            (.milliseconds(-1_500), "-1.5 s"), (.nanoseconds(Int64.min), "-9223372037 s"),
            (.seconds(Int64.max), "9223372037 s"),
        ] as [(Duration, String)])
    func `a duration is printed in a suitable unit`(duration: Duration, words: String) {
        #expect(duration.inWords == words)
    }

    let time = ManualTime()

    @Test func `C11: both clocks advance only manually, and together`() {
        let now = time.now
        let date = time.date
        #expect(date == Date(timeIntervalSince1970: 1_000_000_000))
        #expect(time.now == now && time.date == date)
        time.advance(by: .milliseconds(1500))
        #expect(now.duration(to: time.now) == .milliseconds(1500))
        #expect(time.date == date.addingTimeInterval(1.5))
    }

    @Test func `the wall clock starts at its date, wherever the monotonic clock starts`() {
        let date = Date(timeIntervalSince1970: 42)
        let time = ManualTime(date: date, now: MonotonicInstant(nanoseconds: 7_000_000_000))
        #expect(time.now == MonotonicInstant(nanoseconds: 7_000_000_000))
        #expect(time.date == date)
    }

    @Test(arguments: [-365 * 86_400, 3_600])
    func `C11: setting the wall clock moves neither the monotonic clock nor a sleeper`(seconds: Int) async throws {
        let napper = nap(.seconds(1))
        try await time.sleepers(atLeast: 1)
        let (now, date) = (time.now, time.date)
        time.shiftDate(by: .seconds(seconds))
        #expect(time.date == date.addingTimeInterval(Double(seconds)))
        time.setDate(Date(timeIntervalSince1970: Double(seconds)))
        #expect(time.date == Date(timeIntervalSince1970: Double(seconds)))
        #expect(time.now == now && time.sleeperCount == 1)
        time.advance(by: .seconds(1))
        #expect(time.date == Date(timeIntervalSince1970: Double(seconds + 1)))
        try await napper.value
    }

    @Test func `a sleeper sleeps exactly until its deadline`() async throws {
        let napper = nap(.seconds(2))
        try await time.advance(by: .nanoseconds(1_999_999_999), sleepers: 1)
        #expect(time.sleeperCount == 1)
        time.advance(by: .nanoseconds(1))
        #expect(time.sleeperCount == 0)
        try await napper.value
    }

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `sleeping until a past or present instant returns at once`(offset: Duration) async throws {
        try await time.sleep(until: time.now.advanced(by: offset))
        #expect(time.sleeperCount == 0)
    }

    @Test func `sleepers wake in the order of their deadlines`() async throws {
        // All tasks run on one queue, the task that advances the time included. Each task therefore sleeps before the next one
        // begins, and resumed tasks run in the order of resumption. An actor would not do: a resumed task reaches it through the
        // shared pool, where threads may overtake each other.
        let dormitory = QueueExecutor()
        let log = WatchedState<[String]>([])
        var nappers: [Task<Void, any Error>] = []
        for (count, seconds) in [3, 1, 2, 1].enumerated() {
            let napper = Task(executorPreference: dormitory) {
                try await time.sleep(until: MonotonicInstant(nanoseconds: Int64(seconds) * 1_000_000_000))
                log.update { $0.append("\(seconds)#\(count)") }
            }
            nappers.append(napper)
            try await time.sleepers(atLeast: count + 1)
        }
        await Task(executorPreference: dormitory) { time.advance(by: .seconds(3)) }.value
        for napper in nappers { try await napper.value }
        #expect(log.current == ["1#1", "1#3", "2#2", "3#0"])
    }

    @Test func `a sleeper returns to its actor with a single job`() async throws {
        let dormitory = CountingActor()
        let napper = Task { try await dormitory.sleep(time, seconds: 1) }
        try await time.sleepers(atLeast: 1)
        await dormitory.advance(time, bySeconds: 1)
        // One job advances the time, the other one resumes the sleeper.
        #expect(try await napper.value == 2)
    }

    @Test func `advancing to the next deadline stops at each deadline exactly`() async throws {
        let ticker = Task {
            var seen: [Int64] = []
            for _ in 0..<3 {
                try await time.sleep(until: time.now.advanced(by: .seconds(1)))
                seen.append(time.now.nanoseconds)
            }
            return seen
        }
        for step in 1...3 {
            try await time.sleepers(atLeast: 1)
            #expect(time.advanceToNextDeadline() == MonotonicInstant(nanoseconds: Int64(step) * 1_000_000_000))
        }
        #expect(try await ticker.value == [1_000_000_000, 2_000_000_000, 3_000_000_000])
    }

    @Test func `advancing to the next deadline wakes exactly the sleepers that are due`() async throws {
        let nappers = [1, 1, 5].map { nap(.seconds($0)) }
        try await time.sleepers(atLeast: 3)
        #expect(time.nextDeadline == MonotonicInstant(nanoseconds: 1_000_000_000))
        time.advanceToNextDeadline()
        #expect(time.sleeperCount == 1)
        #expect(time.nextDeadline == MonotonicInstant(nanoseconds: 5_000_000_000))
        time.advanceToNextDeadline()
        for napper in nappers { try await napper.value }
    }

    @Test func `without sleepers there is no next deadline`() {
        let now = time.now
        #expect(time.nextDeadline == nil)
        #expect(time.advanceToNextDeadline() == nil)
        #expect(time.now == now)
    }

    @Test func `C9: a canceled sleeper wakes at once, alone`() async throws {
        let canceled = nap(.seconds(1))
        let other = nap(.seconds(1))
        try await time.sleepers(atLeast: 2)
        canceled.cancel()
        await #expect(throws: CancellationError.self) { try await canceled.value }
        #expect(time.sleeperCount == 1)
        time.advance(by: .seconds(1))
        try await other.value
    }

    @Test func `C9: sleeping in a canceled task throws and registers no sleeper`() async throws {
        let napper = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await time.sleep(until: .distantFuture)
        }
        await #expect(throws: CancellationError.self) { try await napper.value }
        #expect(time.sleeperCount == 0)
    }

    @Test func `waiting for sleepers returns once enough of them sleep, or enough of them are gone`() async throws {
        let gone = Task { try await time.sleepers(atMost: 0) }
        try await gone.value
        let there = Task { try await time.sleepers(atLeast: 2) }
        let nappers = [nap(.seconds(1)), nap(.seconds(2))]
        try await there.value
        let empty = Task { try await time.sleepers(atMost: 0) }
        time.advance(by: .seconds(2))
        try await empty.value
        for napper in nappers { try await napper.value }
    }

    @Test func `time saturates at the end of its range`() {
        time.advance(by: .seconds(Int64.max / 2_000_000_000))
        time.advance(by: .nanoseconds(Int64.max))
        #expect(time.now == .distantFuture)
    }

    @Test func `advancing by a negative duration is a programming error`() async {
        await #expect(processExitsWith: .failure) { ManualTime().advance(by: .nanoseconds(-1)) }
    }

    @Test func `C15: time is released after its last sleeper ends`() async throws {
        var time: ManualTime? = ManualTime()
        weak let released = time
        let napper = Task { [time] in try await time?.sleep(until: .distantFuture) }
        try await time?.sleepers(atLeast: 1)
        time = nil
        #expect(released != nil)
        await napper.cancelAndWait()
        #expect(released == nil)
    }

    @Test func `racing cancellation against advancing wakes every sleeper once`() async throws {
        for round in 0..<500 {
            let nappers = (1...4).map { nap(.nanoseconds($0)) }
            if round.isMultiple(of: 2) { try await time.sleepers(atLeast: 1) }
            async let moved: Void = Self.concurrently { for _ in 0..<4 { time.advance(by: .nanoseconds(1)) } }
            async let canceled: Void = Self.concurrently { for napper in nappers { napper.cancel() } }
            _ = await (moved, canceled)
            for napper in nappers { if case .failure(let error) = await napper.result { #expect(error is CancellationError) } }
            #expect(time.sleeperCount == 0)
        }
    }

    @Test func `many concurrent sleepers, advances and cancellations leave no task asleep`() async throws {
        let nappers = (0..<1_000).map { number in
            Task {
                var woken = 0
                for step in 1...10 {
                    do {
                        try await time.sleep(until: time.now.advanced(by: .nanoseconds((number * step) % 17)))
                        woken += 1
                    } catch {
                        #expect(error is CancellationError)
                        return woken
                    }
                }
                return woken
            }
        }
        let mover = Task.detached { [time] in
            while !Task.isCancelled {
                time.advanceToNextDeadline()
                await Task.yield()
            }
        }
        for (number, napper) in nappers.enumerated() where number.isMultiple(of: 3) { napper.cancel() }
        for (number, napper) in nappers.enumerated() {
            let woken = await napper.value
            if !number.isMultiple(of: 3) { #expect(woken == 10) }
        }
        await mover.cancelAndWait()
        #expect(time.sleeperCount == 0)
    }

    private func nap(_ duration: Duration) -> Task<Void, any Error> {
        let deadline = time.now.advanced(by: duration)
        return Task { try await time.sleep(until: deadline) }
    }

    @concurrent private static func concurrently(_ body: @Sendable () -> Void) async { body() }
}

extension CountingActor {
    /// Sleeps, and returns the number of jobs that the actor got meanwhile.
    fileprivate func sleep(_ time: ManualTime, seconds: Int) async throws -> Int {
        let before = jobCount
        try await time.sleep(until: MonotonicInstant(nanoseconds: Int64(seconds) * 1_000_000_000))
        return jobCount - before
    }

    fileprivate func advance(_ time: ManualTime, bySeconds seconds: Int) { time.advance(by: .seconds(seconds)) }
}
