/// The checksum of gzip (RFC 1952, section 8).
enum CRC32 {
    private static let polynomial: UInt32 = 0xEDB8_8320
    private static let table: [UInt32] = (UInt32(0)..<256).map { (0..<8).reduce($0) { value, _ in shifted(value) } }

    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~0) { checksum, byte in table[Int(UInt8(truncatingIfNeeded: checksum) ^ byte)] ^ checksum >> 8 }
    }

    /// Returns the checksum of `count` zero bytes in logarithmic time.
    ///
    /// A zero bit multiplies the register by x modulo the polynomial, so `count` zero bytes multiply it by x to the power of 8 · `count`.
    static func checksum(zeros count: Int) -> UInt32 {
        let one: UInt32 = 0x8000_0000
        var power = one
        var factor = one >> 8
        var rest = count
        while rest > 0 {
            if rest & 1 == 1 { power = product(power, factor) }
            factor = product(factor, factor)
            rest >>= 1
        }
        return ~product(~0, power)
    }

    /// Returns the product of two polynomials modulo the checksum's; the highest bit is the coefficient of x⁰.
    private static func product(_ left: UInt32, _ right: UInt32) -> UInt32 {
        var sum: UInt32 = 0
        var shiftedRight = right
        for bit in (0..<32).reversed() {
            if left >> UInt32(bit) & 1 == 1 { sum ^= shiftedRight }
            shiftedRight = shifted(shiftedRight)
        }
        return sum
    }

    private static func shifted(_ value: UInt32) -> UInt32 { value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1 }
}
