public import StoreCore

/// A remote list that a `Fetcher` or a `PaginationFetcher` gets, the latter page by page.
///
/// ```swift
/// let list = OriginSource(photoFetcher, param: album)
/// ```
///
/// A page without a key for the next one ends the list, as it does for a store. An origin that can be cut without noticing should also say
/// how many items there are: see ``ListedSource`` and ``PagedSource``.
public struct OriginSource<Item: SyncItem, Param: Hashable & Sendable>: SourceList {
    /// In which order the items come.
    public let order: SourceOrder
    private let origin: any Origin<Param, [Item]>
    private let param: Param

    /// Makes a list.
    ///
    /// - Parameters:
    ///   - origin: Gets the list.
    ///   - param: The key of the list.
    ///   - order: In which order the items come, over all pages.
    public init(_ origin: some Origin<Param, [Item]>, param: Param, order: SourceOrder = .unsorted) {
        self.origin = origin
        self.param = param
        self.order = order
    }

    /// Makes a list of an origin that has only one.
    ///
    /// - Parameters:
    ///   - origin: Gets the list.
    ///   - order: In which order the items come, over all pages.
    public init(_ origin: some Origin<Param, [Item]>, order: SourceOrder = .unsorted) where Param == UnitParam {
        self.init(origin, param: UnitParam(), order: order)
    }

    /// Makes a reader at the list's beginning.
    public func makeReader() -> Reader { Reader(origin: origin, param: param) }

    /// Follows the pages' keys.
    public struct Reader: SourceReader {
        private let origin: any Origin<Param, [Item]>
        private let param: Param
        private var request: OriginRequest<Param>?
        /// Keys that were followed: an origin that names a page again would be read for ever.
        private var followed: Set<String> = []

        fileprivate init(origin: any Origin<Param, [Item]>, param: Param) {
            self.origin = origin
            self.param = param
            request = .content(param, revalidating: nil)
        }

        /// Gets the next page.
        public mutating func next() async throws -> SourcePage<Item>? {
            guard let request else { return nil }
            let response = try await origin.respond(to: request)
            guard case .modified(let items, _, _) = response.result else {
                throw SyncError(
                    .incompleteList, "reading the remote list: the origin confirmed a list that was not sent to it", stage: .sourceList)
            }
            guard let key = response.nextKey, !key.isEmpty else {
                self.request = nil
                return SourcePage(items, end: .complete())
            }
            guard followed.insert(key).inserted else {
                throw SyncError(
                    .incompleteList, "reading the remote list: the page key “\(key)” came twice, so the list would never end",
                    stage: .sourceList)
            }
            self.request = .page(.next, key: key, param)
            return SourcePage(items)
        }
    }
}
