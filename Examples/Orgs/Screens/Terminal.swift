import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Colours and a line that says what is waited for on a terminal; plain lines, and one for each exchange, anywhere else.
final class Terminal: Sendable {
    private let isLive: Bool
    /// Whether the last line says what is waited for, and goes when something else is written.
    private let isWaiting = Mutex(false)

    init(isPlain: Bool) {
        isLive = !isPlain && isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    func title(_ text: String, _ subtitle: String) { write("\n\(bold(text))  \(dim(subtitle))\n") }

    func heading(_ text: String) { write("\n\(bold(text))\n") }

    func note(_ text: String) { write("  \(dim(text))\n") }

    func failed(_ text: String) { write("  \(paint("31", "✗ \(text)"))\n") }

    /// Something that the output's reader wants to know where nothing moves: left out on a terminal.
    func record(_ text: String) { if !isLive { write("  \(text)\n") } }

    /// What is waited for now.
    func waiting(_ text: String) {
        guard isLive else { return }
        write("  \(paint("33", "◌ \(text) …"))")
        isWaiting.withLock { $0 = true }
    }

    func table(_ table: Table, _ caption: String) {
        let lines = table.lines(width: isLive ? 110 : 160)
        write("  \(dim(caption))\n")
        for (number, line) in lines.enumerated() { write("    \(number == 0 ? dim(line) : line)\n") }
    }

    func summary(_ text: String) { write("\n\(text)\n\n") }

    static func complain(_ text: String) { FileHandle.standardError.write(Data("orgs: \(text)\n".utf8)) }

    private func bold(_ text: String) -> String { paint("1", text) }

    private func dim(_ text: String) -> String { paint("2", text) }

    private func paint(_ code: String, _ text: String) -> String { isLive ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text }

    private func write(_ text: String) {
        isWaiting.withLock { isWaiting in
            FileHandle.standardOutput.write(Data(((isWaiting ? "\r\u{1B}[K" : "") + text).utf8))
            isWaiting = false
        }
    }
}
