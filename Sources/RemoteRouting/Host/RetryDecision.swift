internal import StoreCore

/// Whether and when a failed attempt is made again: a pure decision.
struct RetryDecision {
    /// How often, and how long to wait.
    var policy: RetryPolicy
    /// When everything must be over.
    var deadline: MonotonicInstant?

    /// How long to wait before the next attempt; `nil` where the failure is final.
    ///
    /// - Parameters:
    ///   - error: What the attempt failed with; its ``RemoteError/mayRepeat`` says whether the request may be sent again at all.
    ///   - attempt: Which attempt that was, from 1.
    ///   - now: The present moment.
    ///   - unit: A random number in `0..<1`.
    func delay(after error: RemoteError, attempt: Int, now: MonotonicInstant, unit: Double) -> Duration? {
        guard error.isRetryable else { return nil }
        var single = error
        // The policy refuses what was already tried below; here it is the one that counts.
        single.attempts = 1
        guard let delay = policy.delay(after: single, attempt: attempt, unit: unit) else { return nil }
        // Waiting in vain helps nobody: where the server's wish is beyond the deadline, the error says it.
        if let deadline, now.advanced(by: delay) >= deadline { return nil }
        return delay
    }
}

extension HTTPRequest {
    /// Whether sending it twice is sending it once (RFC 9110 §9.2.2), and possible.
    var mayRepeat: Bool {
        (method.isIdempotent || fields["Idempotency-Key"] != nil) && body.isReplayable
    }
}
