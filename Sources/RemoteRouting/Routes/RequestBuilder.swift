package import Foundation

/// Turns routes into requests that are ready for the wire, for one host.
package struct RequestBuilder: Sendable {
    /// Who answers.
    package var origin: WebOrigin
    /// What stands before every route's path.
    package var basePath: RoutePath
    /// The fields that every request has unless its route says otherwise.
    package var defaults: Headers
    /// How lists and dates are written where the route does not say.
    package var parameterStyle: ParameterStyle
    /// Makes the encoder for JSON bodies.
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

    /// The request of a route.
    ///
    /// - Throws: ``RouteFault`` where the route breaks a rule; nothing was sent then.
    package func request(for original: some Routable) throws(RouteFault) -> HTTPRequest {
        // Reads each property once: interceptors see the route that was sent, even if the next reading gives another value.
        let route = Route(original)
        let options = route.options
        let method = route.method
        let style = options.parameterStyle ?? parameterStyle
        try check(method)
        let url = try address(of: route, options, style)
        let body = try BodyEncoder(style: style, makeJSONEncoder: makeJSONEncoder).encode(route.body)
        try check(body.body, allowedBy: method)
        let fields = try fields(of: route.headers, options, body.type)
        var request = HTTPRequest(method: method, url: url, fields: fields, body: body.body)
        request.route = route
        return request
    }

    // MARK: Method and body

    private func check(_ method: HTTPMethod) throws(RouteFault) {
        guard method.rawValue.uppercased() != "CONNECT" else {
            throw RouteFault(.unsupportedMethod, in: "method", "CONNECT asks for a tunnel, which is no exchange; use another method")
        }
    }

    private func check(_ body: HTTPBody, allowedBy method: HTTPMethod) throws(RouteFault) {
        if case .none = body { return }
        guard !method.isAssumed else {
            throw RouteFault(
                .bodyNotAllowed, in: "method", "the route has a body and no method; declare the method, .post for example")
        }
        // A GET may have one (RFC 9110 §9.3.1); the transport refuses it where it cannot send it.
        guard method != .head, method.rawValue != "TRACE" else {
            throw RouteFault(
                .bodyNotAllowed, in: "body", "\(method.rawValue) has none (RFC 9110 §9.3); put the values into the query, or use POST")
        }
    }

    // MARK: Address

    private func address(of route: some Routable, _ options: RouteOptions, _ style: ParameterStyle) throws(RouteFault) -> URL {
        let target = try origin.at(port: options.port)
        if let reference = options.reference { return try reference.resolved(at: target) }
        var base = try basePath.encoded()
        if base.hasSuffix("/") { base.removeLast() }
        let path = base + (try route.path.encoded())
        // An absolute address without a path is one with an empty path, which RFC 9110 §4.2.3 has as a slash.
        var text = target.description + (path.isEmpty ? "/" : path)
        if let query = try PairEncoder(style: style).query(of: route.query) { text += "?" + query }
        return try target.url(text)
    }

    // MARK: Fields

    private func fields(of headers: Headers, _ options: RouteOptions, _ type: MimeType?) throws(RouteFault) -> HTTPFields {
        var own: Headers = [:]
        if let type { own.append("Content-Type", type.rawValue) }
        if let accept = options.accept { own.append("Accept", accept.rawValue) }
        if options.cachePolicy == .neverStore { own.append("Cache-Control", "no-store") }
        switch options.idempotencyKey {
        case .unique: own.append("Idempotency-Key", UUID().uuidString)
        case .key(let key): own.append("Idempotency-Key", key)
        case nil: break
        }
        var fields = HTTPFields()
        try fields.replace(by: defaults)
        try fields.replace(by: own)
        try fields.replace(by: headers)
        return fields
    }
}

extension WebOrigin {
    /// An absolute address, once it is sure that Foundation reads it as one of this origin and leaves it as it is.
    func url(_ text: String) throws(RouteFault) -> URL {
        guard let url = URL(string: text), url.absoluteString == text, WebOrigin(of: url) == self else {
            throw RouteFault(
                .foreignOrigin, in: "address", "it would not be one of \(self); look for what is unusual in the path or the link")
        }
        return url
    }
}
