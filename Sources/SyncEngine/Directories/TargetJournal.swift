internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// The records of the files that a target has installed: versions, digests and stamps.
///
/// A value without input or output. A log stores its changes, under the lock of the pass. A torn tail does not count. If any other part of
/// the log is damaged, the whole journal is invalid.
struct TargetJournal: Sendable {
    private(set) var records = RecordTable()
    /// The links and directories that a sync has made: the last two texts of each link, the newest first, and `nil` for a directory.
    private(set) var placed: [PathKey: [String?]] = [:]
    /// The beginning of the journal, a `.beginning` or a `.rebuilding`, until a pass has completed; no file without a record may be removed.
    private(set) var unfinished: Change?
    /// The last change up to which all names are known to be on the disk. For later changes, the digest decides after a power loss.
    private var settledThrough = 0
    /// The last change that a pass with `.power` has flushed, together with everything before it.
    private var flushedThrough = 0
    /// The number of records with a later change; `nil` if it must be counted.
    private var knownUnsettledCount: Int? = 0
    private(set) var count = 0

    init(_ changes: Change...) {
        for change in changes { apply(change) }
    }

    /// An entry of the journal's log.
    enum Change: LogEntry, Hashable {
        /// A file with this content has the path's name, or is about to be renamed to it.
        ///
        /// The previous record stays known until the next one, because the process may end between this change and the rename.
        case put(PathKey, FileRecord)
        /// The path's file was removed, and so is its record.
        case removed(PathKey)
        /// An older journal was lost, so that files without a record may come from an earlier sync.
        case rebuilding
        /// There was no journal, so that every file without a record is the user's.
        case beginning
        /// The directory equals the source, so that every file without a record is foreign.
        case rebuilt
        /// Every file installed so far is on the disk, and so is its name.
        case synchronized
        /// Every file installed up to a change, counted from 1, is on the disk, and so is its name.
        case synchronizedThrough(Int)
        /// A link with this text has the path's name, or is about to get it; a directory has it if there is no text.
        ///
        /// The previous text stays known, because the process may end between this change and the new link.
        case placed(PathKey, link: String?)
        /// The path's link or directory was removed, and so is its record.
        case displaced(PathKey)
    }

    /// Applies a change after it was read or written.
    mutating func apply(_ change: Change) {
        count += 1
        switch change {
        case .put(let path, var record):
            let row = records.row(of: path)
            if let row {
                let before = records.record(at: row)
                record.before = [FileRecord(version: before.version, digest: before.digest, stamp: before.stamp)]
            }
            if row.map({ records.line(at: $0) <= settledThrough }) ?? true, let known = knownUnsettledCount {
                knownUnsettledCount = known + 1
            }
            records.put(record, for: path, line: count)
        case .removed(let path):
            if !isSettled(path), let known = knownUnsettledCount { knownUnsettledCount = known - 1 }
            records.remove(path)
        case .rebuilding, .beginning: unfinished = change
        case .rebuilt: unfinished = nil
        case .synchronized: settle(through: count)
        case .synchronizedThrough(let line):
            settle(through: line)
            if line >= count { flushedThrough = count }
        case .placed(let path, let link): placed[path] = Array(([link] + (placed[path] ?? [])).prefix(2))
        case .displaced(let path): placed[path] = nil
        }
    }

    private mutating func settle(through announced: Int) {
        // A change cannot settle later changes.
        let line = min(announced, count)
        guard line > settledThrough else { return }
        settledThrough = line
        // The previous files are gone, so a file with their content is an edit.
        records.settle(through: line)
        knownUnsettledCount = line >= count - 1 ? 0 : nil
    }

    /// The mark of a pass with `.power` that has flushed everything before it, the journal included.
    ///
    /// A `.synchronized` is no such mark: it also ends a pass with `.crash`, and comes before the flush of the journal. Older versions read
    /// the mark as a `.synchronized`.
    static let flushMark = Change.synchronizedThrough(.max)

    /// Whether the last change is a `flushMark`.
    var isFlushed: Bool { flushedThrough >= count }

    /// Returns whether the journal records the name of a path as flushed.
    func isSettled(_ path: PathKey) -> Bool { records.row(of: path).map { records.line(at: $0) <= settledThrough } ?? true }

    func isSettled(_ row: Int) -> Bool { records.line(at: row) <= settledThrough }

    /// The number of names that may not be on the disk yet.
    var unsettledCount: Int {
        mutating get {
            if let knownUnsettledCount { return knownUnsettledCount }
            let count = records.indices.count { records.path(at: $0) != nil && records.line(at: $0) > settledThrough }
            knownUnsettledCount = count
            return count
        }
    }

    /// Discards the previous record of a path after its file was installed.
    mutating func settle(_ path: PathKey) {
        records.settle(path)
    }

    // MARK: The log

    /// Reads a journal from an unread log, under the lock of its pass; `nil` unless all of it is valid.
    static func read(_ log: inout LogFile<Change>, in folder: DirectoryHandle) throws(StoreError) -> TargetJournal? {
        try whole { journal throws(StoreError) in try log.read(in: folder) { journal.apply($0) }.damages }
    }

    /// Reads a journal that need not be writable, such as that of a disk mounted read-only; `nil` unless all of it is valid.
    static func read(_ file: borrowing OpenFile) throws(StoreError) -> TargetJournal? {
        try whole { journal throws(StoreError) in try LogFile.read(file, .mirror) { journal.apply($0) }.damages }
    }

    private static func whole(_ read: (inout TargetJournal) throws(StoreError) -> [LogDamage]) throws(StoreError) -> TargetJournal? {
        var journal = TargetJournal()
        do throws(StoreError) {
            let damages = try read(&journal)
            // A journal is never without a change; a file without one is the remains of a journal.
            return damages.isEmpty && journal.count > 0 ? journal : nil
        } catch {
            // The file is no journal of this version.
            guard error.code == .unreadableRecord else { throw error }
            return nil
        }
    }

    /// The changes from which a new journal gets the same records, made one after another.
    var changes: some LazySequenceProtocol & Sequence<Change> {
        let objects = placed.sorted { $0.key < $1.key }.flatMap { path, links in links.reversed().map { Change.placed(path, link: $0) } }
        let beginning = (unfinished.map { [$0] } ?? []) + objects
        var copy = self
        let end = copy.unsettledCount == 0 ? [Change.synchronized] : []
        let paths = records.paths.sorted()
        return (-1...paths.count).lazy.flatMap { [records] index -> [Change] in
            guard index >= 0 else { return beginning }
            guard index < paths.count else { return end }
            guard let record = records[paths[index]] else { return [] }
            return (record.before + [record]).map { .put(paths[index], $0) }
        }
    }

    /// Whether rewriting the journal would save more than half of its changes, apart from 256 that are always allowed.
    var isMostlyStale: Bool { count > 2 * (records.count + placed.count) + 256 }
}

extension TargetJournal.Change {
    func write(to writer: inout ByteWriter) {
        switch self {
        case .put(let path, let record):
            writer.put(0 as UInt8)
            record.write(to: &writer)
            writer.put(path.path)
        case .removed(let path):
            writer.put(1 as UInt8)
            writer.put(path.path)
        case .rebuilding: writer.put(2 as UInt8)
        case .beginning: writer.put(3 as UInt8)
        case .rebuilt: writer.put(4 as UInt8)
        case .synchronized: writer.put(5 as UInt8)
        case .synchronizedThrough(let count):
            writer.put(6 as UInt8)
            writer.put(count)
        case .placed(let path, let link):
            writer.put(7 as UInt8)
            writer.put(path.path)
            writer.put(link) { $0.put($1) }
        case .displaced(let path):
            writer.put(8 as UInt8)
            writer.put(path.path)
        }
    }

    init?(reading bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(ByteReader.Foreign) {
            switch try reader.byte() {
            case 0:
                let record = try FileRecord(reading: &reader)
                self = .put(PathKey(try reader.text()), record)
            case 1: self = .removed(PathKey(try reader.text()))
            case 2: self = .rebuilding
            case 3: self = .beginning
            case 4: self = .rebuilt
            case 5: self = .synchronized
            case 6: self = .synchronizedThrough(try reader.int())
            case 7:
                let path = PathKey(try reader.text())
                self = .placed(path, link: try reader.optional { reader throws(ByteReader.Foreign) in try reader.text() })
            case 8: self = .displaced(PathKey(try reader.text()))
            default: return nil
            }
        } catch {
            return nil
        }
    }
}
