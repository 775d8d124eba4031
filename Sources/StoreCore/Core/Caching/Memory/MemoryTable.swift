/// Records in memory, of which the least recently used are evicted; the one concrete class behind every hit.
///
/// A store holds the table directly and not through `any Cacher`, and the hit path can be inlined into the caller's module. A generic call
/// across modules costs four times as much as a hit.
@usableFromInline
package final class MemoryTable<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline let entries: Lock<MemoryEntries<Param, Content>>
    @usableFromInline let countLimit: Int
    @usableFromInline let costLimit: Int
    @usableFromInline let cost: (@Sendable (Content) -> Int)?
    /// Whether a store fills the table. Only the store knows which records of the cacher behind it count.
    let isFilledByStore = Lock(false)

    @usableFromInline
    init(countLimit: Int, costLimit: Int, cost: (@Sendable (Content) -> Int)?) {
        // Positions are 32 bits wide.
        self.countLimit = min(max(0, countLimit), Int(Int32.max))
        self.costLimit = max(0, costLimit)
        self.cost = cost
        entries = Lock(MemoryEntries())
    }

    /// Returns the content of a key if it is valid: one lock, one look-up, no allocation, and no clock reading if it never expires.
    ///
    /// - Parameter changes: The number of the last change of an entity that linked content must contain; `nil` for other content.
    @inlinable
    func validContent(of key: Param, by clock: HitClock, reconciledWith changes: UInt64? = nil) -> Content? {
        entries.withLock { entries in
            let position = entries.position(of: key)
            guard position >= 0 else { return nil }
            let deadline = entries.entries[position].deadline
            guard deadline == .max || (deadline != .min && clock.nanoseconds() < deadline) else { return nil }
            if let changes, entries.entries[position].record.details?.reconciled != changes { return nil }
            entries.touch(position)
            return entries.entries[position].record.content
        }
    }

    /// Returns the record of a key and its monotonic deadline, valid or not.
    @inlinable
    func entry(of key: Param) -> (record: CacheRecord<Content>, deadline: Int64)? {
        entries.withLock { entries in
            let position = entries.position(of: key)
            guard position >= 0 else { return nil }
            entries.touch(position)
            return (entries.entries[position].record, entries.entries[position].deadline)
        }
    }

    /// Adds a record and evicts entries beyond the bounds. A record above the cost limit is not kept and evicts no other record; the older
    /// record of its key is removed, because it is out of date.
    ///
    /// - Returns: The dropped records. The caller releases them, so that no `deinit` of user code runs under the lock.
    @inlinable
    func put(_ key: Param, _ record: CacheRecord<Content>, deadline: Int64) -> Dropped {
        let cost = max(0, self.cost?(record.content) ?? 0)
        guard cost <= costLimit else { return refuse(key, cost: cost) }
        return entries.withLock { entries in
            let replaced = entries.put(key, hash: HashIndex.hash(key), record, deadline: deadline, cost: cost)
            // The common case does not allocate.
            guard entries.exceeds(count: countLimit, cost: costLimit) else { return Dropped(replaced: replaced, evicted: []) }
            return Dropped(replaced: replaced, evicted: entries.trim(count: countLimit, cost: costLimit))
        }
    }

    /// Rejects a record, and removes the older record of its key.
    @inlinable
    @inline(never)
    func refuse(_ key: Param, cost: Int) -> Dropped {
        Dropped(evicted: remove(key).map { [$0] } ?? [], refusal: (cost, costLimit))
    }

    /// Removes a key's entry if it matches; the caller releases it.
    @inlinable
    func remove(_ key: Param, where fits: (MemoryEntry<Param, Content>) -> Bool = { _ in true }) -> MemoryEntry<Param, Content>? {
        entries.withLock { entries in
            let position = entries.position(of: key)
            guard position >= 0, fits(entries.entries[position]) else { return nil }
            return entries.remove(at: position)
        }
    }

    /// Removes all entries; the caller releases them.
    @discardableResult
    @usableFromInline
    func removeAll() -> MemoryEntries<Param, Content> {
        entries.withLock { entries in
            defer { entries = MemoryEntries() }
            return entries
        }
    }

    func trim(count: Int, cost: Int) -> Dropped {
        entries.withLock { entries in
            // Arrays keep their capacity, which may be most of the memory of small contents.
            defer { if entries.count == 0 { entries = MemoryEntries() } }
            return Dropped(replaced: nil, evicted: entries.trim(count: count, cost: cost))
        }
    }

    @usableFromInline
    func keys() -> [Param] { entries.withLock { $0.entries.map(\.key) } }

    var count: Int { entries.withLock { $0.count } }

    var totalCost: Int { Int(clamping: entries.withLock { $0.totalCost }) }

    /// The records that left the table in one operation.
    @usableFromInline
    struct Dropped: Sendable {
        @usableFromInline var replaced: Content?
        /// The entries beyond the bounds, or the older entry of a key whose record was rejected.
        @usableFromInline var evicted: [MemoryEntry<Param, Content>]
        /// The cost and the limit of a rejected record; `nil` for any other.
        @usableFromInline var refusal: (cost: Int, limit: Int)?

        @inlinable
        init(replaced: Content? = nil, evicted: [MemoryEntry<Param, Content>], refusal: (cost: Int, limit: Int)? = nil) {
            (self.replaced, self.evicted, self.refusal) = (replaced, evicted, refusal)
        }
    }
}

/// The clock of the hit path: the system clock is read without an existential.
@usableFromInline
package enum HitClock: Sendable {
    case system
    case custom(any TimeSource)

    init(_ time: any TimeSource) {
        self = time is SystemTime ? .system : .custom(time)
    }

    @inlinable
    func nanoseconds() -> Int64 {
        switch self {
        case .system: continuousNanoseconds()
        case .custom(let time): time.now.nanoseconds
        }
    }
}
