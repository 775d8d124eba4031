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
    /// At any time, even before the first unlock: for content that is not private.
    case none
}

/// Whether backups of the device include a directory, on Apple's systems; ignored elsewhere.
public enum FileBackup: Hashable, Sendable {
    /// The setting of the parent directory.
    case inherited
    /// Never: the content can be fetched again.
    case excluded
}
