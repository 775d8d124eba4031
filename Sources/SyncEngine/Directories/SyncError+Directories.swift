internal import StoreCore
internal import StorePlatform

extension SyncError.Code {
    /// The target's directory was removed or unmounted during a pass.
    public static let targetVanished = SyncError.Code(rawValue: "targetVanished")
    /// The process has no permission to read a file or directory of the target.
    public static let unreadable = SyncError.Code(rawValue: "unreadable")
    /// An item of the list is malformed: its digest is invalid, or its size is negative.
    public static let invalidItem = SyncError.Code(rawValue: "invalidItem")
    /// A directory of the target is on another disk, so that no file can be renamed into it.
    public static let otherDisk = SyncError.Code(rawValue: "otherDisk")
    /// The target's own directory, or one in it, belongs to another user.
    public static let foreignOwner = SyncError.Code(rawValue: "foreignOwner")
    /// The process has no permission to change names in the target's directory, or in one below it.
    public static let targetDenied = SyncError.Code(rawValue: "targetDenied")
    /// A foreign file cannot be removed: it is a link or a special file, or its name is not UTF-8.
    public static let unremovable = SyncError.Code(rawValue: "unremovable")
    /// The rate of transfers is not positive.
    public static let invalidRate = SyncError.Code(rawValue: "invalidRate")
    /// The pass needs more space than the target's disk has.
    public static let noSpace = SyncError.Code(rawValue: "noSpace")
    /// A transfer broke the rules of `FilePart`, for example by beginning at a wrong offset.
    public static let transferMisused = SyncError.Code(rawValue: "transferMisused")
}

extension SyncError {
    static func ofItem(_ code: Code, _ path: PathKey, _ reason: String) -> SyncError {
        SyncError(code, "cannot download “\(path.shownSafely)”: \(reason); correct the list")
    }

    static func vanished(_ path: String, underlyingError: (any Error)? = nil) -> SyncError {
        SyncError(
            .targetVanished,
            "cannot work in \(path.shownSafely): the directory is gone, or its path leads to another one; nothing was removed because of this; "
                + "restore the directory or mount its disk, then sync again",
            underlyingError: underlyingError)
    }

    static func foreign(_ path: String, owner: UInt32) -> SyncError {
        SyncError(
            .foreignOwner,
            "cannot work in \(path.shownSafely): it belongs to the user with the number \(owner) and not to this process; nothing was "
                + "changed; give it to the user of this process, or remove it, then sync again")
    }

    static func denied(_ path: String, underlyingError: any Error) -> SyncError {
        SyncError(
            .targetDenied,
            "cannot work in \(path.shownSafely): this process may not add or remove names there; old files stay; grant write permission, then "
                + "sync again", underlyingError: underlyingError)
    }

    /// - Parameter place: A directory below the target.
    static func denied(_ place: PathKey, underlyingError: any Error) -> SyncError {
        var error = SyncError(
            .targetDenied,
            "cannot work in “\(place.shownSafely)” of the target: this process may not add or remove names there; its old files "
                + "stay, and its other items were left alone; grant write permission, then sync again", underlyingError: underlyingError)
        error.place = place
        return error
    }

    static func unremovable(_ path: PathKey, _ reason: String) -> SyncError {
        SyncError(
            .unremovable,
            "cannot remove “\(path.shownSafely)”, which no sync has installed: \(reason); it was left alone; remove it by hand")
    }

    static func unreadable(_ path: PathKey, underlyingError: any Error) -> SyncError {
        var error = SyncError(
            .unreadable,
            "cannot compare “\(path.shownSafely)”: it cannot be read by this process; it was left alone; grant read permission, or move it away "
                + "if the list has a file there", underlyingError: underlyingError)
        error.place = path
        return error
    }

    static func locked(_ path: String, holder: String?) -> SyncError {
        SyncError(
            .targetLocked,
            "cannot begin a pass in \(path): \(holder.map { "process \($0)" } ?? "another synchronizer") works in this directory; "
                + "wait until its pass has ended, then sync again")
    }

    static func taken(_ path: PathKey, by what: String) -> SyncError {
        SyncError(.nameTaken, "cannot install “\(path.shownSafely)”: \(what); it was left alone; move it away, then sync again")
    }

    static func leading(_ key: PathKey, through link: PathKey) -> SyncError {
        let reason = "it leads through the link “\(link.shownSafely)”, which no sync has made"
        return SyncError(.unsafeName, "cannot make the link “\(key.shownSafely)”: \(reason); correct the list")
    }

    static func elsewhere(_ path: PathKey, underlyingError: any Error) -> SyncError {
        SyncError(
            .otherDisk,
            "cannot install “\(path.shownSafely)”: its directory is on another disk than the target, so no file can be renamed into it; make that "
                + "directory a target of its own, or unmount the disk, then sync again", underlyingError: underlyingError)
    }

    static func clash(_ path: PathKey, with other: PathKey) -> SyncError {
        SyncError(
            .nameClash,
            "cannot install “\(path.shownSafely)”: this disk treats its name and “\(other.shownSafely)” as equal; neither file was overwritten; "
                + "rename one of them, or choose a disk that distinguishes them")
    }

    /// - Parameter isWorthRetrying: Whether another attempt may return other bytes.
    static func wrongContent(_ path: String, _ reason: String, isWorthRetrying: Bool) -> SyncError {
        var error = SyncError(
            .wrongContent,
            "cannot install “\(path.shownSafely)”: \(reason); check the list and the origin, then sync again")
        error.isWorthRetrying = isWorthRetrying
        return error
    }
}

extension Error {
    /// Whether the error denies access to a single file or directory, so that the rest of the target can still be compared.
    var isDenial: Bool {
        guard let code = (self as? StoreError)?.fileSystemErrno else { return false }
        return code == EACCES || code == EPERM
    }

    /// Whether the disk has lost a part of a file.
    var isLoss: Bool { (self as? StoreError)?.fileSystemErrno == EIO }
}

extension FileKind {
    /// A clause for a message about the object that has a name.
    var words: String {
        switch self {
        case .regular: "a file has this name"
        case .directory: "a directory has this name"
        case .link: "a symbolic link has this name, and links are not followed"
        case .other, .unknown: "something other than a regular file has this name"
        }
    }
}
