internal import Foundation
internal import RemoteHTTP

/// A pure state machine for setting, sending and evicting the cookies of a jar (RFC 6265bis, Storage Model).
struct CookieStorage: Sendable {
    /// The limits of a jar: the least counts and the longest lifetime that RFC 6265bis recommends.
    struct Limits: Sendable {
        var perDomain = 50
        var total = 3000
        var lifetime: TimeInterval = 400 * 86_400
    }

    let limits: Limits
    /// The domains that a `Domain` attribute may name, in lower case.
    let sharedDomains: Set<String>
    /// The cookies by their domain, each list in the order of creation.
    private(set) var cookies: [String: [Cookie]] = [:]
    private var count = 0
    private var lastPosition: Int64 = 0
    /// The domains with changes to saved cookies since the last `takeChanged()`.
    private var changed: Set<String> = []

    init(sharedDomains: Set<String> = [], limits: Limits = Limits()) {
        self.sharedDomains = sharedDomains
        self.limits = limits
    }

    // MARK: Setting

    mutating func receive(_ lines: [String], from request: CookieRequest, now: Date) {
        // An expired cookie must not refuse another one, or leave it its place in the order.
        removeExpired(now)
        for line in lines {
            guard let parsed = SetCookieParser.parse(line), let cookie = cookie(parsed, from: request, now: now) else { continue }
            insert(cookie, now: now)
        }
        evictAboveTotal()
    }

    private mutating func cookie(_ parsed: SetCookie, from request: CookieRequest, now: Date) -> Cookie? {
        var (domain, isHostOnly) = (request.host, true)
        if let wanted = parsed.domain, !wanted.isEmpty {
            guard CookieMatch.host(request.host, matches: wanted) else { return nil }
            // Without a list of public suffixes, only the app knows which domains have a single owner.
            if sharedDomains.contains(wanted), !CookieMatch.isAddress(wanted) { (domain, isHostOnly) = (wanted, false) }
        }
        if parsed.isSecure, !request.isSecure { return nil }
        if parsed.sameSite == .none, !parsed.isSecure { return nil }
        let path = parsed.path.flatMap { $0.isEmpty ? nil : $0 } ?? request.defaultPath
        let position = nextPosition(now)
        let cookie = Cookie(
            name: parsed.name, value: parsed.value, domain: domain, isHostOnly: isHostOnly, path: path,
            expires: expiry(of: parsed, now: now), isSecure: parsed.isSecure, isHTTPOnly: parsed.isHTTPOnly, sameSite: parsed.sameSite,
            created: position, used: position)
        guard keepsPrefix(cookie, hasPath: parsed.path != nil, hasDomain: parsed.domain?.isEmpty == false),
            request.isSecure || !shadowsSecure(cookie)
        else { return nil }
        return cookie
    }

    /// Returns the expiry date. `Max-Age` overrides `Expires` in any order, and both are capped at the longest lifetime.
    private func expiry(of parsed: SetCookie, now: Date) -> Date? {
        let latest = now.addingTimeInterval(limits.lifetime)
        if let maxAge = parsed.maxAge {
            return maxAge <= 0 ? .distantPast : min(latest, now.addingTimeInterval(min(Double(maxAge), limits.lifetime)))
        }
        return parsed.expires.map { min($0, latest) }
    }

    private func keepsPrefix(_ cookie: Cookie, hasPath: Bool, hasDomain: Bool) -> Bool {
        // Compares bytes, because a combining accent after the prefix would hide it from a string comparison.
        func begins(_ text: String, _ prefix: String) -> Bool {
            String(decoding: text.utf8.prefix(prefix.utf8.count), as: UTF8.self).equalsIgnoringCase(prefix)
        }
        // A nameless cookie with the value `__Host-a=1` would look like a prefixed cookie to the server.
        if cookie.name.isEmpty { return !begins(cookie.value, "__Secure-") && !begins(cookie.value, "__Host-") }
        if begins(cookie.name, "__Host-") { return cookie.isSecure && !hasDomain && hasPath && cookie.path == "/" }
        return !begins(cookie.name, "__Secure-") || cookie.isSecure
    }

    /// Whether a cookie from an insecure connection would shadow a secure cookie of the same name.
    private func shadowsSecure(_ cookie: Cookie) -> Bool {
        cookies.contains { domain, cookies in
            (CookieMatch.host(domain, matches: cookie.domain) || CookieMatch.host(cookie.domain, matches: domain))
                && cookies.contains { $0.isSecure && $0.name == cookie.name && CookieMatch.path(cookie.path, matches: $0.path) }
        }
    }

    private mutating func insert(_ cookie: Cookie, now: Date) {
        var cookie = cookie
        var list = cookies[cookie.domain] ?? []
        let old = list.firstIndex { $0.isSame(as: cookie) }.map { list.remove(at: $0) }
        if let old { cookie.created = old.created }
        // An expired cookie removes the cookie that it replaces, and is not inserted.
        let isKept = !cookie.isExpired(at: now)
        if isKept { list.insert(cookie, at: list.firstIndex { $0.created > cookie.created } ?? list.endIndex) }
        // Session cookies are no part of the saved record.
        func saved(_ cookie: Cookie?) -> Cookie? { cookie?.expires == nil ? nil : cookie }
        if saved(old) != saved(isKept ? cookie : nil) { changed.insert(cookie.domain) }
        put(list, for: cookie.domain)
        if list.count > limits.perDomain { evict(of: cookie.domain) }
    }

    private mutating func put(_ list: [Cookie], for domain: String) {
        count += list.count - (cookies[domain]?.count ?? 0)
        cookies[domain] = list.isEmpty ? nil : list
    }

    // MARK: Evicting

    /// Evicts unexpired cookies of one domain: insecure ones, then the least recently used (RFC 6265bis, Storage Model).
    private mutating func evict(of domain: String) {
        guard var list = cookies[domain] else { return }
        while list.count > limits.perDomain {
            let candidates = list.contains { !$0.isSecure } ? list.indices.filter { !list[$0].isSecure } : Array(list.indices)
            guard let oldest = candidates.min(by: { list[$0].used < list[$1].used }) else { break }
            if list.remove(at: oldest).expires != nil { changed.insert(domain) }
        }
        put(list, for: domain)
    }

    /// Evicts unexpired cookies of all domains: the least recently used, down to nine tenths of the limit.
    private mutating func evictAboveTotal() {
        guard count > limits.total else { return }
        // Evicts a tenth at once, because scanning all cookies for each new cookie would be quadratic.
        let excess = count - (limits.total - limits.total / 10)
        for cookie in cookies.values.joined().sorted(by: { $0.used < $1.used }).prefix(excess) { remove(cookie) }
    }

    mutating func removeExpired(_ now: Date) {
        for domain in Array(cookies.keys) { removeExpired(of: domain, now) }
    }

    private mutating func removeExpired(of domain: String, _ now: Date) {
        guard var list = cookies[domain], list.contains(where: { $0.isExpired(at: now) }) else { return }
        list.removeAll { $0.isExpired(at: now) }
        changed.insert(domain)
        put(list, for: domain)
    }

    /// Removes the cookie of the same identity, and marks its domain as changed if the cookie was persistent.
    mutating func remove(_ cookie: Cookie) {
        guard var list = cookies[cookie.domain], let index = list.firstIndex(where: { $0.isSame(as: cookie) }) else { return }
        if list.remove(at: index).expires != nil { changed.insert(cookie.domain) }
        put(list, for: cookie.domain)
    }

    /// Removes all cookies without marking their domains as changed.
    mutating func removeAll() {
        (cookies, count, changed) = ([:], 0, [])
    }

    // MARK: Order

    /// Returns the next position in the orders of creation and use.
    ///
    /// Positions follow the wall clock in microseconds, so that cookies of earlier runs come first. They never decrease, even if the
    /// clock does.
    private mutating func nextPosition(_ now: Date) -> Int64 {
        lastPosition = max(lastPosition + 1, Self.microseconds(now))
        return lastPosition
    }

    private static func microseconds(_ date: Date) -> Int64 {
        // Clamped to prevent an overflow of Int64.
        Int64(max(0, min(1e18, date.timeIntervalSince1970 * 1e6)))
    }
}

// MARK: - Sending

extension CookieStorage {
    /// Returns the domains of the cookies that a request may carry or its response may set: its host and the shared domains above it.
    func domains(of host: String) -> [String] {
        guard !CookieMatch.isAddress(host) else { return [host] }
        return [host] + sharedDomains.filter { $0 != host && CookieMatch.host(host, matches: $0) }
    }

    /// Returns the value of a request's `Cookie` field after redirects from earlier ones, and marks its cookies as used.
    mutating func header(for request: CookieRequest, isSafe: Bool, after earlier: [CookieRequest], now: Date) -> String? {
        let isSameSite = earlier.allSatisfy { self.isSameSite($0, request) }
        let domains = domains(of: request.host)
        var chosen: [Cookie] = []
        for domain in domains {
            removeExpired(of: domain, now)
            guard var list = cookies[domain] else { continue }
            for index in list.indices where fits(list[index], request, isSameSite: isSameSite, isSafe: isSafe) {
                list[index].used = nextPosition(now)
                chosen.append(list[index])
            }
            cookies[domain] = list
        }
        chosen.sort { ($1.path.utf8.count, $0.created) < ($0.path.utf8.count, $1.created) }
        return chosen.isEmpty ? nil : chosen.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    private func fits(_ cookie: Cookie, _ request: CookieRequest, isSameSite: Bool, isSafe: Bool) -> Bool {
        guard !cookie.isHostOnly || cookie.domain == request.host, CookieMatch.path(request.path, matches: cookie.path),
            !cookie.isSecure || request.isSecure
        else { return false }
        // The request of an app counts as a top-level navigation, because no document embeds it.
        return switch cookie.sameSite {
        case .none: true
        case .lax, .unspecified: isSameSite || isSafe
        case .strict: isSameSite
        }
    }

    private func isSameSite(_ one: CookieRequest, _ other: CookieRequest) -> Bool {
        guard one.origin.scheme == other.origin.scheme else { return false }
        return one.host == other.host
            || sharedDomains.contains { CookieMatch.host(one.host, matches: $0) && CookieMatch.host(other.host, matches: $0) }
    }
}

// MARK: - Saving

extension CookieStorage {
    mutating func takeChanged() -> Set<String> {
        defer { changed = [] }
        return changed
    }

    /// Returns the cookies of a domain that outlive the process, in the order of creation.
    func record(of domain: String, now: Date) -> [Cookie] {
        cookies[domain, default: []].filter { $0.expires != nil && !$0.isExpired(at: now) }
    }

    /// Adds the saved cookies of a domain.
    ///
    /// Drops cookies that no response could have set, because the record may be damaged: other domains, control characters, and sizes
    /// beyond the limits. Shortens lifetimes, because the clock may have been set back.
    mutating func load(_ record: [Cookie], for domain: String, now: Date) {
        removeExpired(now)
        let newest = Self.microseconds(now)
        var list = cookies[domain] ?? []
        for var cookie in record where isSound(cookie, domain, now) && !list.contains(where: { $0.isSame(as: cookie) }) {
            // Clamps positions to the past, because a damaged record may contain others.
            (cookie.created, cookie.used) = (min(max(0, cookie.created), newest), min(max(0, cookie.used), newest))
            cookie.expires = cookie.expires.map { min($0, now.addingTimeInterval(limits.lifetime)) }
            lastPosition = max(lastPosition, cookie.created, cookie.used)
            list.insert(cookie, at: list.firstIndex { $0.created > cookie.created } ?? list.endIndex)
        }
        put(list, for: domain)
        evict(of: domain)
        evictAboveTotal()
    }

    private func isSound(_ cookie: Cookie, _ domain: String, _ now: Date) -> Bool {
        guard let expires = cookie.expires, expires > now, cookie.domain == domain,
            let parsed = SetCookieParser.parse("\(cookie.name)=\(cookie.value)")
        else { return false }
        // A pair that does not survive parsing would be sent as a different cookie.
        return parsed == SetCookie(name: cookie.name, value: cookie.value)
    }
}
