/// A list of patterns with the rules of gitignore; a pass neither downloads nor removes the files that it excludes.
///
/// ```swift
/// let filter = FileFilter(["*.tmp", "/cache/", "!keep.tmp"])
/// ```
///
/// The last pattern that matches a path decides. A pattern with a slash at its beginning or in its middle is compared with the whole path,
/// any other with each name in it. A slash at the end restricts it to directories, `!` re-includes, `*` and `?` match no slash, and `**`
/// between slashes matches any directories. A file in an excluded directory cannot be re-included.
///
/// <doc:FilteringFiles> lists the rules of patterns.
public struct FileFilter: Hashable, Sendable {
    private let patterns: [FilePattern]
    private let stateCount: Int

    /// Creates a filter from patterns; patterns that match nothing, such as comments, are ignored.
    ///
    /// - Parameter patterns: The patterns, in their order; none excludes nothing.
    public init(_ patterns: some Sequence<String> = []) {
        self.patterns = patterns.compactMap { FilePattern(line: $0) }
        stateCount = self.patterns.lazy.map(\.stateCount).max() ?? 0
    }

    /// Creates a filter from the text of a gitignore file.
    ///
    /// - Parameter text: One pattern per line; lines that begin with `#` are comments.
    public init(gitignore text: String) {
        // Editors may write a byte order mark, which git skips, too.
        let text = text.utf8.starts(with: [0xEF, 0xBB, 0xBF]) ? text.utf8.dropFirst(3) : text.utf8[...]
        let lines = text.split(separator: UInt8(ascii: "\n")).map { line in
            String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
        }
        self.init(lines)
    }

    /// Whether the filter excludes nothing, because it has no patterns.
    public var isEmpty: Bool { patterns.isEmpty }

    /// Returns whether a file is excluded, by itself or with a directory above it.
    ///
    /// - Parameter path: The path of a file, with its parts separated by `/`; that of a directory ends with a slash.
    /// - Complexity: Linear in the length of the path, for every pattern.
    public func excludes(_ path: String) -> Bool {
        guard !patterns.isEmpty else { return false }
        let bytes = Array(path.utf8)[...]
        var states = (now: [Bool](repeating: false, count: stateCount), next: [Bool](repeating: false, count: stateCount))
        func isExcluded(_ path: ArraySlice<UInt8>, isDirectory: Bool) -> Bool {
            patterns.last { $0.matches(path, isDirectory: isDirectory, &states) }.map { !$0.isNegated } ?? false
        }
        for slash in bytes.indices where bytes[slash] == UInt8(ascii: "/") {
            if isExcluded(bytes[..<slash], isDirectory: true) { return true }
        }
        return bytes.last != UInt8(ascii: "/") && isExcluded(bytes, isDirectory: false)
    }
}
