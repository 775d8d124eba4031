/// Reads the building blocks of structured field values: tokens, quoted strings, delimiters (RFC 9110 §5.6).
struct FieldScanner {
    private let bytes: [UInt8]
    private(set) var position = 0
    /// A quote that is never closed was met: then no later one is either, and need not be tried.
    private var isUnclosed = false

    init(_ text: some StringProtocol) {
        bytes = Array(text.utf8)
    }

    var isAtEnd: Bool { position == bytes.count }

    /// The next byte; `nil` at the end.
    var peek: UInt8? { isAtEnd ? nil : bytes[position] }

    /// Skips spaces and tabs.
    mutating func skipBlanks() {
        while let byte = peek, byte == 0x20 || byte == 0x09 { position += 1 }
    }

    /// Takes one character if it is the next.
    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    /// Takes a token; `nil`, and nothing taken, where there is none.
    mutating func token() -> String? {
        let start = position
        while let byte = peek, byte.isTokenByte { position += 1 }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Takes a quoted string and gives what it quotes; `nil`, and nothing taken, where there is none or it does not end.
    mutating func quoted() -> String? {
        let start = position
        guard !isUnclosed, take("\"") else { return nil }
        var content: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = peek else { break }
                content.append(escaped)
                position += 1
            default:
                content.append(byte)
            }
        }
        position = start
        isUnclosed = true
        return nil
    }

    /// Takes a token or a quoted string.
    mutating func tokenOrQuoted() -> String? {
        peek == UInt8(ascii: "\"") ? quoted() : token()
    }

    /// Takes everything up to one of these characters that stands outside quotes, or to the end.
    mutating func skip(toAnyOf characters: [Unicode.Scalar]) {
        let stops = characters.map { UInt8(ascii: $0) }
        while let byte = peek, !stops.contains(byte) {
            if byte == UInt8(ascii: "\""), quoted() != nil { continue }
            position += 1
        }
    }

    /// Takes everything up to a character, which is taken too; `nil`, and nothing taken, where it does not come.
    mutating func text(upTo character: Unicode.Scalar) -> String? {
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: character)) else { return nil }
        defer { position = end + 1 }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }
}

extension String {
    /// The text as a parameter's value has it: bare where it is a token, else in quotes.
    var asTokenOrQuoted: String {
        if isToken { return self }
        return "\"" + replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
