public import Foundation

/// Time that stands still until a test moves it.
///
/// ```swift
/// let time = ManualTime()
/// let napper = Task { try await time.sleep(until: time.now.advanced(by: .seconds(60))) }
/// try await time.sleepers(atLeast: 1)
/// time.advance(by: .seconds(60))
/// try await napper.value
/// ```
///
/// Moving time only *resumes* sleepers; they run later, on their own threads. A sleeper therefore finds the clock where the test has
/// moved it to in the meantime: after ``advance(by:)`` past its deadline it is late, as on a busy machine. Where each sleeper must find
/// exactly its own deadline, step with ``advanceToNextDeadline()`` and wait for the effect before the next step.
///
/// A task that sleeps keeps the time alive; cancel it, or move time past its deadline.
public final class ManualTime: TimeSource {
    private struct Sleeper {
        let ticket: UInt64
        let deadline: MonotonicInstant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct Clocks: Sendable {
        var now: MonotonicInstant
        /// What the wall clock shows when the monotonic one shows zero.
        var wallOrigin: Date
        var sleepers: [Sleeper] = []
        var lastTicket: UInt64 = 0

        var date: Date { wallOrigin.addingTimeInterval(MonotonicInstant.zero.duration(to: now).timeInterval) }

        var nextDeadline: MonotonicInstant? { sleepers.lazy.map(\.deadline).min() }

        /// One line per sleeper, in the order in which they fell asleep.
        var history: [String] { sleepers.map { "a task sleeps for another \(now.duration(to: $0.deadline).inWords)" } }

        /// Takes out those whose deadline has come: by deadline, then in the order in which they fell asleep.
        mutating func takeDue() -> [Sleeper] {
            let due = sleepers.filter { $0.deadline <= now }
            guard !due.isEmpty else { return [] }
            sleepers.removeAll { $0.deadline <= now }
            return due.sorted { ($0.deadline, $0.ticket) < ($1.deadline, $1.ticket) }
        }
    }

    /// One lock guards both clocks and the sleepers; they are resumed outside it.
    private let clocks: WatchedState<Clocks>

    /// Makes a time that stands still.
    ///
    /// - Parameters:
    ///   - date: What the wall clock shows; by default 2001-09-09 01:46:40 UTC, so that every run of a test is the same.
    ///   - now: What the monotonic clock shows.
    public init(date: Date = Date(timeIntervalSince1970: 1_000_000_000), now: MonotonicInstant = MonotonicInstant(nanoseconds: 0)) {
        let elapsed = MonotonicInstant.zero.duration(to: now).timeInterval
        clocks = WatchedState(Clocks(now: now, wallOrigin: date.addingTimeInterval(-elapsed)))
    }

    /// The present moment of the monotonic clock; only moving time changes it.
    public var now: MonotonicInstant { clocks.read { $0.now } }

    /// The present moment of the wall clock.
    public var date: Date { clocks.read { $0.date } }

    // MARK: Moving

    /// Moves both clocks and resumes every sleeper whose deadline has come, in the order of the deadlines.
    ///
    /// - Parameter duration: How far to move; zero or more, for a monotonic clock never goes back.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "ManualTime.advance(by: \(duration)): a monotonic clock never goes back; use shiftDate(by:)")
        move { $0.now.advanced(by: duration) }
    }

    /// Moves both clocks exactly to the deadline of the sleeper that is due next, and resumes everybody who is due then.
    ///
    /// - Returns: The deadline; `nil` where nobody sleeps, and then nothing moves.
    @discardableResult
    public func advanceToNextDeadline() -> MonotonicInstant? {
        move { $0.nextDeadline }
    }

    /// Moves the clocks forwards and resumes whoever is due, outside the lock.
    @discardableResult
    private func move(to target: (Clocks) -> MonotonicInstant?) -> MonotonicInstant? {
        let (instant, due) = clocks.update { clocks -> (MonotonicInstant?, [Sleeper]) in
            guard let instant = target(clocks) else { return (nil, []) }
            clocks.now = instant
            return (instant, clocks.takeDue())
        }
        for sleeper in due { sleeper.continuation.resume() }
        return instant
    }

    /// Sets the wall clock, forwards or backwards; the monotonic clock and the sleepers do not notice.
    ///
    /// - Parameter date: What the wall clock shows from now on.
    public func setDate(_ date: Date) {
        clocks.update { $0.wallOrigin.addTimeInterval(date.timeIntervalSince($0.date)) }
    }

    /// Moves only the wall clock, as somebody does who sets a machine's clock.
    ///
    /// - Parameter duration: How far to move; negative moves backwards.
    public func shiftDate(by duration: Duration) {
        clocks.update { $0.wallOrigin.addTimeInterval(duration.timeInterval) }
    }

    // MARK: Sleeping

    /// How many tasks sleep now.
    public var sleeperCount: Int { clocks.read { $0.sleepers.count } }

    /// The deadline of the sleeper that is due next; `nil` where nobody sleeps. Looks at every sleeper.
    public var nextDeadline: MonotonicInstant? { clocks.read { $0.nextDeadline } }

    /// Waits until at least `count` tasks sleep; no polling.
    ///
    /// The timeout is in real time: this clock stands still while the test waits.
    ///
    /// - Parameters:
    ///   - count: The least number of sleeping tasks.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func sleepers(
        atLeast count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "at least \(count) sleepers", timeout: timeout, fileID: fileID, line: line)
        try await clocks.wait(wait, history: { $0.history }) { $0.sleepers.count >= count ? () : nil }
    }

    /// Waits until at most `count` tasks sleep; no polling.
    ///
    /// - Parameters:
    ///   - count: The greatest number of sleeping tasks; zero waits until no task sleeps.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func sleepers(
        atMost count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "at most \(count) sleepers", timeout: timeout, fileID: fileID, line: line)
        try await clocks.wait(wait, history: { $0.history }) { $0.sleepers.count <= count ? () : nil }
    }

    /// Waits until the monotonic clock has been moved to `deadline`.
    ///
    /// - Parameter deadline: The moment to wait for; one that has come returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: MonotonicInstant) async throws {
        try await sleep(until: deadline, isolation: #isolation)
    }

    private func sleep(until deadline: MonotonicInstant, isolation: isolated (any Actor)?) async throws {
        let ticket = clocks.update { clocks in
            clocks.lastTicket += 1
            return clocks.lastTicket
        }
        try await withTaskCancellationHandler {
            // Captured, for else the closure runs on no actor: two hops for every sleep of an actor.
            _ = isolation
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let answer = clocks.update { clocks -> Result<Void, any Error>? in
                    // A task is marked cancelled before its handlers run: either this sees the mark, or `wake` finds the sleeper.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if deadline <= clocks.now { return .success(()) }
                    clocks.sleepers.append(Sleeper(ticket: ticket, deadline: deadline, continuation: continuation))
                    return nil
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let sleeper = clocks.update { clocks -> Sleeper? in
                guard let index = clocks.sleepers.firstIndex(where: { $0.ticket == ticket }) else { return nil }
                return clocks.sleepers.remove(at: index)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}

extension MonotonicInstant {
    /// The reference of the clock.
    fileprivate static let zero = MonotonicInstant(nanoseconds: 0)
}
