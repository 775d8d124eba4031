/// An item of a list that becomes a file in a directory: its key is the file's path there.
///
/// A path has its parts separated by `/`, as in `films/1927/metropolis.mp4`; what could lead out of the directory is refused. Where the
/// list carries no version, the digest is one.
public protocol FileItem: SyncItem where Key == String, Version == String {
    /// The digest that the content must have, as 64 hexadecimal digits; `nil` where the list does not say.
    var sha256: String? { get }
}

extension FileItem {
    /// Not said.
    public var sha256: String? { nil }
}

/// A file of a remote list.
///
/// ```swift
/// let file = ListedFile(path: "films/7.mp4", sha256: digest, byteCount: 73_400_320)
/// ```
public struct ListedFile: FileItem, Hashable, Codable {
    /// Where the file stands in the directory.
    public var path: String
    /// What tells that it has changed.
    public var version: String
    /// How many bytes it has; `nil` where that is not known.
    public var byteCount: Int64?
    /// The digest of its content; `nil` where that is not known.
    public var sha256: String?

    /// The path.
    public var key: String { path }

    /// Describes a file whose version is told by the list.
    ///
    /// - Parameters:
    ///   - path: Where the file stands in the directory.
    ///   - version: What tells that it has changed: a revision, an entity tag.
    ///   - byteCount: How many bytes it has.
    ///   - sha256: The digest of its content, as 64 hexadecimal digits.
    public init(path: String, version: String, byteCount: Int64? = nil, sha256: String? = nil) {
        self.path = path
        self.version = version
        self.byteCount = byteCount
        self.sha256 = sha256
    }

    /// Describes a file whose version is its digest.
    ///
    /// - Parameters:
    ///   - path: Where the file stands in the directory.
    ///   - sha256: The digest of its content, as 64 hexadecimal digits.
    ///   - byteCount: How many bytes it has.
    public init(path: String, sha256: String, byteCount: Int64? = nil) {
        self.init(path: path, version: sha256, byteCount: byteCount, sha256: sha256)
    }

    /// Reads a file of a list: `path`, and `version` or `sha256`; `byteCount` where the list has it.
    ///
    /// - Throws: `DecodingError` where the list says neither version nor digest.
    public init(from decoder: any Decoder) throws {
        let file = try decoder.container(keyedBy: CodingKeys.self)
        let digest = try file.decodeIfPresent(String.self, forKey: .sha256)
        let path = try file.decode(String.self, forKey: .path)
        guard let version = try file.decodeIfPresent(String.self, forKey: .version) ?? digest else {
            let words = "reading a list of files: “\(path.shownSafely)” has neither version nor sha256; the list must say one of them"
            throw DecodingError.keyNotFound(CodingKeys.version, .init(codingPath: decoder.codingPath, debugDescription: words))
        }
        self.init(path: path, version: version, byteCount: try file.decodeIfPresent(Int64.self, forKey: .byteCount), sha256: digest)
    }

    private enum CodingKeys: String, CodingKey {
        case path, version, byteCount, sha256
    }
}
