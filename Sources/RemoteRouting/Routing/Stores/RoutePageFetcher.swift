internal import Foundation
public import StoreCore

/// A pagination store's fetcher that sends routes, for pages in both directions.
///
/// ```swift
/// let repos = PaginationStore(
///     cacher: MemoryCacher<String, [Repo]>(),
///     fetcher: api.pages(of: Repo.self) { (org: String) in
///         Route(path: "/orgs/\(org)/repos", query: ["per_page": 50])
///     })
/// await repos["apple"].requestNextData()
/// ```
///
/// The first page is revalidated like any content. Page keys are safe to save, because a link is stored without scheme, host and port.
/// A saved key works after the host moves, and cannot lead to another origin.
///
/// <doc:CachingAndPages> explains links, cursors and page numbers.
public struct RoutePageFetcher<Param: Hashable & Sendable, Element: Sendable>: TwoWayPaginationFetcher {
    let host: RemoteHost
    var mayHaveOwnFreshness = false
    let read: @Sendable (RemoteResponse<Data>, Route, PageCursor?) async throws -> Page<Element>
    let request: @Sendable (Param, PageCursor?) throws -> Route
    /// Returns the keys that the confirmation of a page states.
    var links: @Sendable (RemoteResponse<Data>, Route) throws -> (next: String?, prev: String?) = { _, _ in (nil, nil) }

    /// Returns whether the request of a list's first page has the values of all fields that selected the saved one (RFC 9111 §4.1).
    ///
    /// - Parameters:
    ///   - validator: The validator of the saved list.
    ///   - param: The key.
    public func accepts(_ validator: Validator, param: Param) async -> Bool {
        // Ignores the reason: the fetch that follows meets the same failure.
        guard let route = try? request(param, nil) else { return false }
        return await host.accepts(validator, for: route)
    }

    /// Fetches a page for a store, with a conditional request for the first page.
    ///
    /// A page that names its own key as that of its neighbor ends the list on that side. The end is then a guess (`GuessedEnd`).
    ///
    /// - Throws: ``RemoteError``; ``RemoteError/Code/foreignPageLink`` for a link to another origin, ``RemoteError/Code/invalidRoute`` for
    ///   a malformed key.
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        var response = try await load(request)
        // Drops the key on the other side, because the store already has that page.
        switch request {
        case .content: break
        case .page(.next, let key, _):
            response.prevKey = nil
            // The origin did not say that the list ends here.
            if response.nextKey == key { (response.nextKey, response.guessedEnd) = (nil, .repeatedKey) }
        case .page(.prev, let key, _):
            response.nextKey = nil
            if response.prevKey == key { response.prevKey = nil }
        }
        return response
    }

    private func load(_ wanted: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        let (param, cursor, validator): (Param, PageCursor?, Validator?) =
            switch wanted {
            case .content(let param, let known): (param, nil, known)
            case .page(let direction, let key, let param): (param, PageCursor(direction: direction, value: key), nil)
            }
        let route = try request(param, cursor)
        let exchange = ConditionalExchange(host: host, mayHaveOwnFreshness: mayHaveOwnFreshness) { [read] in
            try await read($0, $1, cursor)
        }
        switch try await exchange.send(route, revalidating: validator) {
        case .notModified(let freshness, let validator, let response):
            let keys = try links(response, route)
            return OriginResponse(.notModified(freshness, validator), nextKey: keys.next, prevKey: keys.prev)
        case .modified(let response):
            let page = response.value
            let freshness = page.freshness == .unspecified ? Freshness(of: response) : page.freshness
            let isOwn = page.freshness != .unspecified || page.validator != nil
            let validator = Validator(page.validator ?? Validator(of: response), notesOf: response.exchange, keepsFields: !isOwn)
            return OriginResponse(
                .modified(page.elements, freshness, validator), nextKey: page.nextKey, prevKey: page.prevKey,
                guessedEnd: page.guessedEnd, age: response.exchange.announcedAge)
        }
    }

    /// Fetches the first page, without a validator; throws the same errors as `respond(to:)`.
    public func fetch(param: Param) async throws -> Page<Element> {
        try await page(.content(param, revalidating: nil))
    }

    /// Fetches the page of a next key; throws the same errors as `respond(to:)`.
    public func fetchNext(nextKey: String, param: Param) async throws -> Page<Element> {
        try await page(.page(.next, key: nextKey, param))
    }

    /// Fetches the page of a previous key; throws the same errors as `respond(to:)`.
    public func fetchPrev(prevKey: String, param: Param) async throws -> Page<Element> {
        try await page(.page(.prev, key: prevKey, param))
    }

    private func page(_ request: OriginRequest<Param>) async throws -> Page<Element> {
        let response = try await respond(to: request)
        guard case .modified(let elements, let freshness, let validator) = response.result else {
            throw StoreError(.nothingToConfirm, "fetching a page: the origin confirmed it without being asked; return the page")
        }
        return Page(
            elements, nextKey: response.nextKey, prevKey: response.prevKey, freshness: freshness, validator: validator,
            guessedEnd: response.guessedEnd)
    }
}

/// An API's cursor for a neighboring page.
///
/// Pass it as a parameter of the route, which encodes it like any other value:
///
/// ```swift
/// Route(
///     path: "/rooms/\(room)/messages",
///     query: ["after": cursor?.next, "before": cursor?.prev])
/// ```
public struct PageCursor: Hashable, Sendable {
    let direction: PageDirection
    /// The cursor as the API sent it.
    public let value: String

    /// The cursor if the page is added at the end; otherwise `nil`.
    public var next: String? { direction == .next ? value : nil }
    /// The cursor if the page is added at the beginning; otherwise `nil`.
    public var prev: String? { direction == .prev ? value : nil }
}
