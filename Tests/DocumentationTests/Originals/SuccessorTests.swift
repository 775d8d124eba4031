internal import Testing

/// The migration articles name every feature of the originals, and successors that exist.
@Suite struct SuccessorTests {
    /// Names in the examples of successors: the standard library's, and an app's own.
    private static let foreign: Set<String> = [
        "Decodable", "Hashable", "Comparable", "Sendable", "User", "UserID", "UserData", "seconds", "init",
    ]

    @Test(arguments: Original.all)
    func `each feature of an original has a row with a public successor or a reason, and each row is a feature`(original: Original) {
        let table = SuccessorTable(markdown: Documentation.text(of: original.article))
        let named = Set(table.rows.flatMap(\.features))
        #expect(original.features.subtracting(named).sorted() == [], "\(original.article): write a row for these")
        #expect(named.subtracting(original.features).sorted() == [], "\(original.article): not in the list of \(original.name)")
        #expect(!table.rows.isEmpty)
        for row in table.rows {
            #expect(row.successor.contains("`") || row.successor.hasPrefix("left out: "), "\(original.article): \(row.features)")
            let missing = SuccessorTable.symbols(in: row.successor).subtracting(PublicSymbols.all).subtracting(Self.foreign)
            #expect(missing.sorted() == [], "\(original.article), the row of \(row.features): no public declaration has this name")
        }
    }

    @Test func `a table is read cell by cell`() {
        let table = SuccessorTable(
            markdown: """
                | There | Here |
                |---|---|
                | `a(b:)`, or `c` | ``Store/update(_:)``; `Page(x, nextKey: "Nothing.here")`, then `list.gone` |
                | words alone | left out: no use |
                """)
        #expect(table.rows.map(\.features) == [["a(b:)", "c"], []])
        #expect(SuccessorTable.symbols(in: table.rows[0].successor) == ["Store", "update", "Page", "gone"])
        #expect(table.rows[1].successor == "left out: no use")
    }

    @Test func `a private declaration is no public symbol`() {
        let source = """
            public struct Lamp {
                public var light: Int
                var wire: Int
            }
            public protocol Switch {
                func flip()
            }
            public enum Color {
                case red
                private static let hidden = 1
            }
            struct Inner { func inside() {} }
            """
        #expect(PublicSymbols.names(in: source) == ["Lamp", "light", "Switch", "flip", "Color", "red"])
        #expect(PublicSymbols.all.isSuperset(of: ["Store", "requireData", "MemoryCacher", "needsRefresh", "both"]))
        #expect(PublicSymbols.all.isDisjoint(with: ["KeyMachine", "TestWait", "noSuchThing"]))
    }
}
