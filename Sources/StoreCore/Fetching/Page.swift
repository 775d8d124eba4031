/// One page of a list, as a pagination fetcher returns it.
public struct Page<Element: Sendable>: Sendable {
    /// The elements of this page, in the list's order.
    public var elements: [Element]

    /// What asks for the page after this one; `nil` or empty where there is none.
    public var nextKey: String?

    /// What asks for the page before this one; `nil` or empty where there is none.
    public var prevKey: String?

    /// What the origin said of the page's lifetime; the cacher's expiry decides where it said nothing.
    ///
    /// A list is as old as its first page: of a page that is added, only ``Freshness/storage`` counts.
    public var freshness: Freshness

    /// What asks the origin later whether the first page has changed.
    ///
    /// The fetching methods are not given it; an origin that wants it answers ``Origin/respond(to:)`` itself.
    public var validator: Validator?

    /// Makes a page.
    ///
    /// - Parameters:
    ///   - elements: The elements of this page, in the list's order.
    ///   - nextKey: What asks for the page after this one; `nil` or empty where there is none.
    ///   - prevKey: What asks for the page before this one; `nil` or empty where there is none.
    ///   - freshness: What the origin said of the page's lifetime.
    ///   - validator: What asks the origin later whether the page has changed.
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

/// A side of a list at which a page may be added.
public enum PageDirection: String, Hashable, Sendable, CaseIterable, Codable {
    /// After the last element.
    case next
    /// Before the first element.
    case prev
}
