public import Foundation

/// The clocks of the operating system: one that goes on while the machine is asleep, and the wall clock.
public struct SystemTime: TimeSource {
    /// Makes the system's time source; it has no state, so all of them are the same.
    public init() {}

    /// The present moment of the system's continuous clock.
    public var now: MonotonicInstant { MonotonicInstant(nanoseconds: continuousNanoseconds()) }

    /// The present moment of the system's wall clock.
    public var date: Date { Date() }

    /// Waits on the system's continuous clock.
    ///
    /// A canceled sleep holds no memory. That of `Task.sleep` is held until the deadline.
    ///
    /// - Parameter deadline: The moment to wait for; one in the past returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    public func sleep(until deadline: MonotonicInstant) async throws {
        guard now < deadline else { return }
        try await SleepQueue.system.sleep(until: deadline)
    }
}
