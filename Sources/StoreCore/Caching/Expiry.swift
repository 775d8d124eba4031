/// How long a cacher's content is valid where the origin said nothing of it.
public enum Expiry: Hashable, Sendable {
    /// Content stays valid until it is replaced.
    case never
    /// Content is valid for this long after it was fetched or updated; zero or less is valid only for the caller who fetched it.
    case after(Duration)

    /// The lifetime as a duration; `nil` for ever.
    package var lifetime: Duration? {
        switch self {
        case .never: nil
        case .after(let duration): duration
        }
    }
}
