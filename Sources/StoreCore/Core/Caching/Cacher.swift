#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The storage for content: memory, files, or a database of your own.
///
/// The author of a cacher may rely on three guarantees of each store:
///
/// - The store never makes two calls for one key at a time.
/// - The store never cancels or reorders saves.
/// - While ``removeAll()`` runs, no other call runs.
///
/// A cacher may be slow and may throw. A load that throws counts as a miss, and a save that throws leaves the record in the store. The
/// store reports both as ``StoreEventKind/cacherFault(_:_:)``.
///
/// ```swift
/// actor NightlyCacher: Cacher {
///     private var records: [Int: CacheRecord<User>] = [:]
///
///     func load(param id: Int) -> CacheRecord<User>? { records[id] }
///     func save(_ record: CacheRecord<User>, param id: Int) {
///         records[id] = record
///     }
///     func remove(param id: Int) { records[id] = nil }
///     func removeAll() { records = [:] }
///
///     nonisolated func needsRefresh(
///         _ record: CacheRecord<User>, param: Int, now: Date
///     ) -> Bool {
///         record.isInvalidated
///             || !Calendar.current.isDate(record.fetchedAt, inSameDayAs: now)
///     }
/// }
/// ```
///
/// A hit on any cacher but ``MemoryCacher`` and ``TieredCacher`` costs a call of ``load(param:)``, so put a `TieredCacher` in front.
///
/// The article *Persisting* of the module StoreFiles shows a cacher of your own, and lists all rules.
public protocol Cacher<Param, Content>: Sendable {
    /// The key of one piece of data.
    associatedtype Param: Hashable & Sendable
    /// The type of a key's data; the elements of all loaded pages for a list.
    associatedtype Content: Sendable

    /// The lifetime of content whose origin states none; a store reads it once, when it is created.
    var expiry: Expiry { get }

    /// Loads the record of a key.
    ///
    /// - Parameter param: The key.
    /// - Returns: The record that was saved last, valid or not; `nil` if there is none.
    /// - Throws: Any error; the store treats it as a miss and reports it.
    func load(param: Param) async throws -> CacheRecord<Content>?

    /// Saves the record of a key in place of the previous one.
    ///
    /// - Parameters:
    ///   - record: The record, which must be stored completely or not at all.
    ///   - param: The key.
    /// - Throws: Any error; the store keeps the record and reports the error. It retries when the content changes, in `waitUntilSaved()`,
    ///   or after a save or removal of another key succeeds, at the earliest ``StorePolicy/minimumInterval`` later.
    func save(_ record: CacheRecord<Content>, param: Param) async throws

    /// Removes the record of a key; does nothing if there is none.
    ///
    /// - Parameter param: The key.
    /// - Throws: Any error; the store treats the record as removed, reports the error, and retries like a failed save.
    func remove(param: Param) async throws

    /// Removes every record.
    ///
    /// - Throws: Any error, which the store's `clear()` rethrows. The store treats the existing records as removed for as long as it lives.
    func removeAll() async throws

    /// Returns the keys of all records, in no order.
    ///
    /// - Returns: The keys, or `nil` if the cacher cannot list them.
    /// - Throws: Any error while listing.
    func keys() async throws -> [Param]?

    /// Returns whether a record is out of date.
    ///
    /// The default compares the record's age with the origin's lifetime or, if there is none, with ``expiry``; a record with a future date
    /// is out of date. A store calls this method when it loads a record, not at each hit in memory. The method must be quick and must not
    /// call the store, which may hold its lock.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    ///   - now: The current wall-clock time.
    /// - Returns: `true` if the content must be fetched before it is used.
    func needsRefresh(_ record: CacheRecord<Content>, param: Param, now: Date) -> Bool
}

extension Cacher {
    /// The default: content expires only if its origin states a lifetime.
    public var expiry: Expiry { .never }

    /// The default: the cacher cannot list its keys.
    public func keys() async throws -> [Param]? { nil }

    /// The default: compares the record's age with its lifetime.
    public func needsRefresh(_ record: CacheRecord<Content>, param: Param, now: Date) -> Bool {
        record.remainingLifetime(expiry: expiry, now: now) <= .zero
    }
}

extension CacheRecord {
    /// The time for which the record remains valid on the wall clock: zero or less if it is out of date, `.forever` if it never expires.
    package func remainingLifetime(expiry: Expiry, jitter: Double = 0, now: Date) -> Duration {
        if isInvalidated { return .zero }
        let age = now.timeIntervalSince(fetchedAt)
        // A clock that was set back leaves records from the future, of unknown age.
        guard age >= 0 else { return .zero }
        guard let lifetime = lifetime(expiry: expiry, jitter: jitter) else { return .forever }
        // Integer arithmetic on `Duration`: a `Double` would lose the nanoseconds of a lifetime of many years. Clamped to zero first:
        // subtracting an age from the shortest `Duration` would overflow.
        return max(.zero, lifetime) - Duration(saturating: age)
    }

    /// The record's lifetime; `nil` if it never expires.
    package func lifetime(expiry: Expiry, jitter: Double) -> Duration? {
        guard let lifetime = freshness.lifetime ?? expiry.lifetime, jitter > 0 else { return freshness.lifetime ?? expiry.lifetime }
        // A number in 0..<1, the same after each load. SplitMix64 (Steele et al., 2014) mixes the bits of the date.
        var bits = fetchedAt.timeIntervalSinceReferenceDate.bitPattern &+ 0x9E37_79B9_7F4A_7C15
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        let unit = Double((bits ^ (bits >> 31)) >> 11) / Double(UInt64(1) << 53)
        return Duration(saturating: lifetime.timeInterval * (1 - min(1, jitter) * unit))
    }
}

extension Duration {
    /// Longer than any lifetime: 292 years.
    package static let forever = Duration.nanoseconds(Int64.max)
}

/// A fact that a cacher reports apart from the results of its calls.
public enum CacherNotice<Param: Hashable & Sendable>: Sendable {
    /// A fault that did not fail a call, such as a load that was a miss because the record is damaged.
    ///
    /// The key is `nil` if the fault concerns more than one record. A store reports the notice as ``StoreEventKind/cacherFault(_:_:)``.
    case fault(StoreEventKind.CacherOperation, Param?, any Error)
    /// The cacher evicted records to stay within its bounds.
    ///
    /// A store reports the notice as ``StoreEventKind/evicted(count:)``.
    case evicted(count: Int)
}

/// A cacher that reports notices, or works in the background.
///
/// Conform to this protocol if your cacher learns of faults or evicts records while no call runs that could throw. A store with an
/// `onEvent` closure observes the notices and reports them as events. The `close()` of a store waits for the cacher's background work.
public protocol NoticingCacher<Param, Content>: Cacher {
    /// Adds an observer of all later notices.
    ///
    /// - Parameter observer: Called outside all locks, on any thread. The cacher retains the observer until the cacher itself is released.
    func observeNotices(_ observer: @escaping @Sendable (_ notice: CacherNotice<Param>) -> Void)

    /// Waits until the cacher does no work in the background.
    ///
    /// A store calls this method when it is closed or released, after the last call of the cacher has ended.
    func settle() async
}

extension NoticingCacher {
    /// The default: returns at once, for a cacher without work in the background.
    public func settle() async {}
}
