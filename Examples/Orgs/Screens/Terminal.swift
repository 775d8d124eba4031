import Console
import Foundation
import Synchronization

/// Colours and a line that says what is waited for on a terminal; plain lines, and one for each exchange, anywhere else.
final class Terminal: Sendable {
    private let console: Console
    /// Whether the last line says what is waited for, and goes when something else is written.
    private let isWaiting = Mutex(false)

    init(isPlain: Bool) {
        console = Console(isPlain: isPlain)
    }

    func title(_ text: String, _ subtitle: String) { write("\n\(bold(text))  \(dim(subtitle))\n") }

    func heading(_ text: String) { write("\n\(bold(text))\n") }

    func note(_ text: String) { write("  \(dim(text))\n") }

    func failed(_ text: String) { write("  \(console.paint(.red, "✗ \(text)"))\n") }

    /// Something that the output's reader wants to know where nothing moves: left out on a terminal.
    func record(_ text: String) { if !console.isLive { write("  \(text)\n") } }

    /// What is waited for now.
    func waiting(_ text: String) {
        guard console.isLive else { return }
        write(console.paint(.yellow, console.fitted("  ◌ \(text) …")))
        isWaiting.withLock { $0 = true }
    }

    func table(_ table: Table, _ caption: String) {
        // Where nobody watches the lines go to a file or a program, which do not mind how long they are.
        let lines = table.lines(width: console.isLive ? max(20, console.width - 4) : 160)
        write("  \(dim(caption))\n")
        for (number, line) in lines.enumerated() { write("    \(number == 0 ? dim(line) : line)\n") }
    }

    func summary(_ text: String) { write("\n\(text)\n\n") }

    static func complain(_ text: String) { FileHandle.standardError.write(Data("orgs: \(text)\n".utf8)) }

    private func bold(_ text: String) -> String { console.paint(.bold, text) }

    private func dim(_ text: String) -> String { console.paint(.dim, text) }

    private func write(_ text: String) {
        isWaiting.withLock { isWaiting in
            FileHandle.standardOutput.write(Data(((isWaiting ? "\r\u{1B}[K" : "") + text).utf8))
            isWaiting = false
        }
    }
}
