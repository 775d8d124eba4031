/// What a cacher noticed beside the answers to its calls.
package enum CacherNotice<Param: Hashable & Sendable>: Sendable {
    /// Something was wrong that did not fail the call: a load that was a miss because the record is damaged.
    case fault(StoreEventKind.CacherOperation, Param?, any Error)
    /// Records were dropped to stay within the cacher's bounds.
    case evicted(count: Int)
}

/// A cacher that notices more than its answers say; a store turns the notices into events.
package protocol NoticingCacher<Param, Content>: Cacher {
    /// Adds somebody to be told of everything from now on.
    ///
    /// - Parameter observer: Called outside any lock, on whatever thread noticed. It is kept as long as the cacher, so it should hold
    ///   its own store weakly.
    func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Param>) -> Void)
}
