public import Foundation
public import StoreCore

extension RemoteHost {
    /// A fetcher that follows the `next` and `prev` links of `Link` fields (RFC 8288).
    ///
    /// - Parameters:
    ///   - type: An element of the list; each page is an array of them.
    ///   - route: Makes the route of a list's first page. Further pages have its fields and options, and path and query of the link.
    public func pages<Param: Hashable & Sendable, Element: Decodable & Sendable & SendableMetatype>(
        of type: Element.Type = Element.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        pages(in: [Element].self, elements: { $0 }, route)
    }

    /// A fetcher that follows `Link` fields (RFC 8288), of lists that are wrapped in an object.
    ///
    /// ```swift
    /// let hits = api.pages(in: SearchResult.self, elements: { $0.items }) { (words: String) in
    ///     Route(path: "/search/repositories", query: ["q": words])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: What to decode.
    ///   - elements: The elements of a page. Its error fails the page with ``RemoteError/Code/undecodable``.
    ///   - route: Makes the route of a list's first page. Further pages have its fields and options, and path and query of the link.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) throws -> [Element],
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(at: self) { response, route, _ in
            var page = try await self.page(of: response, route, type) { Page(try elements($0)) }
            let links = LinkHeader(response.fields)
            page.nextKey = try self.key(of: links.first(relation: "next"), in: response, of: route)
            // The older name of the relation is still sent by some.
            page.prevKey = try self.key(of: links.first(relation: "prev") ?? links.first(relation: "previous"), in: response, of: route)
            return page
        } request: { param, cursor in
            (route(param), try cursor.map { try self.reference($0.value) })
        }
    }

    /// A fetcher whose pages carry the cursors of their neighbors in the body.
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
    ///   - elements: The elements of a page. Its error fails the page with ``RemoteError/Code/undecodable``.
    ///   - next: The cursor of the page after it; `nil` or empty where there is none.
    ///   - prev: The cursor of the page before it; `nil` or empty where there is none.
    ///   - route: Makes the route of a page; without a cursor that of the first one.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) throws -> [Element],
        next: @escaping @Sendable (_ page: Body) -> String?, prev: @escaping @Sendable (_ page: Body) -> String? = { _ in nil },
        _ route: @escaping @Sendable (_ param: Param, _ cursor: PageCursor?) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(at: self) { response, route, _ in
            try await self.page(of: response, route, type) { body in
                Page(try elements(body), nextKey: next(body), prevKey: prev(body))
            }
        } request: { param, cursor in
            (route(param, cursor), nil)
        }
    }

    /// A fetcher of pages that a function of yours makes of responses: of any media type, with cursors from the body or the fields.
    ///
    /// ```swift
    /// let lines = api.pages(parsing: { response in
    ///     let text = String(decoding: response.value, as: UTF8.self)
    ///     return Page(text.split(separator: "\n").map(String.init), nextKey: response.fields["X-Next"])
    /// }) { (log: String, cursor: PageCursor?) in
    ///     Route(path: "/logs/\(log)", query: ["from": cursor?.next], options: RouteOptions(accept: .plainText))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - parse: Makes a page of a successful response, off the caller's actor. Its keys become the cursors of the neighboring pages; a
    ///     freshness or validator that it sets replaces the response's. Its error reaches callers as ``RemoteError/underlyingError`` of a
    ///     ``RemoteError`` with the code ``RemoteError/Code/undecodable``. The media type is checked before if the route has an
    ///     ``RouteOptions/accept``.
    ///   - route: Makes the route of a page; without a cursor that of the first one.
    public func pages<Param: Hashable & Sendable, Element: Sendable>(
        parsing parse: @escaping @Sendable (_ response: RemoteResponse<Data>) throws -> Page<Element>,
        _ route: @escaping @Sendable (_ param: Param, _ cursor: PageCursor?) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(at: self) { response, route, _ in
            try await AnswerDecoding(response, of: route, at: self).parse(by: parse)
        } request: { param, cursor in
            (route(param, cursor), nil)
        }
    }
}

// MARK: Pages by number

extension RemoteHost {
    /// A fetcher of pages that have numbers, and do not say how many there are.
    ///
    /// ```swift
    /// let repos = api.pages(of: Repo.self, numberedFrom: 1, size: 50) { (org: String, number: Int) in
    ///     Route(path: "/orgs/\(org)/repos", query: ["page": number, "per_page": 50])
    /// }
    /// ```
    ///
    /// The list ends with an empty page, with a page that has less than `size` elements, and where a page is, byte by byte, the same as the
    /// page before it: a server that ignores the number, or responds with its last page to any higher one, does not make the list endless.
    /// A server that has always another full page does; each page is one request of a caller. Where the body says how many pages there are,
    /// use ``pages(in:elements:next:prev:_:)`` with the next number as the cursor.
    ///
    /// - Parameters:
    ///   - type: An element of the list; each page is an array of them.
    ///   - first: The number of the first page, as in 0 or 1.
    ///   - size: The number of elements of a full page; `nil` ends the list at an empty page only.
    ///   - route: Makes the route of a page.
    public func pages<Param: Hashable & Sendable, Element: Decodable & Sendable & SendableMetatype>(
        of type: Element.Type = Element.self, numberedFrom first: Int, size: Int? = nil,
        _ route: @escaping @Sendable (_ param: Param, _ number: Int) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        pages(in: [Element].self, elements: { $0 }, numberedFrom: first, size: size, route)
    }

    /// A fetcher of pages that have numbers, of lists that are wrapped in an object.
    ///
    /// The list ends as that of ``pages(of:numberedFrom:size:_:)``.
    ///
    /// - Parameters:
    ///   - type: What to decode.
    ///   - elements: The elements of a page. Its error fails the page with ``RemoteError/Code/undecodable``.
    ///   - first: The number of the first page, as in 0 or 1.
    ///   - size: The number of elements of a full page; `nil` ends the list at an empty page only.
    ///   - route: Makes the route of a page.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) throws -> [Element], numberedFrom first: Int, size: Int? = nil,
        _ route: @escaping @Sendable (_ param: Param, _ number: Int) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(at: self) { response, route, cursor in
            let number = try cursor.map { try self.number($0.value) }
            let digest = PageNumber.digest(of: response.value)
            if let number, number.digestBefore == digest { return Page([]) }
            return try await self.page(of: response, route, type) { body in
                let elements = try elements(body)
                let isLast = elements.isEmpty || elements.count < size ?? 0
                return Page(elements, nextKey: isLast ? nil : PageNumber(after: number?.number ?? first, digest)?.key)
            }
        } request: { param, cursor in
            (route(param, try cursor.map { try self.number($0.value).number } ?? first), nil)
        }
    }
}

/// The key of a page by its number, with the digest of the page before it.
private struct PageNumber {
    var number: Int
    var digestBefore: String

    /// The number of the page behind another one; `nil` behind the last number there is.
    init?(after number: Int, _ digest: String) {
        let (next, isTooBig) = number.addingReportingOverflow(1)
        if isTooBig { return nil }
        (self.number, digestBefore) = (next, digest)
    }

    /// Reads a key that was perhaps saved by an earlier run.
    init?(key: String) {
        let parts = key.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int(parts[0]) else { return nil }
        (self.number, digestBefore) = (number, String(parts[1]))
    }

    var key: String { "\(number).\(digestBefore)" }

    /// Enough of a digest to tell two pages apart.
    static func digest(of body: Data) -> String { String(body.withUnsafeBytes { SHA256.digest(of: $0) }.hex.prefix(16)) }
}

// MARK: Parts of pages

extension RemoteHost {
    /// The page of a decoded body.
    private func page<Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        of response: RemoteResponse<Data>, _ route: Route, _ type: Body.Type, _ page: (Body) throws -> Page<Element>
    ) async throws -> Page<Element> {
        let decoding = AnswerDecoding(response, of: route, at: self)
        let body = try await decoding.decode(as: type)
        do {
            return try page(body)
        } catch {
            throw decoding.undecodable(error, as: "page of \(Element.self)")
        }
    }

    /// A page link that was perhaps saved by an earlier run.
    private func reference(_ key: String) throws(RemoteError) -> OriginReference {
        do throws(RouteFault) {
            return try OriginReference(kept: key)
        } catch {
            throw self.error(for: error, .build)
        }
    }

    /// A page number that was perhaps saved by an earlier run.
    private func number(_ key: String) throws(RemoteError) -> PageNumber {
        if let number = PageNumber(key: key) { return number }
        throw error(for: RouteFault(.invalidOption, in: "page key", "it is no page number; refresh the list"), .build)
    }

    /// What is kept of a link; `nil` where there is none.
    private func key(of link: LinkHeader.Link?, in response: RemoteResponse<Data>, of route: Route) throws(RemoteError) -> String? {
        guard let link else { return nil }
        do throws(RouteFault) {
            let origin = try configuration.origin().at(port: route.options.port)
            return try OriginReference(link: link.target, from: response.url, at: origin).text
        } catch {
            throw self.error(for: error, .decode)
        }
    }

    /// A fault of what a page key or page link says, as a store's caller gets it.
    private func error(for fault: RouteFault, _ stage: RemoteError.Stage) -> RemoteError {
        RemoteError(
            stage, stage == .build ? .invalidRoute : .foreignPageLink, operation: "GET \(configuration.name)", fault.message,
            underlyingError: fault)
    }
}

extension RoutePageFetcher {
    /// A fetcher of the pages that a function makes of responses.
    ///
    /// - Parameters:
    ///   - host: The host of the pages.
    ///   - read: Makes a page of a response; the keys of its neighbors among it.
    ///   - request: Makes the route of a page, and the link to take in the place of path and query.
    fileprivate init(
        at host: RemoteHost, read: @escaping @Sendable (RemoteResponse<Data>, Route, PageCursor?) async throws -> Page<Element>,
        request: @escaping @Sendable (Param, PageCursor?) throws -> (any Routable, OriginReference?)
    ) {
        self.init { param, wanted in
            var (cursor, validator): (PageCursor?, Validator?)
            switch wanted {
            case .first(let known): validator = known
            case .page(let direction, let key): cursor = PageCursor(direction: direction, value: key)
            }
            let (route, reference) = try request(param, cursor)
            let exchange = ConditionalExchange(host: host) { [cursor] in try await read($0, $1, cursor) }
            switch try await exchange.send(route, at: reference, revalidating: validator) {
            case .notModified(let freshness): return OriginResponse(.notModified(freshness))
            case .modified(let response):
                let page = response.value
                let freshness = page.freshness == .unspecified ? Freshness(of: response) : page.freshness
                return OriginResponse(
                    .modified(page.elements, freshness, page.validator ?? Validator(of: response)), nextKey: page.nextKey,
                    prevKey: page.prevKey)
            }
        }
    }
}
