/// The key of a file in a directory: its path, compared byte by byte.
///
/// Swift treats strings as equal if they differ only in their Unicode normal form. Most disks do not: for them, a composed and a decomposed
/// `é` name two files. Keys of files are therefore compared, hashed and sorted by their UTF-8 bytes, as `LC_ALL=C sort` sorts a list.
///
/// ```swift
/// let key: PathKey = "films/1927/metropolis.mp4"
/// print(key.path)
/// ```
public struct PathKey: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The path, with its parts separated by `/`.
    public let path: String

    /// Creates the key of a path.
    ///
    /// - Parameter path: The path, with its parts separated by `/`.
    public init(_ path: String) {
        var path = path
        // A bridged Objective-C string would be converted in each comparison.
        path.makeContiguousUTF8()
        self.path = path
    }

    /// Creates the key of a path.
    public init(stringLiteral path: String) { self.init(path) }

    /// The path as in the list, without escaping.
    public var description: String { path }

    /// Returns whether both paths have the same bytes.
    public static func == (lhs: PathKey, rhs: PathKey) -> Bool {
        lhs.path.utf8.count == rhs.path.utf8.count && lhs.path.utf8.elementsEqual(rhs.path.utf8)
    }

    /// Returns whether one path precedes the other by its bytes.
    public static func < (lhs: PathKey, rhs: PathKey) -> Bool { lhs.path.utf8.lexicographicallyPrecedes(rhs.path.utf8) }

    /// Hashes the bytes of the path.
    public func hash(into hasher: inout Hasher) {
        var path = path
        path.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // A terminator that does not occur in UTF-8.
        hasher.combine(0xFF as UInt8)
    }

    /// Whether the path consists of ASCII characters, so that it has only one normal form.
    var isASCII: Bool { path.utf8.allSatisfy { $0 < 0x80 } }

    /// The names of the directories, outermost first, and of the file.
    ///
    /// Splits by bytes, because a slash and a combining accent after it form one character.
    var parts: [String] { path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) } }
}
