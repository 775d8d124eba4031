public import Foundation

/// Puts memory in front of any other cacher, so that a hit costs no call of it.
///
/// ```swift
/// let cacher = TieredCacher(over: FileCacher<User.ID, User>(directory: directory))
/// ```
///
/// Records are kept in both: the memory answers, the other one survives. A record that has left memory is loaded from the other cacher
/// and judged by its ``Cacher/needsRefresh(_:param:now:)``; one that is in memory is judged by its deadline.
public final class TieredCacher<Backing: Cacher>: Cacher {
    /// The key of one piece of data.
    public typealias Param = Backing.Param
    /// The data itself.
    public typealias Content = Backing.Content

    /// The cacher behind the memory.
    public let backing: Backing

    @usableFromInline package let table: MemoryTable<Backing.Param, Backing.Content>
    /// The table as a store's engine sees it.
    @usableFromInline let front: FrontMemory

    /// Makes a cacher with empty memory.
    ///
    /// - Parameters:
    ///   - backing: The cacher behind the memory; its expiry is the expiry of both.
    ///   - limit: The largest number of entries in memory; what is over it stays in `backing`.
    ///   - costLimit: The largest sum of costs in memory, in the unit of `cost`; `Int.max` is no limit. An entry that alone costs more is
    ///     kept in `backing` only, and nothing else leaves memory for it (``StoreEventKind/aboveCostLimit(cost:limit:)``).
    ///   - cost: The cost of one content in memory, such as its size in bytes; a negative one counts as zero. The cacher calls it under
    ///     the store's lock, so it must be quick.
    @inlinable
    public init(
        over backing: Backing, limit: Int = 10_000, costLimit: Int = .max, cost: (@Sendable (_ content: Content) -> Int)? = nil
    ) {
        self.backing = backing
        table = MemoryTable(countLimit: limit, costLimit: costLimit, cost: cost)
        front = FrontMemory(table)
    }

    /// The expiry of the cacher behind the memory.
    public var expiry: Expiry { backing.expiry }

    /// Drops the entries of memory used longest ago; the cacher behind keeps them.
    ///
    /// - Parameters:
    ///   - count: How many entries may stay in memory; zero or less keeps none.
    ///   - cost: The largest cost of those that stay together; `Int.max` is no limit.
    public func trim(to count: Int, cost: Int = .max) {
        _ = table.trim(count: max(0, count), cost: max(0, cost))
    }

    /// The record from memory or, where it is not there, from the cacher behind.
    public func load(param: Param) async throws -> CacheRecord<Content>? {
        if let entry = table.entry(of: param) { return entry.record }
        guard let record = try await backing.load(param: param) else { return nil }
        _ = table.put(param, record, deadline: .min)
        return record
    }

    /// Keeps a record in memory and in the cacher behind.
    public func save(_ record: CacheRecord<Content>, param: Param) async throws {
        _ = table.put(param, record, deadline: .min)
        try await backing.save(record, param: param)
    }

    /// Forgets the record of a key in both.
    public func remove(param: Param) async throws {
        _ = table.remove(param)
        try await backing.remove(param: param)
    }

    /// Forgets all records in both.
    public func removeAll() async throws {
        table.removeAll()
        try await backing.removeAll()
    }

    /// The keys of the cacher behind.
    public func keys() async throws -> [Param]? { try await backing.keys() }

    /// Asks the cacher behind.
    public func needsRefresh(_ record: CacheRecord<Content>, param: Param, now: Date) -> Bool {
        backing.needsRefresh(record, param: param, now: now)
    }
}

/// A cacher whose memory a store can hold directly.
protocol FrontedCacher<Param, Content>: Cacher {
    /// The memory in front, as hits see it.
    var table: MemoryTable<Param, Content> { get }
    /// The memory in front, as the engine sees it.
    var front: FrontMemory { get }
    /// What stands behind it, if anything.
    var behind: (any Cacher<Param, Content>)? { get }
}

extension MemoryCacher: FrontedCacher {
    var behind: (any Cacher<Param, Content>)? { nil }
}

extension TieredCacher: FrontedCacher {
    var behind: (any Cacher<Param, Content>)? { backing }
}
