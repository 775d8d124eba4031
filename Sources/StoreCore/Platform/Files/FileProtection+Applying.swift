#if canImport(Darwin)
internal import Darwin
#endif
package import StoreCore

extension FileProtection {
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
