internal import Foundation

/// What a program writes to: whether somebody watches, whether in colours, and how wide it is.
///
/// Colours go by [NO_COLOR](https://no-color.org): set to anything, it takes them away and nothing else.
public struct Console: Sendable {
    /// Whether a line may be written over: the output is a terminal that can do so, and nobody has asked for plain lines.
    public let isLive: Bool
    /// Whether anything is painted.
    public let hasColours: Bool

    private let columns: Int?

    /// Looks at the standard output.
    ///
    /// - Parameter isPlain: Whether plain lines were asked for.
    public init(isPlain: Bool = false) {
        self.init(isPlain: isPlain, isTerminal: TerminalSize.isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    /// Looks at what it is told.
    public init(isPlain: Bool, isTerminal: Bool, environment: [String: String]) {
        isLive = !isPlain && isTerminal && environment["TERM"] != "dumb"
        hasColours = isLive && environment["NO_COLOR", default: ""].isEmpty
        columns = environment["COLUMNS"].flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
    }

    /// How many characters a line has at this moment: what `COLUMNS` says, or else the terminal, or else 80.
    public var width: Int { columns ?? (isLive ? TerminalSize.columns : nil) ?? 80 }

    /// A line that is written over must fit: one that the terminal breaks stays.
    public func fitted(_ line: String) -> String { String(line.prefix(width - 1)) }

    /// The text, painted where there are colours.
    public func paint(_ paint: Paint, _ text: String) -> String { hasColours ? "\u{1B}[\(paint.rawValue)m\(text)\u{1B}[0m" : text }

    /// How a text is painted.
    public enum Paint: String, Sendable {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }
}
