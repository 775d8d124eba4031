internal import Foundation
internal import StoreCore

extension SyncError.Code {
    /// The target's directory was removed, or its disk taken away, in the middle of a pass.
    public static let targetVanished = SyncError.Code(rawValue: "targetVanished")
    /// A file or directory of the target cannot be read by this process.
    public static let unreadable = SyncError.Code(rawValue: "unreadable")
    /// An item of the list is not well-formed: its digest is none, or its size is negative.
    public static let invalidItem = SyncError.Code(rawValue: "invalidItem")
    /// A directory of the target is on another disk, so that no file can be put there in one step.
    public static let otherDisk = SyncError.Code(rawValue: "otherDisk")
    /// A transfer did what its part of the bargain does not allow, such as beginning at a byte that is not the next one.
    public static let transferMisused = SyncError.Code(rawValue: "transferMisused")
}

extension SyncError {
    static func vanished(_ path: String, underlyingError: (any Error)? = nil) -> SyncError {
        SyncError(
            .targetVanished,
            "working in \(path.shownSafely): the directory is gone, or another one has its path now; nothing was removed on its account. "
                + "Bring it back, or the disk it is on, and sync again",
            underlyingError: underlyingError)
    }

    /// A file or directory that the process may not read.
    static func unreadable(_ path: PathKey, underlyingError: any Error) -> SyncError {
        SyncError(
            .unreadable,
            "looking at “\(path.shownSafely)”: it cannot be read by this process, and was left alone. Let this process read it, or move it "
                + "away if the list has a file there", underlyingError: underlyingError)
    }

    static func locked(_ path: String, holder: String?) -> SyncError {
        SyncError(
            .targetLocked,
            "beginning a pass in \(path): \(holder.map { "process \($0)" } ?? "another synchronizer") works in this directory; "
                + "wait until it has ended, and sync again")
    }

    static func taken(_ path: PathKey, by what: String) -> SyncError {
        SyncError(.nameTaken, "putting “\(path.shownSafely)” in place: \(what); it was left alone. Move it away, and sync again")
    }

    static func elsewhere(_ path: PathKey, underlyingError: any Error) -> SyncError {
        SyncError(
            .otherDisk,
            "putting “\(path.shownSafely)” in place: its directory is on another disk than the target, where no file can be put in one step. Make a "
                + "target of that directory, or take the disk away, and sync again", underlyingError: underlyingError)
    }

    static func clash(_ path: PathKey, with other: PathKey) -> SyncError {
        SyncError(
            .nameClash,
            "putting “\(path.shownSafely)” in place: this disk takes it for the same name as “\(other.shownSafely)”; neither was overwritten. Give one of them "
                + "another name, or choose a disk that tells them apart")
    }

    /// - Parameter isWorthRetrying: Whether the next attempt may bring other bytes.
    static func wrongContent(_ path: String, _ reason: String, isWorthRetrying: Bool) -> SyncError {
        var error = SyncError(
            .wrongContent,
            "downloading “\(path.shownSafely)”: \(reason); it did not get the name. Look at the list and at the origin, then sync again")
        error.isWorthRetrying = isWorthRetrying
        return error
    }
}

extension Error {
    /// Whether the process may not look at a single file or directory: the rest of the target can still be compared.
    var isDenial: Bool {
        guard let code = (self as? StoreError)?.fileSystemErrno else { return false }
        return code == POSIXErrorCode.EACCES.rawValue || code == POSIXErrorCode.EPERM.rawValue
    }
}

extension FileKind {
    /// What stands under a name, in words.
    var words: String {
        switch self {
        case .regular: "a file has this name"
        case .directory: "a directory has this name"
        case .link: "a symbolic link has this name, and links are not followed"
        case .other, .unknown: "something that is no plain file has this name"
        }
    }
}

/// What the system answers where a directory must be and something else is.
let notDirectory: Int32 = POSIXErrorCode.ENOTDIR.rawValue

/// What the system answers where a file is to be given a name on another disk.
let onAnotherDisk: Int32 = POSIXErrorCode.EXDEV.rawValue

/// The number of a failure that another attempt may get past.
let onceMore: Int32 = POSIXErrorCode.EAGAIN.rawValue
