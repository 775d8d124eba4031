extension SemanticVersion {
    /// The reasons why a text is not a version.
    @usableFromInline
    enum Flaw: String {
        case isEmpty = "it is empty"
        case isEndless = "it is longer than a million characters"
        case hasNoNumber = "it must begin with a number"
        case lacksNumber = "a number is missing after a dot"
        case hasFewNumbers = "it needs three numbers"
        case hasLeadingZero = "a number begins with 0"
        case hasBadIdentifier = "an identifier is empty or has an invalid character"
        case hasForeignCharacter = "it has an invalid character"
    }

    /// Parses a version in one pass over its UTF-8; returns the flaw, or `nil`.
    @inlinable @inline(__always)
    static func read(_ text: String, _ mode: Mode, _ parts: inout Parts) -> Flaw? {
        // Only strings bridged from Objective-C lack contiguous UTF-8.
        if let flaw = text.utf8.withContiguousStorageIfAvailable({ parts.read($0, isLenient: mode == .lenient) }) { return flaw }
        var copy = text
        return copy.withUTF8 { parts.read($0, isLenient: mode == .lenient) }
    }

    /// The parts of a parsed version.
    @usableFromInline
    struct Parts {
        @usableFromInline var major: UInt64 = 0
        @usableFromInline var minor: UInt64 = 0
        @usableFromInline var patch: UInt64 = 0
        @usableFromInline var preReleaseStart: UInt32 = 0
        @usableFromInline var preReleaseEnd: UInt32 = 0

        @inlinable
        init() {}

        /// Parses the whole text; returns the flaw, or `nil`.
        @usableFromInline
        mutating func read(_ bytes: UnsafeBufferPointer<UInt8>, isLenient: Bool) -> Flaw? {
            guard bytes.count <= 1 << 20 else { return .isEndless }
            guard !bytes.isEmpty else { return .isEmpty }
            var position = isLenient && bytes[0] | 0x20 == UInt8(ascii: "v") ? 1 : 0
            if let flaw = Self.number(bytes, &position, &major, isLenient) { return flaw == .lacksNumber ? .hasNoNumber : flaw }
            if Self.dot(bytes, &position) {
                if let flaw = Self.number(bytes, &position, &minor, isLenient) { return flaw }
                if Self.dot(bytes, &position) {
                    if let flaw = Self.number(bytes, &position, &patch, isLenient) { return flaw }
                } else if !isLenient {
                    return .hasFewNumbers
                }
            } else if !isLenient {
                return .hasFewNumbers
            }
            preReleaseEnd = UInt32(truncatingIfNeeded: position)
            guard position < bytes.count else { return nil }
            if bytes[position] == UInt8(ascii: "-") {
                position &+= 1
                preReleaseStart = UInt32(truncatingIfNeeded: position)
                if let flaw = Self.identifiers(bytes, &position, refusesZeros: !isLenient) { return flaw }
                preReleaseEnd = UInt32(truncatingIfNeeded: position)
            }
            if position < bytes.count, bytes[position] == UInt8(ascii: "+") {
                position &+= 1
                if let flaw = Self.identifiers(bytes, &position, refusesZeros: false) { return flaw }
            }
            return position == bytes.count ? nil : .hasForeignCharacter
        }

        @inline(__always)
        private static func dot(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
            guard position < bytes.count, bytes[position] == UInt8(ascii: ".") else { return false }
            position &+= 1
            return true
        }

        @inline(__always)
        private static func number(
            _ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int, _ value: inout UInt64, _ isLenient: Bool
        ) -> Flaw? {
            let start = position
            // Nineteen digits always fit.
            let end = min(bytes.count, start &+ 19)
            var sum: UInt64 = 0
            while position < end {
                let digit = bytes[position] &- 0x30
                guard digit <= 9 else { break }
                sum = sum &* 10 &+ UInt64(digit)
                position &+= 1
            }
            guard position > start else { return .lacksNumber }
            if !isLenient, bytes[start] == 0x30, position &- start > 1 { return .hasLeadingZero }
            value = position == end && end < bytes.count ? longNumber(bytes, &position, sum) : sum
            return nil
        }

        /// Parses the remaining digits of a number with more than nineteen; a number beyond 64 bits becomes `UInt64.max`.
        @inline(never)
        private static func longNumber(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int, _ sum: UInt64) -> UInt64 {
            var sum = sum
            while position < bytes.count, bytes[position] &- 0x30 <= 9 {
                let (product, overflow) = sum.multipliedReportingOverflow(by: 10)
                let (next, carry) = product.addingReportingOverflow(UInt64(bytes[position] &- 0x30))
                sum = overflow || carry || sum == .max ? .max : next
                position &+= 1
            }
            return sum
        }

        /// Parses identifiers separated by dots; returns the flaw, or `nil`.
        private static func identifiers(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int, refusesZeros: Bool) -> Flaw? {
            while true {
                let start = position
                var isNumber = true
                while position < bytes.count {
                    let byte = bytes[position]
                    if byte &- 0x30 > 9 {
                        guard (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") else { break }
                        isNumber = false
                    }
                    position &+= 1
                }
                guard position > start else { return .hasBadIdentifier }
                if refusesZeros, isNumber, bytes[start] == 0x30, position &- start > 1 { return .hasLeadingZero }
                guard dot(bytes, &position) else { return nil }
            }
        }
    }
}
