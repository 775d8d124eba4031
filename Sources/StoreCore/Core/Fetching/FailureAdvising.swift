/// An error that advises whether and when to retry.
///
/// ```swift
/// struct APIError: Error, FailureAdvising {
///     var status: Int
///     var retryAfter: Duration?
///
///     var failureKind: FailureKind {
///         status >= 500 || status == 429 ? .transient : .permanent
///     }
///     var allowsStale: Bool { [500, 502, 503, 504].contains(status) }
/// }
/// ```
///
/// Errors of a fetcher may conform; the store's ``RetryPolicy`` and stale windows follow their advice. An error without advice counts as
/// transient and as tried once, has no preferred delay, and allows stale content.
///
/// <doc:RefreshingAndExpiring> explains how a store uses the advice.
public protocol FailureAdvising: Error {
    /// The kind of the failure; a store's default rules retry only transient failures.
    var failureKind: FailureKind { get }

    /// The delay that the origin asked for; `nil` if it did not ask for any.
    ///
    /// The delay is advice, not an order: a policy waits at least its own back-off and at most its limit, such as
    /// ``RetryPolicy/adviceLimit``.
    var retryAfter: Duration? { get }

    /// The number of attempts that lower layers have made; if it exceeds one, higher layers must not retry.
    var attempts: Int { get }

    /// Whether expired content may be served in place of this failure, within a stale-if-error window (RFC 5861 §4).
    ///
    /// `true` suits an origin that fails or cannot be reached. `false` suits an origin that refuses the request or has removed the content:
    /// otherwise callers would keep receiving content to which they have lost access. By default, `true` for transient and canceled failures.
    ///
    /// While the key is live, a failure that does not allow stale content closes the stale-while-revalidate window too.
    var allowsStale: Bool { get }

    /// Whether a layer above the origin has refused the fetch without a request, such as an open circuit breaker.
    ///
    /// A store reports such an end of a fetch as ``StoreEventKind/FetchOutcome/refused(_:)``.
    var isRefusal: Bool { get }
}

extension FailureAdvising {
    /// The default: the origin asks for no delay, so policies use their own.
    public var retryAfter: Duration? { nil }

    /// The default: the failure was tried once, so higher layers may retry it.
    public var attempts: Int { 1 }

    /// The default: a request was sent.
    public var isRefusal: Bool { false }

    /// The default: transient and canceled failures allow stale content, and permanent and fatal failures do not.
    public var allowsStale: Bool { failureKind == .transient || failureKind == .cancelled }
}

/// The kind of a failure with regard to retries.
public enum FailureKind: String, Hashable, Sendable {
    /// The next attempt may succeed: a lost connection, an overloaded server.
    case transient
    /// Every attempt fails until something changes: not found, malformed.
    case permanent
    /// All related operations fail too: disk full, signed out.
    case fatal
    /// The operation was canceled; nothing is known about the origin.
    case cancelled
}
