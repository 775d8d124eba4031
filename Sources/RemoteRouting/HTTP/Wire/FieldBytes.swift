/// The bytes of field values that go back to the server, such as entity tags and cookies, as text that gives them back exactly.
///
/// Text that is not UTF-8 has the scalar U+10FF00 + *byte* for each byte beyond ASCII. Clients never interpret these values, so the scalars
/// need no meaning; U+10FF80 to U+10FFFF are private or no characters.
enum FieldBytes {
    private static let stand: UInt32 = 0x10FF00
    /// The first byte in UTF-8 of every scalar that stands for a byte.
    private static let lead: UInt8 = 0xF4

    /// Returns bytes as the text of an address. Escapes bytes outside ASCII if they are not UTF-8, so that a request has the same bytes.
    static func address(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return bytes.reduce(into: "") { text, byte in
            if byte < 0x80 {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + String(byte, radix: 16, uppercase: true)
            }
        }
    }

    static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) {
            guard bytes.contains(lead), text.unicodeScalars.contains(where: { byte(of: $0) != nil }) else { return text }
        }
        return bytes.reduce(into: "") { text, byte in
            let scalar = byte < 0x80 ? Unicode.Scalar(byte) : Unicode.Scalar(stand + UInt32(byte)) ?? "\u{FFFD}"
            text.unicodeScalars.append(scalar)
        }
    }

    static func append(_ text: String, to bytes: inout [UInt8]) {
        guard text.utf8.contains(lead) else { return bytes.append(contentsOf: text.utf8) }
        for scalar in text.unicodeScalars {
            if let byte = byte(of: scalar) {
                bytes.append(byte)
            } else {
                bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
    }

    private static func byte(of scalar: Unicode.Scalar) -> UInt8? {
        guard scalar.value >= stand + 0x80 else { return nil }
        return UInt8(scalar.value - stand)
    }
}
