internal import StoreCore
internal import StorePlatform

/// The files of a directory, compared with a journal's records.
struct DirectoryScan: Sendable {
    /// A file that differs from its record, or that has none.
    struct Entry: Sendable {
        var path: PathKey
        /// `nil` if no sync has installed the file.
        var version: String?
        var size: Int
        var isEdited: Bool
        /// Whether a sync installed the file and its content was damaged, for example by a power loss.
        var isTorn = false
        /// Whether the process lacks permission to read the file, so that its origin is unknown.
        var isUnreadable = false
    }

    /// The files that differ from their records.
    private(set) var entries: [Entry] = []
    /// The journal's rows of the files that match their records.
    private(set) var unchanged = RowSet()
    /// The journal's rows of all files that exist.
    private var present = RowSet()
    private let folding: NameFolding
    private let keepsForeign: Bool
    private let acceptsLoss: Bool
    /// The journal's rows by composed path, for paths that have several normal forms; `nil` until the first lookup.
    private var foldedRows: [PathKey: Int]?
    /// Files that were edited, and files that no sync has installed.
    private(set) var edited: [PathKey: FileStamp] = [:]
    /// Files with a changed stamp but the same content, with their new records; torn files, with records of the content that they have.
    private(set) var confirmed: [PathKey: FileRecord] = [:]
    /// Foreign files that a sync was about to replace when the process ended, so that their records describe no file.
    private(set) var uninstalled: [PathKey] = []
    /// Files that have a record but no longer exist.
    private(set) var vanished: [PathKey] = []
    /// Files and directories that the process has no permission to read, by path.
    private(set) var unreadable: [PathKey: any Error] = [:]
    /// Foreign objects that no pass can remove, with the reasons; collected only if foreign files are to be removed.
    private(set) var unremovable: [(path: PathKey, reason: String)] = []
    /// Whether a file whose name may not be on the disk yet was not compared with its record.
    private(set) var missesUnsettled = false

    /// Compares a directory with its journal, without changing anything.
    ///
    /// With `keepsForeign`, or before the first pass is complete, a file that may be foreign counts as foreign rather than as edited. With `acceptsLoss`, a file that the disk
    /// cannot read counts as one with other content. The probe is called before each directory is listed and each file read.
    init(
        of root: DirectoryHandle, journal: TargetJournal, folding: NameFolding, keepsForeign: Bool = true, acceptsLoss: Bool = false,
        probe: ((TargetStep) throws -> Void)? = nil
    ) throws {
        self.folding = folding
        self.keepsForeign = keepsForeign
        self.acceptsLoss = acceptsLoss
        try DirectoryWalk.visit(root) { directory, prefix in
            if !prefix.isEmpty { try probe?(.lists(String(prefix.dropLast()))) }
            return try take(directory, below: prefix, journal, probe)
        } refuse: { path, error in
            // Skips the directory, because the process cannot have synchronized it. The rest can still be compared.
            guard error.isDenial else { throw error }
            unreadable[PathKey(path)] = error
        }
        vanished = journal.records.indices.compactMap { row in
            guard !present.contains(row), let path = journal.records.path(at: row), unreadable.cause(of: path) == nil else { return nil }
            return path
        }.sorted()
        if !missesUnsettled, !unreadable.isEmpty {
            missesUnsettled = journal.records.indices.contains { row in
                !journal.isSettled(row) && journal.records.path(at: row).map { unreadable.cause(of: $0) != nil } ?? false
            }
        }
        // A removed directory looks empty. Accepting that would download every file into an unlinked directory.
        if root.isRemoved { throw SyncError.vanished(root.path) }
    }

    /// Records that a file with a known stamp has other content than its record.
    mutating func markDamaged(_ row: Int, _ journal: TargetJournal) {
        guard let path = journal.records.path(at: row) else { return }
        unchanged.remove(row)
        entries.append(Entry(path: path, version: nil, size: journal.records.record(at: row).stamp.size, isEdited: false, isTorn: true))
    }

    /// The paths of all files that exist, by the journal that the directory was compared with.
    func paths(_ journal: TargetJournal) -> [PathKey] {
        journal.records.indices.compactMap { present.contains($0) ? journal.records.path(at: $0) : nil }
            + entries.lazy.map(\.path).filter { journal.records.row(of: $0) == nil }
    }

    /// Records the files of one directory and returns the names of its subdirectories.
    private mutating func take(
        _ directory: DirectoryHandle, below prefix: String, _ journal: TargetJournal, _ probe: ((TargetStep) throws -> Void)?
    ) throws -> [String] {
        var inner: [String] = []
        var listing = try directory.list()
        while let entry = try listing.next() {
            if prefix.isEmpty, NameFolding.all.fold(entry.name) == RelativePath.reserved {
                // Where the disk does not fold names, another spelling is the user's, but no list can contain it.
                if entry.name != RelativePath.reserved, folding.isEmpty, !keepsForeign {
                    unremovable.append((PathKey(entry.name), "its name is reserved for the target"))
                }
                continue
            }
            // A list cannot contain such a name, and its repaired text may be the name of another file.
            guard entry.isUTF8 else {
                if !keepsForeign { unremovable.append((PathKey(prefix + entry.name), "its name is not UTF-8")) }
                continue
            }
            guard entry.kind != .directory else {
                inner.append(entry.name)
                continue
            }
            // The file may disappear between the two calls.
            guard let status = try listing.status(of: entry) else { continue }
            if status.kind == .directory {
                inner.append(entry.name)
            } else if status.kind == .regular {
                let path = PathKey(prefix + entry.name)
                try take(path, FileStamp(status), journal) {
                    try probe?(.reads(path.path))
                    return try Self.digest(of: entry.name, in: directory)
                }
            } else if !keepsForeign, journal.placed[PathKey(prefix + entry.name)] == nil {
                unremovable.append((PathKey(prefix + entry.name), "\(status.kind.words)"))
            }
        }
        return inner
    }

    private mutating func take(_ found: PathKey, _ stamp: FileStamp, _ journal: TargetJournal, digest: () throws -> SHA256.Digest?) throws {
        guard let row = journal.records.row(of: found) ?? foldedRow(of: found, journal) else {
            edited[found] = stamp
            entries.append(Entry(path: found, version: nil, size: stamp.size, isEdited: true))
            return
        }
        // If the disk lists the name in another normal form, the key keeps the spelling of the list.
        guard present.insert(row), let path = journal.records.path(at: row) else { return }
        let isSettled = journal.isSettled(row)
        if isSettled, journal.records.isCurrent(row, stamp) {
            unchanged.insert(row)
            return
        }
        let record = journal.records.record(at: row)
        func digestIfReadable() throws -> SHA256.Digest? {
            do { return try digest() } catch  where error.isDenial {
                unreadable[path] = error
                return nil
            } catch  where acceptsLoss && error.isLoss {
                return nil
            }
        }
        if isSettled, let known = record.matching(stamp) {
            entries.append(Entry(path: path, version: known.version, size: stamp.size, isEdited: false))
            if known != record { confirmed[path] = known }
        } else if record.mayHave(size: stamp.size), let found = try digestIfReadable(), var known = record.matching(found) {
            known.stamp = stamp
            known.before = []
            confirmed[path] = known
            entries.append(Entry(path: path, version: known.version, size: stamp.size, isEdited: false))
        } else if unreadable[path] != nil {
            // Treats the file as foreign, because its content is unknown and a sync never removes a foreign file.
            entries.append(Entry(path: path, version: nil, size: stamp.size, isEdited: true, isUnreadable: true))
        } else if keepsForeign || journal.unfinished != nil, !isSettled, record.before.isEmpty, stamp.inode != record.stamp.inode {
            // The process may have ended between the record and the rename, with a foreign file under the name.
            uninstalled.append(path)
            edited[path] = stamp
            entries.append(Entry(path: path, version: nil, size: stamp.size, isEdited: true))
        } else {
            // An unflushed file with its recorded inode and no later write was torn by a power loss, not edited.
            let isTorn = !isSettled && stamp.inode == record.stamp.inode && stamp.modified <= record.stamp.modified
            // The end of the pass vouches for every record, even if this file cannot be replaced. Its version then differs from the list's.
            if isTorn {
                do {
                    if let found = try digest() { confirmed[path] = FileRecord(version: found.hex, digest: found, stamp: stamp) }
                } catch  where error.isDenial || error.isLoss {
                    // It can still be replaced.
                    missesUnsettled = true
                }
            }
            edited[path] = stamp
            entries.append(Entry(path: path, version: isTorn ? nil : record.version, size: stamp.size, isEdited: !isTorn, isTorn: isTorn))
        }
    }

    /// The row of a path that the disk, such as HFS+, lists in a normal form other than that of its creation.
    private mutating func foldedRow(of path: PathKey, _ journal: TargetJournal) -> Int? {
        guard folding.contains(.normalization), !path.isASCII else { return nil }
        let rows = foldedRows ?? journal.rowsByNormalForm
        foldedRows = rows
        return rows[NameFolding.normalization.fold(path)]
    }

    /// The digest of a file; `nil` if it does not exist or is not a regular file.
    static func digest(of name: String, in directory: DirectoryHandle) throws -> SHA256.Digest? {
        guard let file = try OpenFile(reading: name, in: directory) else { return nil }
        let status = try file.status()
        guard status.kind == .regular else { return nil }
        return try file.digest(of: status.size)
    }
}

extension OpenDescriptor where Self: ~Copyable {
    /// Returns the digest of the first bytes of a file, unless the task is canceled: a large file takes minutes.
    func digest(of size: Int) throws -> SHA256.Digest {
        var hash = SHA256()
        _ = try hash.update(from: 0, to: size) { buffer, offset in
            try Task.checkCancellation()
            return try read(into: buffer, at: offset)
        }
        return hash.digest()
    }
}

extension [PathKey: any Error] {
    /// Returns the path at or above another, with its error; `nil` if there is none.
    func cause(of key: PathKey) -> (path: PathKey, error: any Error)? {
        guard !isEmpty else { return nil }
        // Splits by bytes, because a slash and a combining accent after it form one character.
        var path = key.path.utf8[...]
        while true {
            let place = PathKey(String(decoding: path, as: UTF8.self))
            if let error = self[place] { return (place, error) }
            guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return nil }
            path = path[..<slash]
        }
    }
}

/// A set of a journal's rows, stored as one bit per row.
struct RowSet: Sendable {
    private var words: [UInt64] = []
    /// The row that `takeFirst(_:)` examines next.
    private var next = 0

    func contains(_ row: Int) -> Bool { row >> 6 < words.count && words[row >> 6] >> UInt64(row & 63) & 1 == 1 }

    /// Inserts a row; returns `false` if the set already contains it.
    @discardableResult
    mutating func insert(_ row: Int) -> Bool {
        guard !contains(row) else { return false }
        if row >> 6 >= words.count { words += Array(repeating: 0, count: (row >> 6) + 1 - words.count) }
        words[row >> 6] |= 1 << UInt64(row & 63)
        return true
    }

    mutating func remove(_ row: Int) {
        if contains(row) { words[row >> 6] &= ~(1 << UInt64(row & 63)) }
    }

    /// Returns the next rows in ascending order.
    mutating func takeFirst(_ count: Int) -> [Int] {
        var rows: [Int] = []
        while rows.count < count, next < words.count << 6 {
            if contains(next) { rows.append(next) }
            next += 1
        }
        return rows
    }
}

extension TargetJournal {
    /// A file that matches its record.
    typealias Unchanged = (path: PathKey, version: String, size: Int)

    /// The journal's rows by composed path, for paths that have several normal forms.
    fileprivate var rowsByNormalForm: [PathKey: Int] {
        var rows: [PathKey: Int] = [:]
        for row in records.indices {
            guard let path = records.path(at: row), !path.isASCII else { continue }
            rows[NameFolding.normalization.fold(path)] = row
        }
        return rows
    }

    /// The number of files read from the journal at a time.
    private static var filesInOnePage: Int { 512 }

    /// Returns the files of the next rows; empty when no rows are left.
    func unchanged(_ rows: inout RowSet) -> [Unchanged] {
        var files: [Unchanged] = []
        while files.isEmpty {
            let page = rows.takeFirst(Self.filesInOnePage)
            if page.isEmpty { return [] }
            for row in page {
                guard let path = records.path(at: row) else { continue }
                let record = records.record(at: row)
                files.append((path, record.version, record.stamp.size))
            }
        }
        return files
    }
}

extension TargetSession {
    func unchanged(_ rows: inout RowSet) -> [TargetJournal.Unchanged] {
        var copy = rows
        defer { rows = copy }
        return state.withLock { $0.journal.unchanged(&copy) }
    }
}
