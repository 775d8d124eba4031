internal import StoreCore

/// The records of a journal by path, in a fraction of a dictionary's memory: 100 000 files take about 12 MB.
///
/// Paths lie one behind the other in one array, and the digest serves as version where it is one. Two spellings of a path that are equal as
/// strings, composed and decomposed, are one path, as they are in a dictionary.
struct RecordTable: Sendable {
    private struct Row: Sendable {
        var pathStart: UInt32
        /// Below zero for a row whose record was removed.
        var pathLength: Int32
        var stamp: FileStamp
        var digest: SHA256.Digest
        /// The place of the version among those that are no digests; -1 where it is the digest.
        var version: Int32
        /// The journal's line that speaks of it.
        var line: Int32

        var path: Range<Int> { Int(pathStart)..<Int(pathStart) + Int(pathLength) }
    }

    private var rows: [Row] = []
    private var bytes: [UInt8] = []
    /// The versions that are no digests; one that is replaced by a digest stays.
    private var versions: [String] = []
    private var index = PathIndex()
    /// What was remembered before, by row; of the few rows that are about to change.
    private var before: [Int: FileRecord.Before] = [:]
    /// How many records there are.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// The rows, with those that have no record.
    var indices: Range<Int> { rows.indices }

    /// The row of a path.
    func row(of path: String) -> Int? { position(of: path, hash: PathIndex.hash(path)) }

    /// The path of a row; `nil` where it has no record.
    func path(at row: Int) -> String? {
        let entry = rows[row]
        guard entry.pathLength >= 0 else { return nil }
        return String(decoding: bytes[entry.path], as: UTF8.self)
    }

    /// The record of a row, which must have one.
    func record(at row: Int) -> FileRecord {
        let entry = rows[row]
        var record = FileRecord(
            version: entry.version < 0 ? entry.digest.hex : versions[Int(entry.version)], digest: entry.digest, stamp: entry.stamp)
        record.before = before.isEmpty ? nil : before[row]
        return record
    }

    /// Whether the record of a row, and none before it, speaks of a file that looks like this.
    func isCurrent(_ row: Int, _ stamp: FileStamp) -> Bool { rows[row].stamp == stamp }

    /// Whether a path is spelled as in its row, byte by byte.
    func isSpelled(_ path: String, at row: Int) -> Bool {
        let entry = rows[row]
        return bytes[entry.path].elementsEqual(path.utf8)
    }

    /// The journal's line that speaks of a row.
    func line(at row: Int) -> Int { Int(rows[row].line) }

    subscript(path: String) -> FileRecord? { row(of: path).map { record(at: $0) } }

    /// The paths, in the order in which they came first.
    var paths: some Sequence<String> { indices.lazy.compactMap { path(at: $0) } }

    /// Puts a record in the place of the one before.
    mutating func put(_ record: FileRecord, for path: String, line: Int) {
        let version = record.version == record.digest.hex ? nil : record.version
        let hash = PathIndex.hash(path)
        if let row = position(of: path, hash: hash) {
            rows[row].stamp = record.stamp
            rows[row].digest = record.digest
            rows[row].version = keep(version, at: rows[row].version)
            rows[row].line = Int32(line)
            before[row] = record.before
            return
        }
        let row = Row(
            pathStart: UInt32(bytes.count), pathLength: Int32(path.utf8.count), stamp: record.stamp, digest: record.digest,
            version: keep(version, at: -1), line: Int32(line))
        bytes += path.utf8
        index.insert(hash, at: rows.count)
        if let earlier = record.before { before[rows.count] = earlier }
        rows.append(row)
        count += 1
    }

    /// Keeps a version, in the place of the one before if there was one.
    private mutating func keep(_ version: String?, at place: Int32) -> Int32 {
        guard let version else { return -1 }
        guard place < 0 else {
            versions[Int(place)] = version
            return place
        }
        versions.append(version)
        return Int32(versions.count - 1)
    }

    /// Removes a record. Its row stays until the journal is read again, so that the numbers of the others hold.
    mutating func remove(_ path: String) {
        let hash = PathIndex.hash(path)
        guard let row = position(of: path, hash: hash) else { return }
        index.remove(hash, at: row)
        rows[row].pathLength = -1
        before[row] = nil
        count -= 1
    }

    /// Forgets what was remembered of a path before.
    mutating func settle(_ path: String) {
        guard !before.isEmpty, let row = row(of: path) else { return }
        before[row] = nil
    }

    private func position(of path: String, hash: UInt32) -> Int? {
        var path = path
        return path.withUTF8 { wanted in
            index.position(hash) { row in
                let entry = rows[row]
                let isSame = bytes.withUnsafeBufferPointer { bytes in
                    bytes[entry.path].elementsEqual(wanted)
                }
                // Another spelling of the same characters has other bytes.
                return isSame || self.path(at: row) == String(decoding: wanted, as: UTF8.self)
            }
        }
    }
}

extension RecordTable: Equatable {
    /// Whether both have the same records for the same paths.
    static func == (lhs: RecordTable, rhs: RecordTable) -> Bool {
        lhs.count == rhs.count && lhs.paths.allSatisfy { lhs[$0] == rhs[$0] }
    }
}

/// The rows of paths by hash: open addressing with linear probing, four bytes for each place.
private struct PathIndex: Sendable {
    /// The row plus one; 0 is empty.
    private var places: [UInt32] = []
    /// The hash of each row.
    private var hashes: [UInt32] = []
    private var count = 0

    static func hash(_ path: String) -> UInt32 { UInt32(truncatingIfNeeded: path.hashValue) }

    func position(_ hash: UInt32, where isSame: (_ row: Int) -> Bool) -> Int? {
        guard !places.isEmpty else { return nil }
        var place = Int(hash) & (places.count - 1)
        while places[place] != 0 {
            let row = Int(places[place]) - 1
            if hashes[row] == hash, isSame(row) { return row }
            place = (place + 1) & (places.count - 1)
        }
        return nil
    }

    /// Takes the next row in.
    mutating func insert(_ hash: UInt32, at row: Int) {
        hashes.append(hash)
        count += 1
        if count * 4 > places.count * 3 {
            let all = places.filter { $0 != 0 }
            places = [UInt32](repeating: 0, count: max(16, places.count * 2))
            for word in all { put(word) }
        }
        put(UInt32(row + 1))
    }

    /// Takes a row out, and closes the gap, so that no look-up steps over a grave (Knuth, TAOCP 3, 6.4 R).
    mutating func remove(_ hash: UInt32, at row: Int) {
        let mask = places.count - 1
        var gap = Int(hash) & mask
        while places[gap] != UInt32(row + 1) { gap = (gap + 1) & mask }
        var next = (gap + 1) & mask
        while places[next] != 0 {
            let home = Int(hashes[Int(places[next]) - 1]) & mask
            if (next - home) & mask >= (next - gap) & mask {
                places[gap] = places[next]
                gap = next
            }
            next = (next + 1) & mask
        }
        places[gap] = 0
        count -= 1
    }

    private mutating func put(_ word: UInt32) {
        var place = Int(hashes[Int(word) - 1]) & (places.count - 1)
        while places[place] != 0 { place = (place + 1) & (places.count - 1) }
        places[place] = word
    }
}
