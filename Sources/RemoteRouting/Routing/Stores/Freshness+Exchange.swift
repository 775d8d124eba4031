internal import Foundation
internal import RemoteHTTP
public import StoreCore

// Implements the rules of a private cache (RFC 9111) and the stale windows of RFC 5861. Ignores `s-maxage`, `proxy-revalidate`, `private`
// and `public`, which address shared caches. Ignores `immutable` (RFC 8246), because a store does not revalidate fresh content by itself.
//
// Uses no heuristic lifetime, which RFC 9111 §4.2.2 allows but does not require. Without explicit freshness, the cacher's `expiry`
// applies, because the app chose it.

extension Freshness {
    /// Creates the freshness of a response by the rules of a private cache (RFC 9111, RFC 5861).
    ///
    /// ```swift
    /// return .modified(
    ///     response.value, Freshness(of: response), Validator(of: response))
    /// ```
    ///
    /// Use it in custom fetchers; the fetchers of ``RemoteHost`` call it too. Lifetimes count from the arrival of the response.
    ///
    /// - Parameter response: A response of a ``RemoteHost``.
    public init(of response: RemoteResponse<some Any>) { self.init(of: response.exchange) }

    init(of exchange: CachedExchange) {
        self.init(ofLast: exchange)
        for hop in exchange.redirects {
            if hop.freshness.storage == .forbidden { storage = .forbidden }
            guard exchange.policy != .ignoreLifetimes else { continue }
            // A store's key stands for the first address, so its content lasts no longer than the redirect from there. Only a permanent
            // redirect without a lifetime may be used again (RFC 9110 §15.4).
            let left = hop.lifetime(at: exchange.respondedAt)
            if let own = lifetime { lifetime = min(own, left ?? (hop.isPermanent ? own : .zero)) }
            if lifetime == nil { lifetime = left }
            if hop.freshness.mustRevalidate { mustRevalidate = true }
        }
    }

    private init(ofLast exchange: CachedExchange) {
        let control = CacheControl(exchange.response)
        let forbidsStorage =
            control.contains("no-store") || CacheControl(exchange.request).contains("no-store") || exchange.policy == .neverStore
            || exchange.isPart
        self.init(storage: forbidsStorage ? .forbidden : .allowed)
        guard exchange.policy != .ignoreLifetimes else { return }

        // In each of these cases, the response must not serve a later request without revalidation.
        if forbidsStorage || control.contains("no-cache") || exchange.variesBeyondItsKey {
            lifetime = .zero
            mustRevalidate = true
            return
        }
        mustRevalidate = control.contains("must-revalidate")
        staleWhileRevalidate = control.window("stale-while-revalidate")
        staleIfError = control.window("stale-if-error")
        guard let allowed = exchange.lifetime(control) else { return }
        let left = allowed - exchange.ageOnArrival
        lifetime = max(.zero, left)
        // A response that arrives stale has used part of its stale windows.
        if left < .zero {
            staleWhileRevalidate = staleWhileRevalidate.map { max(.zero, $0 + left) }
            staleIfError = staleIfError.map { max(.zero, $0 + left) }
        }
    }
}

extension CacheControl {
    /// Returns a stale window (RFC 5861); an invalid window is zero.
    fileprivate func window(_ name: String) -> Duration? {
        switch seconds(name) {
        case .seconds(let seconds): .seconds(seconds)
        case .invalid: .zero
        case nil: nil
        }
    }
}

extension CachedExchange {
    /// Returns the freshness lifetime of the response (RFC 9111 §4.2.1); `nil` if the origin gave none.
    fileprivate func lifetime(_ control: CacheControl) -> Duration? {
        switch control.seconds("max-age") {
        case .seconds(let seconds): return .seconds(seconds)
        // A response with an invalid or contradictory lifetime counts as stale (RFC 9111 §4.2.1).
        case .invalid: return .zero
        case nil: break
        }
        let lines = response.values(of: "Expires")
        guard let first = lines.first else { return nil }
        // An invalid date, especially "0", means that the response has already expired (RFC 9111 §5.3).
        guard lines.allSatisfy({ $0 == first }), let expires = HTTPDate.parse(first, now: respondedAt) else { return .zero }
        return CachedExchange.span(expires.timeIntervalSince(madeAt))
    }

    /// The age of the response on arrival (RFC 9111 §4.2.3).
    fileprivate var ageOnArrival: Duration {
        let apparent = CachedExchange.span(respondedAt.timeIntervalSince(madeAt))
        let delay = CachedExchange.span(respondedAt.timeIntervalSince(requestedAt))
        return max(apparent, announcedAge + delay)
    }

    /// The time at which the origin created the response; without a valid `Date`, the time of arrival (RFC 9110 §6.6.1).
    private var madeAt: Date {
        response.values(of: "Date").first.flatMap { HTTPDate.parse($0, now: respondedAt) } ?? respondedAt
    }

    /// The `Age` that intermediate caches added (RFC 9111 §5.1); the first of several values, and zero if invalid.
    var announcedAge: Duration {
        let first = response["Age"]?.split(separator: ",", omittingEmptySubsequences: false).first
        return .seconds(first.flatMap { DeltaSeconds.read($0.withoutBlanksAtEnds) } ?? 0)
    }

    /// Returns a duration in whole seconds, clamped to zero and the largest delta-seconds.
    fileprivate static func span(_ seconds: TimeInterval) -> Duration {
        .seconds(Int64(max(0, min(Double(DeltaSeconds.largest), seconds.rounded(.down)))))
    }

    /// Whether the response varies by a field that the store's key does not cover (RFC 9111 §4.1).
    fileprivate var variesBeyondItsKey: Bool {
        if variedNames == nil { return true }
        return response.values(of: "Vary").fieldNames.contains { name in
            if name == "*" || changingFields.contains(name) { return true }
            // The store's key does not cover credentials and cookies, even if the route sets them.
            return (name == "authorization" || name == "cookie") && request[name] != nil
        }
    }
}

/// The parts of an exchange that determine the freshness of its response.
struct CachedExchange: Sendable {
    var request: HTTPFields
    var response: HTTPFields
    var requestedAt: Date
    var respondedAt: Date
    /// The names, in lower case, of fields that credentials and interceptors wrote; the store's key does not cover them.
    var changingFields: Set<String>
    var policy = RouteOptions.CachePolicy.followOrigin
    /// The header fields of the first request, if it was redirected.
    var redirectedFields: HTTPFields?
    /// Whether the response is a part that was not requested, which must not be stored as the whole (RFC 9111 §3.3).
    var isPart = false
    var redirects: [RedirectFreshness] = []
}

struct RedirectFreshness: Sendable {
    let freshness: Freshness
    let isPermanent: Bool
    let vary: [String]
    private let arrivedAt: Date

    init(_ response: HTTPResponse, to request: HTTPRequest, changing: Set<String>, at now: Date) {
        vary = response.fields.values(of: "Vary")
        freshness = Freshness(
            of: CachedExchange(
                request: request.fields, response: response.fields, requestedAt: now, respondedAt: now, changingFields: changing))
        isPermanent = response.status == 301 || response.status == 308
        arrivedAt = now
    }

    /// The rest of the lifetime, which also passes while the target responds.
    func lifetime(at now: Date) -> Duration? {
        freshness.lifetime.map { max(.zero, $0 - CachedExchange.span(now.timeIntervalSince(arrivedAt))) }
    }
}
