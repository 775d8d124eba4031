extension LoopbackOrigin {
    /// Header fields in the order they were sent, duplicates kept, found by name without regard to case.
    ///
    /// ```swift
    /// var headers: LoopbackOrigin.Headers = ["Accept": "text/html", "accept": "text/plain"]
    /// headers["ACCEPT"]          // "text/html, text/plain"
    /// headers.values(of: "Accept")  // ["text/html", "text/plain"]
    /// ```
    public struct Headers: Sendable, Hashable {
        /// One field as it stands on its line.
        public struct Field: Sendable, Hashable {
            /// The name in the case it was sent in.
            public let name: String
            /// The value without the white space around it; bytes that are not UTF-8 are read as ISO 8859-1.
            public let value: String

            /// A field of a name and a value, neither of which is checked.
            public init(name: String, value: String) {
                self.name = name
                self.value = value
            }
        }

        /// The fields in order.
        public private(set) var fields: [Field]

        /// The given fields in order.
        public init(_ fields: [Field] = []) {
            self.fields = fields
        }

        /// All values of a field joined with a comma (RFC 9110, section 5.3); `nil` when it was not sent.
        public subscript(name: String) -> String? {
            let values = values(of: name)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }

        /// The values of a field, one for each line it was sent on.
        public func values(of name: String) -> [String] {
            fields.filter { Self.areSame($0.name, name) }.map(\.value)
        }

        /// Adds a field behind the others, even if there is one of that name.
        public mutating func add(_ name: String, _ value: String) {
            fields.append(Field(name: name, value: value))
        }

        /// Replaces every field of that name by one.
        public mutating func set(_ name: String, to value: String) {
            remove(name)
            add(name, value)
        }

        /// Removes every field of that name.
        public mutating func remove(_ name: String) {
            fields.removeAll { Self.areSame($0.name, name) }
        }

        /// The members of a comma-separated list field, over all its lines, trimmed and in lower case.
        func listedTokens(_ name: String) -> [String] {
            (self[name] ?? "").split(separator: ",").map { member in
                String(member.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()).lowercased()
            }
        }

        private static func areSame(_ one: String, _ other: String) -> Bool {
            one.utf8.count == other.utf8.count && one.lowercased() == other.lowercased()
        }
    }
}

extension LoopbackOrigin.Headers: ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// The given fields in order, duplicates kept.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }

    /// The fields as lines.
    public var description: String {
        fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
    }
}
