/// An item of a list that becomes a file in a directory; its key is the file's path.
///
/// A path separates its parts by `/`, as in `films/1927/metropolis.mp4`. A path that could lead out of the directory is refused. If the
/// list has no versions, use the digest as the version.
public protocol FileItem: SyncItem where Key == PathKey, Version == String {
    /// The path of the file in the directory.
    var path: String { get }

    /// The expected digest of the content as 64 hexadecimal digits; `nil` if the list has none.
    var sha256: String? { get }
}

extension FileItem {
    /// The path, compared byte by byte.
    public var key: PathKey { PathKey(path) }

    /// The default: no digest.
    public var sha256: String? { nil }
}
