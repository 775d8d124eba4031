/// How far a transfer has come.
public struct TransferProgress: Hashable, Sendable {
    /// How many bytes are there, or gone.
    public var bytes: Int64
    /// How many there will be; `nil` where nobody knows.
    public var total: Int64?

    init(bytes: Int64, total: Int64?) {
        self.bytes = bytes
        self.total = total
    }

    /// Between 0 and 1; `nil` where nobody knows the total.
    public var fraction: Double? {
        guard let total else { return nil }
        return total > 0 ? min(1, Double(bytes) / Double(total)) : 1
    }
}

extension HTTPBody {
    /// The length in bytes, where it is known.
    var length: Int64? {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .stream(let stream): stream.length
        }
    }
}

extension RemoteHost {
    /// Sends a route with a large body, and tells how far it has come.
    ///
    /// ```swift
    /// let photo: Photo = try await api.upload(Route(path: "/photos", method: .post, body: .file(url))) { progress in
    ///     print(progress.fraction ?? 0)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - route: What to send.
    ///   - type: What to decode; seldom needed.
    ///   - onProgress: Called from any thread with what has been handed to the system; another attempt begins at zero again.
    /// - Throws: ``RemoteError``.
    public func upload<Value: Decodable & SendableMetatype>(
        _ route: some Routable, as type: Value.Type = Value.self, onProgress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws -> sending Value {
        let call = try RouteCall(route, at: self, .whole) { sent, total in onProgress(TransferProgress(bytes: sent, total: total)) }
        return try await AnswerDecoding(try await call.run().whole, of: route, at: self).decode(as: type)
    }
}
