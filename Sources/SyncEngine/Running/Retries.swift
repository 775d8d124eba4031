internal import StoreCore

/// An action with retries after transient failures.
struct Retries: Sendable {
    let policy: RetryPolicy
    let time: any TimeSource

    /// The failure of the last attempt.
    struct Failure: Error {
        var error: any Error
        var kind: FailureKind
        /// The number of attempts, here or in a lower layer.
        var attempts: Int
    }

    /// Runs an action until it succeeds, fails permanently, or the task is canceled; the other closure is called before each retry.
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
                    // The task was canceled during the wait; the earlier failure is the error to report.
                    throw failure
                }
                attempt += 1
            }
        }
    }

    private func delay(after failure: Failure, attempt: Int) -> Duration? {
        // The failure's kind takes precedence over the policy: a full disk gives no advice, and a retry would fail again.
        guard failure.kind == .transient else { return nil }
        return policy.delay(after: failure.error, attempt: attempt, unit: Double.random(in: 0..<1))
    }
}
