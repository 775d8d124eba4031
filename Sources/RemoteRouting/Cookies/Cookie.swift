public import Foundation
internal import StoreCore

/// A cookie in a cookie jar.
///
/// ```swift
/// for cookie in try await jar.cookies() where cookie.name == "sid" { jar.remove(cookie) }
/// ```
///
/// The description leaves out the value, which is a secret more often than not.
public struct Cookie: Hashable, Sendable, Codable {
    /// The name; empty where the server gave none.
    public let name: String
    /// The value, with its quotation marks where it has any.
    public let value: String
    /// The host that set the cookie or the shared domain that it named, in lower case; `isHostOnly` tells which.
    public let domain: String
    /// Whether only the host itself gets the cookie, and none of its subdomains.
    public let isHostOnly: Bool
    /// The beginning of the paths that get the cookie.
    public let path: String
    /// The end of the cookie's life on the wall clock; `nil` for a session cookie, which lives in memory only.
    public let expires: Date?
    /// Whether the cookie travels over secure connections only.
    public let isSecure: Bool
    /// Whether the server hides the cookie from scripts; without effect here.
    public let isHTTPOnly: Bool
    /// Whether a redirect from another site gets the cookie.
    public let sameSite: SameSite
    /// The position in the order of creation; unique in a jar, kept when a server sets the cookie again.
    var created: Int64
    /// The position in the order of last use.
    var used: Int64

    /// Whether requests that another site caused carry a cookie (RFC 6265bis, `SameSite`).
    public enum SameSite: String, Hashable, Sendable, Codable {
        /// Only requests of the same site.
        case strict
        /// Also GET and other safe requests that another site caused.
        case lax
        /// All requests.
        case none
        /// The server said nothing, which counts as `lax`.
        case unspecified
    }

    /// Whether two cookies are versions of one: same name, domain, host-only flag and path (RFC 6265bis, storage model).
    func isSame(as other: Cookie) -> Bool {
        guard name == other.name, domain == other.domain, isHostOnly == other.isHostOnly, path == other.path else { return false }
        // A string also equals other spellings of its letters; their bytes differ.
        return name.utf8.elementsEqual(other.name.utf8) && path.utf8.elementsEqual(other.path.utf8)
    }

    /// Whether the cookie's life has ended.
    func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }
}

extension Cookie {
    /// Whether two cookies have the same content; their ages do not matter.
    public static func == (lhs: Cookie, rhs: Cookie) -> Bool {
        lhs.isSame(as: rhs) && lhs.value == rhs.value && lhs.expires == rhs.expires && lhs.isSecure == rhs.isSecure
            && lhs.isHTTPOnly == rhs.isHTTPOnly && lhs.sameSite == rhs.sameSite
    }

    /// Feeds the parts that identify the cookie.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(domain)
        hasher.combine(path)
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name, domain and path; the value is left out.
    public var description: String { "\(name)=\(Redaction.mark) (\(domain)\(path))".escapedForDisplay() }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror without the value, so that `dump` writes no secret.
    public var customMirror: Mirror { Mirror(self, children: ["cookie": description]) }
}
