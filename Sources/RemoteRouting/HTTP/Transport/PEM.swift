internal import Foundation

/// The textual encoding of certificates and keys (RFC 7468).
enum PEM {
    private struct Block {
        let label: String
        let lines: [String]
        /// Whether the text contains the boundary line that ends the block.
        var isWhole = true

        var bytes: [UInt8]? { isWhole ? Data(base64Encoded: lines.joined()).map { [UInt8]($0) } : nil }

        var text: String { "-----BEGIN \(label)-----\n\(lines.joined(separator: "\n"))\n-----END \(label)-----\n" }
    }

    /// The maximum size of a text in bytes; authorities are parsed for each connection.
    static let limit = 1 << 20

    /// Returns the certificates of a text without the surrounding text.
    static func certificates(in data: Data, _ operation: String) throws(RemoteError) -> Data {
        guard data.count <= limit else {
            throw RemoteError.invalidTLSOptions(operation, "the text is more than 1 MiB long; pass only the required certificates")
        }
        var text = ""
        for block in blocks(in: data) where block.label.hasSuffix("CERTIFICATE") {
            guard let bytes = block.bytes, DER.publicKey(ofCertificate: bytes) != nil else {
                throw RemoteError.invalidTLSOptions(
                    operation, "a certificate block is malformed; replace it, or copy it again from its source")
            }
            text += block.text
        }
        guard !text.isEmpty else {
            let isDER = data.first == 0x30 && DER.publicKey(ofCertificate: [UInt8](data)) != nil
            throw RemoteError.invalidTLSOptions(
                operation,
                isDER
                    ? "the certificate is in DER; convert it to PEM with openssl x509 -inform der"
                    : "there is no certificate in PEM; pass text that contains -----BEGIN CERTIFICATE-----")
        }
        return Data(text.utf8)
    }

    /// Returns the certificates of a validated text in DER.
    static func certificates(in pem: Data) -> [Data] { blocks(in: pem).compactMap { $0.bytes.map { Data($0) } } }

    static func key(in data: Data, hasPassword: Bool, _ operation: String) throws(RemoteError) -> Data {
        guard let block = blocks(in: data).first(where: { $0.isWhole && $0.label.hasSuffix("PRIVATE KEY") }) else {
            throw RemoteError.invalidTLSOptions(
                operation, "there is no private key in PEM; pass text that contains -----BEGIN PRIVATE KEY-----")
        }
        let isEncrypted = block.label.hasPrefix("ENCRYPTED") || block.lines.contains { $0.hasPrefix("Proc-Type:") }
        if isEncrypted, !hasPassword {
            throw RemoteError.invalidTLSOptions(operation, "the private key is encrypted; pass its password")
        }
        return Data(block.text.utf8)
    }

    /// Reads a file, up to one byte more than the limit.
    static func contents(of file: URL, _ operation: String) throws(RemoteError) -> Data {
        do {
            let handle = try FileHandle(forReadingFrom: file)
            defer { try? handle.close() }
            return try handle.read(upToCount: limit + 1) ?? Data()
        } catch {
            throw RemoteError.invalidTLSOptions(
                operation, "the file cannot be read; check its path and its permissions", underlyingError: error)
        }
    }

    private static func blocks(in data: Data) -> [Block] {
        var found: [Block] = []
        var label: String?
        var lines: [String] = []
        func cut() {
            if let label { found.append(Block(label: label, lines: lines, isWhole: false)) }
        }
        // Keeps empty lines, because they end the header of an encrypted key (RFC 1421 §4.4).
        for line in String(decoding: data, as: UTF8.self).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            // An editor may have added a byte order mark.
            let line = line.drop { $0 == "\u{FEFF}" }.withoutBlanksAtEnds
            if let begun = boundary(line, "BEGIN") {
                cut()
                (label, lines) = (begun, [])
            } else if let open = label, boundary(line, "END") == open {
                found.append(Block(label: open, lines: lines))
                label = nil
            } else if label != nil {
                lines.append(line)
            }
        }
        cut()
        return found
    }

    private static func boundary(_ line: String, _ word: String) -> String? {
        let (start, end) = ("-----\(word) ", "-----")
        guard line.hasPrefix(start), line.hasSuffix(end), line.count > start.count + end.count else { return nil }
        return String(line.dropFirst(start.count).dropLast(end.count))
    }
}

/// A parser of certificates in DER (X.690) that reads only as much as the public key requires.
enum DER {
    private struct Element {
        let tag: UInt8
        /// The tag, the length and the content.
        let whole: ArraySlice<UInt8>
        let content: ArraySlice<UInt8>
    }

    /// Returns the `SubjectPublicKeyInfo` of a certificate (RFC 5280 §4.1); `nil` if the bytes are not a certificate.
    static func publicKey(ofCertificate bytes: [UInt8]) -> [UInt8]? {
        guard let outer = elements(of: bytes[...]), outer.count == 1, outer[0].tag == 0x30,
            // The signed part, the signature algorithm, and the signature.
            let parts = elements(of: outer[0].content), parts.map(\.tag) == [0x30, 0x30, 0x03],
            var fields = elements(of: parts[0].content)
        else { return nil }
        // Version 1 certificates omit the version.
        if fields.first?.tag == 0xA0 { fields.removeFirst() }
        // Serial number, algorithm, issuer, validity, subject and key.
        guard fields.prefix(6).map(\.tag) == [0x02, 0x30, 0x30, 0x30, 0x30, 0x30] else { return nil }
        return Array(fields[5].whole)
    }

    private static func elements(of bytes: ArraySlice<UInt8>) -> [Element]? {
        var rest = bytes
        var found: [Element] = []
        while !rest.isEmpty {
            guard let element = first(of: rest) else { return nil }
            found.append(element)
            rest = rest[element.whole.endIndex...]
        }
        return found
    }

    private static func first(of bytes: ArraySlice<UInt8>) -> Element? {
        var place = bytes.startIndex + 1
        guard let tag = bytes.first, place < bytes.endIndex else { return nil }
        var length = Int(bytes[place])
        place += 1
        if length >= 0x80 {
            // A length that needs more than four bytes exceeds any file.
            let count = length & 0x7F
            guard (1...4).contains(count), bytes.endIndex - place >= count else { return nil }
            length = bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
            place += count
        }
        guard bytes.endIndex - place >= length else { return nil }
        let end = place + length
        return Element(tag: tag, whole: bytes[bytes.startIndex..<end], content: bytes[place..<end])
    }
}
