internal import StoreCore
internal import StorePlatform

/// The size, time and inode of a file; a cheap test of whether its content may have changed.
struct FileStamp: Hashable, Sendable {
    var size: Int
    /// The modification time in nanoseconds since 1970.
    var modified: Int64
    var inode: UInt64

    package init(size: Int, modified: Int64, inode: UInt64) {
        self.size = size
        self.modified = modified
        self.inode = inode
    }

    init(_ status: FileStatus) {
        self.init(size: status.size, modified: status.modified, inode: status.inode)
    }
}

/// The journal's record of an installed file.
struct FileRecord: Hashable, Sendable {
    /// The version in the list from which the file was downloaded.
    var version: String
    /// The SHA-256 of the content.
    var digest: SHA256.Digest
    /// The stamp of the installed file.
    var stamp: FileStamp
    /// The previous record of the path, as long as the previous file may still be in place.
    var before: Before?

    struct Before: Hashable, Sendable {
        var version: String
        var digest: SHA256.Digest
        var stamp: FileStamp
    }

    init(version: String, digest: SHA256.Digest, stamp: FileStamp) {
        self.version = version
        self.digest = digest
        self.stamp = stamp
    }

    /// Returns the record that matches a stamp, this one or the previous one; `nil` if the file was touched since.
    func matching(_ stamp: FileStamp) -> FileRecord? {
        if self.stamp == stamp { return self }
        guard let before, before.stamp == stamp else { return nil }
        return FileRecord(version: before.version, digest: before.digest, stamp: before.stamp)
    }

    /// Returns the record that matches a digest, this one or the previous one; `nil` if the file was edited.
    func matching(_ digest: SHA256.Digest) -> FileRecord? {
        if self.digest == digest { return self }
        guard let before, before.digest == digest else { return nil }
        return FileRecord(version: before.version, digest: before.digest, stamp: before.stamp)
    }

    /// Returns whether a file of this size may have the content of this record or of the previous one.
    func mayHave(size: Int) -> Bool {
        stamp.size == size || before?.stamp.size == size
    }

    // MARK: Text

    /// Writes `+ SIZE TIME INODE DIGEST VERSION PATH`.
    func write(to line: inout [UInt8], path: PathKey) {
        line += "+ \(stamp.size) \(stamp.modified) \(stamp.inode) \(digest.hex) ".utf8
        LineText.escape(version, to: &line)
        line.append(LineText.space)
        LineText.escape(path.path, to: &line)
    }

    static func read(_ line: UnsafeBufferPointer<UInt8>) -> (path: PathKey, record: FileRecord)? {
        var words = line.split(separator: LineText.space, maxSplits: 6, omittingEmptySubsequences: false).makeIterator()
        guard words.next()?.count == 1, let size = words.next().flatMap({ LineText.number($0) }), size >= 0,
            let modified = words.next().flatMap({ LineText.number($0) }), let inode = words.next().flatMap({ LineText.unsigned($0) }),
            let digest = words.next().flatMap({ SHA256.Digest(hex: $0) }), let version = words.next().flatMap({ LineText.unescape($0) }),
            let path = words.next().flatMap({ LineText.unescape($0) })
        else { return nil }
        let stamp = FileStamp(size: size, modified: Int64(modified), inode: inode)
        return (PathKey(path), FileRecord(version: version, digest: digest, stamp: stamp))
    }
}

/// The encoding of numbers and names in a line of text; an encoded name contains no space and no line break.
enum LineText {
    static let space = UInt8(ascii: " ")
    static let newline = UInt8(ascii: "\n")
    private static let escape = UInt8(ascii: "%")
    private static let digits = Array("0123456789abcdef".utf8)

    static func escape(_ text: String, to line: inout [UInt8]) {
        for byte in text.utf8 {
            if byte <= space || byte == 0x7F || byte == escape {
                line.append(escape)
                line.append(digits[Int(byte >> 4)])
                line.append(digits[Int(byte & 15)])
            } else {
                line.append(byte)
            }
        }
    }

    /// Decodes a name; `nil` for text that `escape(_:to:)` never writes.
    static func unescape(_ bytes: some RandomAccessCollection<UInt8>) -> String? {
        guard bytes.contains(escape) else { return String(validating: bytes, as: UTF8.self) }
        var plain: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == escape else {
                plain.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else { return nil }
            plain.append(high << 4 | low)
        }
        return String(validating: plain, as: UTF8.self)
    }

    static func hex(_ number: UInt64) -> [UInt8] {
        stride(from: 60, through: 0, by: -4).map { digits[Int(truncatingIfNeeded: number >> UInt64($0)) & 15] }
    }

    static func number(hex bytes: some Collection<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for byte in bytes {
            guard let digit = value(byte) else { return nil }
            number = number << 4 | UInt64(digit)
        }
        return number
    }

    static func unsigned(_ bytes: some Collection<UInt8>) -> UInt64? {
        guard !bytes.isEmpty else { return nil }
        var number: UInt64 = 0
        for byte in bytes {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (product, isLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isLarger) = product.addingReportingOverflow(UInt64(byte - 0x30))
            guard !isLarge, !isLarger else { return nil }
            number = sum
        }
        return number
    }

    static func number(_ bytes: some Collection<UInt8>) -> Int? {
        if bytes.first == UInt8(ascii: "-") { return unsigned(bytes.dropFirst()).flatMap { Int(exactly: $0) }.map { -$0 } }
        return unsigned(bytes).flatMap { Int(exactly: $0) }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
