public import RemoteHTTP

/// The failures of a host that are worth another attempt: statuses, methods and errors.
///
/// ```swift
/// var github = RemoteHost("api.github.com")
/// github.retryRules.advisedStatuses = [403]  // the secondary rate limit
/// github.retryRules.methods = [.get, .head]
/// ```
///
/// The rules never make a request repeatable. A request is repeated only if its method is idempotent or its route has an idempotency key,
/// and if its body can be sent again (``RemoteError/mayRepeat``). ``RemoteHost/retry`` determines the number of attempts and the delays.
///
/// <doc:ErrorsAndRetries> explains which failures a host retries.
public struct RetryRules: Hashable, Sendable {
    /// The statuses that are worth another attempt.
    public var statuses: Set<Int> = [408, 429, 502, 503, 504]
    /// The statuses that are worth another attempt only if the response has `Retry-After`; none by default.
    public var advisedStatuses: Set<Int> = []
    /// The methods that are worth another attempt; `nil`, the default, for all.
    public var methods: Set<HTTPMethod>?
    /// The errors without a complete response that are worth another attempt: lost connections, and the deadlines of an attempt.
    public var errors: Set<RemoteError.Code> = RemoteError.Code.passing.union([.headTimedOut, .idleTimedOut, .attemptTimedOut])

    /// Creates the default rules.
    public init() {}

    func allow(_ error: RemoteError, of method: HTTPMethod) -> Bool {
        guard methods?.contains(method) ?? true else { return false }
        guard error.stage == .status, let status = error.status else { return errors.contains(error.code) }
        return statuses.contains(status) || advisedStatuses.contains(status) && error.fields["Retry-After"] != nil
    }
}
