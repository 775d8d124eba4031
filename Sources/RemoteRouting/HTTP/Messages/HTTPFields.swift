/// The header fields of a message, in order; names are case-insensitive (RFC 9110 §5).
public struct HTTPFields: Hashable, Sendable {
    /// A line of a header; several lines may have the same name (RFC 9110 §5.2).
    public struct Field: Hashable, Sendable {
        /// The name as it was written.
        public let name: String
        /// The value, without leading and trailing whitespace.
        public internal(set) var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The lines in the order of the message.
    public private(set) var fields: [Field] = []

    /// Creates a header without a line.
    public init() {}

    /// Creates a header from received lines; ignores malformed ones instead of failing the response (RFC 9110 §5).
    init(received fields: [Field]) {
        self.fields = fields.filter { $0.name.isToken && $0.value.isFieldValue }
    }

    /// The values of a name, joined by `", "` (RFC 9110 §5.3); `nil` if the name does not occur.
    public subscript(name: String) -> String? {
        var joined: String?
        for field in fields where field.name.equalsIgnoringCase(name) {
            if joined == nil { joined = field.value } else { joined?.append(", " + field.value) }
        }
        return joined
    }

    /// Returns each value of a name, in order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.equalsIgnoringCase(name) }.map(\.value)
    }

    /// Appends a line.
    ///
    /// - Throws: ``RouteFault`` with the code ``RouteFault/Code/invalidField`` if the name is not a token or the value is not a field value
    ///   (RFC 9110 §5.1, §5.5). The fields stay unchanged then.
    public mutating func append(_ name: String, _ value: String) throws(RouteFault) {
        // The faults show neither a wrong name nor a value, because these may be secrets.
        guard name.isToken else {
            throw RouteFault(
                .invalidField, in: "headers", "a field's name is not a token of letters, digits and !#$%&'*+-.^_`|~; correct the name")
        }
        guard value.isFieldValue else {
            throw RouteFault(
                .invalidField, in: "header \(name)", "its value has a control character, or whitespace at an end; encode or trim it")
        }
        fields.append(Field(name: name, value: value))
    }

    /// Replaces all lines of a name with one line.
    ///
    /// - Throws: ``RouteFault`` with the code ``RouteFault/Code/invalidField``, as ``append(_:_:)``.
    public mutating func set(_ name: String, _ value: String) throws(RouteFault) {
        var others = self
        others.remove(name)
        try others.append(name, value)
        self = others
    }

    /// Removes all lines of a name.
    public mutating func remove(_ name: String) {
        fields.removeAll { $0.name.equalsIgnoringCase(name) }
    }
}

extension StringProtocol {
    package func equalsIgnoringCase(_ other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0 == $1 || ($0 | 0x20 == $1 | 0x20 && (0x61...0x7A).contains($0 | 0x20)) }
    }
}

extension String {
    /// Whether the text is a token, which methods and field names must be (RFC 9110 §5.6.2).
    package var isToken: Bool {
        !isEmpty && utf8.allSatisfy(\.isTokenByte)
    }

    /// Whether the text is a field value: no control byte except tab, no whitespace at either end (RFC 9110 §5.5).
    var isFieldValue: Bool {
        guard let first = utf8.first, let last = utf8.last else { return true }
        return !first.isBlank && !last.isBlank && utf8.allSatisfy { $0 == 0x09 || !$0.isControl }
    }
}

extension Substring {
    /// The text without leading and trailing whitespace, which is not part of a field value (RFC 9110 §5.5).
    package var withoutBlanksAtEnds: String { String(Substring(utf8.withoutBlanksAtEnds)) }
}

extension BidirectionalCollection<UInt8> {
    /// The bytes without leading and trailing whitespace.
    var withoutBlanksAtEnds: SubSequence {
        guard let first = firstIndex(where: { !$0.isBlank }), let last = lastIndex(where: { !$0.isBlank }) else { return prefix(0) }
        return self[first...last]
    }
}

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
        // A replayed body without it would be read as another one.
        "content-encoding": [.framing, .harmless],

        "authorization": .secret, "authentication-info": .secret, "www-authenticate": .secret, "proxy-authorization": .secret,
        "proxy-authenticate": .secret, "cookie": .secret, "set-cookie": .secret, "x-api-key": .secret, "api-key": .secret,
        "x-auth-token": .secret, "x-csrf-token": .secret, "x-amz-security-token": .secret,

        "accept": .harmless, "accept-encoding": .harmless, "accept-language": .harmless, "cache-control": .harmless,
        "content-type": .harmless, "if-modified-since": .harmless, "if-none-match": .harmless, "if-range": .harmless, "range": .harmless,
        "last-event-id": .harmless, "user-agent": .harmless,
    ]

    package static func of(_ name: String) -> FieldRules {
        let name = name.lowercased()
        let rules = table[name] ?? []
        return name.hasPrefix("proxy-") ? rules.union(.reserved) : rules
    }
}
