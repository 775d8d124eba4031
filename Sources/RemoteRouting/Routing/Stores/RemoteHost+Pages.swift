public import Foundation
internal import RemoteHTTP
public import StoreCore
internal import StorePlatform

extension RemoteHost {
    /// Creates a fetcher that follows the `next` and `prev` links of `Link` fields (RFC 8288).
    ///
    /// A page without a readable `next` link ends the list. If another link is malformed, that end is a guess (`GuessedEnd`).
    ///
    /// - Parameters:
    ///   - type: The type of the list's elements; each page is an array of them.
    ///   - route: Returns the route of the first page. Later pages use its fields and options, with the path and query of the link.
    /// - Returns: The fetcher, for a `PaginationStore`.
    public func pages<Param: Hashable & Sendable, Element: Decodable & Sendable & SendableMetatype>(
        of type: Element.Type = Element.self, _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        pages(in: [Element].self, elements: { $0 }, route)
    }

    /// Creates a fetcher that follows `Link` fields (RFC 8288) for lists that are wrapped in an object.
    ///
    /// ```swift
    /// let hits = api.pages(
    ///     in: SearchResult.self, elements: { $0.items }
    /// ) { (words: String) in
    ///     Route(path: "/search/repositories", query: ["q": words])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - elements: Returns the elements of a page. If it throws, the page fails with ``RemoteError/Code/undecodable``.
    ///   - route: Returns the route of the first page. Later pages use its fields and options, with the path and query of the link.
    /// - Returns: The fetcher, for a `PaginationStore`.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) throws -> [Element],
        _ route: @escaping @Sendable (_ param: Param) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(host: self) { response, route, _ in
            var page = try await self.page(of: response, route, type) { Page(try elements($0)) }
            (page.nextKey, page.prevKey) = try self.links(of: response, route)
            if page.nextKey == nil, !response.fields.hasReadableLinks { page.guessedEnd = .malformedLink }
            return page
        } request: { param, cursor in
            var page = Route(route(param))
            if let cursor { page.options.target = .page(try self.checked(.build) { try OriginReference(kept: cursor.value) }) }
            return page
        } links: {
            try self.links(of: $0, $1)
        }
    }

    /// Creates a fetcher for pages that contain the cursors of their neighbors.
    ///
    /// ```swift
    /// let messages = api.pages(
    ///     in: MessagePage.self, elements: { $0.messages }, next: { $0.olderCursor },
    ///     prev: { $0.newerCursor }
    /// ) { (room: String, cursor: PageCursor?) in
    ///     Route(
    ///         path: "/rooms/\(room)/messages",
    ///         query: ["after": cursor?.next, "before": cursor?.prev])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - elements: Returns the elements of a page. If it throws, the page fails with ``RemoteError/Code/undecodable``.
    ///   - next: Returns the cursor of the next page; `nil` or empty if there is none.
    ///   - prev: Returns the cursor of the previous page; `nil` or empty if there is none.
    ///   - route: Returns the route of a page; the cursor is `nil` for the first page.
    /// - Returns: The fetcher, for a `PaginationStore`.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) throws -> [Element],
        next: @escaping @Sendable (_ page: Body) -> String?, prev: @escaping @Sendable (_ page: Body) -> String? = { _ in nil },
        _ route: @escaping @Sendable (_ param: Param, _ cursor: PageCursor?) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(host: self) { response, route, _ in
            try await self.page(of: response, route, type) { body in
                Page(try elements(body), nextKey: next(body), prevKey: prev(body))
            }
        } request: {
            Route(route($0, $1))
        }
    }

    /// Creates a fetcher that parses pages of any media type, with cursors from the body or the fields.
    ///
    /// ```swift
    /// let lines = api.pages(parsing: { response in
    ///     let text = String(decoding: response.value, as: UTF8.self)
    ///     return Page(
    ///         text.split(separator: "\n").map(String.init),
    ///         nextKey: response.fields["X-Next"])
    /// }) { (log: String, cursor: PageCursor?) in
    ///     Route(
    ///         path: "/logs/\(log)", query: ["from": cursor?.next],
    ///         options: RouteOptions(accept: .plainText))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - parse: Parses a successful response, off the caller's actor. The page's keys become the cursors of the neighboring pages. The
    ///     page's freshness and validator, if set, replace those of the response. If `parse` throws, callers receive a ``RemoteError`` with
    ///     the code ``RemoteError/Code/undecodable`` and the error as ``RemoteError/underlyingError``. If the route has an
    ///     ``RouteOptions/accept``, the media type is checked first.
    ///   - route: Returns the route of a page; the cursor is `nil` for the first page.
    /// - Returns: The fetcher, for a `PaginationStore`.
    public func pages<Param: Hashable & Sendable, Element: Sendable>(
        parsing parse: @escaping @Sendable (_ response: RemoteResponse<Data>) throws -> Page<Element>,
        _ route: @escaping @Sendable (_ param: Param, _ cursor: PageCursor?) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(host: self, mayHaveOwnFreshness: true) { response, route, _ in
            try await ResponseDecoding(response, route.method, route.options, at: self).parse(by: parse)
        } request: {
            Route(route($0, $1))
        }
    }
}

// MARK: Pages by number

extension RemoteHost {
    /// Creates a fetcher for numbered pages, without knowing their count.
    ///
    /// ```swift
    /// let repos = api.pages(
    ///     of: Repo.self, numberedFrom: 1, size: 50
    /// ) { (org: String, number: Int) in
    ///     Route(path: "/orgs/\(org)/repos", query: ["page": number, "per_page": 50])
    /// }
    /// ```
    ///
    /// The list ends at an empty page, at a page with fewer than `size` elements, or at a page identical to the previous one, because some
    /// servers repeat their last page. Each of these ends is a guess, and the page names it (`GuessedEnd`). If the server always returns a
    /// full page, the list does not end. If the body contains the number of pages, use ``pages(in:elements:next:prev:_:)`` with the next
    /// number as the cursor.
    ///
    /// - Parameters:
    ///   - type: The type of the list's elements; each page is an array of them.
    ///   - first: The number of the first page, such as 0 or 1.
    ///   - size: The number of elements of a full page; with `nil`, a short page does not end the list.
    ///   - route: Returns the route of a page.
    /// - Returns: The fetcher, for a `PaginationStore`.
    public func pages<Param: Hashable & Sendable, Element: Decodable & Sendable & SendableMetatype>(
        of type: Element.Type = Element.self, numberedFrom first: Int, size: Int? = nil,
        _ route: @escaping @Sendable (_ param: Param, _ number: Int) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        pages(in: [Element].self, elements: { $0 }, numberedFrom: first, size: size, route)
    }

    /// Creates a fetcher for numbered pages of lists that are wrapped in an object.
    ///
    /// The list ends by the rules of ``pages(of:numberedFrom:size:_:)``.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - elements: Returns the elements of a page. If it throws, the page fails with ``RemoteError/Code/undecodable``.
    ///   - first: The number of the first page, such as 0 or 1.
    ///   - size: The number of elements of a full page; with `nil`, a short page does not end the list.
    ///   - route: Returns the route of a page.
    /// - Returns: The fetcher, for a `PaginationStore`.
    public func pages<Param: Hashable & Sendable, Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        in type: Body.Type, elements: @escaping @Sendable (_ page: Body) throws -> [Element], numberedFrom first: Int, size: Int? = nil,
        _ route: @escaping @Sendable (_ param: Param, _ number: Int) -> some Routable
    ) -> RoutePageFetcher<Param, Element> {
        RoutePageFetcher(host: self) { response, route, cursor in
            let number = try cursor.map { try self.number($0.value) }
            let digest = PageNumber.digest(of: response.value)
            if let number, number.digestBefore == digest { return Page([], guessedEnd: .repeatedPage) }
            return try await self.page(of: response, route, type) { body in
                let elements = try elements(body)
                if elements.isEmpty { return Page(elements, guessedEnd: .emptyPage) }
                if elements.count < size ?? 0 { return Page(elements, guessedEnd: .shortPage) }
                let next = PageNumber(after: number?.number ?? first, digest)
                return Page(elements, nextKey: next?.key, guessedEnd: next == nil ? .largestNumber : nil)
            }
        } request: { param, cursor in
            Route(route(param, try cursor.map { try self.number($0.value).number } ?? first))
        }
    }
}

extension GuessedEnd {
    /// A link of the page cannot be read, and may have named the next page.
    fileprivate static let malformedLink = GuessedEnd(rawValue: "malformedLink")
    fileprivate static let largestNumber = GuessedEnd(rawValue: "largestNumber")
    /// The response is a part of a list that was requested as a whole.
    static let partOfList = GuessedEnd(rawValue: "partOfList")
}

/// The key of a numbered page: its number, and the digest of the previous page.
private struct PageNumber {
    var number: Int
    var digestBefore: String

    /// Creates the key of the page after a number; returns `nil` if the number overflows.
    init?(after number: Int, _ digest: String) {
        guard number < .max else { return nil }
        (self.number, digestBefore) = (number + 1, digest)
    }

    init(key: String) throws(RouteFault) {
        let parts = key.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int(parts[0]) else {
            throw RouteFault(.invalidOption, in: "page key", "it is not a page number; refresh the list")
        }
        (self.number, digestBefore) = (number, String(parts[1]))
    }

    var key: String { "\(number).\(digestBefore)" }

    /// Returns a digest that is long enough to distinguish two pages.
    static func digest(of body: Data) -> String { String(body.withUnsafeBytes { SHA256.digest(of: $0) }.hex.prefix(16)) }
}

// MARK: Parts of pages

extension RemoteHost {
    private func page<Body: Decodable & Sendable & SendableMetatype, Element: Sendable>(
        of response: RemoteResponse<Data>, _ route: Route, _ type: Body.Type, _ page: (Body) throws -> Page<Element>
    ) async throws -> Page<Element> {
        let decoding = ResponseDecoding(response, route.method, route.options, at: self)
        let body = try await decoding.decode(as: type)
        do {
            return try page(body)
        } catch {
            throw decoding.undecodable(error, as: "page of \(Element.self)")
        }
    }

    private func number(_ key: String) throws -> PageNumber { try checked(.build) { try PageNumber(key: key) } }

    /// Returns the keys of the pages beside a response's own one, from its `Link` fields.
    private func links(of response: RemoteResponse<Data>, _ route: Route) throws -> (next: String?, prev: String?) {
        func key(_ link: String?) throws -> String? {
            guard let link else { return nil }
            let origin = try configuration.origin().at(port: route.options.port)
            return try OriginReference(link: link, from: response.url, at: origin).text
        }
        return try checked(.decode) {
            // Some servers still send the older relation name.
            (next: try key(response.fields.link("next")), prev: try key(response.fields.link("prev") ?? response.fields.link("previous")))
        }
    }

    /// Converts the fault of a page key or page link to the error that a store's caller receives.
    private func checked<Value>(_ stage: RemoteError.Stage, _ make: () throws -> Value) throws -> Value {
        do {
            return try make()
        } catch let fault as RouteFault {
            throw RemoteError(
                stage, stage == .build ? .invalidRoute : .foreignPageLink, operation: "GET \(configuration.name)", fault.message,
                underlyingError: fault)
        }
    }
}
