public import StoreCore

/// A remote list that a `Fetcher` loads at once, or a `PaginationFetcher` page by page.
///
/// ```swift
/// let list = OriginSource(photoFetcher, param: album)
/// ```
///
/// A page without a next key ends the list, as it does for a store, unless the fetcher has only guessed the end (`Page.guessedEnd`): such a
/// list counts as cut, because a guess must not remove anything. If a response of the origin can be cut unnoticed, the list should also
/// give its number of items. Use ``ListedSource`` or ``PagedSource`` for that.
public struct OriginSource<Item: SyncItem, Param: Hashable & Sendable>: SourceList {
    /// The order of the items across all pages; a list that violates it is refused.
    public let order: SourceOrder
    private let origin: any Origin<Param, [Item]>
    private let param: Param

    /// Creates a list.
    ///
    /// - Parameters:
    ///   - origin: Loads the list.
    ///   - param: The key of the list.
    ///   - order: The order of the items across all pages.
    public init(_ origin: some Origin<Param, [Item]>, param: Param, order: SourceOrder = .unsorted) {
        self.origin = origin
        self.param = param
        self.order = order
    }

    /// Creates the list of an origin that has only one.
    ///
    /// - Parameters:
    ///   - origin: Loads the list.
    ///   - order: The order of the items across all pages.
    public init(_ origin: some Origin<Param, [Item]>, order: SourceOrder = .unsorted) where Param == UnitParam {
        self.init(origin, param: UnitParam(), order: order)
    }

    /// Creates a reader that starts at the first page.
    public func makeReader() -> Reader { Reader(origin: origin, param: param, request: .content(param, revalidating: nil)) }

    /// A reader that follows the next keys.
    public struct Reader: SourceReader {
        fileprivate let origin: any Origin<Param, [Item]>
        fileprivate let param: Param
        fileprivate var request: OriginRequest<Param>?
        /// The keys already followed; an origin that repeats a key would never end.
        fileprivate var followed: Set<String> = []

        /// Requests the next page from the origin; `nil` after the last page.
        ///
        /// - Throws: ``SyncError/Code/incompleteList`` for a guessed end, a page before the first one, or a repeated key; any error of the
        ///   fetcher.
        public mutating func next() async throws -> SourcePage<Item>? {
            guard let request else { return nil }
            let response = try await origin.respond(to: request)
            guard case .modified(let items, _, _) = response.result else {
                throw SyncError.ofList(
                    .incompleteList, "the origin returned “not modified” to a request without a validator", remedy: "correct the fetcher")
            }
            // Only the first page can have pages before it that are not read.
            if case .content = request, let key = response.prevKey, !key.isEmpty {
                throw SyncError.ofList(
                    .incompleteList, "its first page names a page before it, “\(key.shownSafely)”",
                    remedy: "begin with the first page of the whole list")
            }
            guard let key = response.nextKey, !key.isEmpty else {
                if let guess = response.guessedEnd {
                    throw SyncError.ofList(
                        .incompleteList, "the origin did not state its end, and the fetcher guessed it (\(guess.rawValue.shownSafely))",
                        remedy: "use a list with a stated end, such as one that gives its number of items or pages, with PagedSource")
                }
                self.request = nil
                return SourcePage(items, end: .complete())
            }
            guard followed.insert(key).inserted else {
                throw SyncError.ofList(
                    .incompleteList, "the origin repeated the page key “\(key.shownSafely)”, so the list would never end",
                    remedy: "correct the origin")
            }
            self.request = .page(.next, key: key, param)
            return SourcePage(items)
        }
    }
}
