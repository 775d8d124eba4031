package import Foundation

/// The addresses that servers name: the targets of redirects and links, and the files of manifests.
///
/// The URL standard says which characters an address may be written with: blanks around it are dropped, and a character that an address
/// cannot contain is escaped. Each byte is escaped for itself, so existing escapes stay as they are. RFC 3986 §5.2 says where a relative
/// reference leads. Control characters are refused, and so are backslashes before the query, which some servers treat as slashes.
package enum WebAddress {
    /// Resolves a reference against the address of the response or the file that contains it; without a base, it must be absolute.
    ///
    /// - Returns: An http or https address with a lowercase scheme and without a fragment; `nil` if the reference leads to no such address.
    package static func resolve(_ reference: String, from base: URL?) -> URL? {
        guard !reference.utf8.contains(where: \.isControl),
            let first = reference.utf8.firstIndex(where: { $0 != 0x20 }), let last = reference.utf8.lastIndex(where: { $0 != 0x20 }),
            var target = URIReference(String(reference[first...last])).resolved(against: URIReference(base?.absoluteString ?? "")),
            let scheme = target.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let authority = target.authority.flatMap(ascii(authority:)),
            !target.path.utf8.contains(UInt8(ascii: "\\"))
        else { return nil }
        target.scheme = scheme
        target.authority = authority
        target.path = target.path.isEmpty ? "/" : escaped(target.path)
        target.query = target.query.map { escaped($0) }
        // A fragment is never sent.
        target.fragment = nil
        let text = target.text
        // Foundation repairs an address that it finds malformed; such an address is refused instead.
        guard let url = URL(string: text), url.absoluteString == text else { return nil }
        return url
    }

    /// Returns an authority with its host in ASCII; `nil` if the host is missing or has no such form, or if the port is impossible.
    private static func ascii(authority: String) -> String? {
        let bytes = authority.utf8
        guard !bytes.contains(UInt8(ascii: "\\")) else { return nil }
        let start = bytes.lastIndex(of: UInt8(ascii: "@")).map { bytes.index(after: $0) } ?? bytes.startIndex
        let (host, digits) = authority[start...].hostAndPort
        guard digits.utf8.allSatisfy(\.isDigit) else { return nil }
        let number = UInt16(digits)
        guard digits.isEmpty || number ?? 0 > 0 else { return nil }
        let port = number.map { ":\($0)" } ?? ""
        let name = host.utf8.allSatisfy { $0 < 0x80 } ? String(host) : HostName.ascii(String(host))
        guard let name, !name.isEmpty else { return nil }
        return authority[..<start] + HostName.withoutRoot(name) + port
    }

    /// Escapes the bytes that neither a path nor a query may contain (RFC 3986 §3.3, §3.4), and a percent sign that begins no escape.
    package static func escaped(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isEscape =
                byte == UInt8(ascii: "%") && index + 2 < bytes.count && bytes[index + 1].isHexDigit && bytes[index + 2].isHexDigit
            if isEscape || isLegal(byte) {
                output.append(byte)
            } else {
                output += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    package static let digits = Array("0123456789ABCDEF".utf8)
    /// The legal bytes other than letters and digits.
    private static let marks = Set("-._~!$&'()*+,;=:@/?".utf8)

    private static func isLegal(_ byte: UInt8) -> Bool { byte.isASCIIAlphanumeric || marks.contains(byte) }
}

enum HostName {
    /// Whether the system's Foundation converts international names.
    static let convertsInternational = ascii("\u{FC}") == "xn--tda"

    /// Returns an international name in lowercase ASCII (UTS 46); `nil` if it has no such form, or if Foundation does not convert names.
    static func ascii(_ name: String) -> String? {
        // Foundation knows the tables of UTS 46, but offers them only through whole addresses.
        guard name.utf8.allSatisfy({ $0 >= 0x80 || isLegal($0) }), let text = URL(string: "https://\(name)/")?.absoluteString,
            text.hasPrefix("https://"), text.hasSuffix("/")
        else { return nil }
        let host = text.dropFirst(8).dropLast()
        guard host.utf8.allSatisfy(isLegal) else { return nil }
        return host.lowercased()
    }

    /// A name without the dot of the root, if it is a name of this machine (RFC 6761 §6.3).
    ///
    /// With the dot, some resolvers ask a name server, which may be on another machine.
    static func withoutRoot(_ name: String) -> String {
        guard name.utf8.last == UInt8(ascii: ".") else { return name }
        let lower = name.lowercased()
        return lower == "localhost." || lower.hasSuffix(".localhost.") ? String(name.dropLast()) : name
    }

    static func isLegal(_ byte: UInt8) -> Bool { byte.isASCIIAlphanumeric || "-._".utf8.contains(byte) }
}
