/// An error that knows what should be done about it.
///
/// ```swift
/// struct APIError: Error, FailureAdvising {
///     var status: Int
///     var retryAfter: Duration?
///
///     var failureKind: FailureKind { status >= 500 || status == 429 ? .transient : .permanent }
///     var allowsStale: Bool { [500, 502, 503, 504].contains(status) }
/// }
/// ```
///
/// A fetcher's errors may conform; a store's ``RetryPolicy`` and stale windows then follow the advice. An error that does not conform is
/// taken as transient, tried once, with no wish as to when, and allows stale content.
public protocol FailureAdvising: Error {
    /// What kind of failure this is.
    var failureKind: FailureKind { get }

    /// How long the origin asked to be left alone; `nil` where it did not say.
    var retryAfter: Duration? { get }

    /// How many attempts were already made below; more than one means that nobody above should try again.
    var attempts: Int { get }

    /// Whether expired content may be served in the place of this failure, within a stale-if-error window (RFC 5861 §4).
    ///
    /// While the key is live, a failure that does not allow it closes the stale-while-revalidate window too.
    ///
    /// True of an origin that fails or cannot be reached. False of one that refuses, or says that the content is gone: otherwise callers
    /// would go on getting content to which they have lost access. By default, true of transient and canceled failures.
    var allowsStale: Bool { get }
}

extension FailureAdvising {
    /// No wish as to when.
    public var retryAfter: Duration? { nil }

    /// Tried once.
    public var attempts: Int { 1 }

    /// Transient and canceled failures allow stale content, and permanent and fatal failures do not.
    public var allowsStale: Bool { failureKind == .transient || failureKind == .cancelled }
}

/// What kind a failure is, as far as trying again goes.
public enum FailureKind: Hashable, Sendable {
    /// May well work next time: a lost connection, an overloaded server.
    case transient
    /// Will fail again until something changes: not found, malformed.
    case permanent
    /// Makes everything beside it pointless too: disk full, signed out.
    case fatal
    /// Somebody gave it up.
    case cancelled
}
