public import Foundation
internal import StoreCore

/// A cookie in a cookie jar.
///
/// ```swift
/// for cookie in try await jar.cookies() where cookie.name == "sid" {
///     jar.remove(cookie)
/// }
/// ```
///
/// The description omits the value, because values are often secret.
///
/// <doc:KeepingCookies> explains which cookies are kept and sent.
public struct Cookie: Hashable, Sendable, Codable {
    /// The name; empty if the server sent none.
    public let name: String
    /// The value, including any quotation marks.
    public let value: String
    /// The host that set the cookie, or the shared domain that the host named, in lower case. `isHostOnly` distinguishes them.
    public let domain: String
    /// Whether the cookie is sent to the host only, and not to its subdomains.
    public let isHostOnly: Bool
    /// The path prefix of requests that carry the cookie.
    public let path: String
    /// The expiry date on the wall clock; `nil` for a session cookie, which is kept in memory only.
    public internal(set) var expires: Date?
    /// Whether the cookie is sent over secure connections only.
    public let isSecure: Bool
    /// Whether the server hides the cookie from scripts; the jar stores the flag and ignores it.
    public let isHTTPOnly: Bool
    /// The rule for requests that another site caused by a redirect.
    public let sameSite: SameSite
    /// The position in the order of creation; unique in a jar, and preserved when a server sets the cookie again.
    var created: Int64
    var used: Int64

    /// The requests that carry a cookie when another site caused them (RFC 6265bis, `SameSite`).
    public enum SameSite: String, Hashable, Sendable, Codable {
        /// Sends the cookie with requests of the same site only.
        case strict
        /// Also sends the cookie with safe requests, such as GET, that another site caused.
        case lax
        /// Sends the cookie with all requests.
        case none
        /// The server sent no valid attribute, which counts as `lax`.
        case unspecified
    }

    /// Whether two cookies have the same identity: name, domain, host-only flag and path (RFC 6265bis, Storage Model).
    func isSame(as other: Cookie) -> Bool {
        guard name == other.name, domain == other.domain, isHostOnly == other.isHostOnly, path == other.path else { return false }
        // String equality is canonical equivalence, but cookies are compared byte by byte.
        return name.utf8.elementsEqual(other.name.utf8) && path.utf8.elementsEqual(other.path.utf8)
    }

    func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }
}

extension Cookie {
    /// Whether two cookies have the same content, regardless of their creation and use.
    public static func == (lhs: Cookie, rhs: Cookie) -> Bool {
        lhs.isSame(as: rhs) && lhs.value == rhs.value && lhs.expires == rhs.expires && lhs.isSecure == rhs.isSecure
            && lhs.isHTTPOnly == rhs.isHTTPOnly && lhs.sameSite == rhs.sameSite
    }

    /// Hashes the name, the domain and the path.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(domain)
        hasher.combine(path)
    }
}

extension Cookie: CustomStringConvertible, CustomReflectable {
    /// The name, domain and path, without the value.
    public var description: String { "\(name)=\(Redaction.mark) (\(domain)\(path))".escapedForDisplay() }

    /// A mirror without the value, so that `dump` writes no secret.
    public var customMirror: Mirror { Mirror(self, children: ["cookie": description]) }
}
