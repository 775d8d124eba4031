package import StoreCore

/// An open directory; its calls act in that directory even if the names above it change.
///
/// No call follows a symbolic link. A chain of handles therefore cannot leave its root, even if an attacker places a link meanwhile. The
/// directory is closed when the last reference ends.
package final class DirectoryHandle: Sendable, FilePlace, OpenDescriptor {
    package let descriptor: Int32
    /// The path at which the directory was opened, for messages.
    package let path: String

    private init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    /// Opens a directory, or returns `nil` if the path does not exist; only this call follows links, because the app chose the path.
    package convenience init?(opening directory: Directory) throws(StoreError) {
        let descriptor = uninterrupted { open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .failedCall("opening directory", at: directory.path)
        }
        self.init(descriptor: descriptor, path: directory.path)
    }

    deinit {
        // Nothing was written, so an error needs no handling.
        _ = close(descriptor)
    }

    package var base: Int32 { descriptor }

    package func reference(_ name: String) -> String { name }

    /// Opens a directory in this directory; `nil` if the name does not exist. Throws `ENOTDIR` if the name belongs to a file or a link.
    package func directory(_ name: String) throws(StoreError) -> DirectoryHandle? {
        let descriptor = uninterrupted { openat(self.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        if descriptor >= 0 { return DirectoryHandle(descriptor: descriptor, path: path(of: name)) }
        let code = errno
        if code == ENOENT { return nil }
        // Systems report a link that is not followed with different codes.
        throw .fileSystem("opening directory", path: path(of: name), errno: code == ELOOP ? ENOTDIR : code)
    }

    /// Opens a directory in this directory, and creates it if it is missing. Throws `ENOTDIR` if the name belongs to a file or a link.
    ///
    /// With ``Durability/power`` this directory is synchronized, so that the new name survives. Without a mode, a new directory gets 0777
    /// without the bits of the process's umask.
    package func makeDirectory(
        _ name: String, durability: Durability = .crash, mode: UInt16? = nil
    ) throws(StoreError) -> DirectoryHandle {
        if let existing = try directory(name) { return existing }
        let result = uninterrupted { mkdirat(descriptor, name, mode_t(mode ?? 0o777)) }
        // Another process may have created the directory first.
        guard result == 0 || errno == EEXIST else { throw .fileSystem("making directory", path: path(of: name), errno: errno) }
        let isNew = result == 0
        if durability == .power { try synchronize() }
        if let made = try directory(name) {
            if let mode, isNew { try made.setPermissions(mode) }
            return made
        }
        throw .fileSystem("opening directory", path: path(of: name), errno: ENOENT)
    }

    package func list() throws(StoreError) -> DirectoryListing { try DirectoryListing(self) }

    /// Whether the process may add and remove names in this directory; `false` if that cannot be determined.
    package var isWritable: Bool { faccessat(descriptor, ".", W_OK | X_OK, AT_EACCESS) == 0 }

    /// A path that leads to this directory while it is open, even if the names above it change; `nil` if the system has none.
    ///
    /// Code that needs a path can then act in the directory without following a link that was placed on the way to it.
    package var lastingPath: String? {
        lastingPaths.first { FileStatus.isReached($0, descriptor) }
    }

    /// Sets the permissions of the file with this name, which need not be readable; does not follow a link. Linux needs glibc 2.32 for this.
    package func setPermissions(_ mode: UInt16, of name: String) throws(StoreError) {
        guard fchmodat(descriptor, name, mode_t(mode), AT_SYMLINK_NOFOLLOW) != 0 else { return }
        throw .failedCall("changing the permissions of", at: path(of: name))
    }

    /// Returns whether a path still leads to this directory, following links; `false` if that cannot be determined.
    package func isReached(by directory: Directory) -> Bool { FileStatus.isReached(directory.path, descriptor) }

    /// Whether the directory has been removed; it is still open, but accepts no more files.
    package var isRemoved: Bool { (try? status())?.linkCount == 0 }

    /// Renames a file, and replaces a file that has the new name. Throws `EXDEV` if the directories are on different disks.
    package func rename(_ name: String, to target: DirectoryHandle, as targetName: String) throws(StoreError) {
        try renameFile(descriptor, name, target.descriptor, targetName, path: target.path(of: targetName))
    }

    /// Gives a file a second name, which must be free, on the same disk; a symbolic link is linked itself, not what it points to. Throws
    /// `EXDEV`, `EPERM` or `EOPNOTSUPP` where the file cannot have two names.
    package func link(_ name: String, to target: DirectoryHandle, as targetName: String) throws(StoreError) {
        guard linkat(descriptor, name, target.descriptor, targetName, 0) == 0 else {
            throw .failedCall("linking a file to", at: target.path(of: targetName))
        }
    }

    /// Creates a symbolic link with a text. Throws `EEXIST` if the name is taken.
    package func makeLink(_ name: String, to text: String) throws(StoreError) {
        guard symlinkat(text, descriptor, name) == 0 else { throw .failedCall("making a link", at: path(of: name)) }
    }

    /// Returns the text of a symbolic link; `nil` if none has this name, or if its text is not UTF-8 or longer than 4 095 bytes.
    package func textOfLink(_ name: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = bytes.withUnsafeMutableBytes { buffer in
            guard let start = buffer.bindMemory(to: CChar.self).baseAddress else { return 0 }
            return uninterrupted { readlinkat(descriptor, name, start, buffer.count) }
        }
        guard count > 0, count < bytes.count else { return nil }
        return String(validating: bytes.prefix(count), as: UTF8.self)
    }

    /// Removes the directory with this name, and returns `true`; `false` if it is not empty or does not exist.
    @discardableResult
    package func removeDirectory(_ name: String) throws(StoreError) -> Bool {
        guard unlinkat(descriptor, name, AT_REMOVEDIR) != 0 else { return true }
        if [ENOENT, ENOTEMPTY, EEXIST].contains(errno) { return false }
        throw .failedCall("removing directory", at: path(of: name))
    }

    package func synchronize() throws(StoreError) {
        guard synchronizeDescriptor(descriptor) == 0 else { throw .failedCall("synchronizing directory", at: path) }
    }
}

/// Renames a file in one step, and replaces a file that has the new name. Each name is relative to the directory before it.
func renameFile(
    _ directory: Int32, _ name: String, _ newDirectory: Int32, _ newName: String, path: @autoclosure () -> String
) throws(StoreError) {
    guard renameat(directory, name, newDirectory, newName) != 0 else { return }
    throw .failedCall("renaming a new file to", at: path())
}
