#if canImport(Darwin)
internal import Darwin
#endif

/// When the content of a file can be read, on Apple's systems that encrypt files one by one; elsewhere it has no effect.
public enum FileProtection: Hashable, Sendable {
    /// As the directory or the app's entitlements say.
    case inherited
    /// Only while the device is unlocked.
    case complete
    /// Only while the device is unlocked, or for as long as it was open before.
    case completeUnlessOpen
    /// From the first time the device is unlocked after it started.
    case untilFirstUnlock
    /// Always.
    case none

    /// Sets the protection of an open file that is still empty.
    func apply(to descriptor: Int32, path: String) throws(StoreError) {
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
        // Volumes without this kind of encryption (a Mac's, the simulator's) have nothing to set.
        guard code == ENOTSUP || code == EINVAL || code == ENOTTY else { throw .fileSystem("protecting", path: path, errno: code) }
        #endif
    }
}

/// Whether a backup of the device takes a directory with it, on Apple's systems; elsewhere it has no effect.
public enum FileBackup: Hashable, Sendable {
    /// As the directory above says.
    case inherited
    /// Never: what it holds can be fetched again.
    case excluded
}
