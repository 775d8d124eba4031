public import Foundation

extension RemoteHost {
    /// Sends a route with an idempotency key and decodes the response.
    ///
    /// A server that honors the key performs the request once, even if it arrives several times, such as after a restart of the program.
    /// The key replaces the one in the route's options.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - idempotencyKey: The identity of the change; the same for each repetition of the call, and for no other change.
    ///   - type: The type of the value; usually inferred.
    /// - Returns: The decoded value.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange on the wire.
    public func send<Value: Decodable & SendableMetatype>(
        _ route: some Routable, idempotencyKey: UUID, as type: Value.Type = Value.self
    ) async throws -> sending Value {
        try await send(Route(route, idempotencyKey), as: type)
    }

    /// Sends a route with an idempotency key and ignores the body of a successful response.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - idempotencyKey: The identity of the change; the same for each repetition of the call, and for no other change.
    /// - Throws: ``RemoteError``.
    public func send(_ route: some Routable, idempotencyKey: UUID) async throws {
        try await send(Route(route, idempotencyKey))
    }
}

extension Route {
    /// Creates a route with another idempotency key.
    fileprivate init(_ route: some Routable, _ key: UUID) {
        self.init(route)
        options.idempotencyKey = .key(key.uuidString)
    }
}
