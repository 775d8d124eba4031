/// A fetch that waits for its turn to get a lease.
package enum LeaseTurn {
    /// The key of the fetch; set by the store.
    @TaskLocal static var key: FetchedKey?

    /// Waits for a permit, in the order of the calls.
    ///
    /// Another fetch may wait for this one, and hold a permit until it ends: then the two would wait for each other. So this fetch waits no
    /// longer once another fetch waits for it, and never longer than the lease would last.
    ///
    /// - Parameters:
    ///   - permits: The permits.
    ///   - duration: The longest wait.
    /// - Returns: The permit; `nil` if the fetch must go on without a lease.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    package static func take(_ permits: Permits, within duration: Duration) async throws -> Permits.Permit? {
        try Task.checkCancellation()
        if let permit = permits.takeIfFree() { return permit }
        let waiting = Task { try await permits.take() }
        let timer = Task {
            // A canceled sleep means that the wait has ended.
            guard (try? await Task.sleep(for: min(duration, Duration.seconds(86_400)), clock: .suspending)) != nil else { return }
            waiting.cancel()
        }
        defer { timer.cancel() }
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
