extension UInt64 {
    /// Reads 16 lower-case hexadecimal digits; `nil` for anything else.
    package init?(hexadecimal digits: Slice<UnsafeBufferPointer<UInt8>>) {
        guard digits.count == 16 else { return nil }
        var number: UInt64 = 0
        for digit in digits {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x61...0x66: value = digit - 0x61 + 10
            default: return nil
            }
            number = number << 4 | UInt64(value)
        }
        self = number
    }

    /// Writes 16 lower-case hexadecimal digits to a place that has room for them.
    package func write(hexadecimal digits: UnsafeMutableBufferPointer<UInt8>, at position: Int) {
        for place in 0..<16 {
            let value = UInt8(truncatingIfNeeded: self >> UInt64(60 - 4 * place)) & 0xF
            digits[position + place] = value < 10 ? 0x30 + value : 0x61 + value - 10
        }
    }
}
