/// The directives of a `Cache-Control` field (RFC 9111 §5.2).
///
/// Skips unreadable parts, so that one malformed directive does not hide the others.
package struct CacheControl: Hashable, Sendable {
    package struct Directive: Hashable, Sendable {
        /// The name, in lower case.
        let name: String
        /// The argument without quotes; `nil` if there is none.
        package let argument: String?
    }

    package private(set) var directives: [Directive] = []

    package init(_ fields: HTTPFields) {
        for line in fields.values(of: "Cache-Control") { append(line) }
    }

    /// Whether a directive occurs, with or without an argument.
    package func contains(_ name: String) -> Bool {
        directives.contains { $0.name == name }
    }

    /// The seconds of a directive; `nil` if it does not occur.
    package func seconds(_ name: String) -> DeltaSeconds? {
        let all = directives.filter { $0.name == name }.map { DeltaSeconds(argument: $0.argument) }
        guard let first = all.first else { return nil }
        // RFC 9111 §4.2.1 permits the first of several values or staleness. Contradictory values count as invalid.
        return all.allSatisfy { $0 == first } ? first : .invalid
    }

    private mutating func append(_ line: String) {
        var scanner = FieldScanner(line)
        while !scanner.isAtEnd {
            scanner.skipBlanks()
            if let name = scanner.token() {
                let argument = scanner.take("=") ? scanner.tokenOrQuoted() ?? "" : nil
                directives.append(Directive(name: name.lowercased(), argument: argument))
            }
            scanner.skip(toAnyOf: [","])
            _ = scanner.take(",")
        }
    }
}

/// A count of seconds (RFC 9111 §1.2.2).
package enum DeltaSeconds: Hashable, Sendable {
    case seconds(Int64)
    /// The directive occurs but has no readable value.
    case invalid

    /// The value of all larger numbers, which stand for an unlimited time (RFC 9111 §1.2.2).
    package static let largest: Int64 = 2_147_483_648

    init(argument: String?) {
        self = argument.flatMap { DeltaSeconds.read($0) }.map { DeltaSeconds.seconds($0) } ?? .invalid
    }

    /// Reads digits, capped at 2³¹; `nil` for anything else.
    package static func read(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return min(largest, Int64(text) ?? largest)
    }
}
