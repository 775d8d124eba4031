#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#if canImport(SwiftOverlayShims)
internal import SwiftOverlayShims
#endif
#elseif canImport(Musl)
internal import Musl
#endif

/// The terminal of the standard output.
///
/// A separate file, because beside an import of Foundation the compiler resolves C structs to a module that cannot be imported.
enum TerminalSize {
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// The terminal's width; `nil` without a terminal or if the width is unknown.
    static var columns: Int? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}
