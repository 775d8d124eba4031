/// Gets a list page by page, forwards.
///
/// ```swift
/// struct RepoFetcher: PaginationFetcher {
///     func fetch(param org: String) async throws -> Page<Repo> { try await api.repos(of: org, page: "1") }
///     func fetchNext(nextKey: String, param org: String) async throws -> Page<Repo> { try await api.repos(of: org, page: nextKey) }
/// }
/// ```
public protocol PaginationFetcher<Param, Element>: Origin where Content == [Element] {
    // Declared again, or the compiler does not infer it from the requirements below.
    /// The key of one list.
    associatedtype Param
    /// An element of the list.
    associatedtype Element: Sendable

    /// Gets the first page.
    ///
    /// - Parameter param: The key of the list.
    /// - Returns: The first page; its `nextKey` asks for the page after it.
    /// - Throws: Whatever the origin fails with; it reaches callers as it was thrown.
    func fetch(param: Param) async throws -> Page<Element>

    /// Gets the page that a `nextKey` names.
    ///
    /// - Parameters:
    ///   - nextKey: The `nextKey` of the last page so far; never empty.
    ///   - param: The key of the list.
    /// - Returns: The page. Its `nextKey` becomes the list's; a `prevKey` is kept in the record only.
    /// - Throws: The origin's error; the list and the key stay as they are.
    func fetchNext(nextKey: String, param: Param) async throws -> Page<Element>
}

/// Gets a list page by page, forwards and backwards.
public protocol TwoWayPaginationFetcher<Param, Element>: PaginationFetcher {
    /// Gets the page that a `prevKey` names.
    ///
    /// - Parameters:
    ///   - prevKey: The `prevKey` of the first page so far; never empty.
    ///   - param: The key of the list.
    /// - Returns: The page. Its `prevKey` becomes the list's; a `nextKey` is kept in the record only.
    /// - Throws: The origin's error; the list and the key stay as they are.
    func fetchPrev(prevKey: String, param: Param) async throws -> Page<Element>
}

extension PaginationFetcher {
    /// Answers a store's request; a one-way fetcher never has a page before the first.
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
    /// Answers a store's request in both directions.
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
    /// A page as a response; `direction` is the only side whose key counts, `nil` keeps both.
    @inlinable
    init<Element>(_ page: Page<Element>, keeping direction: PageDirection?) where Content == [Element] {
        self.init(
            .modified(page.elements, page.freshness, page.validator),
            nextKey: direction == .prev ? nil : page.nextKey,
            prevKey: direction == .next ? nil : page.prevKey)
    }
}
