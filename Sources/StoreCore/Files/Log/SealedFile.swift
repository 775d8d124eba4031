package import StoreCore
package import StorePlatform

/// A kind of file that is written whole: a read returns the bytes of one write, or nothing.
///
/// | Offset | Size | Field |
/// |---|---|---|
/// | 0 | 16 | the header: kind, version, and their checksum |
/// | 16 | 8 | checksum of the content, which depends on the version |
/// | 24 | | the content |
///
/// A write replaces the file in one step. Values that change often belong in a log instead.
package struct SealedFile: Sendable {
    private let header: FileHeader
    /// The word in the temporary names of these files. A process that is killed leaves such a file behind.
    package let temporaryKind: String
    package static let headSize = FileHeader.size + 8

    /// Describes a kind of file by eight letters, its version, and the word in the temporary names, of letters only.
    package init(_ magic: String, version: UInt32, temporaryKind: String) {
        (header, self.temporaryKind) = (FileHeader(magic, version: version), temporaryKind)
    }

    // MARK: Writing

    /// Writes a file in one step. An error leaves the old file, unless only the synchronization of the directory failed.
    package func write(
        _ content: [UInt8], as name: String, in directory: any FilePlace, options: FileWriteOptions = FileWriteOptions()
    ) throws(StoreError) {
        try AtomicFile.write(encode(content), as: name, in: directory, kind: temporaryKind, options: options)
    }

    package func encode(_ content: [UInt8]) -> [UInt8] {
        var writer = ByteWriter(capacity: Self.headSize + content.count)
        writer.append(header.bytes)
        writer.put(content.withUnsafeBytes { checksum(of: $0) })
        writer.append(content)
        return writer.bytes
    }

    // MARK: Reading

    /// Checks that a file may be replaced: it is missing, damaged, or of this version. Throws if it has an intact header of another
    /// version.
    package func checkVersion(of name: String, in folder: DirectoryHandle) throws(StoreError) {
        // A file that cannot be opened has no known version. The following write reports the cause.
        guard let opened = try? OpenFile(reading: name, in: folder), let version = header.otherVersion(in: opened) else { return }
        throw StoreError(version, of: folder.path(of: name))
    }

    /// Returns the content in the bytes of a file; `nil` if they are damaged, or of another kind or version.
    package func content(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard bytes.count >= Self.headSize, header.version(in: bytes) == header.version else { return nil }
        let content = UnsafeRawBufferPointer(rebasing: bytes[Self.headSize...])
        return checksum(of: content) == bytes.number(FileHeader.size, as: UInt64.self) ? content : nil
    }

    private func checksum(of content: UnsafeRawBufferPointer) -> UInt64 { Checksum64.of(content, seed: UInt64(header.version)) }

    /// Reads files of one directory in sequence with one directory handle and one buffer.
    ///
    /// A start reads thousands of small files, for which paths and allocations would cost more than the bytes.
    package struct Reader {
        private let format: SealedFile
        /// The open directory; `nil` if it does not exist.
        private let folder: DirectoryHandle?
        /// The size of the longest file in bytes.
        private let limit: Int
        private var buffer: [UInt8] = []

        package init(_ format: SealedFile, in folder: DirectoryHandle?, limit: Int = .max) {
            (self.format, self.folder, self.limit) = (format, folder, limit)
        }

        /// Reads a file and converts its content, which is valid during the call only; `nil` if the file does not exist.
        ///
        /// Throws ``StoreError/Code/unreadableRecord`` for a damaged file, for one of another version, or for something else in its place.
        package mutating func read<Value>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Value) throws(StoreError) -> Value? {
            guard let folder else { return nil }
            let file: OpenFile
            do throws(StoreError) {
                guard let opened = try OpenFile(reading: name, in: folder) else { return nil }
                file = opened
            } catch {
                guard error.isOfSocket else { throw error }
                throw StoreError(
                    .unreadableRecord, "a socket has the name \(folder.path(of: name).escapedForDisplay()); move it away",
                    underlyingError: error)
            }
            // One read suffices for most files. Larger, damaged, and special files take the slower path.
            if let value = readAtOnce(file, body) { return value }
            if let value = try readWhole(file, body) { return value }
            if let version = format.header.otherVersion(in: file) { throw StoreError(version, of: folder.path(of: name)) }
            throw StoreError(
                .unreadableRecord, "the head or the checksum of \(folder.path(of: name).escapedForDisplay()) is wrong")
        }

        private mutating func readAtOnce<Value>(_ file: borrowing OpenFile, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
            if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: 1 << 14) }
            return buffer.withUnsafeMutableBytes { buffer in
                // The slower path reports the error.
                guard let count = try? file.read(atOnceInto: buffer), count < buffer.count else { return nil }
                return format.content(of: UnsafeRawBufferPointer(rebasing: buffer[..<count])).map(body)
            }
        }

        private mutating func readWhole<Value>(
            _ file: borrowing OpenFile, _ body: (UnsafeRawBufferPointer) -> Value
        ) throws(StoreError) -> Value? {
            let status = try file.status()
            // A directory or a pipe in the file's place counts as a damaged file.
            guard status.kind == .regular, status.size <= limit else { return nil }
            if buffer.count < status.size { buffer = [UInt8](repeating: 0, count: status.size) }
            return try buffer.withUnsafeMutableBufferPointer { buffer throws(StoreError) in
                let buffer = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<status.size])
                let count = try file.read(into: buffer)
                return format.content(of: UnsafeRawBufferPointer(rebasing: buffer[..<count])).map(body)
            }
        }
    }
}

/// The first 16 bytes of each file that is a log or is sealed.
///
/// | Offset | Size | Field |
/// |---|---|---|
/// | 0 | 8 | the kind of file, such as `SHoutbox` |
/// | 8 | 4 | version of the content |
/// | 12 | 4 | checksum of the preceding 12 bytes |
///
/// Numbers are little-endian. Checksums are XXH64; a checksum of 4 bytes is its lower half.
struct FileHeader: Sendable {
    let version: UInt32
    let bytes: [UInt8]
    static let size = 16

    init(_ magic: String, version: UInt32) {
        precondition(magic.utf8.count == 8)
        self.version = version
        var writer = ByteWriter(capacity: Self.size)
        writer.append(magic.utf8)
        writer.put(version)
        writer.put(writer.bytes.withUnsafeBytes { UInt32(truncatingIfNeeded: Checksum64.of($0)) })
        bytes = writer.bytes
    }

    /// Returns the version in the header of a file; `nil` if it is not an intact header of this kind.
    func version(in file: UnsafeRawBufferPointer) -> UInt32? {
        guard file.count >= Self.size, file.prefix(8).elementsEqual(bytes.prefix(8)) else { return nil }
        let sum = UInt32(truncatingIfNeeded: Checksum64.of(UnsafeRawBufferPointer(rebasing: file[..<12])))
        return file.number(12, as: UInt32.self) == sum ? file.number(8, as: UInt32.self) : nil
    }

    /// Returns the version of a file that has an intact header of this kind, and another version; otherwise `nil`.
    func otherVersion(in file: borrowing OpenFile) -> OtherVersion? {
        guard let status = try? file.status(), status.kind == .regular else { return nil }
        // A file that cannot be read has no known version.
        guard let bytes = try? file.read(Self.size, at: 0), let found = bytes.withUnsafeBytes({ self.version(in: $0) }), found != version
        else { return nil }
        return OtherVersion(found: found, known: version)
    }
}

/// The cause of an error about a file that has an intact header of another version.
///
/// Such a file is not damaged: another version of the framework has written it, and can read it.
struct OtherVersion: Error, Hashable, CustomStringConvertible {
    /// The version of the file.
    let found: UInt32
    /// The version that this program reads.
    let known: UInt32

    var description: String { "version \(found) instead of \(known)" }
}

extension StoreError {
    /// Creates the error about a file of another version, with its kind in words unless its path shows the kind. The usual remedy is for a
    /// file that stays as it is.
    init(_ version: OtherVersion, of path: String, _ noun: String? = nil, remedy: String? = nil) {
        let subject = path.escapedForDisplay() + (noun.map { ", \($0)," } ?? "")
        let usual =
            version.found > version.known ? "update the program" : "read it with the earlier version of the program, or move it away"
        self.init(
            .unreadableRecord,
            "\(subject) has version \(version.found), and this program reads version \(version.known); \(remedy ?? usual)",
            underlyingError: version)
    }

    /// Whether the file of the error is intact, and another version of the framework has written it.
    package var isOfOtherVersion: Bool { underlyingError is OtherVersion }
}
