internal import RemoteHTTP

/// The progress of a download, or of sending a request's body.
public struct TransferProgress: Hashable, Sendable {
    /// The number of bytes received or sent.
    public var bytes: Int64
    /// The total number of bytes; `nil` if unknown.
    public var total: Int64?

    /// The completed fraction, from 0 to 1; `nil` if the total is unknown.
    public var fraction: Double? {
        guard let total else { return nil }
        return total > 0 ? min(1, Double(bytes) / Double(total)) : 1
    }
}

extension RemoteHost {
    /// Sends a route with a large body, and reports progress.
    ///
    /// ```swift
    /// let photo: Photo = try await api.upload(
    ///     Route(path: "/photos", method: .post, body: .file(url))
    /// ) { progress in
    ///     print(progress.fraction ?? 0)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - route: The route to send.
    ///   - type: The type to decode; usually inferred.
    ///   - onProgress: Called from any thread with the number of bytes handed to the system; each attempt starts at zero. It must not block,
    ///     because the exchanges of the transport wait for it.
    /// - Returns: The decoded response.
    /// - Throws: ``RemoteError``. Canceling the task ends the exchange.
    public func upload<Value: Decodable & SendableMetatype>(
        _ route: some Routable, as type: Value.Type = Value.self, onProgress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws -> sending Value {
        try await RouteCall(route, at: self, .whole) { sent, total in onProgress(TransferProgress(bytes: sent, total: total)) }
            .value(as: type)
    }
}
