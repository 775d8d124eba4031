/// A remote list that a closure loads page by page.
///
/// ```swift
/// let list = PagedSource { (cursor: String?) in
///     let page = try await api.photos(after: cursor)
///     let end = SourceEnd.complete(count: page.total)
///     return PagedSource.Step(
///         page.photos, then: page.isLast ? .end(end) : .page(page.cursor))
/// }
/// ```
///
/// <doc:LargeCollections> compares sorted pages as streams.
public struct PagedSource<Item: SyncItem, Cursor: Sendable>: SourceList {
    /// A page, and the continuation of the list after it.
    public struct Step: Sendable {
        /// The items of the page, in the list's order.
        public var items: [Item]
        /// The continuation of the list after the page.
        public var following: Following

        /// Creates a step of a page and the continuation of the list after it.
        public init(_ items: [Item], then following: Following) {
            self.items = items
            self.following = following
        }
    }

    /// The continuation of a list after a page.
    public enum Following: Sendable {
        /// Another page, identified by a cursor.
        case page(Cursor)
        /// Nothing: the list is complete, as the origin has marked it.
        case end(SourceEnd)
        /// Unknown: the origin stopped without marking the end. The list counts as cut.
        case cut
    }

    /// The order of the items across all pages; a list that violates it is refused.
    public let order: SourceOrder
    private let load: @Sendable (Cursor?) async throws -> Step

    /// Creates a list.
    ///
    /// - Parameters:
    ///   - order: The order of the items across all pages.
    ///   - load: Loads the page of a cursor; `nil` stands for the first page.
    public init(order: SourceOrder = .unsorted, load: @escaping @Sendable (_ cursor: Cursor?) async throws -> Step) {
        self.order = order
        self.load = load
    }

    /// Creates a reader that starts at the first page.
    public func makeReader() -> Reader { Reader(load: load) }

    /// A reader that follows the cursors.
    public struct Reader: SourceReader {
        fileprivate enum Place {
            case at(Cursor?)
            case ended
        }

        fileprivate var place = Place.at(nil)
        fileprivate let load: @Sendable (Cursor?) async throws -> Step

        /// Loads the page of the next cursor; `nil` after the page that ends or cuts the list. Throws any error of the closure.
        public mutating func next() async throws -> SourcePage<Item>? {
            guard case .at(let cursor) = place else { return nil }
            let step = try await load(cursor)
            switch step.following {
            case .page(let cursor):
                place = .at(cursor)
                return SourcePage(step.items)
            case .end(let end):
                place = .ended
                return SourcePage(step.items, end: end)
            case .cut:
                place = .ended
                return SourcePage(step.items)
            }
        }
    }
}
