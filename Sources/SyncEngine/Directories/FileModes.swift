/// The permissions of the files and directories that a target makes.
///
/// By default the process's umask decides, as for any other file that the process makes: a file has 0666 without the bits of the umask, a
/// directory 0777 without them. A fixed mode ignores the umask:
///
/// ```swift
/// let shared = FileModes(files: 0o664, directories: 0o2775)
/// ```
///
/// One rule holds for every file, however its bytes arrive, and for an updated file too, which does not inherit the permissions of the old one.
/// Files and directories that are in place already keep theirs.
public struct FileModes: Hashable, Sendable {
    /// The permission bits of each file; `nil` leaves them to the umask. The owner may always read.
    public var files: UInt16?
    /// The permission bits of each directory, the target's own included; `nil` leaves them to the umask. The owner may do everything.
    public var directories: UInt16?

    /// Describes the permissions of files and directories.
    ///
    /// - Parameters:
    ///   - files: The permission bits of each file, such as `0o644`; bits beyond 0777 are ignored.
    ///   - directories: The permission bits of each directory, such as `0o755`; bits beyond 07777 are ignored.
    public init(files: UInt16? = nil, directories: UInt16? = nil) {
        self.files = files.map { $0 & 0o777 | 0o400 }
        self.directories = directories.map { $0 & 0o7777 | 0o700 }
    }
}
