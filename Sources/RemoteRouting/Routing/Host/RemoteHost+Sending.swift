public import Foundation
public import RemoteHTTP
internal import StoreCore

extension RemoteHost {
    /// Sends a route and decodes the response.
    ///
    /// An optional is `nil` only for 204, 205, HEAD and a JSON `null`; a 404 is an error. ``Empty`` accepts any success. `Data` and `Data?`
    /// are the bytes of the body. Other types are decoded from JSON, unless the host or the route has another ``ResponseParser``.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - type: The type of the value; usually inferred.
    /// - Returns: The decoded value.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange on the wire.
    public func send<Value: Decodable & SendableMetatype>(_ route: some Routable, as type: Value.Type = Value.self) async throws
        -> sending Value
    {
        try await RouteCall(route, at: self, .whole).value(as: type)
    }

    /// Sends a route and decodes the response, and reads some statuses as `nil` instead of errors.
    ///
    /// ```swift
    /// let user: User? = try await api.send(
    ///     Route(path: "/users/\(id)"), nilFor: [404, 410])
    /// ```
    ///
    /// To read the body of a refusal, such as a 422, use ``dataResponse(for:accepting:)``.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - type: The type of the value; usually inferred.
    ///   - statuses: The statuses for which the result is `nil`.
    /// - Returns: The decoded value; `nil` for one of the statuses, but not for a 401 after which the refresh of the credentials has failed
    ///   without a refusal.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange on the wire.
    public func send<Value: Decodable & SendableMetatype>(
        _ route: some Routable, as type: Value.Type = Value.self, nilFor statuses: Set<Int>
    ) async throws -> sending Value? {
        do {
            return try await send(route, as: type)
        } catch let error as RemoteError
            where (error.stage == .status || error.code == .emptyBody) && error.status.map(statuses.contains) == true
        {
            // If nothing was sent, the status is that of another request, which an interceptor has made. A 401 may precede the request.
            guard error.mayHaveArrived || error.status == 401 else { throw error }
            // The credentials may be valid, because their refresh did not reach the server, or was ended.
            let isLapse = error.failureKind == .cancelled || error.underlyingError?.passesByItself == true
            if error.code == .refreshFailed, isLapse { throw error }
            return nil
        }
    }

    /// Sends a route and ignores the body of a successful response.
    ///
    /// - Throws: ``RemoteError``.
    public func send(_ route: some Routable) async throws {
        _ = try await dataResponse(for: route)
    }

    /// Sends a request described by a path, a method and parameters.
    ///
    /// - Parameters:
    ///   - path: The path below the base path; interpolated values are encoded.
    ///   - method: The method.
    ///   - parameters: The parameters: in the query for GET, HEAD and DELETE, otherwise in a JSON body.
    ///   - type: The type of the value; usually inferred.
    /// - Returns: The decoded value.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange on the wire.
    public func send<Value: Decodable & SendableMetatype>(
        _ path: RoutePath, method: HTTPMethod = .get, parameters: Parameters = [:], as type: Value.Type = Value.self
    ) async throws -> sending Value {
        try await call(path, method, parameters).value(as: type)
    }

    /// Sends a request and ignores the body of a successful response.
    ///
    /// - Throws: ``RemoteError``.
    public func send(_ path: RoutePath, method: HTTPMethod = .get, parameters: Parameters = [:]) async throws {
        _ = try await call(path, method, parameters).run()
    }

    /// Sends a route and returns the decompressed body.
    ///
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/bodyTooLarge`` if the body exceeds the limit of the route or the host.
    public func data(for route: some Routable) async throws -> Data {
        try await dataResponse(for: route).value
    }

    /// Sends a route and returns the whole response: value, status, header fields and metrics.
    ///
    /// - Throws: ``RemoteError``.
    public func response<Value: Decodable & SendableMetatype>(
        for route: some Routable, as type: Value.Type = Value.self
    ) async throws -> sending RemoteResponse<Value> {
        let decoding = try await RouteCall(route, at: self, .whole).decoding()
        return decoding.response.map(try await decoding.decode(as: type))
    }

    /// Sends a route and returns the whole response with its bytes.
    ///
    /// - Throws: ``RemoteError``.
    public func dataResponse(for route: some Routable) async throws -> RemoteResponse<Data> {
        try await RouteCall(route, at: self, .whole).run().whole
    }

    /// Sends a route and returns the whole response with its bytes, even if its status is one of some outside 200 to 299.
    ///
    /// ```swift
    /// let response = try await api.dataResponse(
    ///     for: Route(path: "/orders", method: .post, body: .json(order)),
    ///     accepting: [422])
    /// if response.status == 422 {
    ///     let mistakes = try JSONDecoder()
    ///         .decode([String: String].self, from: response.value)
    ///     show(mistakes)
    /// }
    /// ```
    ///
    /// A response with such a status is not retried. Redirects are followed, and a 401 refreshes the credentials, before the status counts.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - statuses: The statuses that are not errors.
    /// - Returns: The response; its body is whole, within the limit of the route or the host.
    /// - Throws: ``RemoteError``.
    public func dataResponse(for route: some Routable, accepting statuses: Set<Int>) async throws -> RemoteResponse<Data> {
        try await RouteCall(route, at: self, .whole, accepting: statuses).run().whole
    }

    @inline(never)
    private func call(_ path: RoutePath, _ method: HTTPMethod, _ parameters: Parameters) throws(RemoteError) -> RouteCall {
        // Without parameters, a POST is sent without a body.
        let route = parameters.isEmpty ? Route(path: path, method: method) : Route(path: path, method: method, parameters: parameters)
        return try RouteCall(route, at: self, .whole)
    }
}
