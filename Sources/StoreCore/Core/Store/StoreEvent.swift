/// An event inside a store, for logs, metrics and tests.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
///     onEvent: { event in log.add("\(event)") })
/// ```
///
/// <doc:GettingStarted> shows how to log events.
public struct StoreEvent<Param: Hashable & Sendable>: Sendable {
    /// The event's number in its store, from 1 and without gaps. Events may be delivered out of order.
    public let number: UInt64

    /// The key that the event concerns; `nil` if it concerns the whole store.
    public let param: Param?

    /// The event itself, with its values.
    public let kind: StoreEventKind

    /// The name of the store, for a listener of several stores; empty if the store has none.
    public let store: String

    init(number: UInt64, param: Param?, kind: StoreEventKind, store: String = "") {
        (self.number, self.param, self.kind, self.store) = (number, param, kind, store)
    }
}

/// The events of a store: results from the cache, fetches, saves, and dropped content.
public enum StoreEventKind: Sendable {
    /// A caller or an observer found valid content, so no fetch was needed.
    case hit
    /// The store had no valid content, or an observer or `validate()` retried a failed fetch.
    case miss
    /// A caller or observer joined a running fetch.
    case coalesced
    /// A fetch, or a connection of a stream, began.
    case fetchBegan(Target)
    /// A fetch, or a connection of a stream, ended after `duration`.
    case fetchEnded(Target, duration: Duration, FetchOutcome)
    /// An attempt failed, and another one follows after `delay`.
    case retried(Target, attempt: Int, delay: Duration, any Error)
    /// A save has succeeded: the record is as durable as the cacher promises.
    case saved
    /// A removal has succeeded: the cacher has no record of the key any more.
    case removed
    /// A call of the cacher failed.
    case cacherFault(CacherOperation, any Error)
    /// The cacher evicted records to stay within its bounds.
    case evicted(count: Int)
    /// Memory rejected a record whose cost exceeds the limit; no other record was evicted for it.
    case aboveCostLimit(cost: Int, limit: Int)
    /// A result arrived after its epoch had ended, and was dropped.
    case droppedAsOutdated(Target)
    /// A save was refused because another user of the shared cacher has changed the key; the newer content replaces it.
    case superseded
    /// A change that could not be saved was dropped: too many failed saves were waiting, or another user's newer content took its place.
    case droppedUnsaved
    /// The content of a linked store states another identity than its key, so places that show the key keep their own values.
    case mismatchedIdentity(key: String, identity: String)
}

extension StoreEventKind {
    /// The part of a key that a fetch loads.
    public enum Target: Hashable, Sendable {
        /// The content of a key, or the first page of a list.
        case content
        /// A page in one direction of a list.
        case page(PageDirection)
    }

    /// The way in which a fetch ended.
    public enum FetchOutcome: Sendable {
        /// The origin returned new content.
        case modified
        /// The origin confirmed that the store's content is still current.
        case notModified
        /// The last attempt of the fetch, or the connection, failed with this error.
        case failed(any Error)
        /// A circuit breaker or a failure memory refused the fetch with this error, before any request.
        case refused(any Error)
        /// The store canceled the fetch: no caller or observer wanted it, or newer content replaced its result.
        case cancelled
    }

    /// The calls of a cacher that can fail.
    public enum CacherOperation: Hashable, Sendable {
        /// Loading a record; the failure counts as a miss.
        case load
        /// Saving a record; the store keeps the record and tries again later.
        case save
        /// Removing a record; the store treats it as removed and tries again later.
        case remove
        /// Removing all records; the store treats them as removed for as long as it lives.
        case removeAll
        /// Following the changes that other users of a shared cacher make.
        case follow
        /// Waiting for the right to fetch a key that others may fetch too.
        case lease
    }
}

extension StoreEvent: CustomStringConvertible {
    /// The event on one line: the name of its store if that has one, its number, its key, and its kind.
    public var description: String {
        let text = param.map { "#\(number) \($0): \(kind)" } ?? "#\(number) \(kind)"
        return (store.isEmpty ? text : "\(store) \(text)").escapedForDisplay()
    }
}

extension StoreEventKind: CustomStringConvertible {
    /// The event in a few words.
    public var description: String {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .coalesced: "joined a running fetch"
        case .fetchBegan(let target): "fetch of \(target) began"
        case .fetchEnded(let target, let duration, let outcome): "fetch of \(target) ended after \(duration.inWords): \(outcome)"
        case .retried(let target, let attempt, let delay, let error):
            "fetch of \(target) failed at attempt \(attempt), retrying in \(delay.inWords): \(error)"
        case .saved: "saved"
        case .removed: "removed"
        case .cacherFault(let operation, let error): "cacher failed to \(operation): \(error)"
        case .evicted(let count): "evicted \(count)"
        case .aboveCostLimit(let cost, let limit): "not kept in memory: its cost of \(cost) is above the limit of \(limit)"
        case .droppedAsOutdated(let target): "fetch of \(target) was outdated; result dropped"
        case .superseded: "superseded by a change of another user of the cacher"
        case .droppedUnsaved: "dropped a pending save"
        case .mismatchedIdentity(let key, let identity): "ignored the entity of key \(key), which calls itself \(identity)"
        }
    }
}

extension StoreEventKind.Target: CustomStringConvertible {
    /// The subject of the fetch in a word or two.
    public var description: String {
        switch self {
        case .content: "content"
        case .page(let direction): "\(direction) page"
        }
    }
}

extension StoreEventKind.FetchOutcome: CustomStringConvertible {
    init(_ error: any Error) {
        self = (error as? any FailureAdvising)?.isRefusal == true ? .refused(error) : .failed(error)
    }

    /// The outcome of the fetch in a few words.
    public var description: String {
        switch self {
        case .modified: "new content"
        case .notModified: "not modified"
        case .failed(let error): "failed: \(error)"
        case .refused(let error): "refused: \(error)"
        case .cancelled: "canceled"
        }
    }
}
