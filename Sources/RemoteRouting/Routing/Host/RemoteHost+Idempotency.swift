public import Foundation
internal import RemoteHTTP
internal import StoreCore

extension RemoteHost {
    /// Sends a route with an idempotency key and decodes the response.
    ///
    /// A server that honors the key performs the request once, even if it arrives several times, such as after a restart of the program.
    /// The key replaces the one in the route's options. The ``RemoteError/failureKind`` of an error is that of a change that may be
    /// repeated: 409 is transient, because it means that the first request with the key still runs.
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
        var keyed = Route(route)
        keyed.options.idempotencyKey = .key(idempotencyKey.uuidString)
        do {
            return try await send(keyed, as: type)
        } catch var error as RemoteError {
            error.changeKind = error.kindOfChange
            throw error
        }
    }

    /// Sends a route with an idempotency key and ignores the body of a successful response.
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - idempotencyKey: The identity of the change; the same for each repetition of the call, and for no other change.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange on the wire.
    public func send(_ route: some Routable, idempotencyKey: UUID) async throws {
        _ = try await send(route, idempotencyKey: idempotencyKey, as: Empty.self)
    }
}

extension RemoteError {
    /// The kind of failure of a change: permanent only if the same request cannot succeed later, even after a restart.
    fileprivate var kindOfChange: FailureKind {
        switch code {
        // The source of the body has failed, or has changed since the request was built. A body of a wrong length has no such cause.
        case .bodyUnreadable where underlyingError is TransportFailure:
            return .permanent
        case .interceptorFailed, .bodyUnreadable:
            return (underlyingError as? any FailureAdvising)?.failureKind ?? .transient
        case .refreshFailed:
            return underlyingError?.passesByItself == true ? .transient : .fatal
        case .clientCertificateRefused:
            return .fatal
        case .bodyTooLarge, .redirectRefused, .tooManyRedirects:
            return .permanent
        default:
            break
        }
        return switch (stage, status) {
        case (.cancelled, _): .cancelled
        case (.build, _), (.decode, _): (underlyingError as? RouteFault)?.changeKind ?? .permanent
        // The change of a user without credentials is not refused, and neither are the changes after it.
        case (.status, 401): .fatal
        // The first request with the key still runs (draft-ietf-httpapi-idempotency-key-header §2.7).
        case (.status, 409): .transient
        // A deadline says nothing about the change; a host with an overall deadline meets one on each slow network.
        default: refusesNothing ? .transient : .permanent
        }
    }
}
