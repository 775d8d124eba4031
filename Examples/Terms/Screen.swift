import Console
import Foundation
import TextStore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The output of the gate: colors on a terminal, plain lines elsewhere.
struct Screen {
    private let console: Console
    /// Whether the standard input is a terminal.
    let canAsk: Bool

    init(isPlain: Bool) {
        console = Console(isPlain: isPlain)
        canAsk = isatty(STDIN_FILENO) == 1
    }

    private func paint(_ paint: Console.Paint, _ text: String) -> String { console.paint(paint, text) }

    func title(_ name: String, _ subtitle: String) { write("\n" + paint(.bold, name) + "  " + paint(.dim, subtitle) + "\n\n") }

    func note(_ text: String) { write("   " + paint(.dim, "▸ \(text)") + "\n") }

    func good(_ text: String) { write("   " + paint(.green, "✓ ") + text + "\n") }

    func warning(_ text: String) { write("   " + paint(.yellow, "▲ ") + text + "\n") }

    func show(_ text: VersionedText) {
        write("\n" + lines(text.text.split(separator: "\n", omittingEmptySubsequences: false).map { "     \($0)" }))
    }

    func show(_ difference: LineDifference) {
        let shown = difference.lines.map { line in
            switch line {
            case .same(let text): "       \(text)"
            case .removed(let text): paint(.red, "     - \(text)")
            case .added(let text): paint(.green, "     + \(text)")
            }
        }
        write("\n" + lines(shown))
    }

    /// Joins lines, followed by an empty one, without spaces at their ends.
    private func lines(_ lines: [String]) -> String {
        let isBlank = { (line: String) in line.allSatisfy { $0 == " " } }
        let kept = lines.map { isBlank($0) ? "" : $0 }.reversed().drop { $0.isEmpty }.reversed()
        return kept.joined(separator: "\n") + "\n\n"
    }

    /// Asks a question and returns whether the answer is yes.
    func ask(_ question: String) -> Bool {
        write("   " + paint(.bold, question) + " [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased() ?? "")
    }

    func complain(_ text: String) { FileHandle.standardError.write(Data((console.wrapped("terms: \(text)") + "\n").utf8)) }

    func write(_ text: String) { FileHandle.standardOutput.write(Data(console.wrapped(text).utf8)) }
}
