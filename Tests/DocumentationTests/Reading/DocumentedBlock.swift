/// A fenced block of an article or of a doc comment.
struct DocumentedBlock: Sendable {
    /// The file, as a path from the package's root.
    let file: String
    /// Where the block's fence opens, from 1.
    let line: Int
    /// What stands behind the opening fence.
    let language: String
    /// What stands between the fences, without the fence's own indentation.
    let lines: [Substring]

    var firstLine: Substring { lines.first { !$0.allSatisfy(\.isWhitespace) } ?? "" }

    /// The blocks of a Markdown text.
    static func blocks(of text: some StringProtocol, file: String) -> [DocumentedBlock] {
        blocks(
            of: text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map { ($0.offset + 1, Substring($0.element)) },
            file)
    }

    /// The blocks in the doc comments of a Swift source.
    static func blocks(ofDocCommentsIn source: some StringProtocol, file: String) -> [DocumentedBlock] {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        let comments = lines.compactMap { offset, line -> (Int, Substring)? in
            let text = line.drop { $0.isWhitespace }
            guard text.hasPrefix("///") else { return nil }
            let comment = text.dropFirst(3)
            return (offset + 1, Substring(comment.hasPrefix(" ") ? comment.dropFirst() : comment))
        }
        return blocks(of: comments, file)
    }

    private static func blocks(of lines: [(number: Int, text: Substring)], _ file: String) -> [DocumentedBlock] {
        var blocks: [DocumentedBlock] = []
        var open: (line: Int, language: String, indentation: Int, lines: [Substring])?
        for (number, text) in lines {
            let bare = text.drop { $0 == " " }
            guard bare.hasPrefix("```") else {
                open?.lines.append(text)
                continue
            }
            if let block = open {
                let body = block.lines.map { line in line.dropFirst(min(block.indentation, line.prefix { $0 == " " }.count)) }
                blocks.append(DocumentedBlock(file: file, line: block.line, language: block.language, lines: body))
                open = nil
            } else {
                let language = String(bare.dropFirst(3)).filter { !$0.isWhitespace }
                open = (number, language, text.count - bare.count, [])
            }
        }
        return blocks
    }
}
