/// What is ours in a directory, by its name: records and their temporary files. Anything else is never opened, counted, moved or removed.
enum RecordFiles {
    /// Tells our temporary files from those of others.
    static let temporaryKind = "record"

    /// The name of a record's file: 64 lower-case hexadecimal digits and `.record`.
    ///
    /// It cannot lead out of the directory, is the same on file systems that fold case, and is never too long.
    static func name(of digest: SHA256.Digest) -> String { digest.hex + ".record" }

    /// The digest in a file's name; `nil` where the name is not that of a record.
    static func digest(in name: String) -> SHA256.Digest? {
        let name = name.utf8
        guard name.count == 71, name.suffix(7).elementsEqual(".record".utf8) else { return nil }
        return SHA256.Digest(hex: name.prefix(64))
    }

    /// Whether a name is that of a record being written, by any process.
    static func isTemporary(_ name: String) -> Bool { TemporaryFile.isName(name, kind: temporaryKind) }

    /// How far a removal goes.
    enum Depth {
        /// The directory alone.
        case directory
        /// The directory and those that stand directly in it; links are not followed.
        case children
    }

    /// Removes all records and their temporary files; a directory that is missing has none.
    ///
    /// - Parameters:
    ///   - directory: Where to remove them.
    ///   - depth: How far to go.
    /// - Throws: The first failure, after all other files were removed all the same.
    static func removeAll(in directory: Directory, depth: Depth = .directory) throws(StoreError) {
        var failure: StoreError?
        // Listed first: some file systems skip entries of a directory from which others are removed meanwhile.
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
