#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StorePlatform

/// The format of a record's file: a fixed header, the key, the details, the content.
///
/// | Offset | Size | Field |
/// |---|---|---|
/// | 0 | 8 | `SHrecord` |
/// | 8 | 4 | version of this format |
/// | 12 | 4 | length of the key |
/// | 16 | 4 | length of the details |
/// | 20 | 4 | zero |
/// | 24 | 8 | length of the content |
/// | 32 | 8 | version of the content's schema |
/// | 40 | 8 | time of the fetch: the bits of a double, seconds since 2001 |
/// | 48 | 8 | checksum of details and content |
/// | 56 | 8 | checksum of the preceding 56 bytes and of the key |
/// | 64 | | the key, in canonical JSON |
/// | | | the details in JSON, if any of them differs from its default |
/// | | | the content in JSON |
///
/// Numbers are little-endian, checksums are XXH64. The layout up to the key is fixed for all versions. The date is in the header and the
/// content is separate, because encoding them together costs a third more.
enum FileRecordFormat {
    static let headerSize = 64
    static let version: UInt32 = 1
    private static let magic: [UInt8] = Array("SHrecord".utf8)

    /// The decoded beginning of a file, with the ranges of the parts behind it.
    struct Header: Hashable, Sendable {
        var format: UInt32
        /// The version of the content's schema.
        var schema: Int64
        /// The time of the fetch, as the bits of seconds since 2001.
        var fetchedAt: UInt64
        var key: Range<Int>
        /// The range of the details in the file; empty if they have their defaults.
        var details: Range<Int>
        /// The range of the content in the file, up to its end.
        var content: Range<Int>
        /// The expected checksum of details and content.
        var checksum: UInt64
    }

    /// The reason why a file is not a valid record.
    struct Damage: Error, Hashable {
        /// The defect in words, for the fault that reports it.
        var reason: String
    }

    static func encode(key: [UInt8], fetchedAt: UInt64, details: Data?, content: Data, schema: Int64) -> [UInt8] {
        let details = details ?? Data()
        var bytes = ByteWriter(capacity: headerSize + key.count + details.count + content.count)
        bytes.append(magic)
        bytes.put(version)
        bytes.put(UInt32(key.count))
        bytes.put(UInt32(details.count))
        bytes.put(0 as UInt32)
        bytes.put(UInt64(content.count))
        bytes.put(UInt64(bitPattern: schema))
        bytes.put(fetchedAt)
        // Both checksums are set at the end, when all their input exists.
        bytes.append(zeros: 16)
        bytes.append(key)
        details.withUnsafeBytes { bytes.append($0) }
        content.withUnsafeBytes { bytes.append($0) }
        bytes.withUnsafeMutableBytes { bytes in
            let keyEnd = headerSize + key.count
            bytes.put(Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[keyEnd...])), at: 48)
            bytes.put(headerChecksum(UnsafeRawBufferPointer(bytes), keyEnd: keyEnd), at: 56)
        }
        return bytes.bytes
    }

    /// Returns the number of bytes of a file that hold its header and key; `nil` if the header is invalid.
    static func sizeOfHeaderAndKey(_ header: UnsafeRawBufferPointer, fileSize: Int) -> Int? {
        guard header.count >= headerSize else { return nil }
        // In 64 bits, because an altered length may not fit into the `Int` of a watch.
        let size = UInt64(headerSize) + UInt64(header.number(12, as: UInt32.self))
        return size <= UInt64(fileSize) ? Int(size) : nil
    }

    /// Reads the header and the key, given the beginning of the file, at least to the end of the key. Throws ``Damage`` if the header or
    /// the key was altered, or the file's length is wrong.
    static func readHeader(_ bytes: UnsafeRawBufferPointer, fileSize: Int) throws(Damage) -> Header {
        guard bytes.count >= headerSize else { throw Damage(reason: "it ends within its header") }
        guard bytes.prefix(magic.count).elementsEqual(magic) else { throw Damage(reason: "it has no record signature") }
        let keySize = UInt64(headerSize) + UInt64(bytes.number(12, as: UInt32.self))
        let detailsSize = UInt64(bytes.number(16, as: UInt32.self))
        let (end, overflow) = (keySize + detailsSize).addingReportingOverflow(bytes.number(24, as: UInt64.self))
        guard keySize <= UInt64(bytes.count), !overflow, end == UInt64(fileSize) else { throw Damage(reason: "its length is wrong") }
        let (keyEnd, detailsEnd) = (Int(keySize), Int(keySize + detailsSize))
        guard headerChecksum(bytes, keyEnd: keyEnd) == bytes.number(56, as: UInt64.self) else {
            throw Damage(reason: "the checksum of its header is wrong")
        }
        return Header(
            format: bytes.number(8, as: UInt32.self), schema: bytes.number(32, as: Int64.self),
            fetchedAt: bytes.number(40, as: UInt64.self),
            key: headerSize..<keyEnd, details: keyEnd..<detailsEnd, content: detailsEnd..<fileSize,
            checksum: bytes.number(48, as: UInt64.self)
        )
    }

    /// Reads the header and the key of a whole file, and checks the rest; throws ``Damage`` if any byte was altered. In a record of another
    /// version, only the header and the key are checked.
    static func readWhole(_ data: Data) throws(Damage) -> Header {
        let result = data.withUnsafeBytes { bytes in
            Result { () throws(Damage) in
                let header = try readHeader(bytes, fileSize: bytes.count)
                guard header.format == version else { return header }
                guard Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[header.key.upperBound...])) == header.checksum else {
                    throw Damage(reason: "the checksum of its content is wrong")
                }
                return header
            }
        }
        return try result.get()
    }

    /// Reads the key in a record's file; `nil` if there is no such record, or if it cannot be read.
    static func key(in directory: Directory, _ name: String) -> [UInt8]? {
        try? prefix(of: name, in: directory) { bytes, header in Array(bytes[header.key]) }
    }

    /// Returns the revision of a record; `.none` if it has none, `nil` if there is no intact record of this key.
    static func revision(of name: String, in directory: Directory) throws(StoreError) -> Revision? {
        try prefix(of: name, in: directory) { bytes, header in
            RecordRevision.read(bytes[header.details].prefix(RecordRevision.size)) ?? .none
        }
    }

    /// Returns the schema of a record; `nil` if there is no intact record.
    static func schema(of name: String, in directory: Directory) throws(StoreError) -> Int64? {
        try prefix(of: name, in: directory) { _, header in header.schema }
    }

    /// Reads the beginning of a record's file up to the revision in its details.
    private static func prefix<Result>(
        of name: String, in directory: Directory, _ body: (UnsafeRawBufferPointer, Header) -> Result
    ) throws(StoreError) -> Result? {
        guard let file = try OpenFile(reading: directory.path(of: name)) else { return nil }
        let status = try file.status()
        guard status.kind == .regular else { return nil }
        let size = status.size
        var capacity = 512
        for _ in 0..<2 {
            var bytes = [UInt8](repeating: 0, count: min(capacity, size))
            // A file that cannot be read, or has a damaged header, is no intact record.
            guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(into: $0) }), count == bytes.count else { return nil }
            let (result, wanted) = bytes.withUnsafeBytes { bytes -> (Result?, Int?) in
                guard let end = sizeOfHeaderAndKey(bytes, fileSize: size) else { return (nil, nil) }
                let wanted = min(size, end + RecordRevision.size)
                guard wanted <= bytes.count else { return (nil, wanted) }
                guard var header = try? readHeader(bytes, fileSize: size) else { return (nil, nil) }
                header.details = header.details.clamped(to: 0..<bytes.count)
                return (body(bytes, header), nil)
            }
            guard let wanted else { return result }
            capacity = wanted
        }
        return nil
    }

    private static func headerChecksum(_ bytes: UnsafeRawBufferPointer, keyEnd: Int) -> UInt64 {
        let seed = Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[..<56]))
        return Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[headerSize..<keyEnd]), seed: seed)
    }
}
