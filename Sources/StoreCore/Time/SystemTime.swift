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
    /// - Parameter deadline: The moment to wait for; one in the past returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: MonotonicInstant) async throws {
        // The runtime's continuous clock counts from another reference; what both share is the distance from now.
        let distance = now.duration(to: deadline)
        guard distance > .zero else { return }
        try await Task.sleep(for: distance, clock: .continuous)
    }
}
