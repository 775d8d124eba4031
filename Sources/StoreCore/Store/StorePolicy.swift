/// What a store does of its own accord: the one table of all defaults.
///
/// ```swift
/// var policy = StorePolicy()
/// policy.staleWhileRevalidate = .seconds(30)
/// let users = Store(cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api), policy: policy)
/// ```
///
/// | Policy | Default | Meaning of the default |
/// |---|---|---|
/// | ``staleWhileRevalidate`` | `.zero` | `requireData` never serves expired content |
/// | ``staleIfError`` | `.zero` | `requireData` throws when fetching fails |
/// | ``revalidatesOnExpiry`` | `false` | observed content may grow old until somebody asks |
/// | ``minimumInterval`` | 1 s | between the end of a fetch and one that expiry or a trigger causes |
/// | ``retry`` | ``RetryPolicy/never`` | a failure is a failure |
/// | ``errorExpiry`` | `.zero` | a failed key is tried again by whoever asks |
/// | ``unwantedFetch`` | cancel after 1 s | a fetch that nobody waits for is cancelled |
/// | ``refreshScope`` | first page | refreshing a list starts it anew |
///
/// A cacher has defaults of its own: content never expires, a ``MemoryCacher`` holds 10 000 entries, a ``FileCacher`` 256 MB with
/// ``Durability/crash``.
public struct StorePolicy: Sendable {
    /// How long after it expired `requireData` may serve content at once while refreshing it (RFC 5861 §3).
    ///
    /// An origin-given ``Freshness/staleWhileRevalidate`` beats it.
    public var staleWhileRevalidate: Duration = .zero

    /// How long after it expired `requireData` may serve content when refreshing it fails (RFC 5861 §4).
    ///
    /// An origin-given ``Freshness/staleIfError`` beats it.
    public var staleIfError: Duration = .zero

    /// Whether an observed key is fetched again when its content expires.
    public var revalidatesOnExpiry: Bool = false

    /// The least time between the end of a fetch and one of the same key that expiry or a trigger causes.
    public var minimumInterval: Duration = .seconds(1)

    /// Which failures are tried again, how often and when.
    public var retry: RetryPolicy = .never

    /// How long after a failure a live key is not fetched automatically.
    ///
    /// `refresh()`, `.origin` and `publish(forceRefresh: true)` ask all the same. A key is live while it is observed, waited for, or
    /// something of it is under way; with the key, its failure is forgotten.
    public var errorExpiry: Duration = .zero

    /// What becomes of a fetch that nobody waits for any longer.
    public var unwantedFetch: UnwantedFetch = .cancel(after: .seconds(1))

    /// How much of a list is fetched when it is refreshed.
    public var refreshScope: RefreshScope = .firstPage

    /// Makes the default policies; change what should differ.
    public init() {}

    /// The default policies.
    public static let `default` = StorePolicy()

    /// What becomes of a fetch that nobody waits for any longer.
    public enum UnwantedFetch: Hashable, Sendable {
        /// It is cancelled when nobody came back within this time.
        case cancel(after: Duration)
        /// It runs to its end and its result is kept.
        case complete
    }

    /// How much of a list is fetched when it is refreshed.
    public enum RefreshScope: Hashable, Sendable {
        /// The first page, which becomes the whole list.
        case firstPage
        /// As many pages as are loaded, in order and with fresh keys, published at once.
        case loadedPages
    }
}
