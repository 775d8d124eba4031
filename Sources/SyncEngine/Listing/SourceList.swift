/// The remote list, page by page, with an end of its own: a list that only stops is not complete.
///
/// Most lists need no type of their own: ``ListedSource`` takes an array, ``PagedSource`` a closure for each page, and ``OriginSource`` a
/// `Fetcher` or `PaginationFetcher`.
public protocol SourceList<Item>: Sendable {
    /// An item of the list.
    associatedtype Item: SyncItem
    /// What reads the list once, from its beginning.
    associatedtype Reader: SourceReader<Item>

    /// In which order the items come.
    var order: SourceOrder { get }

    /// Makes a reader at the list's beginning.
    func makeReader() -> Reader
}

extension SourceList {
    /// In any order.
    public var order: SourceOrder { .unsorted }
}

/// Reads a list once, from its beginning; used by one task.
public protocol SourceReader<Item> {
    /// An item of the list.
    associatedtype Item: SyncItem

    /// Reads the next page.
    ///
    /// - Returns: The page; the last one carries ``SourcePage/end``. `nil` says that there is no more although no page was the last, and
    ///   then the list counts as cut.
    /// - Throws: Whatever reading failed with; the pass then changes nothing.
    mutating func next() async throws -> SourcePage<Item>?
}

/// Some items of the remote list, and perhaps its end.
public struct SourcePage<Item: SyncItem>: Sendable {
    /// The items, in the list's order.
    public var items: [Item]

    /// Says that the list ends with this page; `nil` where more follows.
    public var end: SourceEnd?

    /// Makes a page.
    ///
    /// - Parameters:
    ///   - items: The items, in the list's order.
    ///   - end: That the list ends here.
    public init(_ items: [Item], end: SourceEnd? = nil) {
        self.items = items
        self.end = end
    }
}

/// The word of a source that its list has been read to the end.
public enum SourceEnd: Hashable, Sendable {
    /// The list is complete; a count, where the source knows one, must be that of the items read.
    case complete(count: Int? = nil)
}

/// In which order the items of a list come.
public enum SourceOrder: Hashable, Sendable {
    /// In any order; the comparison keeps the keys of the local side in memory.
    case unsorted
    /// By ascending key. Where the local side is sorted too, both are compared as streams. A list that breaks its word is refused.
    case sortedByKey
}
