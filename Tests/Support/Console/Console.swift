internal import Foundation

/// The standard output of a program: whether it can be redrawn, whether it has colors, and its width.
///
/// [NO_COLOR](https://no-color.org), set to any value, removes the colors and nothing else.
public struct Console: Sendable {
    /// Whether lines can be overwritten: the output is a capable terminal, and plain lines were not requested.
    public let isLive: Bool
    /// Whether output is colored.
    public let hasColours: Bool

    private let columns: Int?

    /// Examines the standard output.
    ///
    /// - Parameter isPlain: Whether plain lines are requested.
    public init(isPlain: Bool = false) {
        self.init(isPlain: isPlain, isTerminal: TerminalSize.isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    /// Makes a console from explicit facts, for tests.
    public init(isPlain: Bool, isTerminal: Bool, environment: [String: String]) {
        isLive = !isPlain && isTerminal && environment["TERM"] != "dumb"
        hasColours = isLive && environment["NO_COLOR", default: ""].isEmpty
        columns = environment["COLUMNS"].flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
    }

    /// Returns the path and the reason of an error of Foundation's file operations; `nil` for other errors.
    public static func reason(ofFileError error: any Error) -> String? {
        guard let error = error as? CocoaError, let path = error.filePath ?? error.url?.path(percentEncoded: false) else { return nil }
        return "\(path): \(error.localizedDescription)"
    }

    /// The current number of characters in a line: `COLUMNS`, or else the terminal's width, or else 80.
    public var width: Int { columns ?? (isLive ? TerminalSize.columns : nil) ?? 80 }

    /// Returns a line cut to the width, because a line that the terminal wraps cannot be overwritten.
    public func fitted(_ line: String) -> String { String(line.prefix(width - 1)) }

    /// Returns a text whose lines break between words instead of at the terminal's edge; other output keeps its lines.
    ///
    /// - Parameters:
    ///   - text: The text, which may be painted.
    ///   - indentation: The indentation of continued lines; `nil` for two more than that of their first line.
    public func wrapped(_ text: String, indentation: Int? = nil) -> String {
        guard columns != nil || isLive else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { wrapped(line: $0, indentation) }.joined(separator: "\n")
    }

    private func wrapped(line: Substring, _ indentation: Int?) -> String {
        let visible = { (text: Substring) in text.replacing(/\u{1B}\[[0-9;?]*[A-Za-z]|\r/, with: "").count }
        guard visible(line) > width else { return String(line) }
        let margin = String(repeating: " ", count: indentation ?? line.prefix { $0 == " " }.count + 2)
        var (lines, current) = ([String](), Substring())
        for (index, word) in line.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
            let extended = index == 0 ? word : current + " " + word
            if visible(extended) > width, current.contains(where: { $0 != " " }) {
                lines.append(String(current.reversed().drop { $0 == " " }.reversed()))
                current = margin + word
            } else {
                current = extended
            }
        }
        return (lines + [String(current)]).joined(separator: "\n")
    }

    /// Returns the text, painted if output is colored.
    public func paint(_ paint: Paint, _ text: String) -> String { hasColours ? "\u{1B}[\(paint.rawValue)m\(text)\u{1B}[0m" : text }

    /// The style of a painted text.
    public enum Paint: String, Sendable {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }
}
