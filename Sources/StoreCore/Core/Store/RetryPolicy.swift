/// The rules for retrying a failed fetch: which errors, how often, and when.
///
/// ```swift
/// var policy = StorePolicy()
/// policy.retry = .exponential(attempts: 3)
/// ```
///
/// Delays grow exponentially with full jitter (Brooker, "Exponential Backoff and Jitter", 2015). Each delay is drawn uniformly between zero
/// and the attempt's bound, so that many clients do not retry at the same moment. A ``FailureAdvising/retryAfter`` of the error can
/// lengthen the computed delay up to ``adviceLimit``, and never shortens it.
///
/// <doc:RefreshingAndExpiring> explains which errors a store retries.
public struct RetryPolicy: Sendable {
    /// The number of attempts, including the first; one or less never retries.
    public var attempts: Int

    /// The bound of the first delay.
    public var base: Duration

    /// The factor by which the bound grows with each attempt.
    public var multiplier: Double

    /// The largest bound of a delay.
    public var cap: Duration

    /// The largest delay that an origin may ask for; a longer one is shortened to this limit. One hour by default.
    ///
    /// The limit never shortens the policy's own delay.
    public var adviceLimit: Duration

    /// The default limit of an origin's advice: one hour.
    public static let defaultAdviceLimit = Duration.seconds(3600)

    /// Returns whether an error is worth another attempt.
    public var shouldRetry: @Sendable (any Error) -> Bool

    /// Creates a policy; omitted rules have their defaults.
    ///
    /// - Parameters:
    ///   - attempts: The number of attempts, including the first.
    ///   - base: The bound of the first delay.
    ///   - multiplier: The factor by which the bound grows with each attempt.
    ///   - cap: The largest bound of a delay.
    ///   - adviceLimit: The largest delay that an origin may ask for.
    ///   - shouldRetry: Returns whether an error is worth another attempt; by default true for errors that are transient or carry no
    ///     advice.
    public init(
        attempts: Int, base: Duration = .milliseconds(200), multiplier: Double = 2, cap: Duration = .seconds(30),
        adviceLimit: Duration = RetryPolicy.defaultAdviceLimit,
        shouldRetry: @escaping @Sendable (any Error) -> Bool = RetryPolicy.isTransient
    ) {
        self.attempts = attempts
        self.base = base
        self.multiplier = multiplier
        self.cap = cap
        self.adviceLimit = adviceLimit
        self.shouldRetry = shouldRetry
    }

    /// One attempt for every error; the default of a store.
    public static let never = RetryPolicy(attempts: 1)

    /// Retries transient failures with exponential back-off.
    ///
    /// - Parameters:
    ///   - attempts: The number of attempts, including the first.
    ///   - base: The bound of the first delay.
    ///   - cap: The largest bound of a delay.
    public static func exponential(
        attempts: Int = 3, base: Duration = .milliseconds(200), cap: Duration = .seconds(30)
    ) -> RetryPolicy {
        RetryPolicy(attempts: attempts, base: base, cap: cap)
    }

    /// Returns whether an error is transient by its own advice; without advice, whether another attempt may succeed.
    ///
    /// Without advice, the result is `false` for cancellation and for the codes `reentrantFetch`, `closed`, `entityNotCreated` and
    /// `unscriptedRequest` of ``StoreError``, and `true` for all other errors.
    public static let isTransient: @Sendable (any Error) -> Bool = { error in
        if let advice = error as? any FailureAdvising { return advice.failureKind == .transient }
        return !(error is CancellationError) && !StoreError.isFinal(error)
    }

    /// Returns the delay after an attempt, which counts from 1; `nil` if the failure is final. `unit` is a random number in `0..<1`.
    package func delay(after error: any Error, attempt: Int, unit: Double) -> Duration? {
        // The missing response of a test would otherwise look like a test that hangs.
        guard attempt < attempts, !StoreError.isFinal(error), shouldRetry(error) else { return nil }
        let advice = error as? any FailureAdvising
        // The layer below has already retried; a retry here would multiply the attempts.
        if let advice, advice.attempts > 1 { return nil }
        return Self.delay(own: backOff(attempt: attempt, unit: unit), advised: advice?.retryAfter, limit: adviceLimit)
    }

    /// Combines a policy's own delay with the delay that an origin named: the only place that turns such advice into a delay.
    package static func delay(own: Duration, advised: Duration?, limit: Duration) -> Duration {
        max(.zero, own, min(advised ?? .zero, limit))
    }

    /// Returns the policy's own delay after an attempt, without any advice of the origin.
    package func backOff(attempt: Int, unit: Double) -> Duration {
        // Bounded, because a saved count of failures may be any number.
        let growth = repeatElement(multiplier, count: min(max(1, attempt), 1_000) - 1).reduce(base.timeInterval, *)
        let bound = min(cap.timeInterval, growth.isFinite ? max(0, growth) : cap.timeInterval)
        return Duration(saturating: bound * unit)
    }
}
