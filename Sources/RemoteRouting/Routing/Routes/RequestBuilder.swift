package import Foundation
package import RemoteHTTP

/// Builds requests from routes, ready for the wire, for one host.
package struct RequestBuilder: Sendable {
    /// The origin of all requests, unless a route has a port of its own.
    package var origin: WebOrigin
    package var basePath: RoutePath
    package var defaults: Headers
    package var parameterStyle: ParameterStyle
    package var makeJSONEncoder: @Sendable () -> JSONEncoder

    package init(
        origin: WebOrigin, basePath: RoutePath = RoutePath(), defaults: Headers = [:], parameterStyle: ParameterStyle = ParameterStyle(),
        makeJSONEncoder: @escaping @Sendable () -> JSONEncoder = { JSONEncoder() }
    ) {
        self.origin = origin
        self.basePath = basePath
        self.defaults = defaults
        self.parameterStyle = parameterStyle
        self.makeJSONEncoder = makeJSONEncoder
    }

    package func request(for original: some Routable) throws(RouteFault) -> HTTPRequest {
        // Reads each property once: interceptors must see the route that was sent, even if a computed property changes.
        let route = Route(original)
        let options = route.options
        let method = route.method
        let style = options.parameterStyle ?? parameterStyle
        guard method.rawValue.uppercased() != "CONNECT" else {
            throw RouteFault(.unsupportedMethod, in: "method", "CONNECT opens a tunnel instead of an exchange; use another method")
        }
        let url = try address(of: route, options, style)
        let body = try BodyEncoder(style: style, makeJSONEncoder: makeJSONEncoder).encode(route.body)
        try check(body.body, allowedBy: method)
        let fields = try fields(of: route.headers, options, body.type)
        var request = HTTPRequest(method: method, url: url, fields: fields, body: body.body)
        request.route = route
        return request
    }

    private func check(_ body: HTTPBody, allowedBy method: HTTPMethod) throws(RouteFault) {
        if case .none = body { return }
        guard !method.isAssumed else {
            throw RouteFault(
                .bodyNotAllowed, in: "method", "the route has a body but no method; declare a method such as .post")
        }
        // GET may have a body (RFC 9110 §9.3.1); a transport that cannot send it refuses the request.
        guard method != .head, method.rawValue != "TRACE" else {
            throw RouteFault(
                .bodyNotAllowed, in: "body", "\(method.rawValue) has no body (RFC 9110 §9.3); put the values into the query, or use POST")
        }
    }

    private func address(of route: some Routable, _ options: RouteOptions, _ style: ParameterStyle) throws(RouteFault) -> URL {
        let target = try origin.at(port: options.port)
        if let address = options.target { return try address.resolved(at: target) }
        var path = try basePath.encoded()
        let own = try route.path.encoded()
        if path.hasSuffix("/"), !own.isEmpty { path.removeLast() }
        path += own
        // RFC 9110 §4.2.3 treats an empty path as a slash.
        var text = target.description + (path.isEmpty ? "/" : path)
        if let query = try PairEncoder(style: style).query(of: route.query) { text += "?" + query }
        return try target.url(text)
    }

    private func fields(of headers: Headers, _ options: RouteOptions, _ type: MimeType?) throws(RouteFault) -> HTTPFields {
        var own: Headers = [:]
        if let type { own.append("Content-Type", type.rawValue) }
        if let accept = options.accept { own.append("Accept", accept.rawValue) }
        if options.cachePolicy == .neverStore { own.append("Cache-Control", "no-store") }
        switch options.idempotencyKey {
        case .unique: own.append("Idempotency-Key", try structuredString(UUID().uuidString))
        case .key(let key): own.append("Idempotency-Key", try structuredString(key))
        case nil: break
        }
        var fields = HTTPFields()
        try fields.replace(by: defaults)
        try fields.replace(by: own)
        try fields.replace(by: headers)
        return fields
    }

    /// Returns a string of a structured field: quoted, of printable ASCII characters (RFC 9651 §3.3.3).
    private func structuredString(_ text: String) throws(RouteFault) -> String {
        guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw RouteFault(.invalidField, in: "idempotency key", "it has a character that is not printable ASCII; encode the key")
        }
        return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

extension WebOrigin {
    /// The URL of an absolute address, after verifying that Foundation keeps its text and its origin.
    func url(_ text: String) throws(RouteFault) -> URL {
        guard let url = URL(string: text), url.absoluteString == text, WebOrigin(of: url) == self else {
            throw RouteFault(
                .foreignOrigin, in: "address", "it would leave \(self); look for unusual characters in the path or the link")
        }
        return url
    }
}
