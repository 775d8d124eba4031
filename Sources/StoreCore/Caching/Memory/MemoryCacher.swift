/// Keeps records in memory, bounded by count and by cost; what was used longest ago goes first.
///
/// ```swift
/// let users = Store(cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(30 * 60))), fetcher: UserFetcher())
/// ```
///
/// Give each store a cacher of its own: two stores over one cacher share records, not fetches. All operations are O(1).
public final class MemoryCacher<Param: Hashable & Sendable, Content: Sendable>: Cacher {
    /// How long content is valid where its origin said nothing.
    public let expiry: Expiry

    @usableFromInline package let table: MemoryTable<Param, Content>
    /// The table as a store's engine sees it.
    @usableFromInline let front: FrontMemory

    /// Makes an empty cacher.
    ///
    /// - Parameters:
    ///   - expiry: How long content is valid where its origin said nothing.
    ///   - limit: The largest number of entries; zero or less keeps nothing.
    ///   - costLimit: The largest sum of costs, in the unit of `cost`; zero or less keeps only entries without cost, `Int.max` is no limit.
    ///     An entry that alone costs more is not kept, and nothing else is evicted for it (``StoreEventKind/aboveCostLimit(cost:limit:)``);
    ///     the key's older entry is removed, because it is out of date.
    ///   - cost: The cost of one content, such as its size in bytes; a negative one counts as zero. The cacher calls it under the store's
    ///     lock, so it must be quick.
    @inlinable
    public init(
        expiry: Expiry = .never, limit: Int = 10_000, costLimit: Int = .max, cost: (@Sendable (_ content: Content) -> Int)? = nil
    ) {
        self.expiry = expiry
        table = MemoryTable(countLimit: limit, costLimit: costLimit, cost: cost)
        front = FrontMemory(table)
    }

    /// How many entries there are.
    public var count: Int { table.count }

    /// The cost of all entries together, in the unit of the cost function; zero without one, and at most `Int.max`.
    public var totalCost: Int { table.totalCost }

    /// Drops the entries used longest ago, for instance under memory pressure.
    ///
    /// - Parameters:
    ///   - count: How many entries may stay; zero or less keeps none.
    ///   - cost: The largest cost of those that stay together; `Int.max` is no limit.
    public func trim(to count: Int, cost: Int = .max) {
        _ = table.trim(count: max(0, count), cost: max(0, cost))
    }

    /// The record of a key, valid or not.
    public func load(param: Param) async -> CacheRecord<Content>? { table.entry(of: param)?.record }

    /// Keeps a record in place of the key's older one.
    public func save(_ record: CacheRecord<Content>, param: Param) async {
        // Without the store's clock there is no monotonic deadline; the store works it out from the record's date when it reads it.
        _ = table.put(param, record, deadline: .min)
    }

    /// Forgets the record of a key.
    public func remove(param: Param) async { _ = table.remove(param) }

    /// Forgets all records.
    public func removeAll() async { table.removeAll() }

    /// The keys of all records, in no order.
    public func keys() async -> [Param]? { table.keys() }
}
