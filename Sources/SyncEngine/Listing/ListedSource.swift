/// A remote list that is already in memory.
///
/// ```swift
/// let list = ListedSource(photos, expectedCount: response.total)
/// ```
///
/// <doc:GettingStarted> begins with a list.
public struct ListedSource<Item: SyncItem>: SourceList {
    /// All items of the list, in its order.
    public var items: [Item]
    /// The order of the items; a list that violates it is refused.
    public var order: SourceOrder
    /// The number of items that the origin reports; a list with another number of items is refused as cut.
    public var expectedCount: Int?

    /// Creates a list; each parameter sets the property of its name.
    public init(_ items: [Item], order: SourceOrder = .unsorted, expectedCount: Int? = nil) {
        self.items = items
        self.order = order
        self.expectedCount = expectedCount
    }

    /// Creates a reader that starts at the first item.
    public func makeReader() -> Reader { Reader(items: items, expectedCount: expectedCount) }

    /// A reader that returns all items as one page.
    public struct Reader: SourceReader {
        fileprivate var items: [Item]?
        fileprivate let expectedCount: Int?

        /// Returns all items on the first call, and `nil` afterward.
        public mutating func next() -> SourcePage<Item>? {
            guard let items = items.take() else { return nil }
            return SourcePage(items, end: .complete(count: expectedCount))
        }
    }
}
