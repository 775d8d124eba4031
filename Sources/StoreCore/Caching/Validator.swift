/// What names one version of a piece of content, to ask the origin later whether it has changed.
///
/// In HTTP these are the two validators of RFC 9110 §8.8; an origin of another kind puts a version or a digest into ``entityTag``.
public struct Validator: Hashable, Sendable, Codable {
    /// The opaque tag, verbatim as the origin gave it: with its quotes and, where weak, its `W/`.
    public var entityTag: String?

    /// The modification date, verbatim as the origin gave it.
    public var lastModified: String?

    /// Makes a validator.
    ///
    /// - Parameters:
    ///   - entityTag: The opaque tag, verbatim.
    ///   - lastModified: The modification date, verbatim.
    public init(entityTag: String? = nil, lastModified: String? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified
    }
}
