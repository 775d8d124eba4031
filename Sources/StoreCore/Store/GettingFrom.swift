/// The source of a one-shot call's data.
public enum GettingFrom: Hashable, Sendable, CaseIterable {
    /// Valid content from the cache; otherwise from the origin.
    case both
    /// The origin. The call joins a running fetch of the current epoch.
    case origin
    /// The cache only, and only if its content is valid.
    case cache
}
