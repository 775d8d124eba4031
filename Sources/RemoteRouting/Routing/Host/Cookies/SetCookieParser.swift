internal import Foundation
internal import RemoteHTTP

/// The content of one `Set-Cookie` line, before any check against the request.
struct SetCookie: Hashable {
    var name: String
    var value: String
    /// The last valid `Max-Age`, in seconds.
    var maxAge: Int?
    var expires: Date?
    /// The last `Domain`, in lower case and without a leading dot.
    var domain: String?
    /// The last `Path`; empty if it selects the default.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite = Cookie.SameSite.unspecified
}

/// A lenient parser of `Set-Cookie` lines (RFC 6265bis, Set-Cookie Header Field).
enum SetCookieParser {
    /// The largest size of a name and its value together, in bytes.
    static let pairLimit = 4096
    /// The largest attribute value in bytes; the parser ignores larger attributes.
    static let attributeLimit = 1024

    private typealias Bytes = Substring.UTF8View

    /// Parses a line; returns `nil` if it has a control character, has neither name nor value, or exceeds ``pairLimit``.
    static func parse(_ line: String) -> SetCookie? {
        let bytes = line[...].utf8
        guard bytes.allSatisfy({ $0 == 0x09 || !$0.isControl }) else { return nil }
        let (pair, attributes) = divide(bytes, at: UInt8(ascii: ";"))
        var (name, value) = divide(pair, at: UInt8(ascii: "="))
        if value == nil { (name, value) = (pair.prefix(0), pair) }
        name = trimmed(name)
        let content = trimmed(value ?? pair)
        guard name.count + content.count <= pairLimit, !(name.isEmpty && content.isEmpty) else { return nil }
        var cookie = SetCookie(name: text(name), value: text(content))
        var rest = attributes
        while let attribute = rest {
            let (first, others) = divide(attribute, at: UInt8(ascii: ";"))
            rest = others
            let (name, value) = divide(first, at: UInt8(ascii: "="))
            read(text(trimmed(name)), trimmed(value ?? first.suffix(0)), into: &cookie)
        }
        return cookie
    }

    /// Parses one attribute; the last valid attribute of a name applies.
    private static func read(_ name: String, _ value: Bytes, into cookie: inout SetCookie) {
        guard value.count <= attributeLimit else { return }
        switch name.lowercased() {
        case "expires": cookie.expires = CookieDate.parse(value) ?? cookie.expires
        case "max-age": cookie.maxAge = seconds(value) ?? cookie.maxAge
        case "domain":
            let domain = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
            // Lowercases ASCII only, because Unicode lowercasing maps other letters to ASCII, such as the Kelvin sign to k.
            cookie.domain = String(decoding: domain.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        case "path": cookie.path = value.first == UInt8(ascii: "/") ? text(value) : ""
        case "secure": cookie.isSecure = true
        case "httponly": cookie.isHTTPOnly = true
        // An unknown value counts as no attribute.
        case "samesite": cookie.sameSite = Cookie.SameSite(rawValue: text(value).lowercased()) ?? .unspecified
        default: break
        }
    }

    private static func seconds(_ value: Bytes) -> Int? {
        let digits = value.first == UInt8(ascii: "-") ? value.dropFirst() : value
        guard !digits.isEmpty, digits.allSatisfy(\.isDigit) else { return nil }
        // A number too large for Int exceeds any limit.
        return Int(text(value)) ?? (value.count == digits.count ? .max : .min)
    }

    private static func divide(_ bytes: Bytes, at separator: UInt8) -> (Bytes, Bytes?) {
        guard let index = bytes.firstIndex(of: separator) else { return (bytes, nil) }
        return (bytes[..<index], bytes[bytes.index(after: index)...])
    }

    private static func trimmed(_ bytes: Bytes) -> Bytes { Substring(bytes).withoutBlanksAtEnds[...].utf8 }

    private static func text(_ bytes: Bytes) -> String { String(Substring(bytes)) }
}
