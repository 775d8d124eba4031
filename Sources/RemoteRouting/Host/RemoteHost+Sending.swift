public import Foundation

extension RemoteHost {
    /// Sends a route and decodes the answer.
    ///
    /// An optional type is `nil` for 204, 205 and a JSON `null`, and for nothing else: 404 is an error. ``Empty`` takes any success, and
    /// `Data` the bytes of one. Other types are decoded from JSON, unless host or route have another ``ResponseParser``.
    ///
    /// - Parameters:
    ///   - route: What to send.
    ///   - type: What to decode; seldom needed.
    /// - Returns: The value, which nobody else has.
    /// - Throws: ``RemoteError``. Cancelling the task ends the exchange on the wire.
    public func send<Value: Decodable & SendableMetatype>(_ route: some Routable, as type: Value.Type = Value.self) async throws
        -> sending Value
    {
        try await AnswerDecoding(try await answer(for: route), of: route, at: self).decode(as: type)
    }

    /// Sends a route whose answer is of no interest, as long as it is a success.
    ///
    /// - Throws: ``RemoteError``.
    public func send(_ route: some Routable) async throws {
        _ = try await answer(for: route)
    }

    /// Sends a request without a route of its own.
    ///
    /// - Parameters:
    ///   - path: The path below the base path; interpolated values are encoded.
    ///   - method: The method.
    ///   - parameters: Go into the query for GET, HEAD and DELETE, else into a body of JSON.
    ///   - type: What to decode; seldom needed.
    /// - Returns: The value, which nobody else has.
    /// - Throws: ``RemoteError``. Cancelling the task ends the exchange on the wire.
    public func send<Value: Decodable & SendableMetatype>(
        _ path: RoutePath, method: HTTPMethod = .get, parameters: Parameters = [:], as type: Value.Type = Value.self
    ) async throws -> sending Value {
        try await send(RemoteHost.route(path, method, parameters), as: type)
    }

    /// Sends a request whose answer is of no interest, as long as it is a success.
    ///
    /// - Throws: ``RemoteError``.
    public func send(_ path: RoutePath, method: HTTPMethod = .get, parameters: Parameters = [:]) async throws {
        try await send(RemoteHost.route(path, method, parameters))
    }

    /// The bytes of an answer, of whatever type, unpacked.
    ///
    /// - Throws: ``RemoteError``; with ``RemoteError/Code/bodyTooLarge`` beyond ``HostLimits/responseBytes``.
    public func data(for route: some Routable) async throws -> Data {
        try await answer(for: route).value
    }

    /// Sends a route and gives the whole answer: value, status, fields, and how it was got.
    ///
    /// - Throws: ``RemoteError``.
    public func response<Value: Decodable & SendableMetatype>(
        for route: some Routable, as type: Value.Type = Value.self
    ) async throws -> sending RemoteResponse<Value> {
        let answer = try await answer(for: route)
        return answer.map(try await AnswerDecoding(answer, of: route, at: self).decode(as: type))
    }

    /// Sends a route and gives the whole answer with its bytes.
    ///
    /// - Throws: ``RemoteError``.
    public func dataResponse(for route: some Routable) async throws -> RemoteResponse<Data> {
        try await answer(for: route)
    }

    /// The whole answer of a route, which is one of success.
    func answer(for route: some Routable) async throws -> RemoteResponse<Data> {
        try await RouteCall(route, at: self, .whole).run().whole
    }

    private static func route(_ path: RoutePath, _ method: HTTPMethod, _ parameters: Parameters) -> Route {
        // No parameters, no body: a POST without any is sent without one.
        parameters.isEmpty ? Route(path: path, method: method) : Route(path: path, method: method, parameters: parameters)
    }
}
