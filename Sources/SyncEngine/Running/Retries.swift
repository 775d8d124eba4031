internal import StoreCore

/// Tries once, and again where the failure is one that may pass.
struct Retries: Sendable {
    let policy: RetryPolicy
    let time: any TimeSource

    /// What it failed with in the end.
    struct Failure: Error {
        var error: any Error
        var kind: FailureKind
        /// How often it was tried, attempts below included.
        var attempts: Int
    }

    /// Does something until it succeeds, fails for good, or the task is cancelled.
    ///
    /// - Parameters:
    ///   - action: What is done.
    ///   - beforeRetry: Called where it will be done again, before the wait.
    func callAsFunction<Value>(_ action: () async throws -> Value, beforeRetry: () -> Void = {}) async throws(Failure) -> Value {
        var attempt = 1
        while true {
            do {
                return try await action()
            } catch {
                let below = (error as? any FailureAdvising)?.attempts ?? 1
                let failure = Failure(error: error, kind: FailureKind(judging: error), attempts: max(attempt, below))
                guard !Task.isCancelled, let delay = delay(after: failure, attempt: attempt) else { throw failure }
                beforeRetry()
                do {
                    try await time.sleep(until: time.now.advanced(by: delay))
                } catch {
                    // Cancelled while it waited: what it failed with is still what is wrong.
                    throw failure
                }
                attempt += 1
            }
        }
    }

    private func delay(after failure: Failure, attempt: Int) -> Duration? {
        // The judgement knows more than the policy: a full disk gives no advice and is not worth another attempt.
        guard failure.kind == .transient else { return nil }
        return policy.delay(after: failure.error, attempt: attempt, unit: Double.random(in: 0..<1))
    }
}
