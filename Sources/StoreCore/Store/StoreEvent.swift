/// Something that happened inside a store, for logs, metrics and tests.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
///     onEvent: { event in log.add("\(event)") })
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
    /// No valid content was there, or the last fetch had failed and an observer or `validate()` asked again.
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
    /// Memory did not keep a record whose cost is above its limit; nothing else was evicted for it.
    case aboveCostLimit(cost: Int, limit: Int)
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

extension StoreEvent: CustomStringConvertible {
    /// The event in one line: its number, its key, and what happened.
    public var description: String {
        guard let param else { return "#\(number) \(kind)" }
        return "#\(number) \(param): \(kind)"
    }
}

extension StoreEventKind: CustomStringConvertible {
    /// What happened, in a few words.
    public var description: String {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .coalesced: "joined a running fetch"
        case .fetchBegan(let target): "fetch of \(target) began"
        case .fetchEnded(let target, let duration, let outcome): "fetch of \(target) ended after \(duration.inWords): \(outcome)"
        case .retried(let target, let attempt, let delay, let error):
            "fetch of \(target) failed at attempt \(attempt), next one in \(delay.inWords): \(error)"
        case .saved: "saved"
        case .removed: "removed"
        case .cacherFault(let operation, let error): "cacher fault at \(operation): \(error)"
        case .evicted(let count): "evicted \(count)"
        case .aboveCostLimit(let cost, let limit): "not kept in memory: its cost of \(cost) is above the limit of \(limit)"
        case .droppedAsOutdated(let target): "fetch of \(target) came too late, result dropped"
        case .droppedUnsaved: "unsaved record given up"
        }
    }
}

extension StoreEventKind.Target: CustomStringConvertible {
    /// What the fetch is for, in a word or two.
    public var description: String {
        switch self {
        case .content: "content"
        case .page(let direction): "\(direction) page"
        }
    }
}

extension StoreEventKind.FetchOutcome: CustomStringConvertible {
    /// How the fetch ended, in a few words.
    public var description: String {
        switch self {
        case .modified: "new content"
        case .notModified: "not modified"
        case .failed(let error): "failed: \(error)"
        case .cancelled: "cancelled"
        }
    }
}
