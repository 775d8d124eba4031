/// An error that advises whether and when to retry.
///
/// ```swift
/// struct APIError: Error, FailureAdvising {
///     var status: Int
///     var retryAfter: Duration?
///
///     var failureKind: FailureKind { status >= 500 || status == 429 ? .transient : .permanent }
/// }
/// ```
///
/// Errors of a fetcher may conform; the store's ``RetryPolicy`` follows their advice. An error without advice counts as transient, as tried
/// once, and has no preferred delay.
public protocol FailureAdvising: Error {
    /// The kind of failure.
    var failureKind: FailureKind { get }

    /// The delay that the origin asked for; `nil` if it did not ask for any.
    var retryAfter: Duration? { get }

    /// The number of attempts that lower layers have made; if it exceeds one, higher layers must not retry.
    var attempts: Int { get }
}

extension FailureAdvising {
    /// No preferred delay.
    public var retryAfter: Duration? { nil }

    /// A single attempt.
    public var attempts: Int { 1 }
}

/// The kind of a failure with regard to retries.
public enum FailureKind: Hashable, Sendable {
    /// The next attempt may succeed: a lost connection, an overloaded server.
    case transient
    /// Every attempt fails until something changes: not found, malformed.
    case permanent
    /// All related operations fail too: disk full, signed out.
    case fatal
    /// The operation was canceled.
    case cancelled
}
