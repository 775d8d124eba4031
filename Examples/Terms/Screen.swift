import Console
import Foundation
import StoreCore
import TextStore

/// The output of the gate: colors on a terminal, plain lines elsewhere.
struct Screen {
    private let console: Console

    init(isPlain: Bool) { console = Console(isPlain: isPlain) }

    private func paint(_ paint: Console.Paint, _ text: String) -> String { console.paint(paint, text) }

    func title(_ name: String, _ subtitle: String) { write("\n" + paint(.bold, name) + "  " + paint(.dim, safe(subtitle)) + "\n\n") }

    func note(_ text: String) { write("   " + paint(.dim, "▸ \(safe(text))") + "\n") }

    func good(_ text: String) { write("   " + paint(.green, "✓ ") + safe(text) + "\n") }

    func warning(_ text: String) { write("   " + paint(.yellow, "▲ ") + safe(text) + "\n") }

    /// Shows a whole text.
    func show(_ text: String) {
        write("\n" + lines(safe(text).split(separator: "\n", omittingEmptySubsequences: false).map { "     \($0)" }))
    }

    /// Shows the changed lines of a text with two lines around each; of a line with changed words, the old form and the new one.
    func show(_ difference: TextDifference) {
        var isNear = [Bool](repeating: false, count: difference.lines.count)
        for (place, line) in difference.lines.enumerated() {
            if case .same = line { continue }
            for near in max(0, place - 2)...min(isNear.count - 1, place + 2) { isNear[near] = true }
        }
        var shown: [String] = [], hidden = 0
        for (place, line) in difference.lines.enumerated() {
            guard isNear[place] else {
                hidden += 1
                continue
            }
            if hidden > 0 { shown.append(paint(.dim, "       … \(hidden) more lines")) }
            hidden = 0
            switch line {
            case .same(let text): shown.append("       \(part(text))")
            case .removed(let text): shown.append(paint(.red, "     - \(part(text))"))
            case .added(let text): shown.append(paint(.green, "     + \(part(text))"))
            case .changed(let words): shown += [form(of: words, isOld: true), form(of: words, isOld: false)]
            }
        }
        if hidden > 0 { shown.append(paint(.dim, "       … \(hidden) more lines")) }
        write("\n" + lines(shown))
    }

    /// Returns the old or the new form of a line with changed words.
    private func form(of words: [TextDifference.Word], isOld: Bool) -> String {
        let color = isOld ? Console.Paint.red : .green
        let parts = words.map { word in
            switch word {
            case .same(let text): part(text)
            case .removed(let text): isOld ? paint(color, part(text)) : ""
            case .added(let text): isOld ? "" : paint(color, part(text))
            }
        }
        return paint(color, isOld ? "     -" : "     +") + " " + parts.joined()
    }

    /// Joins lines, followed by an empty one, without spaces at their ends.
    private func lines(_ lines: [String]) -> String {
        let isBlank = { (line: String) in line.allSatisfy { $0 == " " } }
        let kept = lines.map { isBlank($0) ? "" : $0 }.reversed().drop { $0.isEmpty }.reversed()
        return kept.joined(separator: "\n") + "\n\n"
    }

    /// Returns a text of a server in lines that cannot act on the terminal.
    private func safe(_ text: String) -> String {
        text.split(omittingEmptySubsequences: false) { $0.isNewline }.map { part(String($0)) }.joined(separator: "\n")
    }

    /// Returns a part of a line in the same way, without the carriage return of Windows.
    private func part(_ text: String) -> String {
        text.replacing("\r", with: "").replacing("\t", with: "    ").escapedForDisplay()
    }

    /// Asks a question, and reads the answer from the standard input, which may be a pipe.
    ///
    /// - Returns: Whether the answer is yes; `nil` if the input has ended.
    func ask(_ question: String) -> Bool? {
        write("   " + paint(.bold, safe(question)) + " [y/N] ")
        let answer = readLine()
        // A terminal shows the user's line break; a pipe does not.
        if answer == nil || !console.isLive { write("\n") }
        return answer.map { ["y", "yes"].contains($0.trimmingCharacters(in: .whitespaces).lowercased()) }
    }

    func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data((console.wrapped("terms: \(safe(text))") + "\n").utf8))
    }

    /// Writes a text. The gate goes on if the output is closed.
    func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(console.wrapped(text).utf8)) }
}
