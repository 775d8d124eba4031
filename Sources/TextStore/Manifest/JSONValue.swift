/// A JSON document as written: numbers as digits, and members in order, duplicates included.
///
/// Foundation's decoders silently drop one of two members with the same name, but the store must notice an identifier that a manifest lists
/// twice. Source: RFC 8259.
indirect enum JSONValue: Equatable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([Member])

    /// A name and its value; an object may contain a name more than once.
    struct Member: Equatable {
        let name: String
        let value: JSONValue
    }

    /// The kind of value, for error messages.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .number(let digits): "the number \(digits.prefix(32))"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The reason why bytes are not JSON.
    struct Malformed: Error, Equatable {
        let offset: Int
        let reason: String
    }

    /// Reads a whole document in UTF-8, perhaps with a byte order mark, up to a depth of nested values.
    static func read(_ bytes: UnsafeBufferPointer<UInt8>, depth: Int) throws(Malformed) -> JSONValue {
        var reader = Reader(bytes: bytes)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { reader.position = 3 }
        let value = try reader.value(depth: depth)
        reader.skipSpace()
        guard reader.position == bytes.count else { throw reader.malformed("bytes follow the document") }
        return value
    }

    private struct Reader {
        let bytes: UnsafeBufferPointer<UInt8>
        var position = 0

        func malformed(_ reason: String) -> Malformed { Malformed(offset: position, reason: reason) }

        var next: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func skipSpace() {
            while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
        }

        mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard next == byte else { return false }
            position += 1
            return true
        }

        mutating func value(depth: Int) throws(Malformed) -> JSONValue {
            guard depth > 0 else { throw malformed("values are nested too deeply") }
            skipSpace()
            guard let byte = next else { throw malformed("the document ends early") }
            switch byte {
            case UInt8(ascii: "{"): return try object(depth: depth)
            case UInt8(ascii: "["): return try array(depth: depth)
            case UInt8(ascii: "\""): return .string(try string())
            case UInt8(ascii: "t"): return try word("true", .bool(true))
            case UInt8(ascii: "f"): return try word("false", .bool(false))
            case UInt8(ascii: "n"): return try word("null", .null)
            default: return try number()
            }
        }

        private mutating func word(_ word: StaticString, _ value: JSONValue) throws(Malformed) -> JSONValue {
            let isWord = word.withUTF8Buffer { bytes[position...].starts(with: $0) }
            guard isWord else { throw malformed("a value is expected") }
            position += word.utf8CodeUnitCount
            return value
        }

        private mutating func number() throws(Malformed) -> JSONValue {
            let start = position
            func digits() -> Int { bytes[position...].prefix { $0 &- 0x30 <= 9 }.count }
            if next == UInt8(ascii: "-") { position += 1 }
            let isZero = next == 0x30
            let count = digits()
            guard count > 0, !isZero || count == 1 else { throw malformed("a value is expected") }
            position += count
            if next == UInt8(ascii: ".") {
                position += 1
                guard digits() > 0 else { throw malformed("a number ends with its decimal point") }
                position += digits()
            }
            if let byte = next, byte | 0x20 == UInt8(ascii: "e") {
                position += 1
                if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
                guard digits() > 0 else { throw malformed("a number has an empty exponent") }
                position += digits()
            }
            return .number(String(decoding: bytes[start..<position], as: UTF8.self))
        }

        private mutating func array(depth: Int) throws(Malformed) -> JSONValue {
            position += 1
            var values: [JSONValue] = []
            if take(UInt8(ascii: "]")) { return .array(values) }
            repeat { values.append(try value(depth: depth - 1)) } while take(UInt8(ascii: ","))
            guard take(UInt8(ascii: "]")) else { throw malformed("an array does not end") }
            return .array(values)
        }

        private mutating func object(depth: Int) throws(Malformed) -> JSONValue {
            position += 1
            var members: [Member] = []
            if take(UInt8(ascii: "}")) { return .object(members) }
            repeat {
                skipSpace()
                guard next == UInt8(ascii: "\"") else { throw malformed("a member has no name") }
                let name = try string()
                guard take(UInt8(ascii: ":")) else { throw malformed("a member has no value") }
                members.append(Member(name: name, value: try value(depth: depth - 1)))
            } while take(UInt8(ascii: ","))
            guard take(UInt8(ascii: "}")) else { throw malformed("an object does not end") }
            return .object(members)
        }

        private mutating func string() throws(Malformed) -> String {
            position += 1
            var text: [UInt8] = []
            while true {
                let plain = bytes[position...].prefix { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") && $0 >= 0x20 }
                text.append(contentsOf: plain)
                position += plain.count
                guard let byte = next else { throw malformed("a string does not end") }
                guard byte >= 0x20 else { throw malformed("a string has a control character") }
                position += 1
                if byte == UInt8(ascii: "\"") { break }
                text.append(contentsOf: try escape())
            }
            guard let result = String(validating: text, as: UTF8.self) else { throw malformed("a string is not UTF-8") }
            return result
        }

        private mutating func escape() throws(Malformed) -> [UInt8] {
            guard let byte = next else { throw malformed("a string does not end") }
            position += 1
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
            case UInt8(ascii: "b"): return [0x08]
            case UInt8(ascii: "f"): return [0x0C]
            case UInt8(ascii: "n"): return [0x0A]
            case UInt8(ascii: "r"): return [0x0D]
            case UInt8(ascii: "t"): return [0x09]
            case UInt8(ascii: "u"):
                var unit = try hexUnit()
                if unit & 0xFC00 == 0xD800 {
                    guard next == UInt8(ascii: "\\"), position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "u") else {
                        throw malformed("a surrogate is not paired")
                    }
                    position += 2
                    let low = try hexUnit()
                    guard low & 0xFC00 == 0xDC00 else { throw malformed("a surrogate is not paired") }
                    unit = 0x10000 + ((unit & 0x3FF) << 10) + (low & 0x3FF)
                }
                guard let scalar = Unicode.Scalar(unit) else { throw malformed("a surrogate is not paired") }
                return Array(String(scalar).utf8)
            default: throw malformed("an unknown escape")
            }
        }

        private mutating func hexUnit() throws(Malformed) -> UInt32 {
            guard position + 4 <= bytes.count else { throw malformed("a string does not end") }
            var value: UInt32 = 0
            for byte in bytes[position..<position + 4] {
                switch byte {
                case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
                case 0x41...0x46, 0x61...0x66: value = value << 4 | UInt32((byte | 0x20) - 0x61 + 10)
                default: throw malformed("an escape has a digit that is not hexadecimal")
                }
            }
            position += 4
            return value
        }
    }
}
