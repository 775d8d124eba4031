internal import Foundation
internal import StoreCore

/// Gets what a store asks for, unless the origin confirms the version that the store has (RFC 9111 §4.3).
struct ConditionalExchange<Value: Sendable>: Sendable {
    let host: RemoteHost
    /// Makes the value of a successful response.
    let read: @Sendable (RemoteResponse<Data>, Route) async throws -> Value

    /// What the origin answered.
    enum Answer: Sendable {
        case modified(RemoteResponse<Value>)
        case notModified(Freshness)
    }

    /// Sends a route.
    ///
    /// - Parameters:
    ///   - route: What to send.
    ///   - reference: A page link, which takes the place of path and query.
    ///   - validator: What names the store's version; it is sent with GET and HEAD only.
    /// - Throws: ``RemoteError``.
    func send(
        _ route: some Routable, at reference: OriginReference? = nil, revalidating validator: Validator?
    ) async throws -> Answer {
        var request = Route(route)
        request.options.reference = reference
        request.options.isConditional = true
        let isRead = request.method == .get || request.method == .head
        var isConditional = false
        if let validator, isRead {
            isConditional = request.headers.replace(withConditionsOf: validator, now: host.time.date)
        }
        let answer = try await exchange(request)
        if case .notModified = answer, !isConditional {
            // Nobody asked: a broken cache on the way, or a condition of the route's own. Without either there must be content.
            request.headers.removeConditions()
            request.headers.append("Cache-Control", "no-cache")
            request.options.isConditional = false
            return try await exchange(request)
        }
        return answer
    }

    private func exchange(_ route: Route) async throws -> Answer {
        let response = try await host.answer(for: route)
        if response.status == 304 { return .notModified(Freshness(of: response)) }
        return .modified(response.map(try await read(response, route)))
    }
}

extension ConditionalExchange where Value: Decodable & SendableMetatype {
    /// Exchanges whose responses are decoded.
    init(decodingAt host: RemoteHost) {
        self.init(host: host) { try await AnswerDecoding($0, of: $1, at: host).decode(as: Value.self) }
    }
}

extension RemoteError.Code {
    /// A page links to another origin as its next or previous page.
    public static let foreignPageLink = RemoteError.Code(rawValue: "foreignPageLink")
}

extension HTTPFields {
    /// The names, in lower case, that two headers do not have alike: what credentials and interceptors wrote.
    func names(differingFrom other: HTTPFields) -> Set<String> {
        Set((fields + other.fields).map { $0.name.lowercased() }.filter { values(of: $0) != other.values(of: $0) })
    }
}

extension Headers {
    /// Puts a store's conditions in the place of the route's own.
    ///
    /// - Returns: Whether there are any; otherwise nothing changed.
    fileprivate mutating func replace(withConditionsOf validator: Validator, now: Date) -> Bool {
        var others = self
        others.removeConditions()
        guard others.append(conditionsOf: validator, now: now) else { return false }
        self = others
        return true
    }

    fileprivate mutating func removeConditions() {
        for name in ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"] { remove(name) }
    }
}
