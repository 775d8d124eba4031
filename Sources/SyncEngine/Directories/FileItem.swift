/// An item of a list that becomes a file in a directory: its key is the file's path there.
///
/// A path has its parts separated by `/`, as in `films/1927/metropolis.mp4`; a path that could lead out of the directory is refused. Where the
/// list carries no version, the digest is one.
public protocol FileItem: SyncItem where Key == PathKey, Version == String {
    /// The place of the file in the directory.
    var path: String { get }

    /// The digest that the content must have, as 64 hexadecimal digits; `nil` where the list does not say.
    var sha256: String? { get }
}

extension FileItem {
    /// The path, compared byte by byte.
    public var key: PathKey { PathKey(path) }

    /// Not said.
    public var sha256: String? { nil }
}
