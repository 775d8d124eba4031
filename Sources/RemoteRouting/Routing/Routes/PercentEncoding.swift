internal import RemoteHTTP

/// An encoding of bytes in addresses or forms: the set of unescaped bytes, and the form of a space.
enum PercentEncoding {
    /// RFC 3986 §2.3: letters, digits and `-._~` stay; a space is `%20`.
    case component
    /// The URL standard's `application/x-www-form-urlencoded` set: letters, digits and `*-._` stay; a space is `+`.
    case form

    private func keeps(_ byte: UInt8) -> Bool {
        if byte.isASCIIAlphanumeric { return true }
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): return true
        case UInt8(ascii: "~"): return self == .component
        case UInt8(ascii: "*"): return self == .form
        default: return false
        }
    }

    func append(_ text: some StringProtocol, to output: inout [UInt8]) {
        for byte in text.utf8 {
            if keeps(byte) {
                output.append(byte)
            } else if byte == UInt8(ascii: " "), self == .form {
                output.append(UInt8(ascii: "+"))
            } else {
                output.append(UInt8(ascii: "%"))
                output.append(WebAddress.digits[Int(byte >> 4)])
                output.append(WebAddress.digits[Int(byte & 0xF)])
            }
        }
    }

    func encode(_ text: some StringProtocol) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(text.utf8.count)
        append(text, to: &output)
        return String(decoding: output, as: UTF8.self)
    }
}
