internal import Foundation
internal import StoreCore

/// Gets what a store asks for, unless the origin confirms the version that the store has (RFC 9111 §4.3).
struct ConditionalExchange: Sendable {
    let host: RemoteHost

    /// What the origin answered.
    enum Answer<Value: Sendable>: Sendable {
        case modified(Value, Freshness, Validator?, RemoteResponse<Void>)
        case notModified(Freshness)
    }

    /// Sends a route.
    ///
    /// - Parameters:
    ///   - route: What to send.
    ///   - reference: A page link, which takes the place of path and query.
    ///   - validator: What names the store's version; it is sent with GET and HEAD only.
    ///   - type: What to decode.
    /// - Throws: ``RemoteError``.
    func send<Value: Decodable & Sendable & SendableMetatype>(
        _ route: some Routable, at reference: OriginReference? = nil, revalidating validator: Validator?, as type: Value.Type
    ) async throws -> Answer<Value> {
        var request = Route(route)
        request.options.reference = reference
        request.options.isConditional = true
        let isRead = request.method == .get || request.method == .head
        var isConditional = false
        if let validator, isRead {
            isConditional = request.headers.replace(withConditionsOf: validator, now: host.time.date)
        }
        let answer = try await exchange(request, as: type)
        if case .notModified = answer, !isConditional {
            // Nobody asked: a broken cache on the way, or a condition of the route's own. Without either there must be content.
            request.headers.removeConditions()
            request.headers.append("Cache-Control", "no-cache")
            request.options.isConditional = false
            return try await exchange(request, as: type)
        }
        return answer
    }

    private func exchange<Value: Decodable & Sendable & SendableMetatype>(
        _ route: Route, as type: Value.Type
    ) async throws -> Answer<Value> {
        let requestedAt = host.time.date
        let call = try RouteCall(route, at: host, .whole)
        let response = try await call.run().whole
        let sent = call.sentRequest.fields
        let now = host.time.date
        var changing = sent.names(differingFrom: call.request.fields)
        // A jar without cookies today may have some at the next request.
        if host.cookies != nil { changing.insert("cookie") }
        let exchange = CachedExchange(
            request: sent, response: response.fields, requestedAt: requestedAt, respondedAt: now,
            changingFields: changing, policy: route.options.cachePolicy)
        let freshness = Freshness(of: exchange)
        if response.status == 304 { return .notModified(freshness) }
        let value = try await AnswerDecoding(host).decode(response, of: route, as: type)
        return .modified(value, freshness, Validator(of: response.fields, now: now), response.map(()))
    }

    /// A fault of what a page key or page link says, as a store's caller gets it.
    func error(for fault: RouteFault, _ stage: RemoteError.Stage) -> RemoteError {
        RemoteError(
            stage, stage == .build ? .invalidRoute : .foreignPageLink, operation: "GET \(host.configuration.name)", fault.message,
            underlyingError: fault)
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
