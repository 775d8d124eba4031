/// A cacher whose records other processes or machines read and write too.
///
/// A ``Store`` over a shared cacher shows the changes of all other stores, lets one of them fetch a missing key for all, and never saves
/// content over newer content. ``FileCacher`` is a shared cacher if it is created with ``FileSharing/processes``.
///
/// The cacher numbers all changes of all its users with a ``Revision``, in the order in which they become visible to loads. It calls its
/// observers in that order. A store reads ``position`` before it decides on a change, and passes it to ``save(_:param:over:)``. Therefore
/// the cacher can tell whether the store knew the newest content when it decided.
///
/// The author of a shared cacher must guarantee four things:
/// - Changes are delivered in the order of their revisions, and a change is delivered only once loads return its record.
/// - The changes made through the same cacher object are not delivered to its observers.
/// - If changes may have been lost, ``CacherChange/gap`` is delivered before any later change.
/// - ``position`` advances only after all observers have returned.
public protocol SharedCacher<Param, Content>: Cacher {
    /// Whether the records are shared; a cacher for which that is an option returns `false` without it.
    var isShared: Bool { get }

    /// The revision up to which all changes have been delivered to the observers.
    var position: Revision { get }

    /// Adds an observer of the changes made by others from now on.
    ///
    /// Following the changes begins at the first load, so the call itself does no work.
    ///
    /// - Parameter observer: Called on any thread, never concurrently with itself; it must return quickly and must not call the cacher.
    /// - Returns: The observation, which ends when it is released.
    func observeChanges(_ observer: @escaping @Sendable (_ change: CacherChange<Param>) -> Void) -> ChangeObservation

    /// Saves a record unless another user of the cacher has changed the key since.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    ///   - base: The ``position`` at the time when the content was decided on: for a fetch, before it began.
    /// - Returns: The outcome.
    /// - Throws: Any error; the older record then stays.
    func save(_ record: CacheRecord<Content>, param: Param, over base: Revision) async throws -> SaveOutcome<Content>

    /// Removes the record of a key unless another user of the cacher has changed the key since.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - base: The ``position`` at the time of the decision.
    /// - Returns: The outcome.
    /// - Throws: Any error.
    func remove(param: Param, over base: Revision) async throws -> SaveOutcome<Content>

    /// Waits for the right to fetch a key, which only one user of the cacher has at a time.
    ///
    /// While another user holds the lease, the call waits: until that user saves, fails, or ends, but at most for the duration of the lease.
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
    /// The record is the newest one, `nil` if it was removed. A further save over the revision succeeds if no other change comes between.
    case superseded(by: CacheRecord<Content>?, Revision)
}

extension SaveOutcome: Equatable where Content: Equatable {}
