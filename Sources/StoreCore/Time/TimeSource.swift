public import Foundation

/// Where a store gets its time from: a monotonic clock, the wall clock, and a way to wait.
///
/// Ages inside the process are measured on the monotonic clock, which never goes back; ages of persisted records are measured on the
/// wall clock and turned into a monotonic deadline when they are loaded. Order is never taken from either: it comes from counters.
///
/// Production code uses ``system``; a test hands its store a ``ManualTime`` and moves it by hand.
public protocol TimeSource: Sendable {
    /// The present moment of the monotonic clock.
    var now: MonotonicInstant { get }

    /// The present moment of the wall clock.
    var date: Date { get }

    /// Waits until the monotonic clock has reached `deadline`.
    ///
    /// - Parameter deadline: The moment to wait for; one in the past returns without waiting.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func sleep(until deadline: MonotonicInstant) async throws
}

extension TimeSource where Self == SystemTime {
    /// The clocks of the operating system.
    public static var system: SystemTime { SystemTime() }
}

/// A moment of a monotonic clock, in nanoseconds since a reference that has no meaning outside the process.
public struct MonotonicInstant: InstantProtocol, Hashable, Sendable {
    /// Nanoseconds since the clock's reference.
    public var nanoseconds: Int64

    /// Makes an instant from a reading of the clock.
    ///
    /// - Parameter nanoseconds: Nanoseconds since the clock's reference.
    @inlinable
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than every moment a clock can show.
    public static let distantFuture = MonotonicInstant(nanoseconds: .max)

    /// Earlier than every moment a clock can show.
    public static let distantPast = MonotonicInstant(nanoseconds: .min)

    /// The instant `duration` later; saturates where the sum has no representation.
    public func advanced(by duration: Duration) -> MonotonicInstant {
        let span = duration.saturatedNanoseconds
        let (sum, overflow) = nanoseconds.addingReportingOverflow(span)
        guard overflow else { return MonotonicInstant(nanoseconds: sum) }
        return span > 0 ? .distantFuture : .distantPast
    }

    /// The time from this instant to `other`; negative where `other` is earlier, and saturated to ±292 years.
    public func duration(to other: MonotonicInstant) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        guard overflow else { return .nanoseconds(difference) }
        return .nanoseconds(other.nanoseconds > nanoseconds ? Int64.max : Int64.min)
    }

    /// Whether `lhs` comes before `rhs`.
    @inlinable
    public static func < (lhs: MonotonicInstant, rhs: MonotonicInstant) -> Bool {
        lhs.nanoseconds < rhs.nanoseconds
    }
}

extension Duration {
    /// The duration in nanoseconds, held at the ends of `Int64` where it does not fit.
    package var saturatedNanoseconds: Int64 {
        // Compared first: a duration can be longer than its own components can tell, and asking for them would trap.
        if self >= .nanoseconds(Int64.max) { return .max }
        if self <= .nanoseconds(Int64.min) { return .min }
        let (seconds, attoseconds) = components
        // Seconds rounded towards zero and the rest have the same sign, and together they fit.
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    /// The duration in the unit that suits it, to three digits: `26.8 µs`, `340 ms`, `2 s`.
    package var inWords: String {
        let nanoseconds = saturatedNanoseconds
        let units: [(name: String, size: Double)] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)]
        let magnitude = Double(nanoseconds.magnitude)
        // What would be rounded up to a thousand of one unit is one of the next.
        guard let unit = units.first(where: { magnitude >= $0.size * 0.9995 }) else { return "\(nanoseconds) ns" }
        let value = Double(nanoseconds) / unit.size
        let scale: Double = abs(value) < 9.995 ? 100 : abs(value) < 99.95 ? 10 : 1
        let rounded = (value * scale).rounded() / scale
        return "\(rounded == rounded.rounded() ? "\(Int64(rounded))" : "\(rounded)") \(unit.name)"
    }

    /// The duration in seconds, as Foundation's date arithmetic wants it.
    package var timeInterval: TimeInterval {
        // Held first: `components` traps for a duration of more than `Int64.max` seconds.
        let held = max(.seconds(Int64.min), min(.seconds(Int64.max), self))
        let (seconds, attoseconds) = held.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// A duration from seconds, held at ±292 years; NaN is zero.
    package init(saturating interval: TimeInterval) {
        guard !interval.isNaN else { self = .zero; return }
        let nanoseconds = interval * 1e9
        if nanoseconds >= 0x1p63 {
            self = .nanoseconds(Int64.max)
        } else if nanoseconds <= -0x1p63 {
            self = .nanoseconds(Int64.min)
        } else {
            self = .nanoseconds(Int64(nanoseconds))
        }
    }
}
