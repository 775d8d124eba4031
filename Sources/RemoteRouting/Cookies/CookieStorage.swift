internal import Foundation

/// The cookies of a jar and the rules by which they come and go: a pure machine (RFC 6265bis, Storage Model).
struct CookieStorage: Sendable {
    /// How much is kept.
    struct Limits: Sendable {
        /// Cookies with the same domain.
        var perDomain = 50
        /// Cookies of all domains.
        var total = 3000
        /// The longest life of a cookie: 400 days.
        var lifetime: TimeInterval = 400 * 86_400
    }

    let limits: Limits
    /// The domains that a `Domain` attribute may name, in lower case.
    let sharedDomains: Set<String>
    /// The cookies by their domain, each list in the order of creation.
    private(set) var cookies: [String: [Cookie]] = [:]
    private var count = 0
    /// The last position given in the orders of creation and use.
    private var lastPosition: Int64 = 0
    /// The domains whose saved part has changed since it was taken last.
    private var changed: Set<String> = []

    init(sharedDomains: Set<String> = [], limits: Limits = Limits()) {
        self.sharedDomains = sharedDomains
        self.limits = limits
    }

    // MARK: Setting

    /// Takes the cookies of a response.
    ///
    /// - Parameters:
    ///   - lines: The `Set-Cookie` lines, in order.
    ///   - request: The request that the response belongs to.
    ///   - now: The present moment of the wall clock.
    mutating func receive(_ lines: [String], from request: CookieRequest, now: Date) {
        for line in lines {
            guard let parsed = SetCookieParser.parse(line), let cookie = cookie(parsed, from: request, now: now) else { continue }
            insert(cookie, now: now)
        }
        evictAboveTotal(now)
    }

    /// The cookie that a response may set; `nil` where it may not.
    private mutating func cookie(_ parsed: SetCookie, from request: CookieRequest, now: Date) -> Cookie? {
        var (domain, isHostOnly) = (request.host, true)
        if let wanted = parsed.domain, !wanted.isEmpty {
            guard CookieMatch.host(request.host, matches: wanted) else { return nil }
            // Without a list of public suffixes, only the app knows which domains have one owner.
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
        guard keepsPrefix(cookie, hasPath: parsed.path != nil), request.isSecure || !shadowsSecure(cookie) else { return nil }
        return cookie
    }

    /// `Max-Age` comes before `Expires`, wherever they stand; both are cut at the longest life.
    private func expiry(of parsed: SetCookie, now: Date) -> Date? {
        let latest = now.addingTimeInterval(limits.lifetime)
        if let maxAge = parsed.maxAge {
            return maxAge <= 0 ? .distantPast : min(latest, now.addingTimeInterval(min(Double(maxAge), limits.lifetime)))
        }
        return parsed.expires.map { min($0, latest) }
    }

    /// Whether a cookie has what the prefix of its name promises.
    private func keepsPrefix(_ cookie: Cookie, hasPath: Bool) -> Bool {
        // By bytes, because an accent behind the prefix must not hide it.
        func begins(_ text: String, _ prefix: String) -> Bool {
            String(decoding: text.utf8.prefix(prefix.utf8.count), as: UTF8.self).equalsIgnoringCase(prefix)
        }
        // A server that reads `__Host-a=1` must not have got it from a cookie without a name.
        if cookie.name.isEmpty { return !begins(cookie.value, "__Secure-") && !begins(cookie.value, "__Host-") }
        if begins(cookie.name, "__Host-") { return cookie.isSecure && cookie.isHostOnly && hasPath && cookie.path == "/" }
        return !begins(cookie.name, "__Secure-") || cookie.isSecure
    }

    /// Whether a cookie from an insecure connection would hide a secure one of the same name.
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
        // An expired cookie only removes the one it replaces.
        let isKept = !cookie.isExpired(at: now)
        if isKept { list.insert(cookie, at: list.firstIndex { $0.created > cookie.created } ?? list.endIndex) }
        if Self.differ(old, isKept ? cookie : nil) { changed.insert(cookie.domain) }
        if list.count > limits.perDomain { evict(from: &list, of: cookie.domain, now) }
        put(list, for: cookie.domain)
    }

    /// Whether what is saved changes when one version of a cookie replaces another.
    private static func differ(_ old: Cookie?, _ new: Cookie?) -> Bool {
        func saved(_ cookie: Cookie?) -> Cookie? { cookie?.expires == nil ? nil : cookie }
        return saved(old) != saved(new)
    }

    private mutating func put(_ list: [Cookie], for domain: String) {
        count += list.count - (cookies[domain]?.count ?? 0)
        cookies[domain] = list.isEmpty ? nil : list
    }

    // MARK: Evicting

    /// Evicts from one domain: expired cookies, then insecure ones, then all, those used longest ago first (RFC 6265bis, Storage Model).
    private mutating func evict(from list: inout [Cookie], of domain: String, _ now: Date) {
        if removeExpired(from: &list, now) { changed.insert(domain) }
        while list.count > limits.perDomain {
            let candidates = list.contains { !$0.isSecure } ? list.indices.filter { !list[$0].isSecure } : Array(list.indices)
            guard let oldest = candidates.min(by: { list[$0].used < list[$1].used }) else { return }
            if list.remove(at: oldest).expires != nil { changed.insert(domain) }
        }
    }

    /// Evicts from all domains: expired cookies, then those used longest ago, until nine tenths are left.
    private mutating func evictAboveTotal(_ now: Date) {
        guard count > limits.total else { return }
        removeExpired(now)
        guard count > limits.total else { return }
        // A tenth at once, because looking through all cookies for each new one would be quadratic.
        let excess = count - (limits.total - limits.total / 10)
        let oldest = Set(cookies.values.joined().map(\.used).sorted().prefix(excess))
        for (domain, list) in cookies {
            let kept = list.filter { !oldest.contains($0.used) }
            guard kept.count < list.count else { continue }
            if list.contains(where: { oldest.contains($0.used) && $0.expires != nil }) { changed.insert(domain) }
            put(kept, for: domain)
        }
    }

    /// Removes the expired cookies of all domains.
    mutating func removeExpired(_ now: Date) {
        for domain in Array(cookies.keys) { removeExpired(of: domain, now) }
    }

    private mutating func removeExpired(of domain: String, _ now: Date) {
        guard var list = cookies[domain], removeExpired(from: &list, now) else { return }
        changed.insert(domain)
        put(list, for: domain)
    }

    private func removeExpired(from list: inout [Cookie], _ now: Date) -> Bool {
        guard list.contains(where: { $0.isExpired(at: now) }) else { return false }
        list.removeAll { $0.isExpired(at: now) }
        return true
    }

    /// Removes one cookie.
    mutating func remove(_ cookie: Cookie) {
        guard var list = cookies[cookie.domain], let index = list.firstIndex(where: { $0.isSame(as: cookie) }) else { return }
        if list.remove(at: index).expires != nil { changed.insert(cookie.domain) }
        put(list, for: cookie.domain)
    }

    /// Removes all cookies; nothing counts as changed.
    mutating func removeAll() {
        (cookies, count, changed) = ([:], 0, [])
    }

    // MARK: Order

    /// The next position in the orders of creation and use.
    ///
    /// It follows the wall clock in microseconds, so that cookies of earlier runs come first, and never goes back when the clock does.
    private mutating func nextPosition(_ now: Date) -> Int64 {
        lastPosition = max(lastPosition + 1, Self.microseconds(now))
        return lastPosition
    }

    private static func microseconds(_ date: Date) -> Int64 {
        // Held where years still have five digits, so that nothing overflows.
        Int64(max(0, min(1e18, date.timeIntervalSince1970 * 1e6)))
    }
}

// MARK: - Sending

extension CookieStorage {
    /// The domains whose cookies a request may get or its response set: its host, and the shared domains above it.
    func domains(of host: String) -> [String] {
        guard !CookieMatch.isAddress(host) else { return [host] }
        return [host] + sharedDomains.filter { $0 != host && CookieMatch.host(host, matches: $0) }
    }

    /// The value of a request's `Cookie` field.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - isSafe: Whether its method is safe (RFC 9110, section 9.2.1).
    ///   - earlier: The requests whose redirects led to it.
    ///   - now: The present moment of the wall clock.
    /// - Returns: The value; `nil` where no cookie fits.
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
        // An app's request is a top-level navigation, because no document embeds it.
        return switch cookie.sameSite {
        case .none: true
        case .lax, .unspecified: isSameSite || isSafe
        case .strict: isSameSite
        }
    }

    /// Whether two requests are of one site: the same scheme, and one host or one shared domain.
    private func isSameSite(_ one: CookieRequest, _ other: CookieRequest) -> Bool {
        guard one.origin.scheme == other.origin.scheme else { return false }
        return one.host == other.host
            || sharedDomains.contains { CookieMatch.host(one.host, matches: $0) && CookieMatch.host(other.host, matches: $0) }
    }
}

// MARK: - Saving

extension CookieStorage {
    /// Hands over the domains whose saved part has changed since this was called last.
    mutating func takeChanged() -> Set<String> {
        defer { changed = [] }
        return changed
    }

    /// The cookies of a domain that outlive the process, in the order of creation.
    func record(of domain: String, now: Date) -> [Cookie] {
        cookies[domain, default: []].filter { $0.expires != nil && !$0.isExpired(at: now) }
    }

    /// Takes the cookies that were saved for a domain.
    ///
    /// Drops those that no response could have set, because the cacher is outside of this machine: other domains, control characters,
    /// sizes and lifetimes beyond the limits.
    mutating func load(_ record: [Cookie], for domain: String, now: Date) {
        let newest = Self.microseconds(now)
        var list = cookies[domain] ?? []
        for var cookie in record where isSound(cookie, domain, now) && !list.contains(where: { $0.isSame(as: cookie) }) {
            // Positions lie in the past, whatever the record says.
            (cookie.created, cookie.used) = (min(max(0, cookie.created), newest), min(max(0, cookie.used), newest))
            lastPosition = max(lastPosition, cookie.created, cookie.used)
            list.insert(cookie, at: list.firstIndex { $0.created > cookie.created } ?? list.endIndex)
        }
        evict(from: &list, of: domain, now)
        put(list, for: domain)
        evictAboveTotal(now)
    }

    private func isSound(_ cookie: Cookie, _ domain: String, _ now: Date) -> Bool {
        guard let expires = cookie.expires, expires > now, expires <= now.addingTimeInterval(limits.lifetime), cookie.domain == domain,
            let parsed = SetCookieParser.parse("\(cookie.name)=\(cookie.value)")
        else { return false }
        // A pair that reads otherwise would be sent as another cookie.
        return parsed == SetCookie(name: cookie.name, value: cookie.value)
    }
}
