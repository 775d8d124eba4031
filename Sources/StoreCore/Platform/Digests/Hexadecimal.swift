extension UInt64 {
    /// Reads 16 lower-case hexadecimal digits; `nil` for anything else.
    package init?(hexadecimal digits: Slice<UnsafeBufferPointer<UInt8>>) {
        guard digits.count == 16 else { return nil }
        let bytes = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: digits))
        guard let high = Self.half(bytes.loadUnaligned(as: UInt64.self)),
            let low = Self.half(bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        else { return nil }
        self = high << 32 | low
    }

    /// Reads eight digits at once, because loading a thousand texts reads two hundred thousand digits.
    private static func half(_ digits: UInt64) -> UInt64? {
        let digits = UInt64(bigEndian: digits), each: UInt64 = 0x0101_0101_0101_0101
        // The seventh bit distinguishes letters from figures. The sum of any two parts stays within its byte.
        let isLetter = digits >> 6 & each
        let values = (digits & (each * 0x0F)) + isLetter * 9
        // Other characters have the same values, so the values must produce the same digits again.
        let isAboveNine = (values + each * 6) >> 4 & each
        guard values & (each * 0xF0) == 0, values + each * 0x30 + isAboveNine * 39 == digits else { return nil }
        let pairs = (values | values >> 4) & 0x00FF_00FF_00FF_00FF
        let fours = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
        return (fours | fours >> 16) & 0xFFFF_FFFF
    }

    /// Writes 16 lower-case hexadecimal digits to a buffer.
    package func write(hexadecimal digits: UnsafeMutableBufferPointer<UInt8>, at position: Int) {
        for place in 0..<16 {
            let value = UInt8(truncatingIfNeeded: self >> UInt64(60 - 4 * place)) & 0xF
            digits[position + place] = value < 10 ? 0x30 + value : 0x61 + value - 10
        }
    }
}
