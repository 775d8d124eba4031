public import Foundation

/// Content together with what is known of it; saved and loaded as one, never torn.
///
/// The rarely used parts (freshness, validator, page keys) stand out of line, so that a record that has none of them costs only its
/// content, a date and one word.
public struct CacheRecord<Content: Sendable>: Sendable {
    /// The data itself.
    public var content: Content

    /// When the content came from the origin or was set by an update, on the wall clock.
    public var fetchedAt: Date

    /// The rarely used parts; `nil` where all of them have their defaults.
    @usableFromInline
    package var details: RecordDetails?

    /// Makes a record.
    ///
    /// - Parameters:
    ///   - content: The data itself.
    ///   - fetchedAt: When the content came from the origin, on the wall clock.
    ///   - freshness: What the origin said of its lifetime.
    ///   - validator: What asks the origin later whether it has changed.
    ///   - nextKey: What asks for the page after the last one of a list.
    ///   - prevKey: What asks for the page before the first one of a list.
    public init(
        content: Content, fetchedAt: Date, freshness: Freshness = .unspecified, validator: Validator? = nil,
        nextKey: String? = nil, prevKey: String? = nil
    ) {
        self.content = content
        self.fetchedAt = fetchedAt
        details = RecordDetails(freshness: freshness, validator: validator, nextKey: nextKey, prevKey: prevKey)
    }

    @inlinable
    package init(content: Content, fetchedAt: Date, details: RecordDetails?) {
        self.content = content
        self.fetchedAt = fetchedAt
        self.details = details
    }

    /// All rarely used parts at once.
    package var fields: RecordDetails.Fields {
        get { details?.fields ?? RecordDetails.Fields() }
        set { details = RecordDetails(newValue) }
    }

    /// What the origin said of the content's lifetime.
    public var freshness: Freshness {
        get { details?.fields.freshness ?? .unspecified }
        set { fields.freshness = newValue }
    }

    /// What asks the origin later whether the content has changed.
    public var validator: Validator? {
        get { details?.fields.validator }
        set { fields.validator = newValue }
    }

    /// What asks for the page after the last one of a list; never empty.
    public var nextKey: String? {
        get { details?.fields.nextKey }
        set { fields.nextKey = newValue }
    }

    /// What asks for the page before the first one of a list; never empty.
    public var prevKey: String? {
        get { details?.fields.prevKey }
        set { fields.prevKey = newValue }
    }

    /// The pages of a list in its order; empty while all elements belong to the page that the list began with.
    ///
    /// The store needs them to fetch all loaded pages again. A cacher that saves a record's parts one by one saves these, too: a list loaded
    /// without them counts as one page. Cost: a copy of the descriptions.
    public var pages: [LoadedPage] {
        get { details?.fields.pages?.all ?? [] }
        set { fields.pages = newValue.isEmpty ? nil : LoadedPages(newValue) }
    }

    /// The number of pages that the list holds beside the one that it began with.
    var pageCounts: PageCounts { details?.fields.pages?.counts ?? PageCounts() }

    /// Whether somebody said that the content is out of date, whatever its dates say.
    public var isInvalidated: Bool {
        get { details?.fields.isInvalidated ?? false }
        set { fields.isInvalidated = newValue }
    }
}

extension CacheRecord: Equatable where Content: Equatable {
    /// Whether content, date and all details are equal.
    public static func == (lhs: CacheRecord, rhs: CacheRecord) -> Bool {
        lhs.content == rhs.content && lhs.fetchedAt == rhs.fetchedAt && lhs.fields == rhs.fields
    }
}

extension CacheRecord: Codable where Content: Codable {
    private enum CodingKeys: String, CodingKey { case content, fetchedAt, details }

    /// Reads a record as `encode(to:)` wrote it.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        content = try container.decode(Content.self, forKey: .content)
        fetchedAt = try container.decode(Date.self, forKey: .fetchedAt)
        details = try container.decodeIfPresent(RecordDetails.Fields.self, forKey: .details).flatMap(RecordDetails.init)
    }

    /// Writes the record; details are left out where all of them have their defaults.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(content, forKey: .content)
        try container.encode(fetchedAt, forKey: .fetchedAt)
        try container.encodeIfPresent(details?.fields, forKey: .details)
    }
}
