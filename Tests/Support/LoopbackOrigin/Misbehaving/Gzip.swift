/// Hand-made gzip streams (RFC 1952), because no compressor is available on every platform.
enum Gzip {
    private static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]

    /// Returns `bytes` in uncompressed blocks (RFC 1951, section 3.2.4).
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var stream = header
        var rest = bytes[...]
        repeat {
            let block = rest.prefix(0xFFFF)
            rest = rest.dropFirst(block.count)
            let length = UInt16(block.count)
            stream.append(rest.isEmpty ? 1 : 0)
            stream += littleEndian(length) + littleEndian(~length) + block
        } while !rest.isEmpty
        return stream + littleEndian(CRC32.checksum(bytes)) + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// Returns a description of a stream of `count` zero bytes; in its middle, each byte on the wire stands for 1032 of them.
    ///
    /// A block with dynamic codes (RFC 1951, section 3.2.7) encodes “repeat the previous byte 258 times” in two zero bits, and “a zero
    /// byte” in the bits 1 0. The block thus consists of a few literals and then only zero bits.
    static func zeros(count: Int) -> WireBody {
        let copies = max(0, count - 1) / 258
        var bits = BitWriter()
        writeCodes(to: &bits)
        for _ in 0..<(count - 258 * copies) { bits.write(code: 0b10, length: 2) }
        var zeroBits = 2 * copies
        while zeroBits > 0, !bits.isAligned {
            bits.write(code: 0, length: 1)
            zeroBits -= 1
        }
        // A few zero bits may end inside a byte, which the following bits continue.
        let opening = bits.isAligned ? bits.flush() : []
        for _ in 0..<(zeroBits % 8) { bits.write(code: 0, length: 1) }
        bits.write(code: 0b11, length: 2)
        let trailer = littleEndian(CRC32.checksum(zeros: count)) + littleEndian(UInt32(truncatingIfNeeded: count))
        let block = [UInt8](repeating: 0, count: 4096)
        let (blocks, rest) = (zeroBits / 8).quotientAndRemainder(dividingBy: block.count)
        return WireBody([
            .init(bytes: header + opening),
            .init(bytes: block, times: blocks),
            .init(bytes: Array(block.prefix(rest)) + bits.flush() + trailer),
        ])
    }

    /// Writes the header of a final block with these codes: 0 for a length of 258, 10 for a zero byte, 11 for the end, 0 for a distance of
    /// 1.
    private static func writeCodes(to bits: inout BitWriter) {
        bits.write(number: 1, bits: 1)  // the final block
        bits.write(number: 2, bits: 2)  // with dynamic codes
        bits.write(number: 286 - 257, bits: 5)  // literal and length codes
        bits.write(number: 0, bits: 5)  // one distance code
        bits.write(number: 18 - 4, bits: 4)  // code lengths of code lengths, in the order 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1
        for length in [0, 0, 1] + Array(repeating: 0, count: 12) + [2, 0, 2] { bits.write(number: length, bits: 3) }
        let one = (code: 0b10, length: 2)
        let two = (code: 0b11, length: 2)
        let writeZeroLengths = { (count: Int, bits: inout BitWriter) in
            bits.write(code: 0, length: 1)
            bits.write(number: count - 11, bits: 7)
        }
        bits.write(code: two.code, length: two.length)  // 0, the zero byte
        writeZeroLengths(138, &bits)
        writeZeroLengths(117, &bits)
        bits.write(code: two.code, length: two.length)  // 256, the end
        writeZeroLengths(28, &bits)
        bits.write(code: one.code, length: one.length)  // 285, a length of 258
        bits.write(code: one.code, length: one.length)  // distance 1
    }

    private static func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
}

/// Packs bits into bytes as deflate does, the lowest bit first.
private struct BitWriter {
    private var bytes: [UInt8] = []
    private var used = 0

    var isAligned: Bool { used % 8 == 0 }

    /// Writes a number, lowest bit first.
    mutating func write(number: Int, bits: Int) { for index in 0..<bits { write(bit: number >> index & 1) } }

    /// Writes a Huffman code, highest bit first.
    mutating func write(code: Int, length: Int) { for index in (0..<length).reversed() { write(bit: code >> index & 1) } }

    /// Removes and returns the bytes so far; zero bits fill up the last one.
    mutating func flush() -> [UInt8] {
        defer { self = BitWriter() }
        return bytes
    }

    private mutating func write(bit: Int) {
        if isAligned { bytes.append(0) }
        bytes[bytes.count - 1] |= UInt8(bit) << (used % 8)
        used += 1
    }
}
