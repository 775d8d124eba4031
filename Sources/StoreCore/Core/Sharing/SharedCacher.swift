/// A cacher whose records other processes or machines read and write too.
///
/// A ``Store`` over a shared cacher shows the changes of all other stores, lets one of them fetch a missing key for all, and never saves
/// content over newer content. ``FileCacher`` is a shared cacher if it is created with ``FileSharing/processes``.
///
/// A *user* of the records is one cacher object, in any process. The cacher numbers the changes of all users with a ``Revision``, in the
/// order in which they become visible to loads. It calls its observers in that order. A store reads ``position`` before it decides on a
/// change, and passes it to ``save(_:param:over:)``. Therefore the cacher can tell whether the store knew the newest content when it
/// decided.
///
/// The author of a shared cacher must guarantee four things:
/// - Changes are delivered in the order of their revisions. A change is delivered only after loads return its record.
/// - The changes made through the same cacher object are not delivered to its observers.
/// - If changes may have been lost, ``CacherChange/gap`` is delivered before any later change.
/// - ``position`` advances only after all observers have returned.
///
/// The article *Sharing a cache* of the module StoreFiles explains what processes and machines share.
public protocol SharedCacher<Param, Content>: Cacher {
    /// Whether the records are shared; `false` if sharing is an option of the cacher that is not set.
    var isShared: Bool { get }

    /// The revision up to which all changes have been delivered to the observers.
    var position: Revision { get }

    /// Adds an observer of the changes that other users make from now on.
    ///
    /// The call itself does no work: the cacher begins to follow the changes at the first load or save.
    ///
    /// - Parameter observer: Called on any thread, never concurrently with itself; it must return quickly and must not call the cacher.
    /// - Returns: The observation, which ends when it is released.
    func observeChanges(_ observer: @escaping @Sendable (_ change: CacherChange<Param>) -> Void) -> ChangeObservation

    /// Saves a record unless another user of the cacher has changed the key since.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    ///   - base: The ``position`` at the time of the decision; for the result of a fetch, at the time before the fetch began.
    /// - Throws: Any error; the older record then stays.
    func save(_ record: CacheRecord<Content>, param: Param, over base: Revision) async throws -> SaveOutcome<Content>

    /// Removes the record of a key unless another user of the cacher has changed the key since.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - base: The ``position`` at the time of the decision.
    /// - Throws: Any error.
    func remove(param: Param, over base: Revision) async throws -> SaveOutcome<Content>

    /// Waits for the right to fetch a key, which only one user of the cacher has at a time.
    ///
    /// While another user holds the lease, the call waits until that user saves, fails, or ends, at most for the duration of the lease.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - duration: The time for which the lease keeps others from fetching.
    /// - Returns: The lease, or how the lease of the other user has ended.
    /// - Throws: `CancellationError` as soon as the task is canceled; any error of the cacher, after which the store fetches without a
    ///   lease.
    func lease(_ param: Param, for duration: Duration) async throws -> LeaseOutcome
}

extension SharedCacher {
    /// The default: the records are shared.
    public var isShared: Bool { true }
}

/// The outcome of a save or removal that may be superseded.
public enum SaveOutcome<Content: Sendable>: Sendable {
    /// The change was made and has this revision.
    case saved(Revision)
    /// Another user had changed the key; nothing was saved.
    ///
    /// The record is the newest one, or `nil` if it was removed. A further save over this revision succeeds unless yet another change has
    /// been made in between.
    case superseded(by: CacheRecord<Content>?, Revision)
}

extension SaveOutcome: Equatable where Content: Equatable {}
