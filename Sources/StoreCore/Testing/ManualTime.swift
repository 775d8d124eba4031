#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import StoreCore

/// A time source that stands still until a test advances it.
///
/// ```swift
/// let time = ManualTime()
/// let napper = Task {
///     try await time.sleep(until: time.now.advanced(by: .seconds(60)))
/// }
/// try await time.sleepers(atLeast: 1)
/// time.advance(by: .seconds(60))
/// try await napper.value
/// ```
///
/// Advancing time only *resumes* sleepers; they run later, on their own threads. A sleeper therefore sees the time to which the test has
/// advanced meanwhile: if ``advance(by:)`` goes beyond its deadline, the sleeper is late, as on a busy machine. If each sleeper must see
/// exactly its deadline, step with ``advanceToNextDeadline()`` and wait for the effect before the next step.
///
/// A sleeping task keeps the time source alive; cancel the task, or advance time past its deadline.
///
/// <doc:TestingYourStore> explains when a test may advance time.
public final class ManualTime: TimeSource {
    private typealias Sleepers = WaiterList<MonotonicInstant>

    private struct Clocks: Recounted {
        var now: MonotonicInstant
        /// The wall-clock time at which the monotonic clock shows zero.
        var wallOrigin: Date
        var sleepers = Sleepers()

        var date: Date { wallOrigin.addingTimeInterval(MonotonicInstant.zero.duration(to: now).timeInterval) }

        var nextDeadline: MonotonicInstant? { sleepers.all.lazy.map(\.tag).min() }

        var history: [String] { sleepers.all.map { "a task sleeps for another \(now.duration(to: $0.tag).inWords)" } }

        /// Removes the sleepers with a passed deadline, ordered by deadline and then by the start of their sleep.
        mutating func takeDue() -> [Sleepers.Waiter] {
            let now = now
            return sleepers.removeAll { $0 <= now }.sorted { ($0.tag, $0.ticket) < ($1.tag, $1.ticket) }
        }
    }

    /// One lock guards both clocks and the sleepers; sleepers are resumed outside it.
    private let clocks: WatchedState<Clocks>

    /// Creates a time source that stands still.
    ///
    /// - Parameters:
    ///   - date: The initial wall-clock time; by default 2001-09-09 01:46:40 UTC, so that every run of a test is the same.
    ///   - now: The initial instant of the monotonic clock.
    public init(date: Date = Date(timeIntervalSince1970: 1_000_000_000), now: MonotonicInstant = MonotonicInstant(nanoseconds: 0)) {
        let elapsed = MonotonicInstant.zero.duration(to: now).timeInterval
        clocks = WatchedState(Clocks(now: now, wallOrigin: date.addingTimeInterval(-elapsed)))
    }

    /// The current instant of the monotonic clock; only advancing time changes it.
    public var now: MonotonicInstant { clocks.read { $0.now } }

    /// The current time of the wall clock.
    public var date: Date { clocks.read { $0.date } }

    // MARK: Advancing

    /// Advances both clocks and resumes every sleeper with a passed deadline, in the order of the deadlines.
    ///
    /// - Parameter duration: The distance; zero or more, because a monotonic clock never goes back.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "ManualTime.advance(by: \(duration)): a monotonic clock never goes back; use shiftDate(by:)")
        move { $0.now.advanced(by: duration) }
    }

    /// Advances both clocks exactly to the earliest deadline, and resumes all sleepers with that deadline.
    ///
    /// - Returns: The deadline; `nil` if no task sleeps, and then the clocks do not change.
    @discardableResult
    public func advanceToNextDeadline() -> MonotonicInstant? {
        move { $0.nextDeadline }
    }

    /// Advances the clocks and resumes due sleepers outside the lock.
    @discardableResult
    private func move(to target: (Clocks) -> MonotonicInstant?) -> MonotonicInstant? {
        let (instant, due) = clocks.update { clocks -> (MonotonicInstant?, [Sleepers.Waiter]) in
            guard let instant = target(clocks) else { return (nil, []) }
            clocks.now = instant
            return (instant, clocks.takeDue())
        }
        for sleeper in due { sleeper.resume() }
        return instant
    }

    /// Sets the wall clock, forward or backward; the monotonic clock and the sleepers are not affected.
    ///
    /// - Parameter date: The new wall-clock time.
    public func setDate(_ date: Date) {
        clocks.update { $0.wallOrigin.addTimeInterval(date.timeIntervalSince($0.date)) }
    }

    /// Moves only the wall clock, as a user does by setting the clock of a machine.
    ///
    /// - Parameter duration: The distance; negative values move the clock backward.
    public func shiftDate(by duration: Duration) {
        clocks.update { $0.wallOrigin.addTimeInterval(duration.timeInterval) }
    }

    // MARK: Sleeping

    /// The number of tasks that sleep on this clock now.
    public var sleeperCount: Int { clocks.read { $0.sleepers.count } }

    /// The earliest deadline of all sleepers; `nil` if no task sleeps. Takes time proportional to the number of sleepers.
    public var nextDeadline: MonotonicInstant? { clocks.read { $0.nextDeadline } }

    /// Waits until at least `count` tasks sleep, without polling.
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
        try await clocks.wait(for: "at least \(count) sleepers", timeout, fileID, line) { $0.sleepers.count >= count }
    }

    /// Waits until at most `count` tasks sleep, without polling; with zero, until no task sleeps.
    ///
    /// Timeout, place and errors are those of ``sleepers(atLeast:timeout:fileID:line:)``.
    public func sleepers(
        atMost count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await clocks.wait(for: "at most \(count) sleepers", timeout, fileID, line) { $0.sleepers.count <= count }
    }

    /// Waits until the monotonic clock has been advanced to `deadline`.
    ///
    /// - Parameter deadline: The instant to wait for; a passed instant returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    public func sleep(until deadline: MonotonicInstant) async throws {
        try await sleep(until: deadline, isolation: #isolation)
    }

    private func sleep(until deadline: MonotonicInstant, isolation: isolated (any Actor)?) async throws {
        try Task.checkCancellation()
        let ticket = clocks.update { clocks in
            deadline <= clocks.now ? nil : clocks.sleepers.join(deadline)
        }
        guard let ticket else { return }
        let isDue = await Sleepers.wait { suspension in
            clocks.update { $0.sleepers.suspend(ticket, suspension) }
        } onCancel: {
            clocks.update { $0.sleepers.remove(ticket) }
        }
        if !isDue { throw CancellationError() }
    }
}

extension MonotonicInstant {
    fileprivate static let zero = MonotonicInstant(nanoseconds: 0)
}
