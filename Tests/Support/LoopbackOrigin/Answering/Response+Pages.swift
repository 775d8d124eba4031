import Foundation

extension LoopbackOrigin.Response {
    /// Returns one page of `items` as a JSON array, with RFC 8288 `Link` fields to the first, previous, next, and last page.
    ///
    /// The query items `page`, counted from 1, and `per_page` select the page. A page after the last one is empty, and a page that is not a
    /// positive number causes a 400 response. The links keep the other query items.
    ///
    /// - Parameters:
    ///   - items: The items of all pages.
    ///   - request: The request.
    ///   - size: The number of items per page if the request does not specify one.
    ///   - maximum: The largest number of items per page.
    public static func pages(
        of items: some Collection<some Encodable>, for request: LoopbackOrigin.Request, size: Int = 20, maximum: Int = 100
    ) -> Self {
        let requested = (page: Int(request.query("page") ?? "1") ?? 0, size: Int(request.query("per_page") ?? "\(size)") ?? 0)
        guard requested.page > 0, requested.size > 0 else {
            return .problem(400, "Bad Request", detail: "page and per_page must be positive numbers")
        }
        let pageSize = min(requested.size, maximum)
        let last = max(1, (items.count + pageSize - 1) / pageSize)
        let page = requested.page
        let content = page <= last ? Array(items.dropFirst((page - 1) * pageSize).prefix(pageSize)) : []
        var links = [("first", 1)]
        if page > 1 { links.append(("prev", min(page - 1, last))) }
        if page < last { links.append(("next", page + 1)) }
        links.append(("last", last))
        let field = links.map { "<\(address(of: $0.1, for: request))>; rel=\"\($0.0)\"" }.joined(separator: ", ")
        return .json(content).setting("Link", to: field).setting("X-Total-Count", to: "\(items.count)")
    }

    /// Returns the request's address with another page.
    private static func address(of page: Int, for request: LoopbackOrigin.Request) -> String {
        var components = URLComponents()
        components.queryItems = request.queryItems.filter { $0.name != "page" } + [URLQueryItem(name: "page", value: "\(page)")]
        let authority = request.headers["Host"].map { "http://\($0)" } ?? ""
        return "\(authority)\(request.path)?\(components.percentEncodedQuery ?? "")"
    }
}
