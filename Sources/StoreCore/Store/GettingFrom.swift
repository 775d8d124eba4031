/// Where a one-shot call takes its data from.
public enum GettingFrom: Hashable, Sendable, CaseIterable {
    /// Valid content of the cache, otherwise the origin.
    case both
    /// The origin; a fetch of the present epoch that is already running is joined.
    case origin
    /// The cache alone, and only while its content is valid.
    case cache
}
