internal import StorePlatform

/// A file of a remote list.
///
/// ```swift
/// let file = ListedFile(
///     path: "films/7.mp4", sha256: digest, byteCount: 73_400_320)
/// ```
///
/// In a list, a file is an object with `path` and at least one of `sha256` and `version`. `size` (or `byteCount`) and `url` are optional:
///
/// ```text
/// {"path": "films/7.mp4", "sha256": "9f86d0…", "size": 73400320,
///  "url": "https://cdn.example.com/7.mp4"}
/// ```
///
/// <doc:MirrorsOfFiles> explains the format of the list, <doc:TimesModesAndLinks> its metadata.
public struct ListedFile: FileItem, Hashable, Codable {
    /// The path of the file in the directory.
    public var path: String
    /// The size in bytes; `nil` if the list has none.
    public var byteCount: Int64?
    /// The address of the content, absolute or relative to the list's; `nil` if it follows from the path.
    public var url: String?
    /// The version, unless it is the digest.
    private var tag: String?
    private var digest: DigestText?
    /// At most one; an array, because an empty one takes only a pointer, and most lists have no metadata.
    private var described: [FileMetadata] = []

    /// A digest in 32 bytes, because its text would take three times as much for each file of a list.
    private enum DigestText: Hashable, Sendable {
        case digest(SHA256.Digest)
        /// Text that is not a digest, kept for the error message.
        case other(String)

        init(_ text: String) {
            // Accepts only lowercase digits, so that the text is encoded as it was decoded.
            self = SHA256.Digest(hex: text.utf8).map { .digest($0) } ?? .other(text)
        }

        var text: String {
            switch self {
            case .digest(let digest): digest.hex
            case .other(let text): text
            }
        }
    }

    /// The digest of the content as 64 hexadecimal digits; `nil` if the list has none.
    public var sha256: String? {
        get { digest?.text }
        set { digest = newValue.map(DigestText.init) }
    }

    /// The time and the permissions of the file, or the kind of another object; `nil` if the list gives none.
    public var metadata: FileMetadata? {
        get { described.first }
        set { described = newValue.map { [$0] } ?? [] }
    }

    /// The version: a revision or an entity tag, or the digest if the list has neither.
    public var version: String {
        get { tag ?? digest?.text ?? "" }
        set { tag = newValue }
    }

    /// Creates a file with a version given by the list; each parameter sets the property of its name.
    public init(path: String, version: String, byteCount: Int64? = nil, sha256: String? = nil, url: String? = nil) {
        self.path = path
        self.byteCount = byteCount
        self.url = url
        digest = sha256.map(DigestText.init)
        tag = version == sha256 || version.isEmpty ? nil : version
    }

    /// Creates an object without content: a directory or a link at a path.
    public init(path: String, kind: FileMetadata.Kind) {
        self.init(path: path, version: "")
        metadata = FileMetadata(kind: kind)
    }

    /// Creates a file with its digest as its version; each parameter sets the property of its name.
    public init(path: String, sha256: String, byteCount: Int64? = nil, url: String? = nil) {
        self.init(path: path, version: sha256, byteCount: byteCount, sha256: sha256, url: url)
    }

    /// Creates a file from the parts of a list; `nil` if it gives neither a version nor a digest of 64 lowercase digits.
    init?(path: String, version: String?, byteCount: Int64?, digest text: (some RandomAccessCollection<UInt8>)?, url: String?) {
        let digest = text.flatMap { SHA256.Digest(hex: $0) }
        guard version != nil || digest != nil, text == nil || digest != nil else { return nil }
        self.path = path
        self.byteCount = byteCount
        self.url = url
        self.digest = digest.map { .digest($0) }
        tag = version == digest?.hex ? nil : version
    }

    /// Decodes a file of a list.
    ///
    /// - Throws: `DecodingError` if the list gives neither version nor digest, or two different sizes.
    public init(from decoder: any Decoder) throws {
        let file = try decoder.container(keyedBy: CodingKeys.self)
        let path = try file.decode(String.self, forKey: .path)
        let digest = try file.decodeIfPresent(String.self, forKey: .sha256)
        let version = try file.decodeIfPresent(String.self, forKey: .version) ?? digest ?? ""
        guard let kind = try version.isEmpty ? Self.kind(in: file) : FileMetadata.Kind.file else {
            let words = "“\(path.shownSafely)” has neither version nor sha256; add one of them to the list"
            throw DecodingError.keyNotFound(CodingKeys.version, .init(codingPath: decoder.codingPath, debugDescription: words))
        }
        let size = try file.decodeIfPresent(Int64.self, forKey: .size)
        let byteCount = try file.decodeIfPresent(Int64.self, forKey: .byteCount)
        if let size, let byteCount, size != byteCount {
            let words = "“\(path.shownSafely)” has the size \(size) and the byteCount \(byteCount); remove one of them from the list"
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: words))
        }
        self.init(
            path: path, version: version, byteCount: size ?? byteCount, sha256: digest,
            url: try file.decodeIfPresent(String.self, forKey: .url))
        // A list may use these keys for something else, so another form is ignored.
        let mode = (try? file.decodeIfPresent(String.self, forKey: .mode)).flatMap { UInt16($0, radix: 8) }
        let time = (try? file.decodeIfPresent(Double.self, forKey: .mtime)).map { Int64(exactly: $0.rounded(.down)) ?? .max }
        if kind != .file || mode != nil || time != nil { metadata = FileMetadata(kind: kind, mode: mode, modified: time) }
        if let key = UnknownKeys.userInfoKey, let unknown = decoder.userInfo[key] as? UnknownKeys {
            for key in try decoder.container(keyedBy: AnyKey.self).allKeys where CodingKeys(stringValue: key.stringValue) == nil {
                unknown.found(key.stringValue)
            }
        }
    }

    /// Returns the kind of an object without version and digest; `nil` if the list gives none.
    private static func kind(in file: KeyedDecodingContainer<CodingKeys>) throws -> FileMetadata.Kind? {
        if let link = try file.decodeIfPresent(String.self, forKey: .link) { return .link(to: link) }
        return try file.decodeIfPresent(String.self, forKey: .type) == "directory" ? .directory : nil
    }

    /// Encodes the file in the format of a list.
    public func encode(to encoder: any Encoder) throws {
        var file = encoder.container(keyedBy: CodingKeys.self)
        try file.encode(path, forKey: .path)
        // With a version or a digest, an object without content would be decoded as a file.
        if metadata?.kind ?? .file == .file {
            try file.encodeIfPresent(tag, forKey: .version)
            try file.encodeIfPresent(sha256, forKey: .sha256)
        }
        try file.encodeIfPresent(byteCount, forKey: .size)
        try file.encodeIfPresent(url, forKey: .url)
        guard let metadata else { return }
        try file.encodeIfPresent(metadata.modified, forKey: .mtime)
        try file.encodeIfPresent(metadata.mode.map { "0" + String($0, radix: 8) }, forKey: .mode)
        if metadata.kind == .directory { try file.encode("directory", forKey: .type) }
        if case .link(let text) = metadata.kind { try file.encode(text, forKey: .link) }
    }

    private enum CodingKeys: String, CodingKey {
        case path, version, size, byteCount, sha256, url, mtime, mode, type, link
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

/// An item of a list that becomes a file in a directory; its key is the file's path.
///
/// A path separates its parts by `/`, as in `films/1927/metropolis.mp4`. A path that could lead out of the directory is refused. If the
/// list has no versions, use the digest as the version.
public protocol FileItem: SyncItem where Key == PathKey, Version == String {
    /// The path of the file in the directory.
    var path: String { get }

    /// The expected digest of the content as 64 hexadecimal digits; `nil` if the list has none.
    var sha256: String? { get }

    /// The time and the permissions of the file, or the kind of another object; `nil` if the list gives none.
    var metadata: FileMetadata? { get }
}

extension FileItem {
    /// The path, compared byte by byte.
    public var key: PathKey { PathKey(path) }

    /// The default: no digest, so a target checks at most the size of a download.
    public var sha256: String? { nil }

    /// The default: none, so the item is a file with the time of its download.
    public var metadata: FileMetadata? { nil }
}
