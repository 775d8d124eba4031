/// A fetch that waits for its turn: to get a lease, or to begin an attempt.
package enum FetchTurn {
    /// The key of a fetch that waits for a lease; set by the store.
    @TaskLocal static var key: FetchedKey?

    /// Waits for a permit, in the order of the calls.
    ///
    /// Another fetch may wait for this one, and hold a permit until it ends: then the two would wait for each other. So this fetch waits no
    /// longer once another fetch waits for it.
    ///
    /// - Parameters:
    ///   - permits: The permits.
    ///   - duration: The longest wait; `nil` for any.
    /// - Returns: The permit; `nil` if the fetch must go on without one.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    package static func take(_ permits: Permits, within duration: Duration?) async throws -> Permits.Permit? {
        try Task.checkCancellation()
        if let permit = permits.takeIfFree() { return permit }
        let waiting = Task { try await permits.take() }
        let timer = duration.map { duration in
            Task {
                // A canceled sleep means that the wait has ended.
                guard (try? await Task.sleep(for: min(duration, Duration.seconds(86_400)), clock: .suspending)) != nil else { return }
                waiting.cancel()
            }
        }
        defer { timer?.cancel() }
        let key = key ?? FetchScope.active?.key
        key?.onAwaited { waiting.cancel() }
        defer { key?.onAwaited(nil) }
        // Only the timer, another fetch, or the cancellation ends the wait without a permit.
        let permit = await withTaskCancellationHandler {
            try? await waiting.value
        } onCancel: {
            waiting.cancel()
        }
        try Task.checkCancellation()
        return permit
    }
}
