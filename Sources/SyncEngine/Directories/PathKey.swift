/// The key of a file in a directory: its path, compared byte by byte.
///
/// Swift takes two strings as equal if they differ only in their Unicode normal form. Most disks do not: `é` composed and decomposed are two
/// files there. Keys of files are therefore compared, hashed and ordered by their UTF-8, as `LC_ALL=C sort` orders a list.
///
/// ```swift
/// let key: PathKey = "films/1927/metropolis.mp4"
/// print(key.path)
/// ```
public struct PathKey: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The path, with its parts separated by `/`.
    public let path: String

    /// Makes a key of a path.
    ///
    /// - Parameter path: The path, with its parts separated by `/`.
    public init(_ path: String) {
        var path = path
        // A string of Objective-C would be converted at each comparison.
        path.makeContiguousUTF8()
        self.path = path
    }

    /// Makes a key of a path.
    public init(stringLiteral path: String) { self.init(path) }

    /// The path.
    public var description: String { path }

    /// Whether both paths have the same bytes.
    public static func == (lhs: PathKey, rhs: PathKey) -> Bool {
        lhs.path.utf8.count == rhs.path.utf8.count && lhs.path.utf8.elementsEqual(rhs.path.utf8)
    }

    /// Whether one path comes before the other by its bytes.
    public static func < (lhs: PathKey, rhs: PathKey) -> Bool { lhs.path.utf8.lexicographicallyPrecedes(rhs.path.utf8) }

    /// Hashes the bytes of the path.
    public func hash(into hasher: inout Hasher) {
        var path = path
        path.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // The end of the bytes, as no UTF-8 has it.
        hasher.combine(0xFF as UInt8)
    }

    /// Whether all normal forms of the path are the same.
    var isASCII: Bool { path.utf8.allSatisfy { $0 < 0x80 } }

    /// The names of the directories, from the top, and of the file.
    ///
    /// By bytes: as characters, a slash and an accent after it are one.
    var parts: [String] { path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) } }
}
