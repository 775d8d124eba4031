/// An identifier of one version of content, with which the origin can confirm that the version is current.
///
/// In HTTP these are the two validators of RFC 9110 §8.8. Other origins can put a version or a digest into ``entityTag``.
///
/// <doc:RefreshingAndExpiring> shows a fetcher that revalidates.
public struct Validator: Hashable, Sendable, Codable {
    /// The opaque tag, verbatim from the origin: with its quotes and, if weak, its `W/`.
    public var entityTag: String?

    /// The modification date, verbatim from the origin.
    public var lastModified: String?

    /// The fetcher's own notes on this version; `nil` for none.
    ///
    /// A store saves them with the version and never reads them. ``Origin/accepts(_:param:)`` may use them to decide whether the version
    /// fits.
    public var notes: String?

    /// Creates a validator; a part that the origin does not state is `nil`.
    ///
    /// - Parameters:
    ///   - entityTag: The opaque tag, verbatim.
    ///   - lastModified: The modification date, verbatim.
    ///   - notes: The fetcher's own notes on this version.
    public init(entityTag: String? = nil, lastModified: String? = nil, notes: String? = nil) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.notes = notes
    }

    /// The notes alone, for content that was changed since; `nil` without notes.
    var withoutVersion: Validator? { notes.map { Validator(notes: $0) } }
}
