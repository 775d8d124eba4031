/// An error that knows what should be done about it.
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
/// A fetcher's errors may conform; a store's ``RetryPolicy`` then follows the advice. An error that does not conform is taken as
/// transient, tried once, with no wish as to when.
public protocol FailureAdvising: Error {
    /// What kind of failure this is.
    var failureKind: FailureKind { get }

    /// How long the origin asked to be left alone; `nil` where it did not say.
    var retryAfter: Duration? { get }

    /// How many attempts were already made below; more than one means that nobody above should try again.
    var attempts: Int { get }
}

extension FailureAdvising {
    /// No wish as to when.
    public var retryAfter: Duration? { nil }

    /// Tried once.
    public var attempts: Int { 1 }
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
