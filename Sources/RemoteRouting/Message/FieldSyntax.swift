extension String {
    /// Whether this is a token of RFC 9110 §5.6.2: what a method or a field name may be.
    var isToken: Bool {
        !isEmpty && utf8.allSatisfy(\.isTokenByte)
    }

    /// Whether this is a field value of RFC 9110 §5.5: no control byte but the tab, and no blank at either end.
    var isFieldValue: Bool {
        guard let first = utf8.first, let last = utf8.last else { return true }
        return !first.isBlank && !last.isBlank && utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
    }
}

extension Substring {
    /// The text without the blanks at its ends, which do not belong to a field's value (RFC 9110 §5.5).
    var withoutBlanksAtEnds: String {
        // Most have none.
        guard utf8.first?.isBlank == true || utf8.last?.isBlank == true else { return String(self) }
        guard let first = utf8.firstIndex(where: { !$0.isBlank }), let last = utf8.lastIndex(where: { !$0.isBlank }) else { return "" }
        return String(self[first...last])
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }

    var isTokenByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"), UInt8(ascii: "'"),
            UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
            UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
