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

    /// The current number of characters in a line: `COLUMNS`, or else the terminal's width, or else 80.
    public var width: Int { columns ?? (isLive ? TerminalSize.columns : nil) ?? 80 }

    /// Returns a line cut to the width, because a line that the terminal wraps cannot be overwritten.
    public func fitted(_ line: String) -> String { String(line.prefix(width - 1)) }

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
