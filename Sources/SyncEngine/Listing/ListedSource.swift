/// A remote list that is there as a whole.
///
/// ```swift
/// let list = ListedSource(photos, expectedCount: answer.total)
/// ```
public struct ListedSource<Item: SyncItem>: SourceList {
    /// The items.
    public var items: [Item]
    /// In which order they come.
    public var order: SourceOrder
    /// How many items the origin says there are; another number of them is refused as a list that was cut.
    public var expectedCount: Int?

    /// Makes a list.
    ///
    /// - Parameters:
    ///   - items: All items.
    ///   - order: In which order they come.
    ///   - expectedCount: How many the origin says there are; `nil` where it does not say.
    public init(_ items: [Item], order: SourceOrder = .unsorted, expectedCount: Int? = nil) {
        self.items = items
        self.order = order
        self.expectedCount = expectedCount
    }

    /// Makes a reader at the list's beginning.
    public func makeReader() -> Reader { Reader(items: items, expectedCount: expectedCount) }

    /// Gives all items as one page.
    public struct Reader: SourceReader {
        private var items: [Item]?
        private let expectedCount: Int?

        fileprivate init(items: [Item], expectedCount: Int?) {
            self.items = items
            self.expectedCount = expectedCount
        }

        /// All items the first time, then nothing.
        public mutating func next() -> SourcePage<Item>? {
            guard let items else { return nil }
            self.items = nil
            return SourcePage(items, end: .complete(count: expectedCount))
        }
    }
}
