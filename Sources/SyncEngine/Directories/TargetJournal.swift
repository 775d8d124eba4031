internal import StoreCore

/// What a target remembers of the files it has put in place: the version, and what they looked like then.
///
/// A value without any input or output. Written down, it is a text of lines that each carry a checksum over themselves and all lines
/// before, so that a line which was changed, moved or taken out is found. A last line without its end is one that was being written when the
/// process ended; it counts as not written. Anything else that does not verify makes the whole journal worthless.
struct TargetJournal: Sendable {
    /// By path.
    private(set) var records = RecordTable()
    /// Whether an older journal was lost, so that files without a record may be ours all the same.
    private(set) var isRebuilding = false
    /// Up to which line the names are on the disk; of later ones the digest decides after a loss of power.
    private var settledThrough = 0
    /// How many records have a later line; `nil` where they must be counted.
    private var knownUnsettledCount: Int? = 0
    /// How many lines were read or written.
    private(set) var lineCount = 0
    /// What the next line's checksum begins with: that of the line before.
    private var seed: UInt64 = 0

    /// What can happen to a journal.
    enum Change: Hashable, Sendable {
        /// Begins every journal.
        case header
        /// A file of this content is about to take the path's name, or has it.
        ///
        /// The record before stays known until the next one: the process may end between this line and the deed.
        case put(PathKey, FileRecord)
        /// The path's file was removed.
        case removed(PathKey)
        /// An older journal was lost.
        case rebuilding
        /// Everything is as the source has it: whatever has no record now is not ours.
        case rebuilt
        /// Every file that was put so far is on the disk, and so is its name.
        case synchronized
        /// The same of the files that were put up to a line, counted from 1.
        case synchronizedThrough(Int)
    }

    /// Takes a change in.
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
        case .rebuilt: isRebuilding = false
        case .synchronized: settle(through: lineCount)
        case .synchronizedThrough(let line): settle(through: line)
        }
    }

    private mutating func settle(through announced: Int) {
        // No line vouches for later ones.
        let line = min(announced, lineCount)
        guard line > settledThrough else { return }
        settledThrough = line
        knownUnsettledCount = line >= lineCount - 1 ? 0 : nil
    }

    /// Whether the name of a path is on the disk as far as the journal vouches for it.
    func isSettled(_ path: PathKey) -> Bool { records.row(of: path).map { records.line(at: $0) <= settledThrough } ?? true }

    /// The same of a row of the records.
    func isSettled(_ row: Int) -> Bool { records.line(at: row) <= settledThrough }

    /// How many names may not be on the disk yet.
    var unsettledCount: Int {
        mutating get {
            if let knownUnsettledCount { return knownUnsettledCount }
            let count = records.indices.count { records.path(at: $0) != nil && records.line(at: $0) > settledThrough }
            knownUnsettledCount = count
            return count
        }
    }

    /// Says that a file has its name now, and the record before is of no more use.
    mutating func settle(_ path: PathKey) {
        records.settle(path)
    }

    // MARK: Text

    /// Changes as they are written down.
    struct Lines: Sendable {
        fileprivate(set) var text: [UInt8] = []
        fileprivate var changes: [Change] = []
        fileprivate var seed: UInt64
    }

    /// What is to be written for changes, which are taken in only by `take(_:)`, once it is written.
    func lines(for changes: some Sequence<Change>) -> Lines {
        var lines = Lines(seed: seed)
        for change in changes { lines.add(change) }
        return lines
    }

    /// Takes in changes that are written down.
    mutating func take(_ lines: Lines) {
        for change in lines.changes { apply(change) }
        seed = lines.seed
    }

    /// Takes a change in and gives back the line to be written for it.
    mutating func line(for change: Change) -> [UInt8] {
        let lines = lines(for: CollectionOfOne(change))
        take(lines)
        return lines.text
    }
    fileprivate static let format = Array("storehouse-journal 1".utf8)

    /// What was made of a journal's text.
    struct Reading: Sendable {
        var journal = TargetJournal()
        /// How many bytes verify; what follows is a line that was never finished.
        var length = 0
        /// Whether there is a journal, and all of it verifies.
        var isWhole = false

        /// Takes the whole lines that a text begins with; `false` where one does not verify.
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
            // A header is never written without the line that follows it: alone it is what is left of a journal.
            guard journal.lineCount > 1 else { return Reading() }
            isWhole = true
            return self
        }
    }

    /// Reads a journal that is in memory.
    static func read(_ text: UnsafeRawBufferPointer) -> Reading {
        var reading = Reading()
        return reading.take(text.bindMemory(to: UInt8.self)) ? reading.finished() : Reading()
    }

    /// Reads a journal a piece at a time, so that its text is never in memory as a whole.
    static func read(_ file: WritableFile, pieceSize: Int = 1 << 18) throws -> Reading {
        var reading = Reading()
        var buffer = [UInt8](repeating: 0, count: pieceSize)
        while true {
            let count = try buffer.withUnsafeMutableBytes { [length = reading.length] buffer in
                try file.read(into: buffer, at: length)
            }
            let before = reading.length
            let isValid = buffer.withUnsafeBufferPointer { buffer in reading.take(UnsafeBufferPointer(rebasing: buffer[..<count])) }
            guard isValid else { return Reading() }
            if count < buffer.count { return reading.finished() }
            // A line that is longer than the buffer needs a longer one.
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
        case UInt8(ascii: "."): return .rebuilt
        case UInt8(ascii: "="):
            if body.count == 1 { return .synchronized }
            return body[1] == LineText.space ? LineText.number(body.dropFirst(2)).map { .synchronizedThrough($0) } : nil
        default: return nil
        }
    }

    /// The same journal without what is no longer true: a header and a line for each record.
    func compacted() -> (journal: TargetJournal, text: [UInt8]) {
        var fresh = TargetJournal()
        var text = fresh.line(for: .header)
        if isRebuilding { text += fresh.line(for: .rebuilding) }
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

    /// Whether most of the lines are of no more use.
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
