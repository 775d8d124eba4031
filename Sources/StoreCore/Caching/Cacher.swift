public import Foundation

/// Where content is kept: memory, files, a database of yours.
///
/// What an author may rely on, from each store over the cacher: never two calls for one key at a time; saves are never cancelled and
/// never reordered; while ``removeAll()`` runs, nothing else does. A cacher may be slow and may throw: a load that throws counts as a
/// miss, a save that throws leaves the record in the store, and both are reported as ``StoreEventKind/cacherFault(_:_:)``.
///
/// ```swift
/// actor NightlyCacher: Cacher {
///     private var records: [Int: CacheRecord<User>] = [:]
///
///     func load(param id: Int) -> CacheRecord<User>? { records[id] }
///     func save(_ record: CacheRecord<User>, param id: Int) { records[id] = record }
///     func remove(param id: Int) { records[id] = nil }
///     func removeAll() { records = [:] }
///
///     nonisolated func needsRefresh(_ record: CacheRecord<User>, param: Int, now: Date) -> Bool {
///         record.isInvalidated || !Calendar.current.isDate(record.fetchedAt, inSameDayAs: now)
///     }
/// }
/// ```
///
/// A hit on any cacher but ``MemoryCacher`` and ``TieredCacher`` costs a call of ``load(param:)``: put a `TieredCacher` in front.
public protocol Cacher<Param, Content>: Sendable {
    /// The key of one piece of data.
    associatedtype Param: Hashable & Sendable
    /// The data itself.
    associatedtype Content: Sendable

    /// How long content is valid where its origin said nothing; a store reads it once, when it is made.
    var expiry: Expiry { get }

    /// Loads the record of a key.
    ///
    /// - Parameter param: The key.
    /// - Returns: The record as it was saved last, valid or not; `nil` where there is none.
    /// - Throws: What went wrong; the store takes it as a miss and reports it.
    func load(param: Param) async throws -> CacheRecord<Content>?

    /// Saves the record of a key in place of the one before it.
    ///
    /// - Parameters:
    ///   - record: The record, which must be kept whole or not at all.
    ///   - param: The key.
    /// - Throws: What went wrong; the store keeps the record, reports it, and tries again when the content changes or when another
    ///   key's record could be saved, at the earliest ``StorePolicy/minimumInterval`` later.
    func save(_ record: CacheRecord<Content>, param: Param) async throws

    /// Removes the record of a key; one that is not there is removed already.
    ///
    /// - Parameter param: The key.
    /// - Throws: What went wrong; the store goes on as if it were removed and reports it.
    func remove(param: Param) async throws

    /// Removes every record.
    ///
    /// - Throws: What went wrong; the store's own `clear()` throws it on. Records that were there before count as removed all the same,
    ///   for as long as the store lives.
    func removeAll() async throws

    /// The keys of all records, in no order.
    ///
    /// - Returns: The keys, or `nil` where the cacher cannot list them.
    /// - Throws: What went wrong while listing.
    func keys() async throws -> [Param]?

    /// Whether a record is out of date.
    ///
    /// The default compares the record's age with the origin's lifetime or, where it gave none, with ``expiry``; a record from the
    /// future is out of date. A store asks when a record comes from the cacher, not at each hit of a record in memory. It must be quick and
    /// must not call the store, whose lock may be held.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: Its key.
    ///   - now: The present moment of the wall clock.
    /// - Returns: `true` where the content must be fetched before it is used.
    func needsRefresh(_ record: CacheRecord<Content>, param: Param, now: Date) -> Bool
}

extension Cacher {
    /// Content never expires.
    public var expiry: Expiry { .never }

    /// The cacher cannot list its keys.
    public func keys() async throws -> [Param]? { nil }

    /// Compares the record's age with its lifetime.
    public func needsRefresh(_ record: CacheRecord<Content>, param: Param, now: Date) -> Bool {
        record.remainingLifetime(expiry: expiry, now: now) <= .zero
    }
}

extension CacheRecord {
    /// How long the record is still valid on the wall clock; zero or less where it is not, and `nil`-free: for ever is `.forever`.
    package func remainingLifetime(expiry: Expiry, now: Date) -> Duration {
        if isInvalidated { return .zero }
        let age = now.timeIntervalSince(fetchedAt)
        // A clock that was set back makes records from the future; how old they are nobody knows.
        guard age >= 0 else { return .zero }
        guard let lifetime = freshness.lifetime ?? expiry.lifetime else { return .forever }
        // Whole arithmetic on `Duration`: in doubles a lifetime of many years would lose its nanoseconds.
        // Held at zero first: the shortest duration there is has no room for an age.
        return max(.zero, lifetime) - Duration(saturating: age)
    }
}

extension Duration {
    /// Longer than any lifetime: 292 years.
    package static let forever = Duration.nanoseconds(Int64.max)
}
