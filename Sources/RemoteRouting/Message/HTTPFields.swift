/// The header fields of a message, in order; names are compared without case (RFC 9110 §5).
public struct HTTPFields: Hashable, Sendable {
    /// One line of a header.
    public struct Field: Hashable, Sendable {
        /// The name as it was written.
        public let name: String
        /// The value, without blanks at its ends.
        public let value: String
    }

    /// The lines, in order.
    public private(set) var fields: [Field] = []

    /// No fields.
    public init() {}

    /// The values of a name, joined by `", "` (RFC 9110 §5.3); `nil` where there is none.
    public subscript(name: String) -> String? {
        var joined: String?
        for field in fields where field.name.equalsIgnoringCase(name) {
            if joined == nil { joined = field.value } else { joined?.append(", " + field.value) }
        }
        return joined
    }

    /// Each value of a name, in order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.equalsIgnoringCase(name) }.map(\.value)
    }

    /// Adds a line.
    ///
    /// - Throws: ``InvalidField`` where the name is no token, or the value no field value; nothing is added then.
    public mutating func append(_ name: String, _ value: String) throws(InvalidField) {
        guard name.isToken else { throw InvalidField(name: name, part: .name) }
        guard value.isFieldValue else { throw InvalidField(name: name, part: .value) }
        fields.append(Field(name: name, value: value))
    }

    /// Puts a line in the place of all lines of that name.
    ///
    /// - Throws: ``InvalidField``, as ``append(_:_:)``.
    public mutating func set(_ name: String, _ value: String) throws(InvalidField) {
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

/// A header field that cannot go on the wire (RFC 9110 §5.1, §5.5).
public struct InvalidField: Error, Hashable, Sendable {
    /// What is wrong with it.
    public enum Part: Hashable, Sendable {
        /// The name is no token.
        case name
        /// The value has a control character, or a blank at an end.
        case value
    }

    /// The name of the field; the value is left out, since it may be a secret.
    public let name: String
    /// What is wrong with it.
    public let part: Part
}

extension StringProtocol {
    /// Equality without case for ASCII, as field names are compared.
    func equalsIgnoringCase(_ other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0 == $1 || ($0 | 0x20 == $1 | 0x20 && (0x61...0x7A).contains($0 | 0x20)) }
    }
}
