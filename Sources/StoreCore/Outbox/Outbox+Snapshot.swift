extension Outbox {
    /// Returns the commands and their numbers at this moment; does not count as an observer.
    ///
    /// ```swift
    /// let failed = await outbox.snapshot().failedCount
    /// ```
    public func snapshot() async -> OutboxState { await core.state(of: nil) }
}
