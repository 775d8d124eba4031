/// What a store does of its own accord: the one table of all defaults.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api), policy: StorePolicy(staleWhileRevalidate: .seconds(30)))
/// ```
///
/// | Policy | Default | Meaning of the default |
/// |---|---|---|
/// | ``staleWhileRevalidate`` | `.zero` | `requireData` never serves expired content |
/// | ``staleIfError`` | `.zero` | `requireData` throws when fetching fails |
/// | ``revalidatesOnExpiry`` | `false` | observed content may grow old until somebody asks |
/// | ``minimumInterval`` | 1 s | between the end of a fetch and one that expiry or a trigger causes |
/// | ``shortestInterval`` | 100 ms | the least ``minimumInterval`` for fetches that could cause themselves |
/// | ``retry`` | ``RetryPolicy/never`` | a failure is a failure |
/// | ``errorExpiry`` | `.zero` | a failed key is tried again by whoever asks |
/// | ``unwantedFetch`` | cancel after 1 s | a fetch that nobody waits for is cancelled |
/// | ``refreshScope`` | first page | `refresh()` resets a list to its first page |
/// | ``revalidatesAfterMutation`` | `true` | an observed key is fetched after its last mutation, unless that returned content |
/// | ``prefetchWidth`` | 8 | keys that `prefetch` fetches at a time |
///
/// A cacher has defaults of its own: content never expires, a ``MemoryCacher`` holds 10 000 entries, a ``FileCacher`` 256 MB with
/// ``Durability/crash``.
public struct StorePolicy: Sendable {
    /// How long after it expired `requireData` may serve content at once while refreshing it (RFC 5861 §3).
    ///
    /// An origin-given ``Freshness/staleWhileRevalidate`` beats it.
    public var staleWhileRevalidate: Duration

    /// How long after it expired `requireData` may serve content when refreshing it fails (RFC 5861 §4).
    ///
    /// An origin-given ``Freshness/staleIfError`` beats it. A failure whose ``FailureAdvising/allowsStale`` is `false` is thrown instead.
    public var staleIfError: Duration

    /// Whether an observed key is fetched again when its content expires.
    public var revalidatesOnExpiry: Bool

    /// The least time between the end of a fetch and one of the same key that expiry or a trigger causes.
    ///
    /// Expiry never causes a fetch sooner than ``shortestInterval``, even if this is shorter. A trigger does: its elements set the pace.
    public var minimumInterval: Duration

    /// The least interval between fetches that could cause themselves: 100 ms.
    ///
    /// It holds for content that expires as soon as it is fetched. It also holds between two fetches of one key that begin because a
    /// fetcher, its own or another key's, changed, invalidated or cleared that key: the first one begins at once, the next after the longer
    /// of the two intervals. Changes from outside a fetcher are never held back.
    public static let shortestInterval = Duration.milliseconds(100)

    /// Which failures are tried again, how often and when.
    public var retry: RetryPolicy

    /// How long after a failure a live key is not fetched automatically.
    ///
    /// `refresh()`, `.origin` and `publish(forceRefresh: true)` ask all the same. A key is live while it is observed, waited for, or
    /// something of it is under way; with the key, its failure is forgotten.
    public var errorExpiry: Duration

    /// What becomes of a fetch that nobody waits for any longer.
    public var unwantedFetch: UnwantedFetch

    /// How much of a list `refresh()` and `publish(forceRefresh: true)` fetch.
    ///
    /// Every other fetch (expiry, triggers, mutations, `invalidate()`, callers) keeps as many pages as are loaded.
    public var refreshScope: RefreshScope

    /// Whether an observed key is fetched once when its last mutation is settled without the origin's content.
    ///
    /// Without this fetch, observers keep the patched content after a success, and the content from before the patch after a failure.
    public var revalidatesAfterMutation: Bool

    /// The number of keys that `prefetch` fetches at a time; less than one counts as one.
    public var prefetchWidth: Int

    /// Makes policies; what is left out has its default.
    ///
    /// - Parameters:
    ///   - staleWhileRevalidate: How long after it expired content may be served while it is refreshed.
    ///   - staleIfError: How long after it expired content may be served when refreshing it fails.
    ///   - revalidatesOnExpiry: Whether an observed key is fetched again when its content expires.
    ///   - minimumInterval: The least time between the end of a fetch and one that expiry or a trigger causes.
    ///   - retry: Which failures are tried again, how often and when.
    ///   - errorExpiry: How long after a failure a live key is not fetched automatically.
    ///   - unwantedFetch: What becomes of a fetch that nobody waits for any longer.
    ///   - refreshScope: How much of a list `refresh()` and `publish(forceRefresh: true)` fetch.
    ///   - revalidatesAfterMutation: Whether an observed key is fetched when its last mutation is settled without the origin's content.
    ///   - prefetchWidth: How many keys `prefetch` fetches at a time.
    public init(
        staleWhileRevalidate: Duration = .zero, staleIfError: Duration = .zero, revalidatesOnExpiry: Bool = false,
        minimumInterval: Duration = .seconds(1), retry: RetryPolicy = .never, errorExpiry: Duration = .zero,
        unwantedFetch: UnwantedFetch = .cancel(after: .seconds(1)), refreshScope: RefreshScope = .firstPage,
        revalidatesAfterMutation: Bool = true, prefetchWidth: Int = 8
    ) {
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.revalidatesOnExpiry = revalidatesOnExpiry
        self.minimumInterval = minimumInterval
        self.retry = retry
        self.errorExpiry = errorExpiry
        self.unwantedFetch = unwantedFetch
        self.refreshScope = refreshScope
        self.revalidatesAfterMutation = revalidatesAfterMutation
        self.prefetchWidth = prefetchWidth
    }

    /// The interval before a fetch that could cause itself.
    var boundedInterval: Duration { max(Self.shortestInterval, minimumInterval) }

    /// The default policies.
    public static let `default` = StorePolicy()

    /// What becomes of a fetch that nobody waits for any longer.
    public enum UnwantedFetch: Hashable, Sendable {
        /// It is cancelled when nobody came back within this time.
        case cancel(after: Duration)
        /// It runs to its end and its result is kept.
        case complete
    }

    /// How much of a list is fetched when a refresh is asked for by name.
    public enum RefreshScope: Hashable, Sendable {
        /// The first page, which becomes the whole list.
        case firstPage
        /// As many pages as are loaded, in order and with fresh keys, published at once.
        case loadedPages
    }
}
