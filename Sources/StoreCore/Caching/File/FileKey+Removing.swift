extension FileKey {
    /// Removes every record from a directory, of whatever cacher and schema version, and nothing else.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``, the first one; the other records are removed all the same.
    static func removeRecords(in directory: Directory) throws(StoreError) {
        guard var listing = try directory.list() else { return }
        var failure: StoreError?
        while let entry = try listing.next() {
            let isOurs = digest(fileName: entry.name) != nil || TemporaryFile.isName(entry.name, kind: temporaryKind)
            guard isOurs else { continue }
            do throws(StoreError) {
                let kind = entry.kind == .unknown ? try listing.status(of: entry)?.kind : entry.kind
                if kind == .regular { try directory.remove(entry.name) }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// The same in a directory and in those that stand directly in it; links are not followed.
    static func removeRecords(inAndBelow directory: Directory) throws(StoreError) {
        try removeRecords(in: directory)
        guard var listing = try directory.list() else { return }
        while let entry = try listing.next() {
            let kind = entry.kind == .unknown ? try listing.status(of: entry)?.kind : entry.kind
            if kind == .directory { try removeRecords(in: Directory(path: directory.path(of: entry.name))) }
        }
    }
}
