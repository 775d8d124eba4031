/// The period for which an origin allows its content to be used.
///
/// The vocabulary is that of HTTP caching: RFC 9111 (lifetime, `no-store`, `must-revalidate`) and RFC 5861 (the two stale windows).
///
/// <doc:RefreshingAndExpiring> shows how an origin limits its content.
public struct Freshness: Hashable, Sendable, Codable {
    /// The lifetime from arrival; `nil` applies the cacher's `expiry`.
    public var lifetime: Duration?

    /// The time after the lifetime during which the content may be served while it is refreshed; `nil` applies the store's policy.
    public var staleWhileRevalidate: Duration?

    /// The time after the lifetime during which the content may be served if the refresh fails; `nil` applies the store's policy.
    public var staleIfError: Duration?

    /// Whether expired content is never served, regardless of policies (`must-revalidate`); observers still see it during a fetch.
    public var mustRevalidate: Bool

    /// Whether the content may be passed to a cacher.
    public var storage: Storage

    /// Whether cachers may store the content; `.allowed` unless the origin forbids it.
    public enum Storage: String, Hashable, Sendable, Codable {
        /// The cacher may store the content.
        case allowed
        /// The store keeps the content while its key is live, never saves it, and removes the older saved record (`no-store`).
        case forbidden
    }

    /// Creates a freshness; omitted values leave the decision to the cacher and the policies.
    ///
    /// - Parameters:
    ///   - lifetime: The lifetime from arrival; `nil` applies the cacher's expiry.
    ///   - staleWhileRevalidate: The time after the lifetime during which the content may be served while it is refreshed; `nil` applies
    ///     the policy.
    ///   - staleIfError: The time after the lifetime during which the content may be served if the refresh fails; `nil` applies the policy.
    ///   - mustRevalidate: Whether expired content is never served.
    ///   - storage: Whether the content may be passed to a cacher.
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

    /// The origin states nothing: the cacher and the policies apply.
    public static let unspecified = Freshness()

    /// Returns a freshness with this lifetime from arrival.
    public static func fresh(for lifetime: Duration) -> Freshness { Freshness(lifetime: lifetime) }
}
