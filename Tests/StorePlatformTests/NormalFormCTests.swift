import Foundation
import Testing

@testable import StoreCore
@testable import StorePlatform

/// The composed normal form of strings, by which keys and names become file names.
struct NormalFormCTests {
    /// One row of Unicode's conformance test.
    private struct Row {
        var source: String
        var composed: String
        var decomposed: String
    }

    private func rows(of group: NormalizationCases) throws -> [Row] {
        try group.rows.split(whereSeparator: { $0 == "|" || $0 == "\n" }).map { row in
            let columns = try row.split(separator: ";").map { column in
                var text = String.UnicodeScalarView()
                for number in column.split(separator: " ") {
                    text.append(try #require(UInt32(number, radix: 16).flatMap(Unicode.Scalar.init)))
                }
                return String(text)
            }
            try #require(columns.count == 3)
            return Row(source: columns[0], composed: columns[1], decomposed: columns[2])
        }
    }

    private func scalars(_ text: String) -> [UInt32] { text.unicodeScalars.map(\.value) }

    @Test(arguments: NormalizationCases.allCases)
    func `F3: the normal form is that of Unicode's conformance test, and of Foundation`(group: NormalizationCases) throws {
        let rows = try rows(of: group)
        #expect(rows.count >= 25)
        for row in rows {
            // Decomposed first: composing alone leaves a Hangul syllable beside its final consonant on Linux.
            let expected = row.source.decomposedStringWithCanonicalMapping.precomposedStringWithCanonicalMapping
            #expect(scalars(expected) == scalars(row.composed), "\(scalars(row.source))")
            for text in [row.source, row.composed, row.decomposed] {
                // Scalars, because equality of strings ignores the form.
                #expect(scalars(text.normalFormC) == scalars(row.composed), "\(scalars(text))")
            }
        }
    }

    @Test(arguments: [
        "", "plain", "caf\u{E9}", "cafe\u{301}", "\u{0}", "\u{FFFD}", "👩\u{200D}👩\u{200D}👧",
        String(repeating: "a\u{323}\u{307}", count: 10_000),
    ]) func `F3: the normal form of a normal form is the same`(text: String) {
        let composed = text.normalFormC
        #expect(composed == text, "the strings are canonically equivalent")
        #expect(Array(composed.normalFormC.utf8) == Array(composed.utf8))
        #expect(Array(text.decomposedStringWithCanonicalMapping.normalFormC.utf8) == Array(composed.utf8))
    }

    @Test func `F3: a bridged or sliced string has the same normal form`() {
        let text = "re\u{301}sume\u{301}"
        #expect(Array(String(text.dropFirst(1)).normalFormC.utf8) == Array("\u{E9}sum\u{E9}".utf8))
        #expect(Array(String(NSString(string: text)).normalFormC.utf8) == Array("r\u{E9}sum\u{E9}".utf8))
    }
}
