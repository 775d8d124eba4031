#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The clocks of the operating system: a monotonic clock that continues while the machine is asleep, and the wall clock.
public struct SystemTime: TimeSource {
    /// Creates the system's time source. It has no state, so all instances are equal.
    public init() {}

    /// The current instant of the system's continuous clock.
    public var now: MonotonicInstant { MonotonicInstant(nanoseconds: continuousNanoseconds()) }

    /// The current time of the system's wall clock.
    public var date: Date { Date() }

    /// Waits on the system's continuous clock.
    ///
    /// A canceled sleep holds no memory, while `Task.sleep` holds memory until the deadline.
    ///
    /// - Parameter deadline: The instant to wait for; an instant in the past returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    public func sleep(until deadline: MonotonicInstant) async throws {
        guard now < deadline else { return }
        try await SleepQueue.system.sleep(until: deadline)
    }
}
