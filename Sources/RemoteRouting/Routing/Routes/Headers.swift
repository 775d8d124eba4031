internal import RemoteHTTP

/// The header fields of a route, in declaration order.
///
/// ```swift
/// // A field whose value is nil is left out.
/// var headers: Headers { ["Accept-Language": language, "X-Trace": trace] }
/// ```
///
/// Names and values are validated when the request is built (RFC 9110 §5.1, §5.5). A field replaces the host's default of the same name. A
/// name that occurs twice is sent twice.
public struct Headers: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// One field; a `nil` value removes the host's default.
    struct Line: Hashable, Sendable {
        var name: String
        var value: String?
    }

    private(set) var lines: [Line] = []

    /// Creates empty headers, to be filled by appending.
    public init() {}

    /// Creates headers from a literal; a `nil` value omits the field.
    public init(dictionaryLiteral elements: (String, String?)...) {
        lines = elements.compactMap { name, value in value.map { Line(name: name, value: $0) } }
    }

    /// The names of the fields in their order, each as often as it is sent.
    public var names: [String] { lines.filter { $0.value != nil }.map(\.name) }

    /// The values of a field in their order; its name has any case.
    public subscript(name: String) -> [String] { lines.filter { $0.name.equalsIgnoringCase(name) }.compactMap(\.value) }

    /// Appends a field behind the others, even if its name occurs already.
    public mutating func append(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    mutating func append(contentsOf other: Headers, except name: String) {
        lines += other.lines.filter { !$0.name.equalsIgnoringCase(name) }
    }

    func names(_ name: String) -> Bool { lines.contains { $0.name.equalsIgnoringCase(name) } }

    /// Removes the host's default of a name and all earlier fields with that name.
    public mutating func remove(_ name: String) {
        lines.removeAll { $0.name.equalsIgnoringCase(name) }
        lines.append(Line(name: name, value: nil))
    }
}

extension HTTPFields {
    /// Applies a route's fields; each name replaces the earlier fields of that name.
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
