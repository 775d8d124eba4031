#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif
internal import StoreCore
package import StorePlatform

/// Encodes values as `ByteReader` decodes them: numbers in little-endian order, and a length of four bytes before each text.
///
/// A start reads thousands of records, for which a decoder of JSON takes longer than the disk.
package struct ByteWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    package mutating func put(_ byte: UInt8) { bytes.append(byte) }

    package mutating func put(_ number: UInt32) { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }

    package mutating func put(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }

    /// Writes eight bytes, even where an `Int` has four.
    package mutating func put(_ number: Int) { put(UInt64(bitPattern: Int64(number))) }

    package mutating func put(_ flag: Bool) { put(flag ? 1 as UInt8 : 0) }

    package mutating func put(_ date: Date) { put(date.timeIntervalSinceReferenceDate.bitPattern) }

    package mutating func put(_ id: UUID) { withUnsafeBytes(of: id.uuid) { bytes.append(contentsOf: $0) } }

    package mutating func put(_ digest: SHA256.Digest) { bytes.append(contentsOf: digest.bytes) }

    package mutating func put(_ text: String) {
        var text = text
        text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
    }

    package mutating func put(_ data: Data) { data.withUnsafeBytes { put($0) } }

    /// Writes the number of bytes, and then the bytes.
    package mutating func put(_ raw: UnsafeRawBufferPointer) {
        put(UInt32(raw.count))
        bytes.append(contentsOf: raw)
    }

    /// Writes bytes without their number.
    package mutating func append(_ raw: some Collection<UInt8>) { bytes.append(contentsOf: raw) }

    /// Writes zeros, to be replaced once the bytes behind them are known.
    mutating func append(zeros count: Int) { bytes.append(contentsOf: repeatElement(0, count: count)) }

    mutating func withUnsafeMutableBytes(_ body: (UnsafeMutableRawBufferPointer) -> Void) { bytes.withUnsafeMutableBytes { body($0) } }

    @inlinable
    package mutating func put<Value>(_ value: Value?, _ body: (inout ByteWriter, Value) -> Void) {
        put(value != nil)
        if let value { body(&self, value) }
    }

    @inlinable
    package mutating func put<Values: Collection>(all values: Values, _ body: (inout ByteWriter, Values.Element) -> Void) {
        put(UInt64(values.count))
        for value in values { body(&self, value) }
    }
}

/// Decodes values in the order in which they were encoded.
///
/// The bytes have passed their checksum, so another format means that another version of the framework has written them.
package struct ByteReader {
    /// The bytes are not in the expected format.
    package struct Foreign: Error {
        package init() {}
    }

    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    package var isAtEnd: Bool { position == bytes.count }

    package var rest: Int { bytes.count - position }

    package mutating func take(_ count: Int) throws(Foreign) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= rest else { throw Foreign() }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    package mutating func byte() throws(Foreign) -> UInt8 { try take(1)[0] }

    mutating func number32() throws(Foreign) -> UInt32 { try take(4).number(0, as: UInt32.self) }

    package mutating func number() throws(Foreign) -> UInt64 { try take(8).number(0, as: UInt64.self) }

    package mutating func int() throws(Foreign) -> Int { Int(truncatingIfNeeded: Int64(bitPattern: try number())) }

    package mutating func flag() throws(Foreign) -> Bool {
        let byte = try byte()
        guard byte <= 1 else { throw Foreign() }
        return byte == 1
    }

    package mutating func date() throws(Foreign) -> Date { Date(timeIntervalSinceReferenceDate: Double(bitPattern: try number())) }

    package mutating func id() throws(Foreign) -> UUID { UUID(uuid: try take(16).loadUnaligned(as: uuid_t.self)) }

    package mutating func digest() throws(Foreign) -> SHA256.Digest { SHA256.Digest(bigEndianBytes: try take(32)) }

    /// Returns counted bytes without copying them.
    package mutating func raw() throws(Foreign) -> UnsafeRawBufferPointer { try take(Int(exactly: try number32()) ?? .max) }

    /// Returns a text. Bytes that pass the checksum came from a string, and validating them would cost half as much as making the string.
    package mutating func text() throws(Foreign) -> String { String(decoding: try raw(), as: UTF8.self) }

    @inlinable
    package mutating func optional<Value>(_ body: (inout ByteReader) throws(Foreign) -> Value) throws(Foreign) -> Value? {
        try flag() ? try body(&self) : nil
    }

    @inlinable
    package mutating func all(_ body: (inout ByteReader) throws(Foreign) -> Void) throws(Foreign) {
        for _ in 0..<(try number()) { try body(&self) }
    }

    /// Decodes a count, and then that many pairs of a name and a value.
    @inlinable
    package mutating func table<Value>(_ body: (inout ByteReader) throws(Foreign) -> Value) throws(Foreign) -> [String: Value] {
        let count = try number()
        var table: [String: Value] = [:]
        // Each name takes at least the four bytes of its length, which bounds a malformed count.
        table.reserveCapacity(Int(min(count, UInt64(rest) / 4)))
        for _ in 0..<count {
            let name = try text()
            table[name] = try body(&self)
        }
        return table
    }
}

extension UnsafeRawBufferPointer {
    /// Reads the number at an offset, in little-endian order.
    func number<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as type: Number.Type) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Replaces the number at an offset, in little-endian order.
    func put<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number, at offset: Int) {
        storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
    }
}
