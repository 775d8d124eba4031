/// What an origin said of the time for which its answer may be used.
///
/// The vocabulary is that of HTTP caching: RFC 9111 (lifetime, `no-store`, `must-revalidate`) and RFC 5861 (the two stale windows).
public struct Freshness: Hashable, Sendable, Codable {
    /// How long the answer is valid from its arrival; `nil` leaves it to the cacher's `expiry`.
    public var lifetime: Duration?

    /// How long after that it may still be served while it is being refreshed; `nil` leaves it to the store's policy.
    public var staleWhileRevalidate: Duration?

    /// How long after that it may be served when refreshing fails; `nil` leaves it to the store's policy.
    public var staleIfError: Duration?

    /// Whether it must never be served stale, whatever the policies say (`must-revalidate`); observers still see it while it is fetched.
    public var mustRevalidate: Bool

    /// Whether it may be given to a cacher.
    public var storage: Storage

    /// Whether an answer may be given to a cacher.
    public enum Storage: String, Hashable, Sendable, Codable {
        /// It may be kept.
        case allowed
        /// It lives in the store for as long as it is wanted, is never saved, and the older saved record is removed (`no-store`).
        case forbidden
    }

    /// Makes a freshness.
    ///
    /// - Parameters:
    ///   - lifetime: How long the answer is valid from its arrival; `nil` leaves it to the cacher.
    ///   - staleWhileRevalidate: How long after that it may be served while it is being refreshed; `nil` leaves it to the policy.
    ///   - staleIfError: How long after that it may be served when refreshing fails; `nil` leaves it to the policy.
    ///   - mustRevalidate: Whether it must never be served stale.
    ///   - storage: Whether it may be given to a cacher.
    public init(
        lifetime: Duration? = nil, staleWhileRevalidate: Duration? = nil, staleIfError: Duration? = nil,
        mustRevalidate: Bool = false, storage: Storage = .allowed
    ) {
        self.lifetime = lifetime
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.mustRevalidate = mustRevalidate
        self.storage = storage
    }

    /// The origin said nothing: cacher and policies decide.
    public static let unspecified = Freshness()

    /// Valid for this long from its arrival.
    public static func fresh(for lifetime: Duration) -> Freshness { Freshness(lifetime: lifetime) }
}
