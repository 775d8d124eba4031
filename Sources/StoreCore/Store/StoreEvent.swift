/// Something that happened inside a store, for logs, metrics and tests.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
///     onEvent: { event in log.add("\(event.number): \(event.kind)") })
/// ```
public struct StoreEvent<Param: Hashable & Sendable>: Sendable {
    /// The event's number in its store, from 1 and without gaps; events may be delivered in another order than they came about.
    public let number: UInt64

    /// The key it happened to; `nil` where it concerns the whole store.
    public let param: Param?

    /// What happened.
    public let kind: StoreEventKind
}

/// What can happen inside a store.
public enum StoreEventKind: Sendable {
    /// Valid content was there.
    case hit
    /// No valid content was there.
    case miss
    /// Somebody joined a fetch that was already running.
    case coalesced
    /// A fetch began.
    case fetchBegan(Target)
    /// A fetch ended after `duration`.
    case fetchEnded(Target, duration: Duration, FetchOutcome)
    /// An attempt failed and another one follows after `delay`.
    case retried(Target, attempt: Int, delay: Duration, any Error)
    /// A record reached the cacher.
    case saved
    /// A record was removed from the cacher.
    case removed
    /// A call of the cacher failed.
    case cacherFault(CacherOperation, any Error)
    /// The cacher dropped records to stay within its bounds.
    case evicted(count: Int)
    /// A result came too late and went nowhere.
    case droppedAsOutdated(Target)
    /// A record whose save had failed was given up because too many of them were waiting.
    case droppedUnsaved
}

extension StoreEventKind {
    /// What a fetch is for.
    public enum Target: Hashable, Sendable {
        /// The content of a key, or the first page of a list.
        case content
        /// A page at one side of a list.
        case page(PageDirection)
    }

    /// How a fetch ended.
    public enum FetchOutcome: Sendable {
        /// With new content.
        case modified
        /// With the word that the store's content is still right.
        case notModified
        /// With an error.
        case failed(any Error)
        /// The store cancelled it: nobody wanted it any longer, or something newer took its place.
        case cancelled
    }

    /// What a cacher was asked to do.
    public enum CacherOperation: Hashable, Sendable {
        /// To load a record.
        case load
        /// To save a record.
        case save
        /// To remove a record.
        case remove
        /// To remove all records.
        case removeAll
    }
}
