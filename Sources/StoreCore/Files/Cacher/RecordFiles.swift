internal import StoreCore
internal import StorePlatform

/// The names of a cacher's own files: records and their temporary files. No other file is ever opened, counted, moved or removed.
enum RecordFiles {
    /// The kind that distinguishes these temporary files from all others.
    static let temporaryKind = "record"

    /// Returns the name of a record's file: 64 lower-case hexadecimal digits and `.record`.
    ///
    /// The name cannot escape the directory, is unambiguous on case-insensitive file systems, and is never too long.
    static func name(of digest: SHA256.Digest) -> String { digest.hex + ".record" }

    /// Returns the digest in a file's name; `nil` if the name is not that of a record.
    static func digest(in name: String) -> SHA256.Digest? {
        let name = name.utf8
        guard name.count == 71, name.suffix(7).elementsEqual(".record".utf8) else { return nil }
        return SHA256.Digest(hex: name.prefix(64))
    }

    /// Returns whether a name is that of a record being written, by any process.
    static func isTemporary(_ name: String) -> Bool { TemporaryFile.isName(name, kind: temporaryKind) }

    /// The least space that counts for a file: a block of the usual file systems. It bounds the number of files too, even where small files
    /// are stored beside their names.
    static let leastSpace = 4_096

    /// Returns the space that counts for a file: what the file system has allocated, at least the size, and at least `leastSpace`.
    ///
    /// Some file systems allocate later, and then report less than the size.
    static func space(of status: FileStatus) -> Int { max(leastSpace, status.allocatedSize, status.size) }

    enum Depth {
        /// The directory alone, without its subdirectories.
        case directory
        /// The directory and its direct subdirectories; symbolic links are not followed.
        case children
    }

    /// Removes all records and their temporary files; does nothing if the directory is missing. Throws the first error, after all other
    /// files are removed.
    static func removeAll(in directory: Directory, depth: Depth = .directory) throws(StoreError) {
        let shared = SharedDirectory(directory)
        guard try shared.exists() else { return try removeFiles(in: directory, depth: depth) }
        // The other processes that use the directory must be notified.
        try shared.removeAllAndWait(depth: depth)
    }

    /// Removes all records and their temporary files; a shared directory's other users do not notice.
    static func removeFiles(in directory: Directory, depth: Depth) throws(StoreError) {
        var failure: StoreError?
        // Listed first: some file systems skip entries of a directory while others are removed.
        var files: [String] = []
        var directories: [String] = []
        if var listing = try directory.list() {
            while let entry = try listing.next() {
                let isOurs = digest(in: entry.name) != nil || isTemporary(entry.name)
                guard isOurs || depth == .children else { continue }
                switch entry.kind == .unknown ? try listing.status(of: entry)?.kind : entry.kind {
                case .regular where isOurs: files.append(entry.name)
                case .directory where depth == .children: directories.append(entry.name)
                default: break
                }
            }
        }
        for name in files {
            do throws(StoreError) { try directory.remove(name) } catch { failure = failure ?? error }
        }
        for name in directories {
            do throws(StoreError) {
                try removeAll(in: Directory(path: directory.path(of: name)))
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }
}
