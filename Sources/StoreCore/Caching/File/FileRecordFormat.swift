internal import Foundation

/// The bytes of a record's file: a fixed head, the key, the payload.
///
/// | Offset | Size | What |
/// |---|---|---|
/// | 0 | 8 | `SHrecord` |
/// | 8 | 4 | version of this format |
/// | 12 | 4 | length of the key |
/// | 16 | 8 | version of the content's schema |
/// | 24 | 8 | length of the payload |
/// | 32 | 8 | checksum of the payload |
/// | 40 | 8 | checksum of the 40 bytes before and of the key |
/// | 48 | | the key, in canonical JSON |
/// | | | the payload, a record in JSON |
///
/// Numbers are little-endian, checksums are XXH64. The table holds for all versions to come: only the payload may change.
enum FileRecordFormat {
    static let headSize = 48
    static let version: UInt32 = 1
    private static let magic: [UInt8] = Array("SHrecord".utf8)

    /// What is known of a record without its payload.
    struct Head: Hashable, Sendable {
        /// The version of the file's format.
        var format: UInt32
        /// The version of the content's schema.
        var schema: Int64
        /// Where in the file the key stands.
        var key: Range<Int>
        /// Where in the file the payload stands: to its end.
        var payload: Range<Int>
        /// The checksum that the payload must have.
        var payloadChecksum: UInt64
    }

    /// Why a file is no record, or none that can be believed.
    struct Damage: Error, Hashable {
        /// What is wrong with the bytes.
        var reason: String
    }

    /// Makes the bytes of a file.
    static func encode(key: [UInt8], payload: Data, schema: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(headSize + key.count + payload.count)
        bytes.append(contentsOf: magic)
        append(version, to: &bytes)
        append(UInt32(key.count), to: &bytes)
        append(schema, to: &bytes)
        append(UInt64(payload.count), to: &bytes)
        append(payload.withUnsafeBytes { Checksum64.of($0) }, to: &bytes)
        append(headChecksum(head: bytes, key: key), to: &bytes)
        bytes.append(contentsOf: key)
        payload.withUnsafeBytes { bytes.append(contentsOf: $0) }
        return bytes
    }

    /// How many bytes of a file hold its head and key; `nil` where that cannot be told from the head.
    static func sizeOfHeadAndKey(_ head: UnsafeRawBufferPointer, fileSize: Int) -> Int? {
        guard head.count >= headSize else { return nil }
        let size = headSize + Int(number(head, 12, UInt32.self))
        return size <= fileSize ? size : nil
    }

    /// Reads head and key.
    ///
    /// - Parameters:
    ///   - bytes: The file from its beginning, at least to the end of the key.
    ///   - fileSize: The size of the whole file.
    /// - Returns: What is known of the record.
    /// - Throws: ``Damage`` where head or key are not as they were written, or the file has another length.
    static func readHead(_ bytes: UnsafeRawBufferPointer, fileSize: Int) throws(Damage) -> Head {
        guard bytes.count >= headSize else { throw Damage(reason: "it ends within its head") }
        guard bytes.prefix(magic.count).elementsEqual(magic) else { throw Damage(reason: "it does not begin as a record") }
        let keyEnd = headSize + Int(number(bytes, 12, UInt32.self))
        let (end, overflow) = UInt64(keyEnd).addingReportingOverflow(number(bytes, 24, UInt64.self))
        guard keyEnd <= bytes.count, !overflow, end == UInt64(fileSize) else { throw Damage(reason: "it has another length") }
        let sum = checksum(bytes[0..<40], bytes[headSize..<keyEnd])
        guard sum == number(bytes, 40, UInt64.self) else { throw Damage(reason: "the checksum of its head is wrong") }
        return Head(
            format: number(bytes, 8, UInt32.self), schema: number(bytes, 16, Int64.self), key: headSize..<keyEnd,
            payload: keyEnd..<fileSize, payloadChecksum: number(bytes, 32, UInt64.self))
    }

    /// Reads head and key of a whole file, and checks its payload.
    ///
    /// - Throws: ``Damage`` where any byte is not as it was written.
    static func readWhole(_ data: Data) throws(Damage) -> Head {
        let result = data.withUnsafeBytes { bytes in
            Result { () throws(Damage) in
                let head = try readHead(bytes, fileSize: bytes.count)
                guard Checksum64.of(UnsafeRawBufferPointer(rebasing: bytes[head.payload])) == head.payloadChecksum else {
                    throw Damage(reason: "the checksum of its content is wrong")
                }
                return head
            }
        }
        return try result.get()
    }

    private static func headChecksum(head: [UInt8], key: [UInt8]) -> UInt64 {
        head.withUnsafeBytes { head in key.withUnsafeBytes { key in checksum(head[...], key[...]) } }
    }

    private static func checksum(_ head: Slice<UnsafeRawBufferPointer>, _ key: Slice<UnsafeRawBufferPointer>) -> UInt64 {
        let seed = Checksum64.of(UnsafeRawBufferPointer(rebasing: head))
        return Checksum64.of(UnsafeRawBufferPointer(rebasing: key), seed: seed)
    }

    private static func number<Number: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, _ offset: Int, _ type: Number.Type) -> Number {
        var value: Number = 0
        withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: bytes[offset..<offset + MemoryLayout<Number>.size]) }
        return Number(littleEndian: value)
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
