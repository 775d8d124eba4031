internal import Foundation

/// The tables of a migration article: features of the original, and their successors.
struct SuccessorTable {
    struct Row: Sendable {
        /// The code spans of the first cell.
        let features: [String]
        /// The second cell: successors in code voice, or the reason for leaving the feature out.
        let successor: String
    }

    let rows: [Row]

    init(markdown: String) {
        rows = markdown.split(separator: "\n").filter { $0.hasPrefix("| ") && !$0.hasSuffix("| Here |") }.map { line in
            let cells = line.dropFirst(2).dropLast(2).split(separator: " | ", maxSplits: 1)
            return Row(features: Self.code(in: cells[0]), successor: cells.count > 1 ? String(cells[1]) : "")
        }
    }

    /// The names of an API that a second cell claims: the last component of each symbol link, and the types, members and calls in code.
    ///
    /// Argument labels and what stands in string literals are no names of their own.
    static func symbols(in successor: String) -> Set<String> {
        let links = successor.matches(of: /``([^`]+)``/).flatMap { $0.output.1.prefix { $0 != "(" }.split(separator: "/") }.map(String.init)
        let spans = code(in: successor.replacing(/``[^`]+``/, with: ""))
        let code = spans.map { $0.replacing(/"[^"]*"/, with: "") }
        let names = code.flatMap { span in
            span.matches(of: /\.([a-zA-Z]\w*)/).map { String($0.output.1) } + span.matches(of: /\b([A-Z]\w*)/).map { String($0.output.1) }
                + span.matches(of: /\b([a-z]\w*)\(/).map { String($0.output.1) }
        }
        return Set(links + names)
    }

    private static func code(in cell: some StringProtocol) -> [String] {
        String(cell).matches(of: /`([^`]+)`/).map { String($0.output.1) }
    }
}

/// The names of public declarations, as far as the sources show them without a compiler.
enum PublicSymbols {
    static let all: Set<String> = Set(Documentation.sources.map(Documentation.text).flatMap(names))

    /// The names in one source: lines with `public`, and the members of public protocols, enums and extensions.
    static func names(in source: String) -> [String] {
        var names: [String] = []
        // Made once, because making one takes longer than reading a line.
        let declaration = /\b(?:func|var|let|struct|class|enum|protocol|actor|typealias|associatedtype|case)\s+`?(\w+)/
        let opening = /public (?:indirect )?(?:protocol|enum|extension)\b/
        /// How deep the innermost public protocol, enum or extension stands; its members are one step deeper.
        var depth: Int?
        for line in source.split(separator: "\n") {
            let indentation = line.prefix { $0 == " " }.count
            if let open = depth, indentation <= open, line.contains("}") { depth = nil }
            let isMember = depth.map { indentation == $0 + 4 } ?? false
            func isHidden() -> Bool { line.contains("private ") || line.contains("package ") || line.contains("internal ") }
            guard line.contains("public ") || (isMember && !isHidden()) else { continue }
            names += line.matches(of: declaration).map { String($0.output.1) }
            if line.hasSuffix("{"), line.contains(opening) { depth = indentation }
        }
        return names
    }
}
