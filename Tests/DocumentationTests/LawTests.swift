import Foundation
import Testing

/// The numbered laws: each module's page `Laws.md` defines them, and tests and comments cite them.
struct LawTests {
    /// The laws that the pages define.
    private let defined: Set<String>

    init() {
        let pages = Documentation.articles.filter { $0.hasSuffix("/Laws.md") }
        let definition = /^(?:### |\*\*)([CDEFHILOTSVW][0-9]+):/.anchorsMatchLineEndings()
        defined = Set(pages.flatMap { Documentation.text(of: $0).matches(of: definition).map { String($0.1) } })
    }

    private func citations(in text: Substring) -> [String] {
        text.matches(of: /\b[CDEFHILOTSVW][0-9]{1,2}\b/).map { String($0.0) }
    }

    @Test func `every module states its laws without a gap`() {
        for (letter, count) in [
            ("C", 25), ("D", 11), ("E", 10), ("F", 8), ("H", 22), ("I", 6), ("L", 8), ("O", 18), ("W", 16), ("T", 22), ("S", 26), ("V", 6),
        ] {
            let numbers = defined.filter { $0.hasPrefix(letter) }.compactMap { Int($0.dropFirst()) }.sorted()
            #expect(numbers == Array(1...count), "\(letter)")
        }
    }

    @Test func `a test's name cites every law, and only laws that a page defines`() {
        let names = Documentation.files(under: "Tests", ending: ".swift")
            .flatMap { Documentation.text(of: $0).matches(of: /func `([CDEFHILOTSVW][0-9][^`]*)`/).map(\.1) }
        // The laws come first; a name that has no colon yet begins with them.
        let cited = Set(names.flatMap { citations(in: $0.prefix { $0 != ":" }.prefix(40)) })
        #expect(cited.subtracting(defined) == [], "no page defines these")
        #expect(defined.subtracting(cited) == [], "no test cites these")
    }

    @Test func `a comment cites only laws that a page defines`() {
        // A range of control characters in Unicode.
        let others: Set = ["C0"]
        for path in ["Sources", "Tests", "Examples"].flatMap({ Documentation.files(under: $0, ending: ".swift") }) {
            let comments = Documentation.text(of: path).matches(of: /\/\/(.*)/).flatMap { citations(in: $0.1) }
            #expect(Set(comments).subtracting(defined).subtracting(others) == [], "\(path)")
        }
    }
}
