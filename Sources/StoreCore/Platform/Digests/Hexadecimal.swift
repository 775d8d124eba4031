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
        // Eight digits at once, because an unchanged file's digest is written in every pass.
        let each: UInt64 = 0x0101_0101_0101_0101, bytes = UnsafeMutableRawBufferPointer(digits)
        for (half, place) in [(self >> 32, position), (self & 0xFFFF_FFFF, position + 8)] {
            let fours = (half | half << 16) & 0x0000_FFFF_0000_FFFF
            let pairs = (fours | fours << 8) & 0x00FF_00FF_00FF_00FF
            let values = (pairs | pairs << 4) & (each * 0x0F)
            let isLetter = (values + each * 6) >> 4 & each
            bytes.storeBytes(of: (values + each * 0x30 + isLetter * 39).bigEndian, toByteOffset: place, as: UInt64.self)
        }
    }
}
