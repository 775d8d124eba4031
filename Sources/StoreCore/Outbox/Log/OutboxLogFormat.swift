#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

/// The format of an outbox's log: a header, then one entry after another.
///
/// | Offset | Size | Field of the header |
/// |---|---|---|
/// | 0 | 8 | `SHoutbox` |
/// | 8 | 4 | version of this format |
/// | 12 | 4 | checksum of the preceding 12 bytes |
///
/// | Offset | Size | Field of an entry |
/// |---|---|---|
/// | 0 | 4 | `SHob` |
/// | 4 | 4 | length of the record |
/// | 8 | 4 | number of entries that follow in the same append |
/// | 12 | 4 | checksum of the preceding 12 bytes |
/// | 16 | 8 | checksum of the record |
/// | 24 | | the record |
///
/// Numbers are little-endian. Checksums are XXH64; a checksum of 4 bytes is its lower half. The checksums of an entry depend on its offset
/// and on the format's version. Therefore a copy of an entry inside a record is not mistaken for an entry, and a file of another version
/// has no valid entries.
///
/// An interrupted write leaves a part of an append at the end of the file: a torn tail, which was never acknowledged.
enum OutboxLogFormat {
    static let version: UInt32 = 2
    static let headerSize = 16
    static let entryHeaderSize = 24
    /// The length of the longest record in bytes.
    static let longestRecord = Int(Int32.max)
    private static let magic: [UInt8] = Array("SHoutbox".utf8)
    /// The first bytes of each entry: `SHob` as a little-endian number.
    private static let marker: UInt32 = 0x626F_4853

    /// The reason why a file is not a log of this version.
    enum Foreign: Error, Hashable {
        /// The file has neither the header of a log nor an entry behind it.
        case format
        /// The file is a log of the given version, which this program cannot read.
        case version(UInt32)
    }

    /// The entries of a log, or of its end.
    struct Reading: Hashable {
        /// The ranges of the records in the file.
        var records: [Range<Int>] = []
        var damages: [OutboxLog.Damage] = []
        /// The offset at which the next append belongs. Everything behind it is a torn tail.
        var end = 0
    }

    // MARK: Writing

    /// The first 16 bytes of a log: the magic, the version, and their checksum.
    static var header: [UInt8] {
        var bytes = magic
        append(version, to: &bytes)
        append(shortSum(bytes, ofLast: 12, seed: 0), to: &bytes)
        return bytes
    }

    /// Returns the number of bytes that entries of these records take.
    static func size(of records: [Data]) -> Int { records.reduce(records.count * entryHeaderSize) { $0 + $1.count } }

    /// Appends entries to the bytes of a file.
    ///
    /// - Parameters:
    ///   - records: The records; each is shorter than 4 GB.
    ///   - bytes: The bytes of the file from `base` on.
    ///   - base: The offset of the bytes in the file.
    ///   - isOneAppend: Whether a reader accepts all of the entries or none.
    static func append(_ records: [Data], to bytes: inout [UInt8], at base: Int, asOneAppend isOneAppend: Bool) {
        for (index, record) in records.enumerated() {
            let seed = seed(base + bytes.count)
            append(marker, to: &bytes)
            append(UInt32(record.count), to: &bytes)
            append(isOneAppend ? UInt32(records.count - 1 - index) : 0, to: &bytes)
            append(shortSum(bytes, ofLast: 12, seed: seed), to: &bytes)
            record.withUnsafeBytes { record in
                append(Checksum64.of(record, seed: seed), to: &bytes)
                bytes.append(contentsOf: record)
            }
        }
    }

    // MARK: Reading

    /// Reads a log, or its end.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of the file from `base` to its end.
    ///   - base: The offset at which an earlier reading ended; 0 for the whole file.
    /// - Returns: The complete appends, and the damages between them.
    /// - Throws: ``Foreign`` if the file is not a log of this version.
    static func read(_ bytes: UnsafeRawBufferPointer, from base: Int) throws(Foreign) -> Reading {
        guard base == 0 else { return entries(bytes, from: 0, base: base) }
        if isHeader(bytes) {
            let found = load(bytes, 8, UInt32.self)
            guard found == version else { throw .version(found) }
            return entries(bytes, from: headerSize, base: 0)
        }
        // The first append writes header and entries at once, so a part of a header has no entries.
        if bytes.count < headerSize, header.starts(with: bytes) { return Reading() }
        if bytes.allSatisfy({ $0 == 0 }) { return Reading() }
        // Only the checksums of entries tell a damaged header from a foreign file.
        guard bytes.count > headerSize, nextEntry(bytes, from: headerSize, base: 0) != nil else { throw .format }
        var reading = entries(bytes, from: headerSize, base: 0)
        reading.damages.insert(.init(offset: 0, length: headerSize, reason: "the header of the log is damaged"), at: 0)
        return reading
    }

    /// Reads an array of bytes in the same way.
    static func read(_ bytes: [UInt8], from base: Int) throws(Foreign) -> Reading {
        try bytes.withUnsafeBufferPointer { bytes throws(Foreign) in try read(UnsafeRawBufferPointer(bytes), from: base) }
    }

    /// The part of a file at an offset.
    private enum Part {
        /// An entry with an intact header.
        case entry(record: Range<Int>, following: UInt32, isIntact: Bool)
        /// An entry that ends behind the end of the file.
        case torn
        case damaged
    }

    private static func entries(_ bytes: UnsafeRawBufferPointer, from start: Int, base: Int) -> Reading {
        var reading = Reading(end: base + start)
        // The entries of an append that has not ended yet.
        var pending = Reading()
        var at = start

        func settle(_ offset: Int) {
            reading.records += pending.records
            reading.damages += pending.damages
            reading.end = base + offset
            pending = Reading()
        }

        reading: while at < bytes.count {
            switch part(bytes, at, base: base) {
            case .entry(let record, let following, let isIntact):
                if isIntact {
                    pending.records.append(base + record.lowerBound..<base + record.upperBound)
                } else {
                    let length = record.upperBound - at
                    pending.damages.append(.init(offset: base + at, length: length, reason: "the checksum of a record is wrong"))
                }
                at = record.upperBound
                if following == 0 { settle(at) }
            case .torn:
                break reading
            case .damaged:
                // The length is unknown, so the search looks at each offset. Entries before the damage are not torn: bytes follow them.
                let next = nextEntry(bytes, from: at + 1, base: base) ?? bytes.count
                pending.damages.append(.init(offset: base + at, length: next - at, reason: "the header of an entry is damaged"))
                at = next
                settle(at)
            }
        }
        return reading
    }

    /// Returns the offset of the first intact entry from an offset on; `nil` if there is none.
    private static func nextEntry(_ bytes: UnsafeRawBufferPointer, from start: Int, base: Int) -> Int? {
        var at = start
        while at + entryHeaderSize <= bytes.count {
            if load(bytes, at, UInt32.self) == marker, case .entry(_, _, isIntact: true) = part(bytes, at, base: base) { return at }
            at += 1
        }
        return nil
    }

    private static func part(_ bytes: UnsafeRawBufferPointer, _ at: Int, base: Int) -> Part {
        let start = at + entryHeaderSize
        guard start <= bytes.count else { return .torn }
        let seed = seed(base + at)
        let sum = UInt32(truncatingIfNeeded: Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[at..<at + 12]), seed: seed))
        guard load(bytes, at, UInt32.self) == marker, load(bytes, at + 12, UInt32.self) == sum else {
            // After a loss of power, a file may be longer than the bytes that reached the disk.
            return bytes[at...].allSatisfy { $0 == 0 } ? .torn : .damaged
        }
        let end = start + Int(load(bytes, at + 4, UInt32.self))
        guard end <= bytes.count else { return .torn }
        let isIntact = Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), seed: seed) == load(bytes, at + 16, UInt64.self)
        return .entry(record: start..<end, following: load(bytes, at + 8, UInt32.self), isIntact: isIntact)
    }

    /// Returns whether a file begins with an intact header of this version.
    static func isCurrentHeader(_ bytes: [UInt8]) -> Bool { bytes == header }

    private static func isHeader(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= headerSize, bytes.starts(with: magic) else { return false }
        let sum = UInt32(truncatingIfNeeded: Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[..<12])))
        return load(bytes, 12, UInt32.self) == sum
    }

    // MARK: Numbers

    private static func seed(_ offset: Int) -> UInt64 { UInt64(version) << 48 ^ UInt64(offset) }

    private static func shortSum(_ bytes: [UInt8], ofLast count: Int, seed: UInt64) -> UInt32 {
        bytes.withUnsafeBytes { bytes in
            UInt32(truncatingIfNeeded: Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes.suffix(count)), seed: seed))
        }
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func load<Number: FixedWidthInteger & BitwiseCopyable>(
        _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ type: Number.Type
    ) -> Number {
        Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
}
