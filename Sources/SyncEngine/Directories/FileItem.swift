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
