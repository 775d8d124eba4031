package import StoreCore
internal import StorePlatform

/// The format of a log: a header, then one entry after another.
///
/// The header is that of ``FileHeader``, with the version of the entries.
///
/// | Offset | Size | Field of an entry |
/// |---|---|---|
/// | 0 | 4 | `SHob` |
/// | 4 | 4 | length of the content |
/// | 8 | 4 | number of entries that follow in the same append |
/// | 12 | 4 | checksum of the preceding 12 bytes |
/// | 16 | 8 | checksum of the content |
/// | 24 | | the content |
///
/// Numbers are little-endian. Checksums are XXH64; a checksum of 4 bytes is its lower half. The checksums of an entry depend on its offset
/// and on the version. Therefore a copy of an entry inside another one is not mistaken for an entry, entries behind a removed part are
/// damaged, and a file of another version has no valid entries.
///
/// An interrupted write leaves a part of an append at the end of the file: a torn tail, which was never acknowledged.
package struct LogFormat: Sendable {
    private let fileHeader: FileHeader
    /// The kind of log in words, for messages.
    package let noun: String

    package static let headerSize = 16
    package static let entryHeaderSize = 24
    /// The length of the longest content in bytes.
    static let longestContent = Int(Int32.max)
    /// The first bytes of each entry: `SHob` as a little-endian number.
    private static let marker: UInt32 = 0x626F_4853

    package init(_ magic: String, version: UInt32, noun: String) {
        (fileHeader, self.noun) = (FileHeader(magic, version: version), noun)
    }

    /// The reason why a file is not a log of this format.
    enum Foreign: Error, Hashable {
        /// The file has neither the header of a log nor an entry behind it.
        case format
        /// The file is a log of the given version, which this program cannot read.
        case version(UInt32)
    }

    struct Reading: Hashable {
        /// The ranges of the contents in the file.
        var contents: [Range<Int>] = []
        var damages: [LogDamage] = []
        /// The offset at which the next piece or append belongs. At the end of the file, everything behind it is a torn tail.
        var end = 0
    }

    var version: UInt32 { fileHeader.version }
    /// The first 16 bytes of a log.
    package var header: [UInt8] { fileHeader.bytes }

    // MARK: Writing

    /// Returns the bytes of entries at an offset; at the beginning of the file, with the header.
    ///
    /// With a count, a reader accepts all of that many entries or none; with `nil`, each for itself.
    package func encode<Entry: LogEntry>(
        _ entries: some Sequence<Entry>, at offset: Int, asOneAppendOf count: Int? = nil
    ) throws(StoreError) -> [UInt8] {
        var bytes = ByteWriter(capacity: 512)
        if offset == 0 { bytes.append(header) }
        for (index, entry) in entries.enumerated() {
            let (start, content) = (bytes.bytes.count, bytes.bytes.count + Self.entryHeaderSize)
            let seed = seed(offset + start)
            bytes.append(zeros: Self.entryHeaderSize)
            entry.write(to: &bytes)
            let length = bytes.bytes.count - content
            guard length <= Self.longestContent else {
                throw StoreError(.unwritableRecord, "an entry of \(noun) is longer than \(Self.longestContent) bytes; shorten it")
            }
            let following = count.map { $0 - 1 - index } ?? 0
            bytes.withUnsafeMutableBytes { bytes in
                bytes.put(Self.marker, at: start)
                bytes.put(UInt32(length), at: start + 4)
                bytes.put(UInt32(following), at: start + 8)
                let head = Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[start..<start + 12]), seed: seed)
                bytes.put(UInt32(truncatingIfNeeded: head), at: start + 12)
                bytes.put(Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[content...]), seed: seed), at: start + 16)
            }
        }
        return bytes.bytes
    }

    // MARK: Reading

    /// Reads the complete appends of a piece of a log, which begins where an earlier piece ended, and the damages between them.
    ///
    /// Unless the file ends behind the bytes, the reading ends before a part that a longer piece may complete. Throws ``Foreign`` if the
    /// file is not a log of this format.
    func read(_ bytes: UnsafeRawBufferPointer, from base: Int, isAtEnd: Bool = true) throws(Foreign) -> Reading {
        guard base == 0 else { return entries(bytes, from: 0, base: base, isAtEnd) }
        if let found = fileHeader.version(in: bytes) {
            guard found == version else { throw .version(found) }
            return entries(bytes, from: Self.headerSize, base: 0, isAtEnd)
        }
        // The first append writes header and entries at once, so a part of a header has no entries.
        if bytes.count < Self.headerSize, header.starts(with: bytes) { return Reading() }
        if bytes.allSatisfy({ $0 == 0 }) { return Reading() }
        // Only the checksums of entries tell a damaged header from a foreign file.
        guard bytes.count > Self.headerSize, nextEntry(bytes, from: Self.headerSize, base: 0) != nil else {
            guard isAtEnd else { return Reading() }
            throw .format
        }
        var reading = entries(bytes, from: Self.headerSize, base: 0, isAtEnd)
        if reading.end > 0 { reading.damages.insert(LogDamage(0, Self.headerSize, "the header of the log is damaged"), at: 0) }
        return reading
    }

    private enum Part {
        /// An entry with an intact header.
        case entry(content: Range<Int>, following: UInt32, isIntact: Bool)
        /// An entry that ends behind the bytes.
        case torn
        case damaged
    }

    private func entries(_ bytes: UnsafeRawBufferPointer, from start: Int, base: Int, _ isAtEnd: Bool) -> Reading {
        var reading = Reading(end: base + start)
        // The numbers of contents and damages up to the end of the last complete append.
        var complete = (contents: 0, damages: 0)
        var at = start

        func settle(_ offset: Int) {
            complete = (reading.contents.count, reading.damages.count)
            reading.end = base + offset
        }

        reading: while at < bytes.count {
            switch part(bytes, at, base: base) {
            case .entry(let content, let following, let isIntact):
                if isIntact {
                    reading.contents.append(base + content.lowerBound..<base + content.upperBound)
                } else {
                    reading.damages.append(LogDamage(base + at, content.upperBound - at, "the checksum of an entry is wrong"))
                }
                at = content.upperBound
                if following == 0 { settle(at) }
            case .torn:
                break reading
            case .damaged:
                // The length is unknown, so the search looks at each offset. Entries before the damage are not torn: bytes follow them.
                guard let next = nextEntry(bytes, from: at + 1, base: base) ?? (isAtEnd ? bytes.count : nil) else { break reading }
                reading.damages.append(LogDamage(base + at, next - at, "the header of an entry is damaged"))
                at = next
                settle(at)
            }
        }
        // The rest belongs to an append that has not ended.
        reading.contents.removeSubrange(complete.contents...)
        reading.damages.removeSubrange(complete.damages...)
        return reading
    }

    /// Returns the offset of the first intact entry from an offset on; `nil` if there is none.
    private func nextEntry(_ bytes: UnsafeRawBufferPointer, from start: Int, base: Int) -> Int? {
        var at = start
        while at + Self.entryHeaderSize <= bytes.count {
            if bytes.number(at, as: UInt32.self) == Self.marker, case .entry(_, _, isIntact: true) = part(bytes, at, base: base) {
                return at
            }
            at += 1
        }
        return nil
    }

    private func part(_ bytes: UnsafeRawBufferPointer, _ at: Int, base: Int) -> Part {
        let start = at + Self.entryHeaderSize
        guard start <= bytes.count else { return .torn }
        let seed = seed(base + at)
        let sum = UInt32(truncatingIfNeeded: Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[at..<at + 12]), seed: seed))
        guard bytes.number(at, as: UInt32.self) == Self.marker, bytes.number(at + 12, as: UInt32.self) == sum else {
            // After a loss of power, a file may be longer than the bytes that reached the disk.
            return bytes[at...].allSatisfy { $0 == 0 } ? .torn : .damaged
        }
        let end = start + Int(bytes.number(at + 4, as: UInt32.self))
        guard end <= bytes.count else { return .torn }
        let found = Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), seed: seed)
        let isIntact = found == bytes.number(at + 16, as: UInt64.self)
        return .entry(content: start..<end, following: bytes.number(at + 8, as: UInt32.self), isIntact: isIntact)
    }

    private func seed(_ offset: Int) -> UInt64 { UInt64(version) << 48 ^ UInt64(offset) }
}

/// A part of a log that is not an intact entry.
package struct LogDamage: Hashable, Sendable {
    /// The place in the file, in bytes.
    package var offset: Int
    /// The number of bytes that reading skips.
    package var length: Int
    /// The defect in words, for the event that reports it.
    package var reason: String

    init(_ offset: Int, _ length: Int, _ reason: String) { (self.offset, self.length, self.reason) = (offset, length, reason) }
}

/// The content of a log's entries.
package protocol LogEntry: Sendable {
    func write(to writer: inout ByteWriter)
    /// Reads an entry; `nil` for bytes that another version of the framework has written.
    init?(reading bytes: UnsafeRawBufferPointer)
}
