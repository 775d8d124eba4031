package import Foundation
public import StoreCore

// The rules of a private cache (RFC 9111), with the stale windows of RFC 5861. `s-maxage`, `proxy-revalidate`, `private` and `public` are
// for shared caches. `immutable` (RFC 8246) forbids what a store does not do anyway: asking for content that is still fresh.
//
// There is no heuristic lifetime (RFC 9111 §4.2.2 allows one and asks for none): where the origin says nothing, the lifetime is left to
// the cacher's `expiry`, which somebody chose.

extension Freshness {
    /// The lifetime of a response and its stale windows, by the rules of a private cache (RFC 9111, RFC 5861).
    ///
    /// ```swift
    /// return .modified(response.value, Freshness(of: response), Validator(of: response))
    /// ```
    ///
    /// It is for fetchers of your own; those of ``RemoteHost`` do the same. It counts from the arrival of the response.
    ///
    /// - Parameter response: A response of a ``RemoteHost``.
    public init(of response: RemoteResponse<some Any>) { self.init(of: response.exchange) }

    /// What an origin said of the time for which its answer may be used.
    ///
    /// - Parameter exchange: The headers, and when they were sent and received.
    package init(of exchange: CachedExchange) {
        let control = CacheControl(exchange.response)
        let forbidsStorage =
            control.contains("no-store") || CacheControl(exchange.request).contains("no-store") || exchange.policy == .neverStore
        self.init(storage: forbidsStorage ? .forbidden : .allowed)
        guard exchange.policy != .ignoreLifetimes else { return }

        // Each of these says that no later request may be answered with this without asking.
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
        // What arrives stale has used up a part of its windows.
        if left < .zero {
            staleWhileRevalidate = staleWhileRevalidate.map { max(.zero, $0 + left) }
            staleIfError = staleIfError.map { max(.zero, $0 + left) }
        }
    }
}

extension CacheControl {
    /// A stale window (RFC 5861); one that cannot be read is none.
    fileprivate func window(_ name: String) -> Duration? {
        switch seconds(name) {
        case .seconds(let seconds): .seconds(seconds)
        case .invalid: .zero
        case nil: nil
        }
    }
}

extension CachedExchange {
    /// For how long after it was made the answer is fresh (RFC 9111 §4.2.1); `nil` where the origin did not say.
    fileprivate func lifetime(_ control: CacheControl) -> Duration? {
        switch control.seconds("max-age") {
        case .seconds(let seconds): return .seconds(seconds)
        // Unreadable or contradictory: RFC 9111 §4.2.1 wants it stale.
        case .invalid: return .zero
        case nil: break
        }
        let lines = response.values(of: "Expires")
        guard let first = lines.first else { return nil }
        // RFC 9111 §5.3: anything but a date, "0" before all, is in the past.
        guard lines.allSatisfy({ $0 == first }), let expires = HTTPDate.parse(first, now: respondedAt) else { return .zero }
        return CachedExchange.span(expires.timeIntervalSince(madeAt))
    }

    /// How old the answer was when it arrived (RFC 9111 §4.2.3).
    fileprivate var ageOnArrival: Duration {
        let apparent = CachedExchange.span(respondedAt.timeIntervalSince(madeAt))
        let delay = CachedExchange.span(respondedAt.timeIntervalSince(requestedAt))
        return max(apparent, announcedAge + delay)
    }

    /// When the origin made the answer; without a readable date, when it arrived (RFC 9110 §6.6.1).
    private var madeAt: Date {
        response.values(of: "Date").first.flatMap { HTTPDate.parse($0, now: respondedAt) } ?? respondedAt
    }

    /// What caches on the way counted (RFC 9111 §5.1): the first of several, and nothing where it cannot be read.
    private var announcedAge: Duration {
        guard let first = response["Age"]?.split(separator: ",", omittingEmptySubsequences: false).first else { return .zero }
        let digits = first.trimmingPrefix { $0 == " " || $0 == "\t" }
        return .seconds(DeltaSeconds.read(digits) ?? 0)
    }

    /// A span of time that is never negative.
    private static func span(_ seconds: TimeInterval) -> Duration {
        .seconds(Int64(max(0, min(Double(DeltaSeconds.largest), seconds.rounded(.down)))))
    }

    /// Whether the answer depends on something that the store's key does not tell (RFC 9111 §4.1).
    fileprivate var variesBeyondItsKey: Bool {
        response.values(of: "Vary").contains { line in
            line.split(separator: ",").contains { name in
                let name = name.filter { $0 != " " && $0 != "\t" }.lowercased()
                if name == "*" || changingFields.contains(name) { return true }
                // These are never part of a route's own meaning.
                return (name == "authorization" || name == "cookie") && request[name] != nil
            }
        }
    }
}

/// What has to be known of an exchange to tell for how long its answer may be used.
package struct CachedExchange: Sendable {
    /// The header of the request as it went on the wire.
    package var request: HTTPFields
    /// The header of the answer.
    package var response: HTTPFields
    /// When the request was sent, on the wall clock.
    package var requestedAt: Date
    /// When the head of the answer had arrived, on the wall clock.
    package var respondedAt: Date
    /// The fields that the host changes per user, language or credential, and of which the store's key therefore knows nothing; in lower
    /// case.
    package var changingFields: Set<String>
    /// How the route wants to have it.
    package var policy: RouteOptions.CachePolicy

    package init(
        request: HTTPFields = HTTPFields(), response: HTTPFields, requestedAt: Date, respondedAt: Date,
        changingFields: Set<String> = [], policy: RouteOptions.CachePolicy = .followOrigin
    ) {
        self.request = request
        self.response = response
        self.requestedAt = requestedAt
        self.respondedAt = respondedAt
        self.changingFields = changingFields
        self.policy = policy
    }
}
