#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A store's source of time: a monotonic clock, the wall clock, and a way to wait.
///
/// Ages within the process are measured on the monotonic clock, which never goes back. Ages of persisted records are measured on the wall
/// clock and converted to a monotonic deadline when the record is loaded. Neither clock defines an order; counters do.
///
/// Production code uses ``system``. Tests pass a ``ManualTime`` to the store and advance it.
public protocol TimeSource: Sendable {
    /// The current instant of the monotonic clock.
    var now: MonotonicInstant { get }

    /// The current time of the wall clock.
    var date: Date { get }

    /// Waits until the monotonic clock has reached `deadline`.
    ///
    /// - Parameter deadline: The instant to wait for; an instant in the past returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    func sleep(until deadline: MonotonicInstant) async throws
}

extension TimeSource where Self == SystemTime {
    /// The clocks of the operating system.
    public static var system: SystemTime { SystemTime() }
}

/// An instant of a monotonic clock, in nanoseconds since a reference that has no meaning outside the process.
public struct MonotonicInstant: InstantProtocol, Hashable, Sendable {
    /// The reading of the clock, in nanoseconds; only differences between instants of one clock have a meaning.
    public var nanoseconds: Int64

    /// Creates an instant from a reading of the clock.
    ///
    /// - Parameter nanoseconds: Nanoseconds since the clock's reference.
    @inlinable
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// An instant later than any reading of a clock.
    public static let distantFuture = MonotonicInstant(nanoseconds: .max)

    /// An instant earlier than any reading of a clock.
    public static let distantPast = MonotonicInstant(nanoseconds: .min)

    /// Returns the instant `duration` later; saturates if the sum cannot be represented.
    public func advanced(by duration: Duration) -> MonotonicInstant {
        let span = duration.saturatedNanoseconds
        let (sum, overflow) = nanoseconds.addingReportingOverflow(span)
        guard overflow else { return MonotonicInstant(nanoseconds: sum) }
        return span > 0 ? .distantFuture : .distantPast
    }

    /// Returns the time from this instant to `other`; negative if `other` is earlier, and saturated to ±292 years.
    public func duration(to other: MonotonicInstant) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        guard overflow else { return .nanoseconds(difference) }
        return .nanoseconds(other.nanoseconds > nanoseconds ? Int64.max : Int64.min)
    }

    /// Returns whether `lhs` is earlier than `rhs`.
    @inlinable
    public static func < (lhs: MonotonicInstant, rhs: MonotonicInstant) -> Bool {
        lhs.nanoseconds < rhs.nanoseconds
    }
}

extension Duration {
    /// The duration in nanoseconds, clamped to the range of `Int64`.
    package var saturatedNanoseconds: Int64 {
        // Compared first, because `components` traps for durations beyond the range of its parts.
        if self >= .nanoseconds(Int64.max) { return .max }
        if self <= .nanoseconds(Int64.min) { return .min }
        let (seconds, attoseconds) = components
        // Seconds, rounded toward zero, and the rest have the same sign, and their sum fits.
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    /// The duration in the most suitable unit, to three digits: `26.8 µs`, `340 ms`, `2 s`.
    package var inWords: String {
        let nanoseconds = saturatedNanoseconds
        let units: [(name: String, size: Double)] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)]
        let magnitude = Double(nanoseconds.magnitude)
        // A value that rounds up to a thousand of one unit is shown in the next unit.
        guard let unit = units.first(where: { magnitude >= $0.size * 0.9995 }) else { return "\(nanoseconds) ns" }
        let value = Double(nanoseconds) / unit.size
        let scale: Double = abs(value) < 9.995 ? 100 : abs(value) < 99.95 ? 10 : 1
        let rounded = (value * scale).rounded() / scale
        return "\(rounded == rounded.rounded() ? "\(Int64(rounded))" : "\(rounded)") \(unit.name)"
    }

    /// The duration in seconds, for Foundation's date arithmetic.
    package var timeInterval: TimeInterval {
        // Clamped first: `components` traps for a duration of more than `Int64.max` seconds.
        let held = max(.seconds(Int64.min), min(.seconds(Int64.max), self))
        let (seconds, attoseconds) = held.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// Creates a duration from seconds, clamped to ±292 years; NaN becomes zero.
    package init(saturating interval: TimeInterval) {
        guard !interval.isNaN else { self = .zero; return }
        let nanoseconds = max(-0x1p63, interval * 1e9)
        self = .nanoseconds(nanoseconds < 0x1p63 ? Int64(nanoseconds) : .max)
    }
}

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
