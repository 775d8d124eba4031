#if canImport(Darwin)
internal import Darwin
#endif

/// The periods during which a file's content can be read, on Apple's systems with file-level encryption; ignored elsewhere.
public enum FileProtection: Hashable, Sendable {
    /// The protection of the directory or of the app's entitlements.
    case inherited
    /// Only while the device is unlocked.
    case complete
    /// Only while the device is unlocked; a file that is already open stays readable.
    case completeUnlessOpen
    /// From the first unlock after the device has started.
    case untilFirstUnlock
    /// Always.
    case none

    /// Sets the protection of an open file that is still empty.
    package func apply(to descriptor: Int32, path: String) throws(StoreError) {
        #if canImport(Darwin)
        let level: Int32
        // The classes A to D of the system's data protection.
        switch self {
        case .inherited: return
        case .complete: level = 1
        case .completeUnlessOpen: level = 2
        case .untilFirstUnlock: level = 3
        case .none: level = 4
        }
        guard fcntl(descriptor, F_SETPROTECTIONCLASS, level) != 0 else { return }
        let code = errno
        // Volumes without file-level encryption, such as those of a Mac or the simulator, do not support protection classes.
        guard code == ENOTSUP || code == EINVAL || code == ENOTTY else { throw .fileSystem("protecting", path: path, errno: code) }
        #endif
    }
}

/// Whether backups of the device include a directory, on Apple's systems; ignored elsewhere.
public enum FileBackup: Hashable, Sendable {
    /// The setting of the parent directory.
    case inherited
    /// Never: the content can be fetched again.
    case excluded
}
