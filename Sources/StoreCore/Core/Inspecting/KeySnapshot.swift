#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One key of a store at one moment: its content, its work, and the tasks that wait for it.
///
/// ```swift
/// if let key = users.snapshot(of: id) {
///     print(key.age ?? .zero, key.observers, key.fetches.count)
/// }
/// ```
///
/// <doc:LookingInside> shows the same facts in a browser.
public struct KeySnapshot<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    /// The key that the snapshot describes.
    public var param: Param
    /// Whether the key has observers, callers, or work in progress.
    public var isLive = false
    /// The phase of the key, as observers see it.
    public var phase = KeyPhase.completed
    /// The content that observers see, with its optimistic changes; `nil` if the key has none.
    public var content: Content?
    /// The error of the last fetch, if it has failed.
    public var error: (any Error)?
    /// The time since the content was fetched or set, by the wall clock.
    public var age: Duration?
    /// The time until the content expires; zero or less if it has expired, and `nil` if it never expires.
    public var expiresIn: Duration?
    /// Whether the content was marked as out of date.
    public var isInvalidated = false
    /// The number of observers.
    public var observers = 0
    /// The number of suspended callers.
    public var callers = 0
    /// The running fetches of the content and of pages.
    public var fetches: [KeyFetch] = []
    /// The stage of the last change on its way to the cacher.
    public var save = KeySave.none
    /// The number of optimistic changes over the content.
    public var patches = 0
    /// The size of the record in memory, by the `cost` of its memory cacher; `nil` without one.
    public var size: Int?
    /// The entities that the content shows, for each link; empty for an idle key.
    public var links: [KeyLinks] = []
}

/// The phases of a key, as observers see them.
public enum KeyPhase: String, Hashable, Sendable {
    /// The content is unknown, because nothing has read it yet.
    case unread
    /// A fetch of the content is running.
    case loading
    /// The content is available.
    case completed
    /// The last fetch has failed.
    case failed
}

/// The stages of a change on its way to the cacher.
public enum KeySave: String, Hashable, Sendable {
    /// The cacher has the content, or the store has no cacher that saves.
    case none
    /// The change waits for its save.
    case pending
    /// The cacher is saving the change.
    case running
    /// The cacher has failed; the store keeps the content and tries again.
    case failed
}

/// A running fetch of a key: its target and its duration.
public struct KeyFetch: Hashable, Sendable {
    /// The part of the key that is fetched.
    public var target: StoreEventKind.Target
    /// The time since the fetch was requested, including waits for a place and between attempts.
    public var duration: Duration
}

/// The entities that the content shows through one link.
public struct KeyLinks: Hashable, Sendable {
    /// The name of the store of the entities.
    public var store: String
    /// The number of different entities.
    public var count: Int
    /// The descriptions of the first entities' keys, at most 100, in no order.
    public var keys: [String]
}

/// A selection of a store's keys.
public enum KeyFilter: String, Hashable, Sendable, CaseIterable {
    /// All keys that are live or in memory.
    case all
    /// The keys with observers, callers, or work in progress.
    case live
    /// The keys with a running fetch.
    case fetching
    /// The keys with a failed last fetch or save.
    case failed
    /// The keys with content that the cacher does not have yet.
    case unsaved
    /// The keys with expired or invalidated content.
    case expired
}

/// A page of a store's keys.
public struct KeyPage<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    /// The keys; fewer than the limit, or none, if the search has looked at many keys without a match.
    public var keys: [KeySnapshot<Param, Content>] = []
    /// Whether no key follows.
    public var isLast: Bool { next == nil }
    var next: KeyPlace?
}

/// A place in the order of a store's keys: live keys first, then the idle keys in memory.
package enum KeyPlace: Hashable, Sendable {
    case live(Int)
    case memory(Int)

    package static var start: KeyPlace { .live(0) }
}

extension Store {
    private static var scanned: Int { 10_000 }

    /// Returns a page of the keys that are live or in memory.
    ///
    /// ```swift
    /// var page = users.keySnapshots(.failed)
    /// while true {
    ///     for key in page.keys { print(key.param, key.error ?? "") }
    ///     if page.isLast { break }
    ///     page = users.keySnapshots(.failed, after: page)
    /// }
    /// ```
    ///
    /// Live keys come first. Keys that only the cacher has are not listed. The call neither fetches nor counts as a use of the keys.
    /// A key that changes between two pages may be missing or occur twice. Cost: a page looks at 10 000 keys at most, and takes the
    /// store's lock for each key or for a hundred keys at a time.
    ///
    /// - Parameters:
    ///   - filter: The keys to return.
    ///   - text: A text that the description of a key contains, in any case; empty for all keys.
    ///   - page: The page before; `nil` for the first page.
    ///   - limit: The largest number of keys in the page; a smaller one than 1 counts as 1.
    public func keySnapshots(
        _ filter: KeyFilter = .all, matching text: String = "", after page: KeyPage<Param, Content>? = nil, limit: Int = 100
    ) -> KeyPage<Param, Content> {
        var result = KeyPage<Param, Content>(next: page.map(\.next) ?? .start)
        let (text, limit) = (text.lowercased(), max(1, limit))
        var scanned = 0
        while let place = result.next, result.keys.count < limit, scanned < Self.scanned {
            // Only live keys have work.
            if case .memory = place, filter != .all, filter != .expired {
                result.next = nil
                break
            }
            let chunk = min(100, limit - result.keys.count)
            for param in listedKeys(from: &result.next, limit: chunk)
            where text.isEmpty || String(describing: param).lowercased().contains(text) {
                guard let key = snapshot(of: param), key.matches(filter) else { continue }
                result.keys.append(key)
            }
            scanned += chunk
        }
        return result
    }

    /// Returns one key at this moment; `nil` if it is neither live nor in memory.
    ///
    /// The call neither fetches nor counts as a use of the key. Cost: one look at the key under the store's lock.
    ///
    /// - Parameter param: The key.
    public func snapshot(of param: Param) -> KeySnapshot<Param, Content>? {
        let (now, date, resolved) = (engine.time.now, engine.time.date, engine.resolved(BoxedKey(param)))
        if let (key, entities) = engine.snapshot(of: resolved, as: param, Content.self, now, date) {
            var snapshot = key
            snapshot.size = memory.flatMap { $0.cost == nil ? nil : $0.peek(resolved.value(as: Param.self))?.cost }
            // Outside the lock, because a description is user code.
            for index in snapshot.links.indices { snapshot.links[index].keys = entities[index].map(\.description) }
            return snapshot
        }
        // Under the lock, because content that changes in place leaves memory for a moment.
        guard let memory, let (record, deadline, cost) = engine.state.withLock({ _ in memory.peek(resolved.value(as: Param.self)) })
        else { return nil }
        let age = Duration(saturating: date.timeIntervalSince(record.fetchedAt))
        var snapshot = KeySnapshot<Param, Content>(param: param, content: record.content, age: age)
        if memory.cost != nil { snapshot.size = cost }
        snapshot.isInvalidated = record.isInvalidated
        switch deadline {
        case .max: break
        // Invalidated, or saved without the store's clock.
        case .min:
            let remaining = record.remainingLifetime(expiry: engine.rules.expiry, jitter: engine.rules.policy.expiryJitter, now: date)
            if remaining < .forever { snapshot.expiresIn = remaining }
        default: snapshot.expiresIn = now.duration(to: MonotonicInstant(nanoseconds: deadline))
        }
        return snapshot
    }

    /// Returns the keys from a place on, and moves the place behind them; `nil` behind the last key. Takes each lock once.
    package func listedKeys(from place: inout KeyPlace?, limit: Int) -> [Param] {
        switch place {
        case .live(let rank):
            let keys = engine.liveParams(from: rank, limit: limit)
            place = keys.count == limit ? .live(rank + limit) : memory == nil ? nil : .memory(0)
            return keys.map { $0.value(as: Param.self) }
        case .memory(let position):
            let keys = memory?.keys(from: position, limit: limit) ?? []
            place = keys.count == limit ? .memory(position + limit) : nil
            return engine.idle(keys)
        case nil: return []
        }
    }

    /// The number of live keys, and of records in memory. Cost: constant.
    package var keyCounts: (live: Int, memory: Int) { (engine.liveCount, memory?.count ?? 0) }
}

extension PaginationStore {
    /// Returns a page of the lists that are live or in memory.
    ///
    /// The rules of ``Store/keySnapshots(_:matching:after:limit:)`` apply.
    ///
    /// - Parameters:
    ///   - filter: The lists to return.
    ///   - text: A text that the description of a key contains, in any case; empty for all lists.
    ///   - page: The page before; `nil` for the first page.
    ///   - limit: The largest number of lists in the page; a smaller one than 1 counts as 1.
    public func keySnapshots(
        _ filter: KeyFilter = .all, matching text: String = "", after page: KeyPage<Param, [Element]>? = nil, limit: Int = 100
    ) -> KeyPage<Param, [Element]> {
        lists.keySnapshots(filter, matching: text, after: page, limit: limit)
    }

    /// Returns one list at this moment; `nil` if it is neither live nor in memory.
    public func snapshot(of param: Param) -> KeySnapshot<Param, [Element]>? { lists.snapshot(of: param) }

    /// Counts the contents and the work of the store.
    ///
    /// See ``Store/snapshot()``.
    public func snapshot() -> StoreSnapshot { lists.snapshot() }
}

extension KeySnapshot {
    func matches(_ filter: KeyFilter) -> Bool {
        switch filter {
        case .all: true
        case .live: isLive
        case .fetching: !fetches.isEmpty
        case .failed: phase == .failed || save == .failed
        case .unsaved: save != .none
        case .expired: content != nil && (isInvalidated || expiresIn.map { $0 <= .zero } ?? false)
        }
    }
}

extension MemoryTable {
    /// Returns a record without counting as a use of it.
    fileprivate func peek(_ key: Param) -> (record: CacheRecord<Content>, deadline: Int64, cost: Int)? {
        entries.withLock { entries in
            let position = entries.position(of: key)
            guard position >= 0 else { return nil }
            return (entries.entries[position].record, entries.entries[position].deadline, entries.entries[position].cost)
        }
    }

    fileprivate func keys(from position: Int, limit: Int) -> [Param] {
        entries.withLock { entries in entries.entries.dropFirst(position).prefix(limit).map(\.key) }
    }
}
