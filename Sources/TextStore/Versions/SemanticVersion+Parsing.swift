extension SemanticVersion {
    /// Reads a version in one pass over its UTF-8.
    static func read(_ text: String, mode: Mode) -> Result<SemanticVersion, Malformed> {
        var copy = text
        var parser = Parser(mode: mode)
        let reason = copy.withUTF8 { parser.parse($0) }
        if let reason { return .failure(Malformed(text: text, reason: reason)) }
        return .success(
            SemanticVersion(
                description: text, numbers: parser.numbers, preReleaseStart: parser.preReleaseStart, preReleaseEnd: parser.preReleaseEnd))
    }

    /// What has been read of one version.
    private struct Parser {
        let mode: Mode
        var numbers: (UInt64, UInt64, UInt64) = (0, 0, 0)
        var preReleaseStart: UInt32 = 0
        var preReleaseEnd: UInt32 = 0

        init(mode: Mode) { self.mode = mode }

        /// Reads everything; returns what is wrong, or `nil`.
        mutating func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
            var position = 0
            guard bytes.count <= 1 << 20 else { return "it is longer than a million characters" }
            guard !bytes.isEmpty else { return "it is empty" }
            if mode == .lenient, bytes[0] | 0x20 == UInt8(ascii: "v") { position = 1 }
            var count = 0
            while true {
                let start = position
                var value: UInt64 = 0
                while position < bytes.count, bytes[position] &- 0x30 <= 9 {
                    let digit = UInt64(bytes[position] &- 0x30)
                    // Nineteen digits always fit; of longer numbers the digits themselves are compared.
                    if position &- start < 19 {
                        value = value &* 10 &+ digit
                    } else {
                        let (product, overflow) = value.multipliedReportingOverflow(by: 10)
                        let (sum, carry) = product.addingReportingOverflow(digit)
                        value = overflow || carry || value == .max ? .max : sum
                    }
                    position &+= 1
                }
                guard position > start else { return count == 0 ? "it must begin with a number" : "a number is missing after a dot" }
                if mode == .strict, bytes[start] == 0x30, position &- start > 1 { return "a number begins with 0" }
                switch count {
                case 0: numbers.0 = value
                case 1: numbers.1 = value
                default: numbers.2 = value
                }
                count &+= 1
                guard count < 3, position < bytes.count, bytes[position] == UInt8(ascii: ".") else { break }
                position &+= 1
            }
            if mode == .strict, count < 3 { return "it needs three numbers" }
            preReleaseEnd = UInt32(position)
            guard position < bytes.count else { return nil }
            if bytes[position] == UInt8(ascii: "-") {
                position &+= 1
                preReleaseStart = UInt32(position)
                if let reason = identifiers(bytes, &position, refusesZeros: mode == .strict) { return reason }
                preReleaseEnd = UInt32(position)
            }
            if position < bytes.count, bytes[position] == UInt8(ascii: "+") {
                position &+= 1
                if let reason = identifiers(bytes, &position, refusesZeros: false) { return reason }
            }
            return position == bytes.count ? nil : "it has a character that does not belong there"
        }

        /// Reads identifiers with dots between them; returns what is wrong, or `nil`.
        private func identifiers(_ bytes: UnsafeBufferPointer<UInt8>, _ position: inout Int, refusesZeros: Bool) -> String? {
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
                guard position > start else { return "an identifier is empty or has a character that does not belong there" }
                if refusesZeros, isNumber, bytes[start] == 0x30, position &- start > 1 { return "a number begins with 0" }
                guard position < bytes.count, bytes[position] == UInt8(ascii: ".") else { return nil }
                position &+= 1
            }
        }
    }
}
