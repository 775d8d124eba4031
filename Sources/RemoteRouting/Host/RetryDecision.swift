internal import StoreCore

/// Decides whether and when to repeat a failed attempt: a pure decision.
struct RetryDecision {
    /// The number of attempts and the delays between them.
    var policy: RetryPolicy
    /// The deadline of the whole call.
    var deadline: MonotonicInstant?

    /// The delay before the next attempt; `nil` if the failure is final.
    ///
    /// - Parameters:
    ///   - error: The error of the attempt; ``RemoteError/mayRepeat`` says whether the request may be sent again at all.
    ///   - attempt: The number of the attempt, from 1.
    ///   - now: The present moment.
    ///   - unit: A random number in `0..<1`.
    func delay(after error: RemoteError, attempt: Int, now: MonotonicInstant, unit: Double) -> Duration? {
        guard error.isRetryable else { return nil }
        var single = error
        // The policy refuses errors that lower layers already retried; here the policy itself counts the attempts.
        single.attempts = 1
        guard let delay = policy.delay(after: single, attempt: attempt, unit: unit) else { return nil }
        // Fails at once if the delay exceeds the deadline; the error carries the server's `Retry-After`.
        if let deadline, now.advanced(by: delay) >= deadline { return nil }
        return delay
    }
}

extension HTTPRequest {
    /// Whether repeating the request is possible and has no further effect (RFC 9110 §9.2.2).
    var mayRepeat: Bool {
        (method.isIdempotent || fields["Idempotency-Key"] != nil) && body.isReplayable
    }
}
