/// A step of a pass in a directory, reported to a test just before it happens; a test that throws makes the step fail.
enum TargetStep: Hashable, Sendable {
    /// A directory below the root is listed.
    case lists(String)
    /// An existing file is read for comparison.
    case reads(String)
    /// Bytes are written to the part of a file.
    case writes(String)
    /// A file is flushed on its own.
    case synchronizes(String)
    /// A flush of all writes begins.
    case flushBegins
    /// A flush of all writes has ended.
    case flushEnds
    /// A complete download is renamed to its final name.
    case renames(String)
    /// A complete download was renamed to its final name.
    case renamed(String)
}
