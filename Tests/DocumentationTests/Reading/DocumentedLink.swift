internal import Foundation
internal import Testing

extension Documentation {
    /// All links that lead to the package itself.
    static let links: [DocumentedLink] = (articles + ["CHANGELOG.md", "CONTRIBUTING.md"])
        .flatMap { DocumentedLink.links(of: text(of: $0), file: $0) }

    static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: location(of: path)) }
}

/// A link of a Markdown file to another file of the package, or to a heading.
struct DocumentedLink: Sendable, CustomTestStringConvertible {
    /// The file that has the link, as a path from the package's root.
    let file: String
    /// Where it leads, as it is written.
    let target: String

    var testDescription: String { "\(file) → \(target)" }

    /// The links of a Markdown text that lead to the package itself; what stands in a fence is no link.
    static func links(of text: String, file: String) -> [DocumentedLink] {
        var isCode = false
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            defer { if line.drop(while: { $0 == " " }).hasPrefix("```") { isCode.toggle() } }
            return !isCode
        }
        return lines.joined(separator: "\n").matches(of: /\]\(([^)\s]+)\)/).map { String($0.output.1) }
            .filter { !$0.contains("://") }.map { DocumentedLink(file: file, target: $0) }
    }

    /// The path from the package's root, with `..` resolved; the file itself where only a heading is named.
    var path: String {
        let written = target.prefix { $0 != "#" }
        guard !written.isEmpty else { return file }
        var parts = file.split(separator: "/").dropLast().map(String.init)
        for part in written.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(String(part)) }
        }
        return parts.joined(separator: "/")
    }

    /// The heading, as an address has it; `nil` where the link is to the whole file.
    var anchor: Substring? { target.firstIndex(of: "#").map { target[target.index(after: $0)...] } }

    /// The headings of a Markdown text as addresses have them: in lower case, a hyphen for each space, without punctuation.
    static func anchors(of text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix("#") }.map { line in
            line.drop { $0 == "#" || $0 == " " }.lowercased().filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" || $0 == "_" }
                .replacing(" ", with: "-")
        }
    }
}
