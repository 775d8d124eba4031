import Foundation
import Testing

/// The numbered laws: each module's page `Laws.md` defines them, and tests and comments cite them.
struct LawTests {
    /// The laws that the pages define.
    private static let defined: Set<String> = {
        let pages = Documentation.articles.filter { $0.hasSuffix("/Laws.md") }
        let definition = /^(?:### |\*\*)([CDEFHILOTSVW][0-9]+):/.anchorsMatchLineEndings()
        return Set(pages.flatMap { Documentation.text(of: $0).matches(of: definition).map { String($0.1) } })
    }()

    private func citations(in text: Substring) -> [String] {
        text.matches(of: /\b[CDEFHILOTSVW][0-9]{1,2}\b/).map { String($0.0) }
    }

    /// The laws that the comments of a source cite, found byte by byte: a regular expression takes seconds for all sources.
    private func citations(inCommentsOf source: String) -> Set<String> {
        let (slash, newline, zero, nine) = (UInt8(ascii: "/"), UInt8(ascii: "\n"), UInt8(ascii: "0"), UInt8(ascii: "9"))
        let letters = Set("CDEFHILOTSVW".utf8)
        let belongsToWord = (UInt8.min...UInt8.max).map { byte in
            let character = Character(Unicode.Scalar(byte))
            return byte > 127 || character == "_" || character.isLetter || character.isNumber
        }
        var (cited, word): (Set<String>, [UInt8]) = ([], [])
        var (isComment, last) = (false, newline)
        for byte in Array(source.utf8) + [newline] {
            if belongsToWord[Int(byte)] {
                if isComment { word.append(byte) }
            } else {
                if (2...3).contains(word.count), letters.contains(word[0]), word.dropFirst().allSatisfy({ zero <= $0 && $0 <= nine }) {
                    cited.insert(String(decoding: word, as: UTF8.self))
                }
                word.removeAll(keepingCapacity: true)
                isComment = byte != newline && (isComment || byte == slash && last == slash)
            }
            last = byte
        }
        return cited
    }

    @Test func `the laws in comments are found, and no others`() {
        let source = "let C1 = \"O2\" // C3, H21: (L4) E123 AC5 S6a W_7\n/// T8\nH9 / 2 / I1"
        #expect(citations(inCommentsOf: source) == ["C3", "H21", "L4", "T8"])
    }

    @Test func `every module states its laws without a gap`() {
        for (letter, count) in [
            ("C", 26), ("D", 11), ("E", 10), ("F", 8), ("H", 26), ("I", 6), ("L", 8), ("O", 18), ("W", 16), ("T", 22), ("S", 27), ("V", 6),
        ] {
            let numbers = Self.defined.filter { $0.hasPrefix(letter) }.compactMap { Int($0.dropFirst()) }.sorted()
            #expect(numbers == Array(1...count), "\(letter)")
        }
    }

    @Test func `a test's name cites every law, and only laws that a page defines`() {
        let names = Documentation.files(under: "Tests", ending: ".swift")
            .flatMap { Documentation.text(of: $0).matches(of: /func `([CDEFHILOTSVW][0-9][^`]*)`/).map(\.1) }
        // The laws come first; a name that has no colon yet begins with them.
        let cited = Set(names.flatMap { citations(in: $0.prefix { $0 != ":" }.prefix(40)) })
        #expect(cited.subtracting(Self.defined) == [], "no page defines these")
        #expect(Self.defined.subtracting(cited) == [], "no test cites these")
    }

    @Test func `a comment cites only laws that a page defines`() {
        // A range of control characters in Unicode.
        let others: Set = ["C0"]
        for path in ["Sources", "Tests", "Examples"].flatMap({ Documentation.files(under: $0, ending: ".swift") }) {
            let cited = citations(inCommentsOf: Documentation.text(of: path))
            #expect(cited.subtracting(Self.defined).subtracting(others) == [], "\(path)")
        }
    }
}
