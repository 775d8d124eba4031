/// The rules for header field names: one table for requests, redirects, logs and recordings.
package struct FieldRules: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Only the module writes the field: a caller's value could falsify the framing or the target of a message.
    package static let reserved = FieldRules(rawValue: 1)
    /// The value is a credential or identifies the user; logs and recordings omit it.
    package static let secret = FieldRules(rawValue: 2)
    /// A redirect to another origin may carry the field, because it reveals nothing about the user.
    package static let harmless = FieldRules(rawValue: 4)
    /// The field describes the framing or coding of a body on the wire, so it is wrong for a decoded body.
    package static let framing = FieldRules(rawValue: 8)

    private static let table: [String: FieldRules] = [
        "host": .reserved, "connection": .reserved, "keep-alive": .reserved, "upgrade": .reserved, "te": .reserved, "trailer": .reserved,
        "expect": .reserved, "content-length": [.reserved, .framing], "transfer-encoding": [.reserved, .framing],
        "content-encoding": .framing,

        "authorization": .secret, "authentication-info": .secret, "www-authenticate": .secret, "proxy-authorization": .secret,
        "proxy-authenticate": .secret, "cookie": .secret, "set-cookie": .secret, "x-api-key": .secret, "api-key": .secret,
        "x-auth-token": .secret, "x-csrf-token": .secret, "x-amz-security-token": .secret,

        "accept": .harmless, "accept-encoding": .harmless, "accept-language": .harmless, "cache-control": .harmless,
        "content-type": .harmless, "if-modified-since": .harmless, "if-none-match": .harmless, "if-range": .harmless, "range": .harmless,
        "user-agent": .harmless,
    ]

    /// The rules of a field name, in any case.
    package static func of(_ name: String) -> FieldRules {
        let name = name.lowercased()
        let rules = table[name] ?? []
        return name.hasPrefix("proxy-") ? rules.union(.reserved) : rules
    }
}
