internal import Foundation
public import RemoteHTTP
internal import StoreCore

/// A conditional exchange for a store: the origin sends new content or confirms the store's version (RFC 9111 §4.3).
struct ConditionalExchange<Value: Sendable>: Sendable {
    let host: RemoteHost
    /// Whether the app may give its content a freshness that no message states.
    var mayHaveOwnFreshness = false
    let read: @Sendable (RemoteResponse<Data>, Route) async throws -> Value

    enum ConditionalResponse: Sendable {
        case modified(RemoteResponse<Value>)
        /// The confirmation itself may state new page links.
        case notModified(Freshness, Validator?, RemoteResponse<Data>)
    }

    /// Sends a route, with the store's validator if it has one; only GET and HEAD carry it.
    func send(_ route: some Routable, revalidating validator: Validator?) async throws -> ConditionalResponse {
        var request = Route(route)
        // A 304 to an unsafe request does not say that the server did nothing, so it must not be sent again (H7).
        let isRead = request.method == .get || request.method == .head
        request.options.isConditional = isRead
        // The validator, if the request has its conditions.
        var known: Validator?
        if let validator, isRead {
            var headers = request.headers
            for name in conditionNames { headers.remove(name) }
            if headers.append(conditionsOf: validator, now: host.time.date) { (request.headers, known) = (headers, validator) }
        }
        let result = try await exchange(request, confirming: known)
        if case .notModified(_, _, let response) = result, known == nil || !response.exchange.redirects.isEmpty {
            // The last request had no validator of the store, so a broken cache or the route's own condition caused the 304. Requests the
            // content without conditions.
            for name in conditionNames { request.headers.remove(name) }
            // The field replaces that of the policy.
            request.headers.append("Cache-Control", request.options.cachePolicy == .neverStore ? "no-cache, no-store" : "no-cache")
            request.options.isConditional = false
            return try await exchange(request, confirming: nil)
        }
        return result
    }

    private func exchange(_ route: Route, confirming known: Validator?) async throws -> ConditionalResponse {
        let response = try await host.dataResponse(for: route)
        if response.status == 304 {
            let merged = response.exchange.confirming(known)
            let freshness = Freshness(of: merged)
            let new = known.map { merged.validator(replacing: $0) }
            // Neither message states a freshness, so that of the app's page function stays.
            let isUnstated = freshness == .unspecified && CacheNotes(known)?.fields.isEmpty != false
            // The confirmation may have the only `Vary`.
            let isSameVersion = new?.entityTag == known?.entityTag && new?.lastModified == known?.lastModified && new?.notes == nil
            return .notModified(freshness, isUnstated && (mayHaveOwnFreshness || isSameVersion) ? nil : new, response)
        }
        return .modified(response.map(try await read(response, route)))
    }
}

extension RemoteError.Code {
    /// The next or previous link of a page leads to another origin.
    public static let foreignPageLink = RemoteError.Code(rawValue: "foreignPageLink")
}

extension HTTPFields {
    /// Returns the lowercased names of fields with different values, which credentials and interceptors wrote.
    func names(differingFrom other: HTTPFields) -> Set<String> {
        Set((fields + other.fields).map { $0.name.lowercased() }.filter { values(of: $0) != other.values(of: $0) })
    }
}

private let conditionNames = ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]

extension HTTPFields {
    mutating func removeConditions() {
        for name in conditionNames { remove(name) }
    }
}
