/// The permissions of the files and directories that a target creates.
///
/// By default the process's umask applies, as for other files of the process. Files get 0666 and directories 0777, each without the bits of
/// the umask. A fixed mode ignores the umask:
///
/// ```swift
/// let shared = FileModes(files: 0o664, directories: 0o2775)
/// ```
///
/// The rule holds for every downloaded file, including updates, which do not inherit the permissions of the replaced file. Existing files
/// and directories keep theirs.
///
/// <doc:MirrorsOfFiles> explains the permissions of files.
public struct FileModes: Hashable, Sendable {
    /// The permission bits of each file; `nil` applies the umask. The owner can always read.
    public var files: UInt16?
    /// The permission bits of each directory, including the target's own; `nil` applies the umask. The owner always has full access.
    public var directories: UInt16?

    /// Creates the permissions of files and directories.
    ///
    /// - Parameters:
    ///   - files: The permission bits of each file, such as `0o644`; bits beyond 0777 are ignored.
    ///   - directories: The permission bits of each directory, such as `0o755`; bits beyond 07777 are ignored.
    public init(files: UInt16? = nil, directories: UInt16? = nil) {
        self.files = files.map { $0 & 0o777 | 0o400 }
        self.directories = directories.map { $0 & 0o7777 | 0o700 }
    }
}
