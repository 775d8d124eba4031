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
    public init() {}

    /// Makes fields as they are written; `nil` leaves a field out.
    public init(dictionaryLiteral elements: (String, String?)...) {
        lines = elements.compactMap { name, value in value.map { Line(name: name, value: $0) } }
    }

    /// Adds a field.
    public mutating func append(_ name: String, _ value: String) {
        lines.append(Line(name: name, value: value))
    }

    /// Takes the host's default of a name away, and what was added under it so far.
    public mutating func remove(_ name: String) {
        lines.removeAll { $0.name.equalsIgnoringCase(name) }
        lines.append(Line(name: name, value: nil))
    }

    /// Whether there are none.
    public var isEmpty: Bool { lines.isEmpty }
}

/// The names that only the library writes: with them a caller could lie about where a message ends or who it is for.
package enum ReservedFields {
    private static let names = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
    ]

    /// Whether only the library writes a field of this name.
    package static func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || name.hasPrefix("proxy-")
    }
}

extension HTTPFields {
    /// Takes over a route's fields: each name replaces what was there.
    mutating func replace(by headers: Headers) throws(RouteFault) {
        for line in headers.lines {
            guard !ReservedFields.contains(line.name) else {
                throw RouteFault(.reservedField, in: "header \(line.name)", "only the library writes this field; leave it out")
            }
            remove(line.name)
        }
        for line in headers.lines {
            guard let value = line.value else { continue }
            do {
                try append(line.name, value)
            } catch {
                throw RouteFault(error)
            }
        }
    }
}

extension RouteFault {
    /// A field that cannot go on the wire; a name that is at fault is not shown, since it may be a value in the wrong place.
    init(_ error: InvalidField) {
        switch error.part {
        case .name: self.init(.invalidField, in: "headers", "a field's name is no token of letters, digits and !#$%&'*+-.^_`|~")
        case .value:
            self.init(
                .invalidField, in: "header \(error.name)",
                "its value has a control character, or a blank at its beginning or end; encode or trim it")
        }
    }
}
