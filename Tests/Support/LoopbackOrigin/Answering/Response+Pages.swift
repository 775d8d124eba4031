import Foundation

extension LoopbackOrigin.Response {
    /// One page of `items` as a JSON array, with RFC 8288 `Link` fields to the first, previous, next and last page.
    ///
    /// The request chooses with `page`, counted from 1, and `per_page`; a page behind the last is empty, a page that is not a
    /// positive number is answered with 400. Other query items are kept in the links.
    ///
    /// - Parameters:
    ///   - items: All there is.
    ///   - request: The request to answer.
    ///   - size: How many items a page has when the request does not say.
    ///   - maximum: How many items a page has at most.
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

    /// The request's own address with another page.
    private static func address(of page: Int, for request: LoopbackOrigin.Request) -> String {
        var components = URLComponents()
        components.queryItems = request.queryItems.filter { $0.name != "page" } + [URLQueryItem(name: "page", value: "\(page)")]
        let authority = request.headers["Host"].map { "http://\($0)" } ?? ""
        return "\(authority)\(request.path)?\(components.percentEncodedQuery ?? "")"
    }
}
