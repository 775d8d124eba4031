/// An observation of a cacher apart from the results of its calls.
package enum CacherNotice<Param: Hashable & Sendable>: Sendable {
    /// A fault that did not fail the call, such as a load that was a miss because the record is damaged.
    case fault(StoreEventKind.CacherOperation, Param?, any Error)
    /// The cacher evicted records to stay within its bounds.
    case evicted(count: Int)
}

/// A cacher that reports notices, which a store turns into events.
package protocol NoticingCacher<Param, Content>: Cacher {
    /// Adds an observer of all later notices.
    ///
    /// - Parameter observer: Called outside all locks, on any thread. The cacher retains it, so the observer should hold its own store
    ///   weakly.
    func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Param>) -> Void)
}
