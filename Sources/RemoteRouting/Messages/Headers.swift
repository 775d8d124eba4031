/// The header fields that a route asks for, in the order in which they are written.
///
/// ```swift
/// var headers: Headers { ["Accept-Language": language, "X-Trace": trace] }      // nil leaves a field out
/// ```
///
/// Names and values are checked when the request is built (RFC 9110 §5.1, §5.5). A field replaces the host's default of that name; a name
/// that stands twice is sent twice.
public struct Headers: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// One field; without a value it takes the host's default away.
    struct Line: Hashable, Sendable {
        var name: String
        var value: String?
    }

    private(set) var lines: [Line] = []

    /// No fields.
    init() {}

    /// Makes fields as they are written; `nil` leaves a field out.
    public init(dictionaryLiteral elements: (String, String?)...) {
        lines = elements.compactMap { name, value in value.map { Line(name: name, value: $0) } }
    }

    /// Adds a field.
    public mutating func append(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    /// Adds the lines of other headers except those of a name.
    mutating func append(contentsOf other: Headers, except name: String) {
        lines += other.lines.filter { !$0.name.equalsIgnoringCase(name) }
    }

    /// Whether a name is written or taken away.
    func names(_ name: String) -> Bool { lines.contains { $0.name.equalsIgnoringCase(name) } }

    /// Takes the host's default of a name away, and what was added under it so far.
    public mutating func remove(_ name: String) {
        lines.removeAll { $0.name.equalsIgnoringCase(name) }
        lines.append(Line(name: name, value: nil))
    }
}

extension HTTPFields {
    /// Takes over a route's fields: each name replaces what was there.
    mutating func replace(by headers: Headers) throws(RouteFault) {
        for line in headers.lines {
            guard !FieldRules.of(line.name).contains(.reserved) else {
                throw RouteFault(.reservedField, in: "header \(line.name)", "only the library writes this field; leave it out")
            }
            remove(line.name)
        }
        for line in headers.lines {
            guard let value = line.value else { continue }
            try append(line.name, value)
        }
    }
}

extension RouteFault {
    /// A field whose name is no token; the name is not shown, since it may be a value in the wrong place.
    static let invalidName = RouteFault(
        .invalidField, in: "headers", "a field's name is no token of letters, digits and !#$%&'*+-.^_`|~")

    /// A field whose value cannot go on the wire; the value is not shown, since it may be a secret.
    static func invalidValue(of name: String) -> RouteFault {
        RouteFault(
            .invalidField, in: "header \(name)", "its value has a control character, or a blank at its beginning or end; encode or trim it")
    }
}
