internal import Foundation
public import StoreCore

/// Routes as the fetcher of a pagination store, forwards and backwards.
///
/// ```swift
/// let repos = PaginationStore(
///     cacher: MemoryCacher<String, [Repo]>(),
///     fetcher: api.pages(of: Repo.self) { (org: String) in Route(path: "/orgs/\(org)/repos", query: ["per_page": 50]) })
/// await repos["apple"].requestNextData()
/// ```
///
/// The first page is revalidated like any content. Page keys are safe to save: a link is kept without scheme, host and port, so that it
/// works where the host has moved, and cannot lead anywhere else.
public struct RoutePageFetcher<Param: Hashable & Sendable, Element: Sendable>: TwoWayPaginationFetcher {
    /// What a store asks for, of one key.
    enum Wanted: Sendable {
        case first(revalidating: Validator?)
        case page(PageDirection, key: String)
    }

    private let load: @Sendable (Param, Wanted) async throws -> OriginResponse<[Element]>

    init(_ load: @escaping @Sendable (Param, Wanted) async throws -> OriginResponse<[Element]>) {
        self.load = load
    }

    /// Answers a store's request; the first page by a conditional one.
    ///
    /// A page that names itself as the page after or before it ends the list on that side.
    ///
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/foreignPageLink`` where a page links to another origin.
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        switch request {
        case .content(let param, let validator):
            return try await load(param, .first(revalidating: validator))
        case .page(let direction, let key, let param):
            var response = try await load(param, .page(direction, key: key))
            // What lies on the other side of an added page is there already.
            switch direction {
            case .next: (response.prevKey, response.nextKey) = (nil, response.nextKey == key ? nil : response.nextKey)
            case .prev: (response.nextKey, response.prevKey) = (nil, response.prevKey == key ? nil : response.prevKey)
            }
            return response
        }
    }

    /// Gets the first page.
    public func fetch(param: Param) async throws -> Page<Element> {
        try await page(param, .first(revalidating: nil))
    }

    /// Gets the page that a next key names.
    public func fetchNext(nextKey: String, param: Param) async throws -> Page<Element> {
        try await page(param, .page(.next, key: nextKey))
    }

    /// Gets the page that a previous key names.
    public func fetchPrev(prevKey: String, param: Param) async throws -> Page<Element> {
        try await page(param, .page(.prev, key: prevKey))
    }

    private func page(_ param: Param, _ wanted: Wanted) async throws -> Page<Element> {
        let response = try await load(param, wanted)
        guard case .modified(let elements, let freshness, let validator) = response.result else {
            throw StoreError(.nothingToConfirm, "fetching a page: the origin confirmed a page that it was not asked to confirm")
        }
        return Page(
            elements, nextKey: response.nextKey, prevKey: response.prevKey, freshness: freshness, validator: validator)
    }
}

/// What an API gave to ask for a neighbouring page.
///
/// A route puts it among its parameters, where it is encoded like any other value:
///
/// ```swift
/// Route(path: "/rooms/\(room)/messages", query: ["after": cursor?.next, "before": cursor?.prev])
/// ```
public struct PageCursor: Hashable, Sendable {
    /// The side of the list that the page is added to.
    let direction: PageDirection
    /// The cursor as the API gave it.
    public let value: String

    /// The cursor where a page is added at the end; else `nil`.
    public var next: String? { direction == .next ? value : nil }
    /// The cursor where a page is added at the beginning; else `nil`.
    public var prev: String? { direction == .prev ? value : nil }
}
