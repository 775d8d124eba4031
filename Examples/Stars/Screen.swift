import Console
import Foundation
import StoreCore
import Synchronization

/// The output of the program: colors, and lines that are written over, on a terminal; plain lines elsewhere.
final class Screen: Sendable {
    private let console: Console
    /// The number of lines that the next table replaces.
    private let replaceable = Mutex(0)

    init(isPlain: Bool) {
        console = Console(isPlain: isPlain)
    }

    /// Writes lines, painted by their marks.
    func write(_ lines: String...) {
        replaceable.withLock { replaceable in
            replaceable = 0
            put(lines.map { console.wrapped(painted($0)) })
        }
    }

    func heading(_ text: String) {
        replaceable.withLock { replaceable in
            replaceable = 0
            put(["", console.wrapped(console.paint(.bold, text))])
        }
    }

    /// Shows a table that the next one replaces; only on a terminal.
    func draw(_ lines: [String]) {
        guard console.isLive else { return }
        replaceable.withLock { replaceable in
            let up = replaceable == 0 ? "" : "\u{1B}[\(replaceable)A\u{1B}[J"
            // A line that the terminal wraps would be two.
            put(lines.map { painted(console.fitted($0)) }, after: up)
            replaceable = lines.count
        }
    }

    /// Shows the last state of a table.
    func finish(_ lines: [String]) {
        if console.isLive { draw(lines) } else { put(lines) }
        replaceable.withLock { $0 = 0 }
    }

    static func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("stars: \(text.escapedForDisplay())\n".utf8))
    }

    private func put(_ lines: [String], after control: String = "") {
        try? FileHandle.standardOutput.write(contentsOf: Data((control + lines.map { $0 + "\n" }.joined()).utf8))
    }

    /// Paints a line from its first mark on: what waits, what was refused, what holds.
    private func painted(_ line: String) -> String {
        var line = line
        for (mark, paint) in [("◌", Console.Paint.yellow), ("✗", .red), ("✓", .green), ("▲", .yellow), ("$", .bold)] {
            guard let start = line.range(of: "\(mark) ")?.lowerBound else { continue }
            line = line[..<start] + console.paint(paint, String(line[start...]))
            break
        }
        return line.replacing("★", with: console.paint(.yellow, "★")).replacing("☆", with: console.paint(.dim, "☆"))
    }
}
