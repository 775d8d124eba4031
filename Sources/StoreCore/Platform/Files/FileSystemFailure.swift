#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore

extension StoreError {
    /// Returns the error of a failed system call, with the operation, such as "writing", the path, the reason and the remedy.
    package static func fileSystem(_ operation: String, path: String, errno: Int32) -> StoreError {
        let code = POSIXErrorCode(rawValue: errno)
        let reason = String(cString: strerror(errno))
        let message = "\(operation) \(path.escapedForDisplay()): \(reason) (errno \(errno)); \(advice(for: code))"
        return StoreError(.fileSystem, message, underlyingError: code.map { POSIXError($0) })
    }

    /// Returns the error of the last system call. Reads its number first, because a call that makes the path may set another one.
    static func failedCall(_ operation: String, at path: @autoclosure () -> String) -> StoreError {
        let code = errno
        return .fileSystem(operation, path: path(), errno: code)
    }

    /// The error number of the failed call; `nil` if this is no error of the file system.
    package var fileSystemErrno: Int32? {
        guard code == .fileSystem, let error = underlyingError as? POSIXError else { return nil }
        return error.code.rawValue
    }

    /// Whether the name belongs to a socket, which cannot be opened: `ENXIO` on Linux, `EOPNOTSUPP` on Apple's systems.
    package var isOfSocket: Bool {
        let code = fileSystemErrno
        return code == ENXIO || code == EOPNOTSUPP
    }

    /// Whether the disk, or the user's share of it, is full.
    package var isFullDisk: Bool {
        let code = (underlyingError as? POSIXError)?.code
        return code == .ENOSPC || code == .EDQUOT
    }

    private static func advice(for code: POSIXErrorCode?) -> String {
        switch code {
        case .ENOSPC, .EDQUOT: "free some space on the disk and try again"
        case .EFBIG: "the file is larger than the system allows; keep less in one file"
        case .EACCES, .EPERM: "let this process write to the directory, or choose another one"
        case .EROFS: "the disk is mounted read-only; choose a directory that can be written"
        case .ENOTDIR: "a part of the path is not a directory; choose another directory"
        case .ENOENT: "a part of the path is missing; create it and try again"
        case .EISDIR, .EEXIST, .ENOTEMPTY: "something else already has this name; move it away"
        case .ELOOP: "a symbolic link has this name and is not followed; move it away"
        case .ENAMETOOLONG: "choose a directory with a shorter path"
        case .EMFILE, .ENFILE: "too many files are open; close some and try again"
        default: "look at the disk and at the path, then try again"
        }
    }
}
