/// A fetcher that loads a list page by page, forward.
///
/// ```swift
/// struct RepoFetcher: PaginationFetcher {
///     func fetch(param org: String) async throws -> Page<Repo> {
///         try await api.repos(of: org, page: "1")
///     }
///     func fetchNext(
///         nextKey: String, param org: String
///     ) async throws -> Page<Repo> {
///         try await api.repos(of: org, page: nextKey)
///     }
/// }
/// ```
///
/// <doc:Paginating> explains page keys and the end of a list.
public protocol PaginationFetcher<Param, Element>: Origin where Content == [Element] {
    // Redeclared, because otherwise the compiler cannot infer it from the requirements below.
    /// The key of a whole list; pages have keys of their own, which the origin states.
    associatedtype Param
    /// An element of the list; the content of a key is the elements of its loaded pages.
    associatedtype Element: Sendable

    /// Fetches the first page.
    ///
    /// - Parameter param: The key of the list.
    /// - Returns: The first page; its `nextKey` names the page after it.
    /// - Throws: The origin's error, which reaches callers unchanged.
    func fetch(param: Param) async throws -> Page<Element>

    /// Fetches the page that a `nextKey` names.
    ///
    /// - Parameters:
    ///   - nextKey: The `nextKey` of the last page so far; never empty.
    ///   - param: The key of the list.
    /// - Returns: The page. Its `nextKey` becomes the list's; its `prevKey` is only kept in the record.
    /// - Throws: The origin's error; the list and its page keys are unchanged.
    func fetchNext(nextKey: String, param: Param) async throws -> Page<Element>
}

/// A fetcher that loads a list page by page, forward and backward.
///
/// <doc:Paginating> shows how to load a list in both directions.
public protocol TwoWayPaginationFetcher<Param, Element>: PaginationFetcher {
    /// Fetches the page that a `prevKey` names.
    ///
    /// - Parameters:
    ///   - prevKey: The `prevKey` of the first page so far; never empty.
    ///   - param: The key of the list.
    /// - Returns: The page. Its `prevKey` becomes the list's; its `nextKey` is only kept in the record.
    /// - Throws: The origin's error; the list and its page keys are unchanged.
    func fetchPrev(prevKey: String, param: Param) async throws -> Page<Element>
}

extension PaginationFetcher {
    /// Responds to a store's request; a one-way fetcher never has a page before the first.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        switch request {
        case .content(let param, revalidating: _):
            OriginResponse(try await fetch(param: param), keeping: .next)
        case .page(.next, let key, let param):
            OriginResponse(try await fetchNext(nextKey: key, param: param), keeping: .next)
        case .page(.prev, key: _, _):
            throw StoreError(.noSuchPage, "fetching the previous page: this fetcher is one-way; use a TwoWayPaginationFetcher")
        }
    }
}

extension TwoWayPaginationFetcher {
    /// Responds to a store's request in both directions.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        switch request {
        case .content(let param, revalidating: _):
            OriginResponse(try await fetch(param: param), keeping: nil)
        case .page(.next, let key, let param):
            OriginResponse(try await fetchNext(nextKey: key, param: param), keeping: nil)
        case .page(.prev, let key, let param):
            OriginResponse(try await fetchPrev(prevKey: key, param: param), keeping: nil)
        }
    }
}

extension OriginResponse {
    /// Creates a response from a page; `direction` is the only direction that keeps its key, and `nil` keeps both.
    @inlinable
    init<Element>(_ page: Page<Element>, keeping direction: PageDirection?) where Content == [Element] {
        self.init(
            .modified(page.elements, page.freshness, page.validator),
            nextKey: direction == .prev ? nil : page.nextKey,
            prevKey: direction == .next ? nil : page.prevKey, guessedEnd: page.guessedEnd)
    }
}
