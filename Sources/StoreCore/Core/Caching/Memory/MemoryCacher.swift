/// A cacher that keeps records in memory, bounded by count and by cost, and evicts the least recently used records first.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60))),
///     fetcher: UserFetcher())
/// ```
///
/// Give each store its own cacher: two stores over one cacher share records, but not fetches. All operations are O(1).
///
/// <doc:RefreshingAndExpiring> explains when content expires, and what follows.
public final class MemoryCacher<Param: Hashable & Sendable, Content: Sendable>: Cacher {
    /// The lifetime of content whose origin states none.
    public let expiry: Expiry

    @usableFromInline package let table: MemoryTable<Param, Content>
    /// The table as the engine of a store uses it.
    @usableFromInline let front: FrontMemory

    /// Creates an empty cacher.
    ///
    /// - Parameters:
    ///   - expiry: The lifetime of content whose origin states none.
    ///   - limit: The largest number of entries; zero or less keeps none.
    ///   - costLimit: The largest total cost, in the unit of `cost`; `Int.max` means no limit, and zero or less keeps only entries without
    ///     cost. A record that alone costs more is not kept and evicts no other record (``StoreEventKind/aboveCostLimit(cost:limit:)``).
    ///     The older record of its key is removed, because it is out of date.
    ///   - cost: Returns the cost of one content, such as its size in bytes; negative values count as zero. The cacher calls it under the
    ///     store's lock, so it must be quick.
    @inlinable
    public init(
        expiry: Expiry = .never, limit: Int = 10_000, costLimit: Int = .max, cost: (@Sendable (_ content: Content) -> Int)? = nil
    ) {
        self.expiry = expiry
        table = MemoryTable(countLimit: limit, costLimit: costLimit, cost: cost)
        front = FrontMemory(table)
    }

    /// The number of records in memory, including expired ones.
    public var count: Int { table.count }

    /// The total cost of all entries, in the unit of the cost function; zero without a cost function, and at most `Int.max`.
    public var totalCost: Int { table.totalCost }

    /// Evicts the least recently used entries, for example under memory pressure.
    ///
    /// - Parameters:
    ///   - count: The largest number of entries to keep; zero or less keeps none.
    ///   - cost: The largest total cost to keep; `Int.max` means no limit.
    public func trim(to count: Int, cost: Int = .max) {
        _ = table.trim(count: max(0, count), cost: max(0, cost))
    }

    /// Returns the record of a key, valid or not.
    public func load(param: Param) async -> CacheRecord<Content>? { table.entry(of: param)?.record }

    /// Saves a record in place of the key's previous one.
    public func save(_ record: CacheRecord<Content>, param: Param) async {
        // There is no monotonic deadline without the store's clock; the store computes it from the record's date when it reads the record.
        _ = table.put(param, record, deadline: .min)
    }

    /// Removes the record of a key.
    public func remove(param: Param) async { _ = table.remove(param) }

    /// Removes the records of all keys, valid or not.
    public func removeAll() async { table.removeAll() }

    /// Returns the keys of all records, in no order.
    public func keys() async -> [Param]? { table.keys() }
}
