internal import StoreCore
internal import StorePlatform

/// The records of a journal by path, in a fraction of a dictionary's memory: 100 000 files take about 12 MB.
///
/// All paths are stored in one array, and a version that equals the digest is not stored separately.
struct RecordTable: Sendable {
    private struct Row: Sendable {
        var pathStart: UInt32
        /// Negative for a row without a record.
        var pathLength: Int32
        var stamp: FileStamp
        var digest: SHA256.Digest
        /// The index of the version in `versions`; -1 if the version is the digest.
        var version: Int32
        /// The number of the journal's line for this record.
        var line: Int32

        var path: Range<Int> { Int(pathStart)..<Int(pathStart) + Int(pathLength) }
    }

    private var rows: [Row] = []
    private var bytes: [UInt8] = []
    /// The versions that are not digests. A version replaced by a digest stays in the array.
    private var versions: [String] = []
    private var index = HashIndex()
    /// The previous records by row, for the few rows that are being changed.
    private var before: [Int: FileRecord] = [:]
    /// The number of records; removed records leave rows behind that do not count.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// All rows, including those without a record.
    var indices: Range<Int> { rows.indices }

    func row(of path: PathKey) -> Int? { position(of: path, hash: HashIndex.hash(path)) }

    /// Returns the path of a row; `nil` if the row has no record.
    func path(at row: Int) -> PathKey? {
        let entry = rows[row]
        guard entry.pathLength >= 0 else { return nil }
        return PathKey(String(decoding: bytes[entry.path], as: UTF8.self))
    }

    /// Returns the record of a row, which must have one.
    func record(at row: Int) -> FileRecord {
        let entry = rows[row]
        return FileRecord(
            version: entry.version < 0 ? entry.digest.hex : versions[Int(entry.version)], digest: entry.digest, stamp: entry.stamp,
            before: before.isEmpty ? [] : before[row].map { [$0] } ?? [])
    }

    func isCurrent(_ row: Int, _ stamp: FileStamp) -> Bool { rows[row].stamp == stamp }

    func line(at row: Int) -> Int { Int(rows[row].line) }

    subscript(path: PathKey) -> FileRecord? { row(of: path).map { record(at: $0) } }

    /// All paths, in the order of their first record.
    var paths: some Sequence<PathKey> { indices.lazy.compactMap { path(at: $0) } }

    mutating func put(_ record: FileRecord, for path: PathKey, line: Int) {
        let version = record.version == record.digest.hex ? nil : record.version
        let hash = HashIndex.hash(path)
        if let row = position(of: path, hash: hash) {
            rows[row].stamp = record.stamp
            rows[row].digest = record.digest
            rows[row].version = keep(version, at: rows[row].version)
            rows[row].line = Int32(line)
            before[row] = record.before.first
            return
        }
        let row = Row(
            pathStart: UInt32(bytes.count), pathLength: Int32(path.path.utf8.count), stamp: record.stamp, digest: record.digest,
            version: keep(version, at: -1), line: Int32(line))
        bytes += path.path.utf8
        index.insert(hash, at: rows.count)
        if let earlier = record.before.first { before[rows.count] = earlier }
        rows.append(row)
        count += 1
    }

    /// Stores a version, reusing the slot of the previous one.
    private mutating func keep(_ version: String?, at place: Int32) -> Int32 {
        guard let version else { return -1 }
        guard place < 0 else {
            versions[Int(place)] = version
            return place
        }
        versions.append(version)
        return Int32(versions.count - 1)
    }

    /// Removes a record. Its row stays until the journal is read again, so that the numbers of other rows remain valid.
    mutating func remove(_ path: PathKey) {
        let hash = HashIndex.hash(path)
        guard let row = position(of: path, hash: hash) else { return }
        index.remove(hash, at: row)
        rows[row].pathLength = -1
        before[row] = nil
        count -= 1
    }

    mutating func settle(_ path: PathKey) {
        guard !before.isEmpty, let row = row(of: path) else { return }
        before[row] = nil
    }

    /// Discards the previous records of the rows up to a line of the journal.
    mutating func settle(through line: Int) {
        if !before.isEmpty { before = before.filter { Int(rows[$0.key].line) > line } }
    }

    private func position(of path: PathKey, hash: UInt32) -> Int? {
        var text = path.path
        let row = text.withUTF8 { wanted in
            index.position(hash) { row in
                bytes.withUnsafeBufferPointer { bytes in bytes[rows[row].path].elementsEqual(wanted) }
            }
        }
        return row < 0 ? nil : row
    }
}
