internal import StoreCore
internal import StorePlatform

/// The format of the file that numbers the changes of a shared directory: a header and a ring of the latest changes.
///
/// | Offset | Size | Field |
/// |---|---|---|
/// | 0 | 8 | `SHchange` |
/// | 8 | 4 | version of this format |
/// | 12 | 4 | number of slots |
/// | 16 | 8 | start: the number before the first change |
/// | 24 | 8 | head: the number of the latest change |
/// | 32 | 8 | floor: no key without a file was changed after this number |
/// | 40 | 16 | zero |
/// | 56 | 8 | checksum of the preceding 56 bytes |
/// | 64 | | slots of 256 bytes |
///
/// The first twelve bytes and the checksum have their places in every version, so that a program recognizes the file of another version and
/// leaves it as it is.
///
/// The change with number n is in slot n modulo the number of slots. A change is added to the ring before the record's file is renamed,
/// both under one lock. A process that is killed in between leaves at worst a superfluous change, which costs one load.
enum ChangeRing {
    static let headerSize = 64
    static let slotSize = 256
    static let version: UInt32 = 1
    static let defaultSlots: UInt32 = 1024
    private static let magic: [UInt8] = Array("SHchange".utf8)

    struct Header: Hashable, Sendable {
        var slots: UInt32
        var start: UInt64
        var head: UInt64
        var floor: UInt64

        /// The header of a new ring.
        ///
        /// - Parameters:
        ///   - slots: The number of slots.
        ///   - now: Nanoseconds since 1970. A ring that replaces a removed one starts above the numbers of the removed ring, because no
        ///     ring receives a change in each microsecond.
        init(slots: UInt32, now: Int64) {
            self.slots = slots
            start = UInt64(max(1000, now) / 1000)
            head = start
            floor = 0
        }

        /// Reads a header; `nil` if it is damaged or of another version.
        init?(_ bytes: [UInt8]) {
            guard ChangeRing.version(of: bytes) == version else { return nil }
            slots = number(bytes, 12, UInt32.self)
            start = number(bytes, 16, UInt64.self)
            head = number(bytes, 24, UInt64.self)
            floor = number(bytes, 32, UInt64.self)
            guard slots > 0, start <= head else { return nil }
        }

        var bytes: [UInt8] {
            var bytes = magic
            append(version, to: &bytes)
            append(slots, to: &bytes)
            append(start, to: &bytes)
            append(head, to: &bytes)
            append(floor, to: &bytes)
            append(0 as UInt64, to: &bytes)
            append(0 as UInt64, to: &bytes)
            append(ChangeRing.checksum(bytes, 56), to: &bytes)
            return bytes
        }

        /// The numbers of the changes after a position that are still in the ring; `nil` if some have been overwritten or the position
        /// belongs to another ring.
        func numbers(after position: UInt64) -> ClosedRange<UInt64>? {
            guard position >= start, position < head, head - position <= UInt64(slots) else { return nil }
            return position + 1...head
        }
    }

    /// Returns the version of an intact header; `nil` if the bytes are none.
    static func version(of bytes: [UInt8]) -> UInt32? {
        guard bytes.count >= headerSize, bytes.starts(with: magic) else { return nil }
        guard number(bytes, 56, UInt64.self) == checksum(bytes, 56) else { return nil }
        return number(bytes, 8, UInt32.self)
    }

    /// A change as a slot of the ring stores it.
    struct Entry: Hashable, Sendable {
        enum Kind: UInt8, Sendable { case changed = 1, removedAll = 2 }

        var revision: Revision
        var kind: Kind
        var digest: SHA256.Digest
        /// The key's canonical JSON; `nil` if it is too long for a slot.
        var key: [UInt8]?
        /// The version of the new record's schema; `nil` if the change has none.
        var schema: Int64?

        /// The greatest length of a key that is part of the entry.
        static let keyLimit = slotSize - 72

        init(_ revision: Revision, _ kind: Kind, _ digest: SHA256.Digest, key: [UInt8]?, schema: Int64? = nil) {
            self.revision = revision
            self.kind = kind
            self.digest = digest
            self.key = key.flatMap { $0.count <= Self.keyLimit ? $0 : nil }
            self.schema = schema
        }

        /// Reads a slot; `nil` if it does not hold the change of this number.
        init?(_ bytes: [UInt8], number expected: UInt64) {
            guard bytes.count == slotSize, number(bytes, 0, UInt64.self) == expected,
                number(bytes, slotSize - 8, UInt64.self) == ChangeRing.checksum(bytes, slotSize - 8),
                let kind = Kind(rawValue: bytes[48])
            else { return nil }
            revision = Revision(number: expected, writer: number(bytes, 8, UInt64.self))
            self.kind = kind
            digest = bytes.withUnsafeBytes { SHA256.Digest(bigEndianBytes: UnsafeRawBufferPointer(rebasing: $0[16..<48])) }
            let count = Int(number(bytes, 50, UInt16.self))
            key = bytes[49] == 1 && count <= Self.keyLimit ? Array(bytes[64..<64 + count]) : nil
            schema = bytes[60] == 1 ? number(bytes, 52, Int64.self) : nil
        }

        var bytes: [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(slotSize)
            append(revision.number, to: &bytes)
            append(revision.writer, to: &bytes)
            bytes.append(contentsOf: digest.bytes)
            bytes.append(kind.rawValue)
            bytes.append(key == nil ? 0 : 1)
            append(UInt16(key?.count ?? 0), to: &bytes)
            append(schema ?? 0, to: &bytes)
            bytes.append(schema == nil ? 0 : 1)
            bytes.append(contentsOf: repeatElement(0, count: 3))
            bytes.append(contentsOf: key ?? [])
            bytes.append(contentsOf: repeatElement(0, count: slotSize - 8 - bytes.count))
            append(ChangeRing.checksum(bytes, slotSize - 8), to: &bytes)
            return bytes
        }
    }

    private static func checksum(_ bytes: [UInt8], _ count: Int) -> UInt64 {
        bytes.withUnsafeBytes { Checksum64.of(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    private static func number<Number: FixedWidthInteger>(_ bytes: [UInt8], _ offset: Int, _ type: Number.Type) -> Number {
        bytes.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// The revision in a record's file. It begins the details in JSON, where programs of older versions ignore it.
enum RecordRevision {
    private static let opening = Array(#"{"revision":""#.utf8)

    /// The length of the part that holds the revision.
    static let size = opening.count + 33

    /// Returns details that begin with a revision.
    ///
    /// - Parameters:
    ///   - revision: The revision.
    ///   - details: The other details: a JSON object with at least one member.
    static func adding(_ revision: Revision, to details: some Collection<UInt8>) -> [UInt8] {
        var bytes = opening
        bytes.reserveCapacity(size + details.count)
        for number in [revision.number, revision.writer] {
            let digits = String(number, radix: 16)
            bytes.append(contentsOf: repeatElement(0x30, count: 16 - digits.utf8.count))
            bytes.append(contentsOf: digits.utf8)
        }
        bytes.append(0x22)
        bytes.append(0x2C)
        bytes.append(contentsOf: details.dropFirst())
        return bytes
    }

    /// Reads the revision at the beginning of details; `nil` if there is none.
    static func read(_ details: some RandomAccessCollection<UInt8>) -> Revision? {
        guard details.count >= size, details.starts(with: opening) else { return nil }
        let digits = Array(details.dropFirst(opening.count).prefix(32))
        return digits.withUnsafeBufferPointer { digits in
            guard let number = UInt64(hexadecimal: digits[..<16]), let writer = UInt64(hexadecimal: digits[16...]) else { return nil }
            return Revision(number: number, writer: writer)
        }
    }

    /// Returns the details without the revision, as they were given to ``adding(_:to:)``.
    static func removing(from details: some RandomAccessCollection<UInt8>) -> [UInt8] {
        guard read(details) != nil else { return Array(details) }
        return [0x7B] + details.dropFirst(size + 1)
    }
}
