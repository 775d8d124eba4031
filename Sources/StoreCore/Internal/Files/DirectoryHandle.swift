#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open directory: what is done through it stays in that directory, whatever becomes of the names above it.
///
/// No call follows a symbolic link, so that a chain of handles from a root cannot be led out of it, also not by somebody who puts a link in
/// place meanwhile. Closed when nobody holds it any more.
package final class DirectoryHandle: Sendable {
    let descriptor: Int32
    /// The path it was opened with, for messages.
    package let path: String

    private init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    /// Opens a directory; of all calls only this one follows links, since the path is the owner's own word.
    ///
    /// - Returns: `nil` where there is nothing.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package convenience init?(opening directory: Directory) throws(StoreError) {
        let descriptor = uninterrupted { open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT { return nil }
            throw .fileSystem("opening directory", path: directory.path, errno: code)
        }
        self.init(descriptor: descriptor, path: directory.path)
    }

    deinit {
        // It was only looked things up in.
        _ = close(descriptor)
    }

    /// Opens a directory in this one.
    ///
    /// - Parameter name: Its name; a single one.
    /// - Returns: `nil` where there is nothing of this name.
    /// - Throws: ``StoreError/Code/fileSystem``; with `ENOTDIR` where the name is that of a file or a link.
    package func directory(_ name: String) throws(StoreError) -> DirectoryHandle? {
        let descriptor = uninterrupted { openat(self.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        if descriptor >= 0 { return DirectoryHandle(descriptor: descriptor, path: path(of: name)) }
        let code = errno
        if code == ENOENT { return nil }
        // Systems do not agree on what a link that is not followed is told by.
        throw .fileSystem("opening directory", path: path(of: name), errno: code == ELOOP ? ENOTDIR : code)
    }

    /// Opens a directory in this one, and makes it if it is missing.
    ///
    /// - Parameters:
    ///   - name: Its name; a single one.
    ///   - durability: With ``Durability/power`` this directory is synchronized, so that the new one lasts.
    ///   - mode: The permissions of a new directory; `nil` gives it 0777 without the bits of the process's umask.
    /// - Throws: ``StoreError/Code/fileSystem``; with `ENOTDIR` where the name is that of a file or a link.
    package func makeDirectory(
        _ name: String, durability: Durability = .crash, mode: UInt16? = nil
    ) throws(StoreError) -> DirectoryHandle {
        if let existing = try directory(name) { return existing }
        let result = uninterrupted { mkdirat(descriptor, name, mode_t(mode ?? 0o777)) }
        // Somebody else may have been faster.
        guard result == 0 || errno == EEXIST else { throw .fileSystem("making directory", path: path(of: name), errno: errno) }
        let isNew = result == 0
        if durability == .power { try synchronize() }
        if let made = try directory(name) {
            if let mode, isNew { try made.setPermissions(mode) }
            return made
        }
        throw .fileSystem("opening directory", path: path(of: name), errno: ENOENT)
    }

    /// Opens the directory for listing.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func list() throws(StoreError) -> DirectoryListing {
        try DirectoryListing(self)
    }

    /// Kind, size, times and identity of what stands under a name; `nil` where there is nothing.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func status(of name: String) throws(StoreError) -> FileStatus? {
        try FileStatus.of(name, in: descriptor, path: path)
    }

    /// Gives the directory these permissions, regardless of the umask.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func setPermissions(_ mode: UInt16) throws(StoreError) {
        try FileStatus.setPermissions(mode, of: descriptor, path: path)
    }

    /// Whether a path still leads to this directory, through links as when it was opened; `false` if that cannot be found out.
    package func isReached(by directory: Directory) -> Bool { FileStatus.isReached(directory.path, descriptor) }

    /// Whether the directory has been removed: it is still open, but nothing can be put into it any more.
    package var isRemoved: Bool { FileStatus.isRemoved(descriptor) }

    /// Gives a file another name, in place of the file that has it.
    ///
    /// - Parameters:
    ///   - name: The file's name here.
    ///   - target: The directory of the other name, on the same disk.
    ///   - targetName: The other name.
    /// - Throws: ``StoreError/Code/fileSystem``; with `EXDEV` where the two are not on one disk.
    package func rename(_ name: String, to target: DirectoryHandle, as targetName: String) throws(StoreError) {
        guard renameat(descriptor, name, target.descriptor, targetName) == 0 else {
            throw .fileSystem("renaming a new file to", path: target.path(of: targetName), errno: errno)
        }
    }

    /// Removes the file under a name; a symbolic link is removed itself, not what it points to.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``StoreError/Code/fileSystem``.
    @discardableResult
    package func remove(_ name: String) throws(StoreError) -> Bool {
        guard unlinkat(descriptor, name, 0) != 0 else { return true }
        let code = errno
        if code == ENOENT { return false }
        throw .fileSystem("removing", path: path(of: name), errno: code)
    }

    /// Removes the directory under a name where it is empty.
    ///
    /// - Returns: Whether it was removed; `false` where it is not empty, or not there.
    /// - Throws: ``StoreError/Code/fileSystem``.
    @discardableResult
    package func removeDirectory(_ name: String) throws(StoreError) -> Bool {
        guard unlinkat(descriptor, name, AT_REMOVEDIR) != 0 else { return true }
        let code = errno
        if code == ENOENT || code == ENOTEMPTY || code == EEXIST { return false }
        throw .fileSystem("removing directory", path: path(of: name), errno: code)
    }

    /// Brings names that were made, changed or removed here to the disk.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func synchronize() throws(StoreError) {
        guard synchronizeDescriptor(descriptor) == 0 else { throw .fileSystem("synchronizing directory", path: path, errno: errno) }
    }

    /// Whether the system can bring a whole file system to the disk.
    package static var synchronizesFileSystems: Bool {
        #if os(Linux)
        syncFileSystem != nil
        #else
        false
        #endif
    }

    /// Brings everything to the disk that was written to the directory's file system, by anybody.
    ///
    /// - Returns: Whether the system can do that; where it cannot, each file and directory must be synchronized by itself.
    /// - Throws: ``StoreError/Code/fileSystem``.
    package func synchronizeFileSystem() throws(StoreError) -> Bool {
        #if os(Linux)
        guard let syncFileSystem else { return false }
        guard uninterrupted({ syncFileSystem(descriptor) }) == 0 else {
            throw .fileSystem("synchronizing the file system of", path: path, errno: errno)
        }
        return true
        #else
        return false
        #endif
    }

    func path(of name: String) -> String {
        path == "/" ? "/" + name : path + "/" + name
    }
}
