/// A remote list, read page by page; only a list with a marked end is complete.
///
/// Most lists need no type of their own. ``ListedSource`` takes an array, ``PagedSource`` a closure that loads each page, and
/// ``OriginSource`` a `Fetcher` or `PaginationFetcher`.
public protocol SourceList<Item>: Sendable {
    /// An item of the list, with its key and its version.
    associatedtype Item: SyncItem
    /// The type that reads the list once, from its beginning.
    associatedtype Reader: SourceReader<Item>

    /// The order of the items across all pages; a list that violates it is refused.
    var order: SourceOrder { get }

    /// Creates a reader that starts at the beginning of the list.
    func makeReader() -> Reader
}

extension SourceList {
    /// The default: any order, so the comparison keeps the list's items in memory.
    public var order: SourceOrder { .unsorted }
}

/// A reader that goes through a list once and is used by one task.
public protocol SourceReader<Item> {
    /// An item of the list that the reader reads.
    associatedtype Item: SyncItem

    /// Reads the next page.
    ///
    /// - Returns: The page; the last page has an ``SourcePage/end``. If the reader returns `nil` before such a page, the list counts as
    ///   cut.
    /// - Throws: Any error that prevents reading; the pass then changes nothing.
    mutating func next() async throws -> SourcePage<Item>?
}

/// A page of the remote list; the last page also marks its end.
public struct SourcePage<Item: SyncItem>: Sendable {
    /// The items, in the list's order.
    public var items: [Item]

    /// The end of the list; `nil` if more pages follow.
    public var end: SourceEnd?

    /// The last page's function that is called once after a pass has made the local side equal to the list.
    ///
    /// Not called after a failure or for a dry run. Items that the processor leaves out, and contents that the options do not download, may
    /// be missing. If it throws, the pass fails in the stage ``SyncStage/end``.
    public var whenApplied: (@Sendable () async throws -> Void)?

    /// Creates a page; each parameter sets the property of its name.
    public init(_ items: [Item], end: SourceEnd? = nil) {
        self.items = items
        self.end = end
    }
}

/// A source's statement that the list was read to its end.
public enum SourceEnd: Hashable, Sendable {
    /// The list is complete. If the source knows the count, it must equal the number of items read.
    case complete(count: Int? = nil)
}

/// The order of the items of a list.
public enum SourceOrder: Hashable, Sendable {
    /// Any order; the comparison keeps the items of the source in memory.
    case unsorted
    /// Ascending by key. If the local side is sorted too, both are compared as streams. A list that violates the order is refused.
    case sortedByKey
}

extension SyncError {
    /// Refuses the remote list before anything is changed.
    static func ofList(_ code: Code, _ reason: String, remedy: String, underlyingError: (any Error)? = nil) -> SyncError {
        SyncError(
            code, "cannot read the remote list: \(reason); nothing was replaced or removed; \(remedy)", stage: .sourceList,
            underlyingError: underlyingError)
    }
}
