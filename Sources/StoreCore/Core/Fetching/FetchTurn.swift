/// A fetch that waits for its turn: to get a lease, or to begin an attempt.
package enum FetchTurn {
    /// The key of a fetch that waits for a lease; set by the store.
    @TaskLocal static var key: FetchedKey?

    /// Waits for a permit, in the order of the calls.
    ///
    /// Another fetch may wait for this one, and hold a permit until it ends: then the two would wait for each other. So this fetch waits no
    /// longer once another fetch waits for it.
    ///
    /// - Parameter duration: The longest wait; `nil` for any.
    /// - Returns: The permit; `nil` if the fetch must go on without one.
    /// - Throws: `CancellationError` as soon as the task is canceled.
    package static func take(_ permits: Permits, within duration: Duration?) async throws -> Permits.Permit? {
        try Task.checkCancellation()
        if let permit = permits.takeIfFree() { return permit }
        // No fetch waits for a task outside fetches.
        let key = key ?? FetchScope.active?.key ?? FetchedKey(0)
        // Only the timeout, another fetch, or the cancellation ends the wait without a permit.
        let permit: Permits.Permit? = await withTaskGroup(of: Permits.Permit?.self) { group in
            group.addTask { try? await permits.take() }
            group.addTask {
                try? await key.wait(timeout: duration) { $0 > 0 ? () : nil }
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        try Task.checkCancellation()
        return permit
    }
}
