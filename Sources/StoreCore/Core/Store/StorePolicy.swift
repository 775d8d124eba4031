/// The rules for a store's automatic behavior.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher<User.ID, User>(), fetcher: UserFetcher(api: api),
///     policy: StorePolicy(staleWhileRevalidate: .seconds(30)))
/// ```
///
/// | Policy | Default | Meaning of the default |
/// |---|---|---|
/// | ``staleWhileRevalidate`` | `.zero` | `requireData` never serves expired content |
/// | ``staleIfError`` | `.zero` | `requireData` throws when fetching fails |
/// | ``revalidatesOnExpiry`` | `false` | observed content stays on screen after it expires, until the next call |
/// | ``minimumInterval`` | 1 s | the minimum time between a fetch and a later one that expiry or a trigger causes |
/// | ``shortestInterval`` | 100 ms | the minimum time between fetches that could cause each other, even with a smaller minimum interval |
/// | ``retry`` | ``RetryPolicy/never`` | a failed fetch is not retried |
/// | ``errorExpiry`` | `.zero` | the next caller or observer retries a failed key |
/// | ``unwantedFetch`` | cancel after 1 s | a fetch without callers and observers is canceled |
/// | ``refreshScope`` | first page | `refresh()` resets a list to its first page |
/// | ``revalidatesAfterMutation`` | `true` | an observed key is fetched after its last mutation, unless that returned content |
/// | ``prefetchWidth`` | 8 | keys that `prefetch` fetches at a time |
/// | ``fetchWidth`` | `nil` | any number of fetches run at once |
/// | ``fetchTimeLimit`` | `nil` | an attempt takes as long as the fetcher does |
/// | ``staleAfter`` | `nil` | `requireData` waits for a slow fetch, even if there is expired content |
/// | ``expiryJitter`` | 0 | content expires exactly when its lifetime ends |
/// | ``fetchContext`` | detached | a fetch has no task-local values |
/// | ``leaseDuration`` | 30 s | the time for which a fetch keeps other users of a shared cacher from fetching the key |
/// | ``idleTimeout`` | `nil` | a silent stream of a ``LiveFetcher`` counts as connected |
/// | ``saveInterval`` | 1 s | the minimum time between two saves of values from a stream or from linked stores |
///
/// Cachers have their own defaults: content never expires, a ``MemoryCacher`` holds 10 000 entries, and a ``FileCacher`` holds 256 MB with
/// ``Durability/crash``.
///
/// <doc:RefreshingAndExpiring> explains when a store fetches, and shows how to change it.
public struct StorePolicy: Sendable {
    /// The time after expiry during which `requireData` may serve content at once and refresh it (RFC 5861 §3).
    ///
    /// A ``Freshness/staleWhileRevalidate`` from the origin takes precedence.
    public var staleWhileRevalidate: Duration

    /// The time after expiry during which `requireData` may serve content if the refresh fails (RFC 5861 §4).
    ///
    /// A ``Freshness/staleIfError`` from the origin takes precedence. A failure whose ``FailureAdvising/allowsStale`` is `false` is thrown.
    public var staleIfError: Duration

    /// Whether an observed key is fetched again when its content expires.
    public var revalidatesOnExpiry: Bool

    /// The minimum time between the end of a fetch and a fetch of the same key that expiry or a trigger causes.
    ///
    /// Expiry never causes a fetch sooner than ``shortestInterval``, even if this value is smaller. A trigger may: its elements set the
    /// pace. A failed save is also retried after this interval at the earliest, when another key has been saved.
    public var minimumInterval: Duration

    /// The least interval between fetches of which one causes the next: 100 ms.
    ///
    /// It applies to content that expires as soon as it is fetched. It also applies if a fetcher, of the same key or another one, changes,
    /// invalidates or clears a key. The first fetch that such a change causes begins at once, and the next one after the longer of this
    /// interval and ``minimumInterval``. Changes from outside a fetcher are never delayed.
    public static let shortestInterval = Duration.milliseconds(100)

    /// The rules for retrying a failed fetch.
    public var retry: RetryPolicy

    /// The time after a failure during which a live key is not fetched automatically.
    ///
    /// `refresh()`, `.origin` and `publish(forceRefresh: true)` fetch regardless. A key is live while it has observers, callers, or work in
    /// progress. An idle key forgets its failure.
    public var errorExpiry: Duration

    /// The fate of a fetch without callers and observers.
    public var unwantedFetch: UnwantedFetch

    /// The part of a list that `refresh()` and `publish(forceRefresh: true)` fetch.
    ///
    /// Every other fetch (expiry, triggers, mutations, `invalidate()`, callers) keeps the number of loaded pages.
    public var refreshScope: RefreshScope

    /// Whether an observed key is fetched once after its last mutation settles without the origin's content.
    ///
    /// Without this fetch, observers keep the patched content after a success, and the content from before the patch after a failure.
    public var revalidatesAfterMutation: Bool

    /// The number of keys that `prefetch` fetches at a time; values below one count as one.
    public var prefetchWidth: Int

    /// The number of attempts of fetches and page requests that run at once; `nil` for any number, and values below one count as one.
    ///
    /// Without a limit, one trigger with 2 000 observed keys causes 2 000 requests at once. Further fetches wait in order. A fetch that
    /// another fetch waits for begins without a place, because the waiting fetch would otherwise hold its place forever. Streams of a
    /// ``LiveFetcher`` have no places. A batching fetcher sees at most this many keys at a time.
    public var fetchWidth: Int?

    /// The longest time of one attempt of a fetch, or of one page request; `nil` for any.
    ///
    /// When the time is over, the store cancels the attempt. The attempt fails with ``StoreError/Code/fetchTimedOut``, and ``retry`` may
    /// repeat it. The wait for a place of ``fetchWidth`` does not count. An attempt that ignores its cancellation is left behind: its
    /// result is dropped, and neither `close()` nor ``fetchWidth`` counts it any longer. A circuit breaker counts the attempt as a failure
    /// of the origin once the fetcher returns. Streams of a ``LiveFetcher`` have ``idleTimeout`` in place of this limit.
    public var fetchTimeLimit: Duration?

    /// The time of a fetch after which `requireData` serves expired content, while the fetch goes on; `nil` for never.
    ///
    /// The time counts from the start of the whole fetch: it includes the wait for a place of ``fetchWidth``, all attempts, and the pauses
    /// between them. Callers that arrive later get the content at once. Without content, callers wait for the fetch.
    ///
    /// Expired content is served however old it is, unless the origin has stated a ``Freshness/staleWhileRevalidate``. Content is not served
    /// if it must be revalidated, if it was invalidated, or if the last fetch failed with an error that forbids stale content. `refresh()`,
    /// `validate()` and `.origin` wait for the fetch. If the fetch fails later, observers see the error.
    ///
    /// The fetch then runs to its end, even without callers and observers. If a fetcher may hang, set ``fetchTimeLimit`` too.
    public var staleAfter: Duration?

    /// The largest part of a lifetime by which content expires earlier, from 0 to 1.
    ///
    /// Content that many servers or devices have fetched at one moment then expires at different moments. The part is drawn for each record
    /// from its date, so that it is the same after a restart. The result of ``Cacher/needsRefresh(_:param:now:)`` does not depend on it.
    public var expiryJitter: Double

    /// The time for which a fetch keeps other users of a shared cacher from fetching the same key.
    ///
    /// Choose a time longer than most fetches with their retries. When it has passed, another user takes over.
    public var leaseDuration: Duration

    /// The source of a fetch's task-local values.
    public var fetchContext: FetchContext

    /// The longest silence of a live fetcher's stream, after which its connection counts as lost; `nil` for any.
    ///
    /// A connection whose other end has vanished may stay silent forever. Let the stream deliver ``LiveValue/current`` at shorter
    /// intervals.
    public var idleTimeout: Duration?

    /// The minimum time between two saves of values from a stream or from linked stores; the last value is always saved.
    public var saveInterval: Duration

    /// Creates a policy; omitted rules have their defaults.
    ///
    /// - Parameters:
    ///   - staleWhileRevalidate: The time after expiry during which content may be served while it is refreshed.
    ///   - staleIfError: The time after expiry during which content may be served if the refresh fails.
    ///   - revalidatesOnExpiry: Whether an observed key is fetched again when its content expires.
    ///   - minimumInterval: The minimum time between the end of a fetch and one that expiry or a trigger causes.
    ///   - retry: The rules for retrying a failed fetch.
    ///   - errorExpiry: The time after a failure during which a live key is not fetched automatically.
    ///   - unwantedFetch: The fate of a fetch without callers and observers.
    ///   - refreshScope: The part of a list that `refresh()` and `publish(forceRefresh: true)` fetch.
    ///   - revalidatesAfterMutation: Whether an observed key is fetched after its last mutation settles without the origin's content.
    ///   - prefetchWidth: The number of keys that `prefetch` fetches at a time.
    ///   - leaseDuration: The time for which a fetch keeps other users of a shared cacher from fetching the key.
    ///   - fetchContext: The source of a fetch's task-local values.
    ///   - fetchWidth: The number of attempts of fetches that run at once.
    ///   - fetchTimeLimit: The longest time of one attempt of a fetch.
    ///   - staleAfter: The time of a fetch after which `requireData` serves expired content.
    ///   - expiryJitter: The largest part of a lifetime by which content expires earlier, from 0 to 1.
    ///   - idleTimeout: The longest silence of a stream.
    ///   - saveInterval: The minimum time between two saves of values from a stream or from linked stores.
    public init(
        staleWhileRevalidate: Duration = .zero, staleIfError: Duration = .zero, revalidatesOnExpiry: Bool = false,
        minimumInterval: Duration = .seconds(1), retry: RetryPolicy = .never, errorExpiry: Duration = .zero,
        unwantedFetch: UnwantedFetch = .cancel(after: .seconds(1)), refreshScope: RefreshScope = .firstPage,
        revalidatesAfterMutation: Bool = true, prefetchWidth: Int = 8, leaseDuration: Duration = .seconds(30),
        fetchWidth: Int? = nil, fetchTimeLimit: Duration? = nil, staleAfter: Duration? = nil, expiryJitter: Double = 0,
        fetchContext: FetchContext = .detached, idleTimeout: Duration? = nil, saveInterval: Duration = .seconds(1)
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
        self.leaseDuration = leaseDuration
        self.fetchContext = fetchContext
        self.fetchWidth = fetchWidth
        self.fetchTimeLimit = fetchTimeLimit
        self.staleAfter = staleAfter
        self.expiryJitter = expiryJitter
        self.idleTimeout = idleTimeout
        self.saveInterval = saveInterval
    }

    /// The interval before a fetch that could cause itself.
    var boundedInterval: Duration { max(Self.shortestInterval, minimumInterval) }

    /// The default of each rule, as in the table of `StorePolicy`; a store that is created without a policy follows it.
    public static let `default` = StorePolicy()

    /// The fate of a fetch without callers and observers.
    public enum UnwantedFetch: Hashable, Sendable {
        /// The store cancels the fetch unless a caller or observer returns within this time.
        case cancel(after: Duration)
        /// The fetch runs to its end, and its result is kept.
        case complete
    }

    /// The source of a fetch's task-local values, such as the span of a trace.
    public enum FetchContext: Hashable, Sendable {
        /// A fetch has none, because it belongs to all of its callers.
        case detached
        /// A fetch inherits the values of the task that causes it: of its first caller or observer, or of the change that requires it.
        ///
        /// The retries of a fetch and its further pages have the same values. Callers that join the fetch do not change them. Their
        /// cancellation, and that of the first caller, does not reach the fetch. A fetch that the store begins by itself has no values: after
        /// expiry, by a trigger or by `prefetch`, and a page request that it repeats.
        case firstCaller
    }

    /// The part of a list that an explicit refresh fetches.
    public enum RefreshScope: Hashable, Sendable {
        /// The first page, which becomes the whole list.
        case firstPage
        /// As many pages as are loaded, in order, with fresh keys, published together.
        case loadedPages
    }
}
