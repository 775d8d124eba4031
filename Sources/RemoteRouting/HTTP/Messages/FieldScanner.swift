/// Scans the elements of header field values: tokens, quoted strings and delimiters (RFC 9110 §5.6).
struct FieldScanner {
    private let bytes: [UInt8]
    private(set) var position = 0
    /// Whether an unclosed quote was found. A later quote is then unclosed too, so the scanner skips the search.
    private var isUnclosed = false

    init(_ text: some StringProtocol) {
        bytes = Array(text.utf8)
    }

    var isAtEnd: Bool { position == bytes.count }

    var peek: UInt8? { isAtEnd ? nil : bytes[position] }

    /// Skips spaces and tabs (OWS of RFC 9110 §5.6.3).
    mutating func skipBlanks() {
        while let byte = peek, byte.isBlank { position += 1 }
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    /// Consumes a token; returns `nil` and consumes nothing if there is none.
    mutating func token() -> String? {
        let start = position
        while let byte = peek, byte.isTokenByte { position += 1 }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Consumes a quoted string and returns its content; returns `nil` and consumes nothing if there is none or it does not end.
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

    mutating func tokenOrQuoted() -> String? {
        peek == UInt8(ascii: "\"") ? quoted() : token()
    }

    /// Consumes everything up to the first of some characters outside quotes, or to the end.
    mutating func skip(toAnyOf characters: [Unicode.Scalar]) {
        let stops = characters.map { UInt8(ascii: $0) }
        while let byte = peek, !stops.contains(byte) {
            if byte == UInt8(ascii: "\""), quoted() != nil { continue }
            position += 1
        }
    }

    /// Consumes everything through a character; returns `nil` and consumes nothing if the character does not occur.
    mutating func text(upTo character: Unicode.Scalar) -> String? {
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: character)) else { return nil }
        defer { position = end + 1 }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }
}

extension String {
    var asTokenOrQuoted: String {
        if isToken { return self }
        let inside = unicodeScalars.flatMap { $0 == "\\" || $0 == "\"" ? ["\\", $0] : [$0] }
        return "\"" + String(String.UnicodeScalarView(inside)) + "\""
    }
}
