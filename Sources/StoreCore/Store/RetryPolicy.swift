internal import Foundation

/// Which failed fetches are tried again, how often and when.
///
/// ```swift
/// var policy = StorePolicy()
/// policy.retry = .exponential(attempts: 3)
/// ```
///
/// The waits grow exponentially and are drawn with full jitter (Brooker, "Exponential Backoff and Jitter", 2015): uniformly between zero
/// and the bound of the attempt, so that many clients do not come back at once. A failure's own ``FailureAdvising/retryAfter`` is
/// honoured as it stands.
public struct RetryPolicy: Sendable {
    /// How often a fetch is tried in all, the first time included; one or less never tries again.
    public var attempts: Int

    /// The bound of the first wait.
    public var base: Duration

    /// By what the bound grows with each attempt.
    public var multiplier: Double

    /// The largest bound of a wait.
    public var cap: Duration

    /// Which errors are worth another attempt.
    public var shouldRetry: @Sendable (any Error) -> Bool

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - attempts: How often a fetch is tried in all, the first time included.
    ///   - base: The bound of the first wait.
    ///   - multiplier: By what the bound grows with each attempt.
    ///   - cap: The largest bound of a wait.
    ///   - shouldRetry: Which errors are worth another attempt; by default those that are transient or give no advice.
    public init(
        attempts: Int, base: Duration = .milliseconds(200), multiplier: Double = 2, cap: Duration = .seconds(30),
        shouldRetry: @escaping @Sendable (any Error) -> Bool = RetryPolicy.isTransient
    ) {
        self.attempts = attempts
        self.base = base
        self.multiplier = multiplier
        self.cap = cap
        self.shouldRetry = shouldRetry
    }

    /// A failure is a failure.
    public static let never = RetryPolicy(attempts: 1)

    /// Tries transient failures again with exponential back-off.
    ///
    /// - Parameters:
    ///   - attempts: How often a fetch is tried in all, the first time included.
    ///   - base: The bound of the first wait.
    ///   - cap: The largest bound of a wait.
    public static func exponential(
        attempts: Int = 3, base: Duration = .milliseconds(200), cap: Duration = .seconds(30)
    ) -> RetryPolicy {
        RetryPolicy(attempts: attempts, base: base, cap: cap)
    }

    /// Whether an error is worth another attempt by its own advice; cancellation and `reentrantFetch` are not, everything without advice is.
    public static let isTransient: @Sendable (any Error) -> Bool = { error in
        if let advice = error as? any FailureAdvising { return advice.failureKind == .transient }
        if let error = error as? StoreError, error.code == .reentrantFetch { return false }
        return !(error is CancellationError)
    }

    /// How long to wait before the next attempt.
    ///
    /// - Parameters:
    ///   - error: What the last attempt failed with.
    ///   - attempt: Which attempt that was, from 1.
    ///   - unit: A random number in `0..<1`.
    /// - Returns: The wait; `nil` where the failure is final.
    package func delay(after error: any Error, attempt: Int, unit: Double) -> Duration? {
        guard attempt < attempts, shouldRetry(error) else { return nil }
        let advice = error as? any FailureAdvising
        // Already retried below: doing it here too would multiply the attempts.
        if let advice, advice.attempts > 1 { return nil }
        if let wish = advice?.retryAfter { return max(.zero, wish) }
        let growth = base.timeInterval * pow(multiplier, Double(attempt - 1))
        let bound = min(cap.timeInterval, growth.isFinite ? max(0, growth) : cap.timeInterval)
        return Duration(saturating: bound * unit)
    }
}
