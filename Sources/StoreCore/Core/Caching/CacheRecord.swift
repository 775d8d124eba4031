#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Content together with its metadata, saved and loaded as one unit.
///
/// The rarely used parts (freshness, validator, page keys) are stored out of line. A record without them costs only its content, a date and
/// one word.
public struct CacheRecord<Content: Sendable>: Sendable {
    /// The accepted content; optimistic changes of running mutations are not part of it.
    public var content: Content

    /// The wall-clock time at which the content was fetched from the origin or set by an update.
    public var fetchedAt: Date

    /// The rarely used parts; `nil` if all of them have their defaults.
    @usableFromInline
    package var details: RecordDetails?

    /// Creates a record; an omitted part counts as not stated by the origin.
    ///
    /// - Parameters:
    ///   - content: The content.
    ///   - fetchedAt: The wall-clock time at which the content was fetched.
    ///   - freshness: The content's freshness as the origin states it.
    ///   - validator: The validator of this version.
    ///   - nextKey: The key of the page after the last page of a list.
    ///   - prevKey: The key of the page before the first page of a list.
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

    /// Returns the same record with other content, for cachers that save the content apart from the rest.
    ///
    /// A record without content is `record.holding(placeholder)`; it encodes and decodes everything that a store needs beside the content.
    ///
    /// - Parameter other: The other content.
    @inlinable
    public func holding<Other: Sendable>(_ other: Other) -> CacheRecord<Other> {
        CacheRecord<Other>(content: other, fetchedAt: fetchedAt, details: details)
    }

    /// A copy of the details, with the defaults for a record that has none; setting it stores a new object, or none for the defaults.
    package var fields: RecordDetails.Fields {
        get { details?.fields ?? RecordDetails.Fields() }
        set { details = RecordDetails(newValue) }
    }

    /// The content's freshness as the origin states it.
    public var freshness: Freshness {
        get { details?.fields.freshness ?? .unspecified }
        set { fields.freshness = newValue }
    }

    /// The origin's identifier of this version, for the next revalidation; `nil` if the origin has given none.
    public var validator: Validator? {
        get { details?.fields.validator }
        set { fields.validator = newValue }
    }

    /// The key of the page after the last page of a list; never empty.
    public var nextKey: String? {
        get { details?.fields.nextKey }
        set { fields.nextKey = newValue }
    }

    /// The key of the page before the first page of a list; never empty.
    public var prevKey: String? {
        get { details?.fields.prevKey }
        set { fields.prevKey = newValue }
    }

    /// The reason for which the list has no next key, if its fetcher has guessed the end; `nil` if the origin states it.
    public var guessedEnd: GuessedEnd? {
        get { details?.fields.guessedEnd }
        set { fields.guessedEnd = newValue }
    }

    /// The pages of a list in its order; empty while all elements belong to the list's initial page.
    ///
    /// The store needs the pages to fetch all loaded pages again. A cacher that saves the parts of a record separately must save the pages
    /// too: a list loaded without them counts as one page. Cost: a copy of the descriptions.
    public var pages: [LoadedPage] {
        get { details?.fields.pages?.all ?? [] }
        set { fields.pages = newValue.isEmpty ? nil : LoadedPages(newValue) }
    }

    /// Whether the content was marked as out of date, regardless of its dates.
    public var isInvalidated: Bool {
        get { details?.fields.isInvalidated ?? false }
        set { fields.isInvalidated = newValue }
    }
}

extension CacheRecord: Equatable where Content: Equatable {
    /// Returns whether content, date and all details are equal.
    public static func == (lhs: CacheRecord, rhs: CacheRecord) -> Bool {
        lhs.content == rhs.content && lhs.fetchedAt == rhs.fetchedAt && lhs.fields == rhs.fields
    }
}

extension CacheRecord: Codable where Content: Codable {
    private enum CodingKeys: String, CodingKey { case content, fetchedAt, details }

    /// Decodes a record that `encode(to:)` wrote.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        content = try container.decode(Content.self, forKey: .content)
        fetchedAt = try container.decode(Date.self, forKey: .fetchedAt)
        details = try container.decodeIfPresent(RecordDetails.Fields.self, forKey: .details).flatMap(RecordDetails.init)
    }

    /// Encodes the record; omits the details if all of them have their defaults.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(content, forKey: .content)
        try container.encode(fetchedAt, forKey: .fetchedAt)
        try container.encodeIfPresent(details?.fields, forKey: .details)
    }
}
