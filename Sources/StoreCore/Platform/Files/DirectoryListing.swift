package import StoreCore

/// The entries of a directory in no particular order; closed when the value goes out of scope.
package struct DirectoryListing: ~Copyable {
    /// An entry, with its kind if the file system lists the kind.
    package struct Entry: Hashable, Sendable {
        /// The name. Bytes that are not UTF-8 are replaced, so such a name never looks like a name of this package.
        package var name: String
        /// The kind; `unknown` if the file system lists names only.
        package var kind: FileKind
        /// Whether the name is UTF-8. The repaired text of another name may be the name of another file.
        package var isUTF8: Bool
    }

    private let stream: DirectoryStream
    private let path: String

    init?(_ directory: Directory) throws(StoreError) {
        guard let stream = opendir(directory.path) else {
            if errno == ENOENT { return nil }
            throw .failedCall("listing directory", at: directory.path)
        }
        self.stream = stream
        self.path = directory.path
    }

    /// Lists an open directory; the position of its handle does not change.
    init(_ directory: DirectoryHandle) throws(StoreError) {
        path = directory.path
        let descriptor = uninterrupted { openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .failedCall("listing directory", at: path) }
        guard let stream = fdopendir(descriptor) else {
            defer { _ = close(descriptor) }
            throw .failedCall("listing directory", at: path)
        }
        self.stream = stream
    }

    deinit {
        // Nothing was written, so an error needs no handling.
        _ = closedir(stream)
    }

    /// Returns the next entry, without `.` and `..`; `nil` at the end. Entries added or removed meanwhile may be missing or present.
    package mutating func next() throws(StoreError) -> Entry? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno == 0 { return nil }
                throw .failedCall("listing directory", at: path)
            }
            // Reads by offset, because an entry is shorter than its C type and ends with its name.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
            let characters = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
            if characters[0] == 0x2E, characters[1] == 0 || (characters[1] == 0x2E && characters[2] == 0) { continue }
            let name = String(validatingCString: characters)
            return Entry(
                name: name ?? String(cString: characters), kind: FileKind(entryType: entry.pointee.d_type), isUTF8: name != nil)
        }
    }

    /// Returns the status of an entry without following links; `nil` if it was removed.
    package func status(of entry: Entry) throws(StoreError) -> FileStatus? {
        try FileStatus.of(entry.name, in: dirfd(stream), path: path + "/" + entry.name)
    }
}
