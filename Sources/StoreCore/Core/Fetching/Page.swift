/// One page of a list, as a pagination fetcher returns it.
///
/// <doc:Paginating> explains page keys and the end of a list.
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

    /// The reason for which the fetcher takes this page for the last one although the origin did not say so; `nil` for a stated end.
    ///
    /// A fetcher that ends a list by a heuristic states its reason here and leaves ``nextKey`` out. Without a reason, a missing key counts
    /// as stated by the origin. A page that has a `nextKey` ends nothing, so its guess is ignored.
    public var guessedEnd: GuessedEnd?

    /// Creates a page; a page without keys has no neighbors.
    ///
    /// - Parameters:
    ///   - elements: The elements of this page, in the order of the list.
    ///   - nextKey: The key of the page after this one; `nil` or empty if there is none.
    ///   - prevKey: The key of the page before this one; `nil` or empty if there is none.
    ///   - freshness: The page's freshness as the origin states it.
    ///   - validator: The validator of the page.
    ///   - guessedEnd: The reason for which the fetcher takes this page for the last one; `nil` if the origin states the end.
    @inlinable
    public init(
        _ elements: [Element], nextKey: String? = nil, prevKey: String? = nil,
        freshness: Freshness = .unspecified, validator: Validator? = nil, guessedEnd: GuessedEnd? = nil
    ) {
        self.elements = elements
        self.nextKey = nextKey
        self.prevKey = prevKey
        self.freshness = freshness
        self.validator = validator
        self.guessedEnd = guessedEnd
    }
}

extension Page: Equatable where Element: Equatable {}

/// A direction in which a list grows by pages.
public enum PageDirection: String, Hashable, Sendable, CaseIterable, Codable {
    /// Pages after the last loaded element.
    case next
    /// Pages before the first loaded element.
    case prev
}

/// The reason for which a fetcher has ended a list that the origin did not end (C25).
///
/// ```swift
/// let page = Page(rows, guessedEnd: rows.isEmpty ? .emptyPage : nil)
/// ```
///
/// A guess is good enough to stop scrolling. It does not prove that the origin has no further elements: do not delete local data because a
/// list with a guessed end lacks it.
public struct GuessedEnd: RawRepresentable, Hashable, Sendable, Codable {
    /// The reason in text, as records keep it.
    public let rawValue: String

    /// Creates a reason of your own.
    ///
    /// - Parameter rawValue: The reason in text.
    @inlinable
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The page has no elements, so the fetcher requests no page after it.
    public static let emptyPage = GuessedEnd(rawValue: "emptyPage")
    /// The page has fewer elements than a full page.
    public static let shortPage = GuessedEnd(rawValue: "shortPage")
    /// The page repeats the page before it.
    public static let repeatedPage = GuessedEnd(rawValue: "repeatedPage")
    /// The page names a page that the list has already followed, such as itself.
    public static let repeatedKey = GuessedEnd(rawValue: "repeatedKey")
}
