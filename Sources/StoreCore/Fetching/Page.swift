/// One page of a list, as a pagination fetcher returns it.
public struct Page<Element: Sendable>: Sendable {
    /// The elements of this page, in the order of the list.
    public var elements: [Element]

    /// The key of the page after this one; `nil` or empty if there is none.
    public var nextKey: String?

    /// The key of the page before this one; `nil` or empty if there is none.
    public var prevKey: String?

    /// The page's freshness as the origin states it; without a lifetime, the cacher's expiry applies.
    ///
    /// The age of a list is that of its first page. Of an added page, only ``Freshness/storage`` counts.
    public var freshness: Freshness

    /// The validator of the page.
    ///
    /// A list keeps only the validator of its first page. The fetching methods do not receive it; an origin that needs it implements
    /// ``Origin/respond(to:)``.
    public var validator: Validator?

    /// Creates a page.
    ///
    /// - Parameters:
    ///   - elements: The elements of this page, in the order of the list.
    ///   - nextKey: The key of the page after this one; `nil` or empty if there is none.
    ///   - prevKey: The key of the page before this one; `nil` or empty if there is none.
    ///   - freshness: The page's freshness as the origin states it.
    ///   - validator: The validator of the page.
    @inlinable
    public init(
        _ elements: [Element], nextKey: String? = nil, prevKey: String? = nil,
        freshness: Freshness = .unspecified, validator: Validator? = nil
    ) {
        self.elements = elements
        self.nextKey = nextKey
        self.prevKey = prevKey
        self.freshness = freshness
        self.validator = validator
    }
}

extension Page: Equatable where Element: Equatable {}

/// A direction in which a list grows by pages.
public enum PageDirection: String, Hashable, Sendable, CaseIterable, Codable {
    /// After the last element.
    case next
    /// Before the first element.
    case prev
}
