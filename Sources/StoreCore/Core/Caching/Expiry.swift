/// The lifetime of a cacher's content whose origin states none.
///
/// <doc:RefreshingAndExpiring> explains when content expires, and what follows.
public enum Expiry: Hashable, Sendable {
    /// Content stays valid until it is replaced.
    case never
    /// Content is valid for this long after it was fetched or updated. With zero or less it is valid only for the callers of its fetch.
    case after(Duration)

    /// The lifetime as a duration; `nil` if content never expires.
    package var lifetime: Duration? {
        switch self {
        case .never: nil
        case .after(let duration): duration
        }
    }
}
