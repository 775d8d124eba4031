extension LoopbackOrigin {
    /// Header fields in the order of transmission, with duplicates; names are case-insensitive.
    ///
    /// ```swift
    /// var headers: LoopbackOrigin.Headers = ["Accept": "text/html", "accept": "text/plain"]
    /// headers["ACCEPT"]          // "text/html, text/plain"
    /// headers.values(of: "Accept")  // ["text/html", "text/plain"]
    /// ```
    public struct Headers: Sendable, Hashable {
        /// One field line.
        public struct Field: Sendable, Hashable {
            /// The name in its original case.
            public let name: String
            /// The value without surrounding white space; bytes that are not UTF-8 are read as ISO 8859-1.
            public let value: String

            /// Makes a field from a name and a value, without checking either.
            public init(name: String, value: String) {
                self.name = name
                self.value = value
            }
        }

        /// The fields in order.
        public private(set) var fields: [Field]

        /// Makes headers from fields in order.
        public init(_ fields: [Field] = []) { self.fields = fields }

        /// The values of a field, joined with commas (RFC 9110, section 5.3); `nil` if it is missing.
        public subscript(name: String) -> String? {
            let values = values(of: name)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }

        /// Returns the values of a field, one per line.
        public func values(of name: String) -> [String] { fields.filter { Self.areSame($0.name, name) }.map(\.value) }

        /// Appends a field, even if the name already exists.
        public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

        /// Replaces all fields of a name with one.
        public mutating func set(_ name: String, to value: String) {
            remove(name)
            add(name, value)
        }

        /// Removes all fields of a name.
        public mutating func remove(_ name: String) { fields.removeAll { Self.areSame($0.name, name) } }

        /// Returns the members of a comma-separated list field over all its lines, trimmed and in lowercase.
        func listedTokens(_ name: String) -> [String] {
            (self[name] ?? "").split(separator: ",").map { member in
                String(member.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()).lowercased()
            }
        }

        private static func areSame(_ left: String, _ right: String) -> Bool {
            left.utf8.count == right.utf8.count && left.lowercased() == right.lowercased()
        }
    }
}

extension LoopbackOrigin.Headers: ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// Makes headers from fields in order, duplicates included.
    public init(dictionaryLiteral elements: (String, String)...) { self.init(elements.map { Field(name: $0.0, value: $0.1) }) }

    /// The fields as lines of text.
    public var description: String { fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n") }
}
