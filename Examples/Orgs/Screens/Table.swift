import StoreCore

/// Rows under columns.
struct Table {
    var columns: [String]
    var rows: [[String]]

    /// Returns the lines, truncated to a width.
    func lines(width: Int) -> [String] {
        // An origin must not act on the terminal.
        let all = ([columns] + rows).map { $0.map { $0.escapedForDisplay() } }
        let widths = columns.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            let line = row.indices.map { column in
                column == row.count - 1 ? row[column] : row[column] + String(repeating: " ", count: widths[column] - row[column].count)
            }.joined(separator: "  ")
            return line.count > width ? line.prefix(width - 1) + "…" : line
        }
    }
}
