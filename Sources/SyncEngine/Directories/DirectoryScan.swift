internal import StoreCore

/// What stands in a directory, compared with what a journal remembers of it.
struct DirectoryScan: Sendable {
    /// One file that counts.
    struct Entry: Sendable {
        var path: PathKey
        /// `nil` for a file that no sync has put there.
        var version: String?
        var size: Int
        var isEdited: Bool
        /// Whether it is ours, and not whole.
        var isTorn = false
        /// Whether the process may not read it, so that it cannot be known to be ours.
        var isUnreadable = false
    }

    /// The files that are not just as the journal remembers them.
    private(set) var entries: [Entry] = []
    /// The journal's rows of all other files.
    private(set) var unchanged = RowSet()
    /// The journal's rows of all files that are there.
    private var present = RowSet()
    /// Which names the disk takes for one.
    private let folding: NameFolding
    /// The journal's rows by composed path, of the paths that may have another normal form; `nil` until one of them is looked for.
    private var foldedRows: [PathKey: Int]?
    /// Files that were edited or put there.
    private(set) var edited: [PathKey: FileStamp] = [:]
    /// Files whose time or number is another one and whose content is not, with what is to be remembered of them now.
    private(set) var confirmed: [PathKey: FileRecord] = [:]
    /// What is remembered and not there.
    private(set) var vanished: [PathKey] = []
    /// Files and directories that the process may not look into, by path.
    private(set) var unreadable: [PathKey: any Error] = [:]

    /// Looks at a directory; changes nothing.
    ///
    /// - Parameters:
    ///   - root: The directory.
    ///   - journal: What is remembered of it.
    ///   - folding: Which names the disk takes for one.
    ///   - probe: Called before each directory is listed and each file read; for tests.
    init(of root: DirectoryHandle, journal: TargetJournal, folding: NameFolding, probe: ((TargetStep) throws -> Void)? = nil) throws {
        self.folding = folding
        try DirectoryWalk.visit(root) { directory, prefix in
            if !prefix.isEmpty { try probe?(.lists(String(prefix.dropLast()))) }
            return try take(directory, below: prefix, journal, probe)
        } refuse: { path, error in
            // The process may not look at it, and no sync has put it there without being able to: the rest can still be compared.
            guard error.isDenial else { throw error }
            unreadable[PathKey(path)] = error
        }
        let found = UnreadablePaths(unreadable)
        vanished = journal.records.indices.compactMap { row in
            guard !present.contains(row), let path = journal.records.path(at: row), found.cause(of: path) == nil else { return nil }
            return path
        }.sorted()
        // A directory that is gone looks empty; taking it for that would download everything into nowhere.
        if root.isRemoved { throw SyncError.vanished(root.path) }
    }

    /// The paths of all files, with the journal that the directory was compared with.
    func paths(_ journal: TargetJournal) -> [PathKey] {
        journal.records.indices.compactMap { present.contains($0) ? journal.records.path(at: $0) : nil }
            + entries.lazy.map(\.path).filter { journal.records.row(of: $0) == nil }
    }

    /// Takes the files of one directory; returns the names of the directories in it.
    private mutating func take(
        _ directory: DirectoryHandle, below prefix: String, _ journal: TargetJournal, _ probe: ((TargetStep) throws -> Void)?
    ) throws -> [String] {
        var inner: [String] = []
        var listing = try directory.list()
        while let entry = try listing.next() {
            if prefix.isEmpty, entry.name == RelativePath.reserved { continue }
            // No list can have such a name, and its repaired text may be the name of another file.
            guard entry.isUTF8 else { continue }
            guard entry.kind != .directory else {
                inner.append(entry.name)
                continue
            }
            // The file may be gone between the two calls.
            guard let status = try listing.status(of: entry) else { continue }
            if status.kind == .directory {
                inner.append(entry.name)
            } else if status.kind == .regular {
                let path = PathKey(prefix + entry.name)
                try take(path, FileStamp(status), journal) {
                    try probe?(.reads(path.path))
                    return try Self.digest(of: entry.name, in: directory)
                }
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
        // Where the disk has a name in another normal form than it was given, the key is the one that the list has.
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
            }
        }
        if isSettled, let known = record.matching(stamp) {
            entries.append(Entry(path: path, version: known.version, size: stamp.size, isEdited: false))
            if known != record { confirmed[path] = known }
        } else if record.mayHave(size: stamp.size), let found = try digestIfReadable(), var known = record.matching(found) {
            known.stamp = stamp
            known.before = nil
            confirmed[path] = known
            entries.append(Entry(path: path, version: known.version, size: stamp.size, isEdited: false))
        } else if unreadable[path] != nil {
            // Without its content it is not known to be ours, and a file that is not ours is never removed.
            entries.append(Entry(path: path, version: nil, size: stamp.size, isEdited: true, isUnreadable: true))
        } else {
            // A file that was not on the disk yet, and that nobody has written to since, was torn by a loss of power and not edited.
            let isTorn = !isSettled && stamp.inode == record.stamp.inode && stamp.modified <= record.stamp.modified
            edited[path] = stamp
            entries.append(Entry(path: path, version: isTorn ? nil : record.version, size: stamp.size, isEdited: !isTorn, isTorn: isTorn))
        }
    }

    /// The row of a path that the disk lists in another normal form than it was given, as HFS+ does.
    private mutating func foldedRow(of path: PathKey, _ journal: TargetJournal) -> Int? {
        guard folding.contains(.normalization), !path.isASCII else { return nil }
        let rows = foldedRows ?? journal.rowsByNormalForm
        foldedRows = rows
        return rows[NameFolding.normalization.fold(path)]
    }

    /// The digest of a file; `nil` where it is gone, or is no plain file.
    static func digest(of name: String, in directory: DirectoryHandle) throws -> SHA256.Digest? {
        guard let file = try OpenFile(reading: name, in: directory) else { return nil }
        guard try file.status().kind == .regular else { return nil }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { buffer.deallocate() }
        var hash = SHA256()
        var offset = 0
        while true {
            let count = try file.read(into: buffer, at: offset)
            hash.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(count)))
            offset += count
            if count < buffer.count { return hash.digest() }
        }
    }
}

/// Finds which unreadable file or directory a path is, or is in.
struct UnreadablePaths: Sendable {
    private var causes: [PathKey: any Error]

    init(_ causes: [PathKey: any Error] = [:]) {
        self.causes = causes
    }

    /// The unreadable path at or above a path; `nil` if there is none.
    func cause(of key: PathKey) -> (path: PathKey, error: any Error)? {
        guard !causes.isEmpty else { return nil }
        // By bytes: as characters, a slash and an accent after it are one.
        var path = key.path.utf8[...]
        while true {
            let place = PathKey(String(decoding: path, as: UTF8.self))
            if let error = causes[place] { return (place, error) }
            guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return nil }
            path = path[..<slash]
        }
    }

    /// Adds a file or directory.
    mutating func add(_ path: PathKey, _ error: any Error) { causes[path] = error }

    /// All of them, in order.
    var all: [(path: PathKey, error: any Error)] { causes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
}

/// A set of a journal's rows, a bit for each.
struct RowSet: Sendable {
    private var words: [UInt64] = []
    /// The row that `removeFirst(_:)` looks at next.
    private var next = 0

    func contains(_ row: Int) -> Bool { row >> 6 < words.count && words[row >> 6] >> UInt64(row & 63) & 1 == 1 }

    /// Puts a row in; `false` where it was in already.
    @discardableResult
    mutating func insert(_ row: Int) -> Bool {
        guard !contains(row) else { return false }
        if row >> 6 >= words.count { words += Array(repeating: 0, count: (row >> 6) + 1 - words.count) }
        words[row >> 6] |= 1 << UInt64(row & 63)
        return true
    }

    /// The next rows, by ascending number.
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
    /// A file that is as the journal remembers it.
    typealias Unchanged = (path: PathKey, version: String, size: Int)

    /// The rows by composed path, of the paths that may have another normal form.
    fileprivate var rowsByNormalForm: [PathKey: Int] {
        var rows: [PathKey: Int] = [:]
        for row in records.indices {
            guard let path = records.path(at: row), !path.isASCII else { continue }
            rows[NameFolding.normalization.fold(path)] = row
        }
        return rows
    }

    /// How many files are read from the journal at a time.
    private static var filesInOnePage: Int { 512 }

    /// The files of the next rows; empty when there are no more.
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
    /// The same of the session's journal.
    func unchanged(_ rows: inout RowSet) -> [TargetJournal.Unchanged] {
        var copy = rows
        defer { rows = copy }
        return state.withLock { $0.journal.unchanged(&copy) }
    }
}
