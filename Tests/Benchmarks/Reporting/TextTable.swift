/// The result as a text table: aligned, in sections, with colored verdicts on a terminal.
struct TextTable {
    let text: String

    init(_ outcomes: [Outcome], _ peers: [Peer] = [], isColored: Bool) {
        let rows = outcomes.map { (outcome: $0, cells: Cells($0).all) }
        let widths = Cells.headings.indices.map { column in (rows.map(\.cells[column].count) + [Cells.headings[column].count]).max() ?? 0 }
        func line(_ cells: [String]) -> String {
            let columns = zip(cells, widths).enumerated().map { place, cell in
                padded(cell.0, to: cell.1, isNumber: (1...Contestant.allCases.count).contains(place))
            }
            return columns.joined(separator: "  ")
        }
        func styled(_ text: String, _ code: String) -> String { isColored ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text }

        var lines = [styled(line(Cells.headings), "1"), String(repeating: "─", count: widths.reduce(0, +) + 2 * (widths.count - 1))]
        for section in Experiment.Section.allCases {
            let members = rows.filter { $0.outcome.section == section }
            guard !members.isEmpty else { continue }
            lines.append(styled(section.rawValue, "1"))
            for (outcome, cells) in members {
                let verdict = styled(cells[cells.count - 1], Self.color(of: outcome.verdict))
                lines.append(line(cells.dropLast() + [""]) + verdict)
            }
        }
        lines.append("")
        lines.append("Medians of interleaved rounds in one process; comparisons with their 95 % intervals, all including the loop.")
        lines.append("ok?: over the budget within the uncertainty. BROKEN: certainly over it. open: over it for a stated reason.")
        for outcome in outcomes {
            let others = peers.filter { $0.figure == outcome.figure.name }.map { "\($0.name) \(Unit.nanoseconds.text($0.nanoseconds))" }
            if !others.isEmpty { lines.append("Compared with “\(outcome.figure.title)”, one run each: \(others.joined(separator: ", ")).") }
        }
        // Trailing spaces of an empty last column are removed.
        text = lines.map { String($0.reversed().drop { $0 == " " }.reversed()) + "\n" }.joined()
    }

    private static func color(of verdict: Outcome.Verdict) -> String {
        switch verdict {
        case .met: "32"
        case .unsure: "33"
        case .broken: "1;31"
        case .open: "35"
        case .noBudget: "0"
        }
    }
}
