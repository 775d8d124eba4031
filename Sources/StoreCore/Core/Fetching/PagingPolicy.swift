/// The rules for the loaded pages of a two-way list.
///
/// ```swift
/// let rooms = PaginationStore(
///     cacher: MemoryCacher(), fetcher: TimelineFetcher(api: api),
///     paging: PagingPolicy(maximumPages: 10))
/// ```
///
/// <doc:Paginating> explains how a window moves.
public struct PagingPolicy: Hashable, Sendable {
    /// The largest number of pages that a list holds.
    ///
    /// A page that is added at one end of a full list drops the page at the other end. The key of the dropped page becomes the page key of
    /// that end, so that the page can be requested again. A page whose key is unknown stays, because it could not be requested again.
    /// A page that arrives without elements does not count. A page that a change empties counts as long as it lies between other pages.
    public let maximumPages: Int

    /// Creates rules that limit the number of pages.
    ///
    /// - Parameter maximumPages: The largest number of pages that a list holds. The program stops if it is less than one.
    public init(maximumPages: Int) {
        precondition(
            maximumPages > 0,
            "PagingPolicy(maximumPages: \(maximumPages)): a list needs at least one page; to keep all pages, omit the policy")
        self.maximumPages = maximumPages
    }
}
