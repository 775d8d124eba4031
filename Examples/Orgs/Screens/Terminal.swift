import Console
import Foundation
import StoreCore
import Synchronization

/// Writes colors and a progress line to a terminal, and plain lines with one line for each exchange to any other output.
final class Terminal: Sendable {
    private let console: Console
    /// Whether the last line is a progress line, which the next output replaces.
    private let isWaiting = Mutex(false)

    init(isPlain: Bool) {
        console = Console(isPlain: isPlain)
    }

    func title(_ text: String, _ subtitle: String) { write("\n\(bold(text))  \(dim(subtitle))\n") }

    func heading(_ text: String) { write("\n\(bold(text))\n") }

    func note(_ text: String) { write("  \(dim(text))\n") }

    func failed(_ text: String) { write("  \(console.paint(.red, "✗ \(text)"))\n") }

    /// Writes a detail of the run; omitted on a terminal, where the progress line replaces it.
    func record(_ text: String) { if !console.isLive { write("  \(text)\n") } }

    /// Shows the current work in the progress line.
    func waiting(_ text: String) {
        guard console.isLive else { return }
        write(console.paint(.yellow, console.fitted("  ◌ \(text) …")))
        isWaiting.withLock { $0 = true }
    }

    func table(_ table: Table, _ caption: String) {
        // Output that is not a terminal may have long lines.
        let lines = table.lines(width: console.isLive ? max(20, console.width - 4) : 160)
        write("  \(dim(caption.escapedForDisplay()))\n")
        for (number, line) in lines.enumerated() { write("    \(number == 0 ? dim(line) : line)\n") }
    }

    func summary(_ text: String) { write("\n\(text)\n\n") }

    static func complain(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data("orgs: \(text)\n".utf8)) }

    private func bold(_ text: String) -> String { console.paint(.bold, text) }

    private func dim(_ text: String) -> String { console.paint(.dim, text) }

    private func write(_ text: String) {
        let text = console.wrapped(text)
        isWaiting.withLock { isWaiting in
            try? FileHandle.standardOutput.write(contentsOf: Data(((isWaiting ? "\r\u{1B}[K" : "") + text).utf8))
            isWaiting = false
        }
    }
}
