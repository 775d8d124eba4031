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
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/foreignPageLink`` where a page links to another origin.
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        switch request {
        case .content(let param, let validator):
            return try await load(param, .first(revalidating: validator))
        case .page(let direction, let key, let param):
            var response = try await load(param, .page(direction, key: key))
            // What lies on the other side of an added page is there already.
            switch direction {
            case .next: response.prevKey = nil
            case .prev: response.nextKey = nil
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

extension RemoteHost {
    /// A fetcher that follows the `next` and `prev` links of `Link` fields (RFC 8288).
    ///
    /// - Parameters:
    ///   - type: An element of the list; each page is a JSON array of them.
    ///   - route: Makes the route of a list's first page. Further pages have its fields and options, and path and query of the link.
    public func pages<Param: Hashable & Sendable, Element: Decodable & Sendable & SendableMetatype>(
        of type: Element.Type = Element.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        let exchange = ConditionalExchange(host: self)
        return RoutePageFetcher { param, wanted in
            let route = route(param)
            let answer =
                switch wanted {
                case .first(let validator): try await exchange.send(route, revalidating: validator, as: [Element].self)
                case .page(_, let key):
                    try await exchange.send(route, at: exchange.reference(key), revalidating: nil, as: [Element].self)
                }
            switch answer {
            case .notModified(let freshness): return OriginResponse(.notModified(freshness))
            case .modified(let elements, let freshness, let validator, let response):
                let links = LinkHeader(response.fields)
                return OriginResponse(
                    .modified(elements, freshness, validator),
                    nextKey: try exchange.key(of: links.first(relation: "next"), in: response, of: route),
                    // The older name of the relation is still sent by some.
                    prevKey: try exchange.key(
                        of: links.first(relation: "prev") ?? links.first(relation: "previous"), in: response, of: route))
            }
        }
    }

    /// A fetcher whose pages carry the cursors of their neighbours in the body.
    ///
    /// ```swift
    /// let messages = api.pages(
    ///     in: MessagePage.self, elements: { $0.messages }, next: { $0.olderCursor }, prev: { $0.newerCursor }
    /// ) { (room: String, cursor: PageCursor?) in
    ///     Route(path: "/rooms/\(room)/messages", query: ["after": cursor?.next, "before": cursor?.prev])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: What to decode.
    ///   - elements: The elements of a page.
    ///   - next: The cursor of the page after it; `nil` or empty where there is none.
    ///   - prev: The cursor of the page before it; `nil` or empty where there is none.
    ///   - route: Makes the route of a page; without a cursor that of the first one.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) -> [Element],
        next: @escaping @Sendable (_ page: Body) -> String?, prev: @escaping @Sendable (_ page: Body) -> String? = { _ in nil },
        _ route: @escaping @Sendable (_ param: Param, _ cursor: PageCursor?) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        let exchange = ConditionalExchange(host: self)
        return RoutePageFetcher { param, wanted in
            let answer =
                switch wanted {
                case .first(let validator): try await exchange.send(route(param, nil), revalidating: validator, as: type)
                case .page(let direction, let key):
                    try await exchange.send(
                        route(param, PageCursor(direction: direction, value: key)), revalidating: nil, as: type)
                }
            switch answer {
            case .notModified(let freshness): return OriginResponse(.notModified(freshness))
            case .modified(let page, let freshness, let validator, _):
                return OriginResponse(.modified(elements(page), freshness, validator), nextKey: next(page), prevKey: prev(page))
            }
        }
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

extension ConditionalExchange {
    /// A page key that was perhaps saved by an earlier run.
    fileprivate func reference(_ key: String) throws(RemoteError) -> OriginReference {
        do throws(RouteFault) {
            return try OriginReference(kept: key)
        } catch {
            throw self.error(for: error, .build)
        }
    }

    /// What is kept of a link; `nil` where there is none.
    fileprivate func key(of link: LinkHeader.Link?, in response: RemoteResponse<Void>, of route: some Routable) throws(RemoteError)
        -> String?
    {
        guard let link else { return nil }
        do throws(RouteFault) {
            let origin = try host.configuration.origin().at(port: route.options.port)
            return try OriginReference(link: link.target, from: response.url, at: origin).text
        } catch {
            throw self.error(for: error, .decode)
        }
    }
}
