internal import StoreCore
internal import StorePlatform

/// The records of the files that a target has installed: versions, digests and stamps.
///
/// A value without input or output. Its text consists of lines. Each line begins with a checksum of its content and of all previous lines,
/// so that changed, moved and missing lines are detected. An unterminated last line was interrupted by the end of the process and does not
/// count. If any other line fails verification, the whole journal is invalid.
struct TargetJournal: Sendable {
    private(set) var records = RecordTable()
    /// Whether an older journal was lost, so that files without a record may come from an earlier sync.
    private(set) var isRebuilding = false
    /// Whether no pass has completed since the first one began, so that no file without a record may be removed.
    private(set) var isBeginning = false
    /// The last line up to which all names are known to be on the disk. For later lines, the digest decides after a power loss.
    private var settledThrough = 0
    /// The number of records with a later line; `nil` if it must be counted.
    private var knownUnsettledCount: Int? = 0
    /// The number of lines read or written.
    private(set) var lineCount = 0
    /// The checksum of the last line, which seeds that of the next.
    private var seed: UInt64 = 0

    /// A line of a journal, apart from its checksum.
    enum Change: Hashable, Sendable {
        /// The first line of every journal.
        case header
        /// A file with this content has the path's name, or is about to be renamed to it.
        ///
        /// The previous record stays known until the next one, because the process may end between this line and the rename.
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
        /// Every file installed up to a line, counted from 1, is on the disk, and so is its name.
        case synchronizedThrough(Int)
    }

    /// Applies a change after its line was read or written.
    mutating func apply(_ change: Change) {
        lineCount += 1
        switch change {
        case .header: break
        case .put(let path, var record):
            let row = records.row(of: path)
            if let row {
                let before = records.record(at: row)
                record.before = FileRecord.Before(version: before.version, digest: before.digest, stamp: before.stamp)
            }
            if row.map({ records.line(at: $0) <= settledThrough }) ?? true, let count = knownUnsettledCount {
                knownUnsettledCount = count + 1
            }
            records.put(record, for: path, line: lineCount)
        case .removed(let path):
            if !isSettled(path), let count = knownUnsettledCount { knownUnsettledCount = count - 1 }
            records.remove(path)
        case .rebuilding: isRebuilding = true
        case .beginning: isBeginning = true
        case .rebuilt: (isRebuilding, isBeginning) = (false, false)
        case .synchronized: settle(through: lineCount)
        case .synchronizedThrough(let line): settle(through: line)
        }
    }

    private mutating func settle(through announced: Int) {
        // A line cannot settle later lines.
        let line = min(announced, lineCount)
        guard line > settledThrough else { return }
        settledThrough = line
        knownUnsettledCount = line >= lineCount - 1 ? 0 : nil
    }

    /// Returns whether the journal records the name of a path as flushed.
    func isSettled(_ path: PathKey) -> Bool { records.row(of: path).map { records.line(at: $0) <= settledThrough } ?? true }

    /// Returns whether the journal records the name of a row's path as flushed.
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

    // MARK: Text

    /// The text of changes, and the changes to apply once the text is written.
    struct Lines: Sendable {
        fileprivate(set) var text: [UInt8] = []
        fileprivate var changes: [Change] = []
        fileprivate var seed: UInt64
    }

    /// Returns the text for changes; `take(_:)` applies the changes once the text is written.
    func lines(for changes: some Sequence<Change>) -> Lines {
        var lines = Lines(seed: seed)
        for change in changes { lines.add(change) }
        return lines
    }

    /// Applies changes after their text was written.
    mutating func take(_ lines: Lines) {
        for change in lines.changes { apply(change) }
        seed = lines.seed
    }

    /// Applies a change and returns its text.
    mutating func line(for change: Change) -> [UInt8] {
        let lines = lines(for: CollectionOfOne(change))
        take(lines)
        return lines.text
    }
    fileprivate static let format = Array("storehouse-journal 1".utf8)

    /// The result of reading a journal.
    struct Reading: Sendable {
        var journal = TargetJournal()
        /// The number of valid bytes; an unfinished line may follow them.
        var length = 0
        /// Whether a journal exists and all of it is valid.
        var isWhole = false

        /// Applies the complete lines at the beginning of a text; returns `false` if one is invalid.
        fileprivate mutating func take(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
            var start = 0
            while start < text.count, let end = text[start...].firstIndex(of: LineText.newline) {
                let line = UnsafeBufferPointer(rebasing: text[start..<end])
                guard let change = journal.verify(line, isFirst: length == 0) else { return false }
                journal.apply(change)
                length += end + 1 - start
                start = end + 1
            }
            return true
        }

        fileprivate consuming func finished() -> Reading {
            // A header is always written together with the next line. Alone it is the remains of a journal.
            guard journal.lineCount > 1 else { return Reading() }
            isWhole = true
            return self
        }
    }

    /// Reads a journal from a text in memory.
    static func read(_ text: UnsafeRawBufferPointer) -> Reading {
        var reading = Reading()
        return reading.take(text.bindMemory(to: UInt8.self)) ? reading.finished() : Reading()
    }

    /// Reads a journal piece by piece, so that its text is never in memory as a whole.
    static func read(_ file: WritableFile, pieceSize: Int = 1 << 18) throws -> Reading {
        try read(pieceSize: pieceSize) { try file.read(into: $0, at: $1) }
    }

    /// Reads a journal that need not be writable, such as that of a disk mounted read-only.
    static func read(_ file: borrowing OpenFile) throws -> Reading {
        try read(pieceSize: 1 << 18) { try file.read(into: $0, at: $1) }
    }

    private static func read(
        pieceSize: Int, _ read: (_ buffer: UnsafeMutableRawBufferPointer, _ offset: Int) throws -> Int
    ) throws -> Reading {
        var reading = Reading()
        var buffer = [UInt8](repeating: 0, count: pieceSize)
        while true {
            let count = try buffer.withUnsafeMutableBytes { [length = reading.length] buffer in
                try read(buffer, length)
            }
            let before = reading.length
            let isValid = buffer.withUnsafeBufferPointer { buffer in reading.take(UnsafeBufferPointer(rebasing: buffer[..<count])) }
            guard isValid else { return Reading() }
            if count < buffer.count { return reading.finished() }
            // The line is longer than the buffer.
            if reading.length == before { buffer += [UInt8](repeating: 0, count: buffer.count) }
        }
    }

    fileprivate mutating func verify(_ line: UnsafeBufferPointer<UInt8>, isFirst: Bool) -> Change? {
        guard line.count > 17, line[16] == LineText.space, let sum = LineText.number(hex: line[..<16]) else { return nil }
        let body = UnsafeBufferPointer(rebasing: line[17...])
        let found = Checksum64.of(UnsafeRawBufferPointer(body), seed: seed)
        guard found == sum else { return nil }
        seed = found
        if isFirst { return body.elementsEqual(Self.format) ? .header : nil }
        switch body[0] {
        case UInt8(ascii: "+"): return FileRecord.read(body).map { .put($0.path, $0.record) }
        case UInt8(ascii: "-"): return LineText.unescape(body.dropFirst(2)).map { .removed(PathKey($0)) }
        case UInt8(ascii: "!"): return .rebuilding
        case UInt8(ascii: "?"): return .beginning
        case UInt8(ascii: "."): return .rebuilt
        case UInt8(ascii: "="):
            if body.count == 1 { return .synchronized }
            return body[1] == LineText.space ? LineText.number(body.dropFirst(2)).map { .synchronizedThrough($0) } : nil
        default: return nil
        }
    }

    /// Returns the same journal without obsolete lines: a header, and the lines of each record.
    func compacted() -> (journal: TargetJournal, text: [UInt8]) {
        var fresh = TargetJournal()
        var text = fresh.line(for: .header)
        if isRebuilding { text += fresh.line(for: .rebuilding) }
        if isBeginning { text += fresh.line(for: .beginning) }
        for path in records.paths.sorted() {
            guard let record = records[path] else { continue }
            if let before = record.before {
                text += fresh.line(for: .put(path, FileRecord(version: before.version, digest: before.digest, stamp: before.stamp)))
            }
            text += fresh.line(for: .put(path, record))
        }
        var copy = self
        if copy.unsettledCount == 0 { text += fresh.line(for: .synchronized) }
        return (fresh, text)
    }

    /// Whether rewriting the journal would save more than half of its lines, apart from 256 that are always allowed.
    var isMostlyStale: Bool { lineCount > 2 * records.count + 256 }
}

extension TargetJournal.Lines {
    fileprivate mutating func add(_ change: TargetJournal.Change) {
        var body: [UInt8] = []
        switch change {
        case .header: body += TargetJournal.format
        case .put(let path, let record): record.write(to: &body, path: path)
        case .removed(let path):
            body += "- ".utf8
            LineText.escape(path.path, to: &body)
        case .rebuilding: body += "!".utf8
        case .beginning: body += "?".utf8
        case .rebuilt: body += ".".utf8
        case .synchronized: body += "=".utf8
        case .synchronizedThrough(let line): body += "= \(line)".utf8
        }
        seed = body.withUnsafeBytes { Checksum64.of($0, seed: seed) }
        text += LineText.hex(seed)
        text.append(LineText.space)
        text += body
        text.append(LineText.newline)
        changes.append(change)
    }
}
