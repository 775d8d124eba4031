import StoreCore

/// The name of a record's file, which no other record has: the identifier's digest, and 64 random bits.
///
/// Held as numbers: a start looks at thousands of them, and strings of their length would each be memory of their own.
struct RecordName: Hashable, Sendable {
    private let identifier: SHA256.Digest
    private let random: UInt64

    private static let ending = ".text"
    private static let size = 64 + 1 + 16 + ending.utf8.count

    /// A name for a new record of a text.
    init(of identifier: String) {
        self.identifier = FileNames.digest(of: identifier)
        random = UInt64.random(in: .min ... .max)
    }

    /// Reads the name of a file; `nil` where that is not a record's.
    init?(_ name: String) {
        var name = name
        guard let found = name.withUTF8({ Self(utf8: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = found
    }

    /// Reads a name as it is saved.
    init?(utf8 name: UnsafeRawBufferPointer) {
        guard name.count == Self.size, name[64] == UInt8(ascii: "-"), name[81...].elementsEqual(Self.ending.utf8),
            let identifier = SHA256.Digest(hex: name[..<64].bindMemory(to: UInt8.self))
        else { return nil }
        var random: UInt64 = 0
        for digit in name[65..<81] {
            guard let value = Self.value(ofHexadecimal: digit) else { return nil }
            random = random << 4 | UInt64(value)
        }
        self.identifier = identifier
        self.random = random
    }

    private static func value(ofHexadecimal digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }

    /// The name as the file has it.
    var text: String {
        String(unsafeUninitializedCapacity: Self.size) { name in
            identifier.write(hex: name)
            name[64] = UInt8(ascii: "-")
            for place in 0..<16 {
                let value = UInt8(truncatingIfNeeded: random >> UInt64(60 - 4 * place)) & 0xF
                name[65 + place] = value < 10 ? 0x30 + value : 0x61 + value - 10
            }
            _ = name[81...].update(fromContentsOf: Self.ending.utf8)
            return Self.size
        }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(random) }
}
