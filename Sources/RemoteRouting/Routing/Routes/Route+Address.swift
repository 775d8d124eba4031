public import Foundation
public import RemoteHTTP

/// An address that replaces the base path, the path and the query of a route.
package enum RouteTarget: Sendable {
    /// A saved page link, which cannot lead to another origin.
    case page(OriginReference)
    /// A link as a server sent it, and the address of the response that contains it.
    case link(String, from: URL)
    case address(URL)

    func resolved(at origin: WebOrigin) throws(RouteFault) -> URL {
        let reference: OriginReference
        switch self {
        case .page(let page): reference = page
        case .link(let link, let base): reference = try OriginReference(link: link, from: base, at: origin)
        case .address(let address): reference = try OriginReference(address: address, at: origin)
        }
        return try reference.resolved(at: origin)
    }
}

extension Route {
    /// Creates a route to an address within the host's origin, even outside its base path.
    ///
    /// ```swift
    /// let photo = try await api.data(for: Route(to: profile.photoURL))
    /// ```
    ///
    /// The address replaces the path and the query. Its fragment is not sent. The app has chosen the address, so a segment may be empty, or
    /// contain an escaped percent sign or an escaped backslash: `/%252e%252e` is the file `%2e%2e`. Sending fails with
    /// ``RemoteError/Code/invalidRoute`` if the address has another origin than the host, a user or a password, or a segment `.` or `..`
    /// with an escaped dot.
    ///
    /// - Parameters:
    ///   - address: An http or https address.
    ///   - method: The method.
    ///   - headers: The header fields besides the host's defaults.
    ///   - body: The body to send.
    ///   - options: The rare settings.
    public init(
        to address: URL, method: HTTPMethod = .get, headers: Headers = [:], body: RouteBody = .none, options: RouteOptions = RouteOptions()
    ) {
        self.init(path: RoutePath(), method: method, headers: headers, body: body, options: options)
        self.options.target = .address(address)
    }

    /// Creates a route that follows a link of a response, within the host's origin.
    ///
    /// The link is resolved against ``RemoteResponse/url``. Blanks and characters outside ASCII are escaped, and escapes stay.
    ///
    /// - Parameters:
    ///   - link: The link as received: absolute, or relative to the URL of the response.
    ///   - response: The response that contains the link.
    ///   - method: The method.
    ///   - headers: The header fields besides the host's defaults.
    ///   - body: The body to send.
    ///   - options: The rare settings.
    public init(
        link: String, in response: RemoteResponse<some Any>, method: HTTPMethod = .get, headers: Headers = [:], body: RouteBody = .none,
        options: RouteOptions = RouteOptions()
    ) {
        self.init(path: RoutePath(), method: method, headers: headers, body: body, options: options)
        self.options.target = .link(link, from: response.url)
    }
}

extension RemoteHost {
    /// Sends a request to an address within the host's origin, and decodes the response.
    ///
    /// - Parameters:
    ///   - address: An http or https address of the host's origin, even outside its base path.
    ///   - method: The method.
    ///   - type: The type of the value; usually inferred.
    /// - Returns: The decoded value.
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/invalidRoute`` for an address of another origin, before anything is sent.
    public func send<Value: Decodable & SendableMetatype>(
        _ address: URL, method: HTTPMethod = .get, as type: Value.Type = Value.self
    ) async throws -> sending Value {
        try await send(Route(to: address, method: method), as: type)
    }

    /// Sends a request to an address within the host's origin, and ignores the body of a successful response.
    ///
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/invalidRoute`` for an address of another origin, before anything is sent.
    public func send(_ address: URL, method: HTTPMethod = .get) async throws {
        try await send(Route(to: address, method: method))
    }

    /// Follows a link of a response within the host's origin, and decodes the response.
    ///
    /// ```swift
    /// if let link = page.fields.link("next") {
    ///     repos += try await api.send(link: link, in: page)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - link: The link as received: absolute, or relative to the URL of the response.
    ///   - response: The response that contains the link.
    ///   - method: The method.
    ///   - type: The type of the value; usually inferred.
    /// - Returns: The decoded value.
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/invalidRoute`` for a link to another origin, before anything is sent.
    public func send<Value: Decodable & SendableMetatype>(
        link: String, in response: RemoteResponse<some Any>, method: HTTPMethod = .get, as type: Value.Type = Value.self
    ) async throws -> sending Value {
        try await send(Route(link: link, in: response, method: method), as: type)
    }
}
