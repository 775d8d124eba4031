package import StoreCore

// Files that use C structs import only the C library: beside an import of Foundation, the compiler resolves the structs' members to a
// module that cannot be imported.

/// The kind, size, identity, times and number of names of a file.
package struct FileStatus: Hashable, Sendable {
    package var kind: FileKind
    /// The length of the content in bytes.
    package var size: Int
    /// The space that the file system has allocated for the content, in bytes.
    package var allocatedSize: Int
    /// The time of the last change of the content, or of the last mark as used; nanoseconds since 1970.
    package var modified: Int64
    /// The lowest twelve bits of the mode: permissions, set-user, set-group, and sticky bit.
    package var permissions: UInt16
    /// The number of names of the file.
    package var linkCount: Int
    /// The number of the user that owns the file.
    package var owner: UInt32
    /// The identity of the file. No other file has it while the file is open.
    let identity: FileIdentity

    init(_ info: stat) {
        kind = FileKind(mode: info.st_mode)
        // Clamped, because some watches have an `Int` of 32 bits.
        size = Int(clamping: info.st_size)
        allocatedSize = Int(clamping: min(max(0, Int64(info.st_blocks)), .max / 512) * 512)
        modified = FileStatus.nanoseconds(FileStatus.modificationTime(of: info))
        permissions = UInt16(truncatingIfNeeded: info.st_mode & 0o7777)
        linkCount = Int(info.st_nlink)
        owner = UInt32(info.st_uid)
        identity = FileIdentity(info)
    }

    /// Compares everything but the allocation, which some file systems change after the last write.
    package static func == (left: FileStatus, right: FileStatus) -> Bool {
        left.identity == right.identity && left.kind == right.kind && left.size == right.size && left.modified == right.modified
            && left.permissions == right.permissions && left.linkCount == right.linkCount
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(identity) }

    /// The file's number on its device; two names with the same number are one file.
    package var inode: UInt64 { identity.inode }

    /// A path that leads to the file by its number (`/.vol` of Apple's systems), whatever its name is.
    var volumePath: String { "/.vol/\(identity.device)/\(inode)" }

    /// The number of the user that owns the files that this process creates.
    package static var ownUser: UInt32 { UInt32(geteuid()) }

    /// Returns the status of a file without following symbolic links; `nil` if it does not exist.
    package static func of(path: String) throws(StoreError) -> FileStatus? { try of(path, in: AT_FDCWD, path: path) }

    /// Returns the status of a file in an open directory without following links.
    static func of(_ name: String, in directory: Int32, path: @autoclosure () -> String) throws(StoreError) -> FileStatus? {
        var info = stat()
        guard fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0 else { return FileStatus(info) }
        if errno == ENOENT { return nil }
        throw .failedCall("examining", at: path())
    }

    static func of(descriptor: Int32, path: @autoclosure () -> String) throws(StoreError) -> FileStatus {
        var info = stat()
        guard fstat(descriptor, &info) != 0 else { return FileStatus(info) }
        throw .failedCall("examining", at: path())
    }

    /// Returns the number of bytes that this process may still write to the disk of a directory; `nil` if that cannot be determined.
    package static func freeSpace(of directory: DirectoryHandle) -> Int64? {
        #if canImport(Darwin)
        // Here, `statvfs` counts blocks in 32 bits.
        var info = statfs()
        guard fstatfs(directory.descriptor, &info) == 0 else { return nil }
        let size = info.f_bsize
        #else
        var info = statvfs()
        guard fstatvfs(directory.descriptor, &info) == 0 else { return nil }
        let size = info.f_frsize
        #endif
        let (bytes, overflow) = Int64(clamping: info.f_bavail).multipliedReportingOverflow(by: Int64(clamping: size))
        return overflow ? .max : bytes
    }

    /// Returns the size of an open file; `nil` if its path no longer names it, or if that cannot be determined. A relative path begins at
    /// the directory.
    static func size(of path: String, in directory: Int32 = AT_FDCWD, if identity: FileIdentity) -> Int? {
        var named = stat()
        guard fstatat(directory, path, &named, AT_SYMLINK_NOFOLLOW) == 0, FileIdentity(named) == identity else { return nil }
        // Linux reports the removal of a name a moment before the name is gone. A reader that the report wakes may still find it, and
        // receives no second report.
        guard named.st_nlink > 0 else { return nil }
        return Int(clamping: named.st_size)
    }

    /// Returns whether a path leads to an open file, following links as `open` does; `false` if that cannot be determined.
    static func isReached(_ path: String, _ descriptor: Int32) -> Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 && FileIdentity(opened) == FileIdentity(named)
    }

    /// Returns the wall-clock time as file systems count it: nanoseconds since 1970.
    package static func now() -> Int64 {
        var reading = timespec()
        clock_gettime(CLOCK_REALTIME, &reading)
        return nanoseconds(reading)
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        // Clamped to ±146 years: some file systems store years that do not fit, and the difference of two times must fit.
        let (seconds, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        let held = Int64.max / 2
        guard !overflow else { return time.tv_sec < 0 ? -held : held }
        return max(-held, min(held, seconds)) + Int64(time.tv_nsec)
    }
}

/// The identity of an open file.
struct FileIdentity: Hashable, Sendable {
    fileprivate let inode: UInt64
    fileprivate let device: Int64

    fileprivate init(_ info: stat) {
        inode = UInt64(info.st_ino)
        device = Int64(truncatingIfNeeded: info.st_dev)
    }
}

package enum FileKind: Hashable, Sendable {
    case regular
    case directory
    /// A symbolic link itself, not its target.
    case link
    /// A pipe, socket or device, or a kind unknown to this package.
    case other
    /// The file system did not list the kind; the status contains it.
    case unknown

    init(mode: mode_t) {
        switch mode & S_IFMT {
        case S_IFREG: self = .regular
        case S_IFDIR: self = .directory
        case S_IFLNK: self = .link
        default: self = .other
        }
    }

    init(entryType: UInt8) {
        switch Int(entryType) {
        case Int(DT_REG): self = .regular
        case Int(DT_DIR): self = .directory
        case Int(DT_LNK): self = .link
        case Int(DT_UNKNOWN): self = .unknown
        default: self = .other
        }
    }
}

/// Repeats a call while signals interrupt it.
@inline(__always)
func uninterrupted<Result: SignedInteger>(_ call: () -> Result) -> Result {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}
