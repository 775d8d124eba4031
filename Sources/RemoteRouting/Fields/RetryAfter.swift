package import Foundation

/// The wish of a `Retry-After` field (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// How long to stay away, from now; zero where the moment has passed.
    ///
    /// - Parameters:
    ///   - fields: The header of the answer.
    ///   - now: The present moment of the wall clock.
    /// - Returns: The time to wait; `nil` where the field is missing or cannot be read.
    package static func delay(in fields: HTTPFields, now: Date) -> Duration? {
        // A repeated field has no meaning; the longest wish does no harm.
        fields.values(of: "Retry-After").compactMap { delay(of: $0, now: now) }.max()
    }

    private static func delay(of value: String, now: Date) -> Duration? {
        if let seconds = DeltaSeconds.read(value) { return .seconds(seconds) }
        guard let date = HTTPDate.parse(value, now: now) else { return nil }
        // The date has whole seconds: to wait too short would be to come too early.
        return .seconds(max(0, Int64(date.timeIntervalSince(now).rounded(.up))))
    }
}
