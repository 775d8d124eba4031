#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cacher that puts memory in front of any other cacher, so that a hit does not call the other cacher.
///
/// ```swift
/// let cacher = TieredCacher(over: FileCacher<User.ID, User>(directory: directory))
/// ```
///
/// Both tiers keep the records: memory serves the hits, and the backing cacher preserves the records. A record that was evicted from memory
/// is loaded from the backing cacher and checked by its ``Cacher/needsRefresh(_:param:now:)``. A record in memory is checked by its
/// deadline.
///
/// The article *Persisting* of the module StoreFiles compares the cachers.
public final class TieredCacher<Backing: Cacher>: Cacher {
    /// The key of one piece of data.
    public typealias Param = Backing.Param
    /// The type of a key's data, the same in both tiers.
    public typealias Content = Backing.Content

    /// The cacher that preserves the records, including those that memory has evicted.
    public let backing: Backing

    @usableFromInline package let table: MemoryTable<Backing.Param, Backing.Content>
    /// The table as the engine of a store uses it.
    @usableFromInline let front: FrontMemory

    /// Creates a cacher with empty memory.
    ///
    /// - Parameters:
    ///   - backing: The cacher behind the memory; its expiry applies to both tiers.
    ///   - limit: The largest number of entries in memory; evicted records stay in `backing`.
    ///   - costLimit: The largest total cost in memory, in the unit of `cost`; `Int.max` means no limit. A record that alone costs more is
    ///     kept in `backing` only and evicts no other record (``StoreEventKind/aboveCostLimit(cost:limit:)``).
    ///   - cost: Returns the cost of one content in memory, such as its size in bytes; negative values count as zero. The cacher calls it
    ///     under the store's lock, so it must be quick.
    @inlinable
    public init(
        over backing: Backing, limit: Int = 10_000, costLimit: Int = .max, cost: (@Sendable (_ content: Content) -> Int)? = nil
    ) {
        self.backing = backing
        table = MemoryTable(countLimit: limit, costLimit: costLimit, cost: cost)
        front = FrontMemory(table)
    }

    /// The expiry of the backing cacher.
    public var expiry: Expiry { backing.expiry }

    /// Evicts the least recently used entries from memory; the backing cacher keeps them.
    ///
    /// - Parameters:
    ///   - count: The largest number of entries to keep in memory; zero or less keeps none.
    ///   - cost: The largest total cost to keep in memory; `Int.max` means no limit.
    public func trim(to count: Int, cost: Int = .max) {
        _ = table.trim(count: max(0, count), cost: max(0, cost))
    }

    /// Returns the record from memory or, on a miss, from the backing cacher; keeps that record in memory unless a store uses this cacher.
    public func load(param: Param) async throws -> CacheRecord<Content>? {
        if let entry = table.entry(of: param) { return entry.record }
        guard let record = try await backing.load(param: param) else { return nil }
        if !table.isFilledByStore.withLock({ $0 }) { _ = table.put(param, record, deadline: .min) }
        return record
    }

    /// Saves a record in memory and in the backing cacher.
    public func save(_ record: CacheRecord<Content>, param: Param) async throws {
        _ = table.put(param, record, deadline: .min)
        try await backing.save(record, param: param)
    }

    /// Removes the record of a key from both tiers.
    public func remove(param: Param) async throws {
        _ = table.remove(param)
        try await backing.remove(param: param)
    }

    /// Removes all records from both tiers.
    public func removeAll() async throws {
        table.removeAll()
        try await backing.removeAll()
    }

    /// Returns the keys of the backing cacher.
    public func keys() async throws -> [Param]? { try await backing.keys() }

    /// Returns whether the backing cacher considers a record out of date.
    public func needsRefresh(_ record: CacheRecord<Content>, param: Param, now: Date) -> Bool {
        backing.needsRefresh(record, param: param, now: now)
    }
}

/// A cacher with memory that a store can access directly.
protocol FrontedCacher<Param, Content>: Cacher {
    var table: MemoryTable<Param, Content> { get }
    var front: FrontMemory { get }
    var behind: (any Cacher<Param, Content>)? { get }
}

extension MemoryCacher: FrontedCacher {
    var behind: (any Cacher<Param, Content>)? { nil }
}

extension TieredCacher: FrontedCacher {
    var behind: (any Cacher<Param, Content>)? { backing }
}
