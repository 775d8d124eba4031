/// A cacher that notices more than the answers to its calls say: a load that was a miss because the record is damaged, or records
/// dropped to stay within its bounds.
package protocol NoticingCacher<Param, Content>: Cacher {
    /// Adds somebody to be told of everything from now on; a store turns it into events.
    ///
    /// - Parameter observer: Gets what happened and the key it happened to, where there is one. Called outside any lock, on whatever
    ///   thread noticed. It is kept as long as the cacher, so it should hold its own store weakly.
    func observeNotices(_ observer: @escaping @Sendable (StoreEventKind, Param?) -> Void)
}
