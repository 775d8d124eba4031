internal import StorePlatform

/// The unique name of a record's file: the identifier's digest, and 64 random bits.
///
/// Stored as numbers, because a start examines thousands of names, and each string of that length would need an allocation.
struct RecordName: Hashable, Sendable {
    private let identifier: SHA256.Digest
    private let random: UInt64

    private static let ending = ".text"
    private static let size = 64 + 1 + 16 + ending.utf8.count

    /// Returns the SHA-256 of a string in composed normal form, so that two spellings of one string are one name.
    static func digest(of name: String) -> SHA256.Digest { SHA256.digest(of: Array(name.normalFormC.utf8)) }

    init(of identifier: String) {
        self.identifier = Self.digest(of: identifier)
        random = UInt64.random(in: .min ... .max)
    }

    /// Reads the name of a file; `nil` if the file is not a record.
    init?(_ name: String) {
        var name = name
        guard let found = name.withUTF8({ Self(utf8: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = found
    }

    /// Reads a name from its UTF-8; `nil` if the file is not a record.
    init?(utf8 name: UnsafeRawBufferPointer) {
        let name = name.bindMemory(to: UInt8.self)
        guard name.count == Self.size, name[64] == UInt8(ascii: "-"), name[81...].elementsEqual(Self.ending.utf8),
            let identifier = SHA256.Digest(hex: name[..<64]), let random = UInt64(hexadecimal: name[65..<81])
        else { return nil }
        self.identifier = identifier
        self.random = random
    }

    /// The name of the file: the identifier's SHA-256, a random number, and the ending.
    var text: String {
        String(unsafeUninitializedCapacity: Self.size) { name in
            identifier.write(hex: name)
            name[64] = UInt8(ascii: "-")
            random.write(hexadecimal: name, at: 65)
            _ = name[81...].update(fromContentsOf: Self.ending.utf8)
            return Self.size
        }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(random) }
}
