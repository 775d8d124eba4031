internal import Testing

@Suite struct WidthTests {
    /// The column of the documentation site shows 80 characters on a screen that is 1 000 pixels wide.
    private static let columns = 80

    @Test func `each block fits its column`() {
        for block in Documentation.blocks {
            for (offset, line) in block.lines.enumerated() where line.count > Self.columns {
                Issue.record("\(block.file), line \(block.line + 1 + offset): \(line.count) characters; the column has \(Self.columns)")
            }
        }
    }

    @Test func `widths are counted in characters, without the fence's indentation`() throws {
        let block = try #require(DocumentedBlock.blocks(of: "  ```text\n  └─ ends\n  ```", file: "Article.md").first)
        #expect(block.lines.map(\.count) == [7])
    }
}
