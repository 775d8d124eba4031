/// The result as a Markdown table.
struct MarkdownTable {
    let text: String

    init(_ outcomes: [Outcome]) {
        func line(_ cells: [String]) -> String { "| \(cells.joined(separator: " | ")) |\n" }
        let columns = Cells.headings.count - 1
        let rule = (0..<columns).map { (1...Contestant.allCases.count).contains($0) ? "---:" : "---" }
        // `--check` reports broken budgets; this table has no verdicts.
        let rows = [Cells.headings] + outcomes.map { Cells($0).all }
        let lines = rows.map { line(Array($0.prefix(columns))) }
        text = lines[0] + line(rule) + lines.dropFirst().joined()
    }
}
