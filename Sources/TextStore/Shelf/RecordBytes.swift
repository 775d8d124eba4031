internal import Foundation
import StoreCore
internal import StorePlatform

/// Encodes values as ``RecordReader`` decodes them.
///
/// JSON would be too slow: a start reads a thousand records, and Foundation's decoder would spend more time on their heads than the disk on
/// the whole files.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func put(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    mutating func put(_ date: Date) { put(date.timeIntervalSinceReferenceDate.bitPattern) }

    mutating func put(_ text: String) {
        put(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func put(_ digest: SHA256.Digest) { put(digest.hex) }

    mutating func put<Value>(_ value: Value?, _ body: (inout RecordWriter, Value) -> Void) {
        put(value != nil)
        if let value { body(&self, value) }
    }

    mutating func put<Values: Collection>(all values: Values, _ body: (inout RecordWriter, Values.Element) -> Void) {
        put(UInt64(values.count))
        for value in values { body(&self, value) }
    }

    mutating func put(_ version: SemanticVersion?) { put(version) { $0.put($1.description) } }
}

/// Decodes values in the order in which they were encoded.
///
/// The bytes have passed their checksum, so another format means that another version of the framework wrote them.
struct RecordReader {
    /// The bytes are not in this format.
    struct Foreign: Error {}

    private let bytes: UnsafeRawBufferPointer
    private(set) var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func number() throws(Foreign) -> UInt64 {
        guard bytes.count - position >= 8 else { throw Foreign() }
        defer { position += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    mutating func flag() throws(Foreign) -> Bool {
        guard position < bytes.count, bytes[position] <= 1 else { throw Foreign() }
        defer { position += 1 }
        return bytes[position] == 1
    }

    mutating func date() throws(Foreign) -> Date { Date(timeIntervalSinceReferenceDate: Double(bitPattern: try number())) }

    mutating func text() throws(Foreign) -> String {
        let part = try utf8()
        // Bytes that pass the checksum came from a string; validating them would cost half as much as making the string.
        return String(decoding: part, as: UTF8.self)
    }

    mutating func digest() throws(Foreign) -> SHA256.Digest {
        guard let digest = SHA256.Digest(hex: try utf8().bindMemory(to: UInt8.self)) else { throw Foreign() }
        return digest
    }

    /// Returns the bytes of a string without copying them.
    mutating func utf8() throws(Foreign) -> UnsafeRawBufferPointer {
        let size = try number()
        guard size <= UInt64(bytes.count - position) else { throw Foreign() }
        defer { position += Int(size) }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(size)])
    }

    mutating func optional<Value>(_ body: (inout RecordReader) throws(Foreign) -> Value) throws(Foreign) -> Value? {
        try flag() ? try body(&self) : nil
    }

    mutating func all(_ body: (inout RecordReader) throws(Foreign) -> Void) throws(Foreign) {
        for _ in 0..<(try number()) { try body(&self) }
    }

    /// Decodes a count, and then that many pairs of a name and a value.
    mutating func table<Value>(_ body: (inout RecordReader) throws(Foreign) -> Value) throws(Foreign) -> [String: Value] {
        let count = try number()
        var table: [String: Value] = [:]
        // Each name takes at least the eight bytes of its length, which bounds a malformed count.
        table.reserveCapacity(Int(min(count, UInt64(bytes.count - position) / 8)))
        for _ in 0..<count {
            let name = try text()
            table[name] = try body(&self)
        }
        return table
    }

    mutating func version() throws(Foreign) -> SemanticVersion? {
        guard try flag() else { return nil }
        // Lenient parsing accepts every version that was valid when it was saved.
        guard let version = SemanticVersion(try text(), mode: .lenient) else { throw Foreign() }
        return version
    }
}
