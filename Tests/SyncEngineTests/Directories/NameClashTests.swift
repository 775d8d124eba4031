import Foundation
import StoreCore
import StorePlatform
import Testing

@testable import SyncEngine

/// The index of spellings, for disks that treat different names as equal.
struct NameClashTests {
    private func path(_ path: PathKey) throws -> RelativePath { try RelativePath(path) }

    @Test func `S8: on a folding disk a path has at most one other spelling`() throws {
        var clashes = NameClashes(.all)
        #expect(try clashes.insert(path("Dir/Caf\u{E9}")) == nil)
        #expect(clashes.otherSpelling(of: "dir/cafe\u{301}") == "Dir/Caf\u{E9}")
        #expect(clashes.otherSpelling(of: "Dir/Caf\u{E9}") == nil, "it is the same spelling")
        #expect(clashes.otherSpelling(of: "dir/cafe") == nil)
        #expect(try clashes.insert(path("DIR/other")) == "Dir", "a directory clashes too")
        clashes.remove("Dir/Caf\u{E9}")
        #expect(clashes.otherSpelling(of: "dir/cafe\u{301}") == nil)
    }

    @Test func `S8: on a disk without folding, names that differ in case do not clash`() throws {
        var clashes = NameClashes([])
        #expect(try clashes.insert(path("a")) == nil)
        #expect(try clashes.insert(path("A")) == nil)
        #expect(clashes.otherSpelling(of: "A") == nil)
    }

    @Test func `S8: letters that Foundation folds to the same letter count as one name`() {
        var spellings: [[UInt8]: [UInt8]] = [:]
        var count = 0
        // Later planes have no letters with case.
        for scalar in (UInt32(0)..<0x20000).lazy.compactMap(Unicode.Scalar.init) {
            let name = String(scalar)
            let folded = Array(NameFolding.all.fold(name).utf8)
            // Keyed by bytes, because equality of strings ignores the normal form.
            let reference = Array(name.folding(options: .caseInsensitive, locale: nil).normalFormC.utf8)
            if let other = spellings[reference], other != folded { Issue.record("\(scalar.escaped(asASCII: true)) has a name of its own") }
            spellings[reference] = folded
            count += folded == Array(name.utf8) ? 0 : 1
        }
        #expect(count > 2000)
    }

    @Test(arguments: [
        ("K", "\u{212A}", true), ("Stra\u{DF}e", "STRASSE", true), ("\u{1E9E}", "ss", true), ("\u{3A3}\u{3C2}", "\u{3C3}\u{3C3}", true),
        ("\u{17F}", "S", true), ("\u{FB01}", "FI", true), ("\u{13A0}", "\u{AB70}", true), ("\u{130}", "i\u{307}", true),
        ("\u{C9}", "e\u{301}", true), ("\u{131}", "i", false), ("\u{131}", "I", false), ("\u{DF}", "s", false), ("e", "\u{E9}", false),
    ]) func `S8: names differ on a folding disk unless they differ only in case or normal form`(a: String, b: String, isOne: Bool) {
        #expect((Array(NameFolding.all.fold(a).utf8) == Array(NameFolding.all.fold(b).utf8)) == isOne)
    }

    @Test func `S8: a disk that folds only case distinguishes normal forms`() {
        #expect(NameFolding.letterCase.fold("CAF\u{C9}") == "caf\u{E9}")
        #expect(Array(NameFolding.letterCase.fold("caf\u{E9}").utf8) != Array(NameFolding.letterCase.fold("cafe\u{301}").utf8))
        #expect(Array(NameFolding.normalization.fold("CAFE\u{301}").utf8) == Array("CAF\u{C9}".utf8))
    }
}
