/// A remote list that a closure gets page by page.
///
/// ```swift
/// let list = PagedSource { (cursor: String?) in
///     let answer = try await api.photos(after: cursor)
///     return PagedSource.Step(answer.photos, then: answer.isLast ? .end(.complete(count: answer.total)) : .page(answer.cursor))
/// }
/// ```
public struct PagedSource<Item: SyncItem, Cursor: Sendable>: SourceList {
    /// A page and what comes after it.
    public struct Step: Sendable {
        /// The page's items.
        public var items: [Item]
        /// What comes after it.
        public var following: Following

        /// Makes a step.
        ///
        /// - Parameters:
        ///   - items: The page's items.
        ///   - following: What comes after it.
        public init(_ items: [Item], then following: Following) {
            self.items = items
            self.following = following
        }
    }

    /// What comes after a page.
    public enum Following: Sendable {
        /// Another page, named by a cursor.
        case page(Cursor)
        /// Nothing: the list has ended.
        case end(SourceEnd)
        /// Nobody knows: the origin stopped without saying that this is all. The list counts as cut.
        case cut
    }

    /// In which order the items come.
    public let order: SourceOrder
    private let load: @Sendable (Cursor?) async throws -> Step

    /// Makes a list.
    ///
    /// - Parameters:
    ///   - order: In which order the items come, over all pages.
    ///   - load: Gets the page that a cursor names, `nil` being the first page.
    public init(order: SourceOrder = .unsorted, load: @escaping @Sendable (_ cursor: Cursor?) async throws -> Step) {
        self.order = order
        self.load = load
    }

    /// Makes a reader at the list's beginning.
    public func makeReader() -> Reader { Reader(load: load) }

    /// Follows the cursors.
    public struct Reader: SourceReader {
        private enum Place {
            case at(Cursor?)
            case ended
        }

        private var place = Place.at(nil)
        private let load: @Sendable (Cursor?) async throws -> Step

        fileprivate init(load: @escaping @Sendable (Cursor?) async throws -> Step) {
            self.load = load
        }

        /// Gets the next page.
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
